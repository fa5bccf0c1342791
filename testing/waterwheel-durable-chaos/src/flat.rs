//! Is a service as it was at first?

use crate::gauge::Minute;

/// The growth that still counts as flat: of memory, which an allocator gives back late, and of the slowest hundredth.
const MEMORY: f64 = 1.2;
const LATER: f64 = 1.5;
/// The increase that still counts as flat, in milliseconds: a smaller one comes from the machine.
const A_MILLISECOND: f64 = 1.0;

/// Prints a table of the quarters. Compares the last one to the first, and the last third of its minutes to the third before.
pub(crate) fn judge(quarters: &[Vec<Minute>]) -> bool {
    println!(
        "| medians of the minutes | memory, MB | file, MB | p50, ms | p99, ms | highest p99, ms |"
    );
    println!("|---|---|---|---|---|---|");
    for (number, minutes) in quarters.iter().enumerate() {
        print(&format!("quarter {}", number + 1), minutes);
    }
    let (Some(first), Some(last)) = (quarters.first(), quarters.last()) else {
        return false;
    };
    let (others, end) = last.split_at(last.len() - last.len() / 3);
    let before = &others[others.len().saturating_sub(end.len())..];
    print("second third of the last", before);
    print("last third of the last", end);
    let memory = |minutes: &[Minute]| median(minutes, |it| it.memory);
    let p99 = |minutes: &[Minute]| median(minutes, |it| it.p99);
    let verdicts = [
        ("memory", memory(last), memory(first), MEMORY, 0.0),
        (
            "memory of one process",
            memory(end),
            memory(before),
            MEMORY,
            0.0,
        ),
        ("p99", p99(last), p99(first), LATER, A_MILLISECOND),
    ]
    .map(|(what, now, then, times, more)| {
        let is_flat = now <= then * times + more;
        let verdict = if is_flat { "flat" } else { "NOT FLAT" };
        println!("{what}: {:.2} x, {verdict}", now / then);
        is_flat
    });
    verdicts == [true; 3]
}

fn print(name: &str, minutes: &[Minute]) {
    // Minutes with a fault count here.
    let highest = minutes.iter().map(|it| it.p99).fold(f64::NAN, f64::max);
    println!(
        "| {name} | {:.1} | {:.1} | {:.2} | {:.2} | {highest:.2} |",
        median(minutes, |it| it.memory) / 1e6,
        median(minutes, |it| it.file) / 1e6,
        median(minutes, |it| it.p50),
        median(minutes, |it| it.p99),
    );
}

/// The median of the measured values. NaN, which is not flat, if there is none.
fn median(minutes: &[Minute], value: fn(&Minute) -> f64) -> f64 {
    let values = minutes.iter().map(value).filter(|it| it.is_finite());
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quarter(minute: fn(u8) -> (f64, f64)) -> Vec<Minute> {
        let minutes = (0..15).map(minute).map(|(memory, p99)| Minute {
            memory,
            p99,
            ..Minute::default()
        });
        minutes.collect()
    }

    #[test]
    fn a_last_quarter_is_flat_unless_it_grows_or_is_later() {
        let first = quarter(|_| (50e6, 3.0));
        let some_are_worse = quarter(|at| (55e6, if at < 6 { 900.0 } else { 3.0 }));
        assert!(judge(&[first.clone(), some_are_worse]));
        for last in [
            quarter(|_| (61e6, 3.0)),
            quarter(|_| (50e6, 5.6)),
            // A quarter that begins with less memory, and ends with more.
            quarter(|at| (20e6 + 4e6 * f64::from(at), 3.0)),
            Vec::new(),
        ] {
            assert!(!judge(&[first.clone(), last.clone()]), "{last:?}");
        }
        assert!(!judge(&[]));
    }
}
