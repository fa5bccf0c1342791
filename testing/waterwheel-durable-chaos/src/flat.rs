//! Is a service as it was?

use crate::gauge::Minute;

/// How much more is still as it was: memory, which an allocator gives back late, and the slowest hundredth.
const MEMORY: f64 = 1.2;
const LATER: f64 = 1.5;
/// And so many milliseconds: less than that is the machine's.
const A_MILLISECOND: f64 = 1.0;

/// The medians of some minutes.
#[derive(Debug, Clone, Copy)]
struct Medians {
    memory: f64,
    file: f64,
    p50: f64,
    p99: f64,
}

/// Prints a table of the quarters. Holds the last one against the first, and the last third of its minutes against the third before.
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
    let third = last.len() / 3;
    let (before, end) = (
        &last[last.len().saturating_sub(2 * third)..last.len() - third],
        &last[last.len() - third..],
    );
    print("second third of the last", before);
    print("last third of the last", end);
    let medians = [first, last, before, end].map(|minutes: &[Minute]| Medians::of(minutes));
    let [Some(first), Some(last), Some(before), Some(end)] = medians else {
        println!("there are too few minutes to say whether it stays as it was");
        return false;
    };
    let verdicts = [
        is_flat("memory", last.memory, first.memory * MEMORY, first.memory),
        is_flat(
            "memory of one process",
            end.memory,
            before.memory * MEMORY,
            before.memory,
        ),
        is_flat(
            "p99",
            last.p99,
            first.p99 * LATER + A_MILLISECOND,
            first.p99,
        ),
    ];
    verdicts == [true; 3]
}

fn print(name: &str, minutes: &[Minute]) {
    let Some(medians) = Medians::of(minutes) else {
        println!("| {name} | was not measured |");
        return;
    };
    // A minute with a fault counts here.
    let highest = minutes.iter().map(|it| it.p99).fold(f64::NAN, f64::max);
    println!(
        "| {name} | {:.1} | {:.1} | {:.2} | {:.2} | {highest:.2} |",
        medians.memory / 1e6,
        medians.file / 1e6,
        medians.p50,
        medians.p99,
    );
}

fn is_flat(what: &str, now: f64, most: f64, then: f64) -> bool {
    // What was not measured is not flat.
    let is_flat = now <= most;
    let verdict = if is_flat { "flat" } else { "NOT FLAT" };
    println!("{what}: {:.2} x, {verdict}", now / then);
    is_flat
}

impl Medians {
    fn of(minutes: &[Minute]) -> Option<Medians> {
        let median = |value: fn(&Minute) -> f64| {
            let values = minutes.iter().map(value).filter(|it| it.is_finite());
            let mut values: Vec<f64> = values.collect();
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied()
        };
        Some(Medians {
            memory: median(|it| it.memory)?,
            file: median(|it| it.file)?,
            p50: median(|it| it.p50)?,
            p99: median(|it| it.p99)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quarter(minutes: impl Iterator<Item = (f64, f64)>) -> Vec<Minute> {
        let minute = |(memory, p99)| Minute {
            memory,
            p99,
            p50: 1.0,
            file: 1.0,
            ..Minute::default()
        };
        minutes.map(minute).collect()
    }

    fn steady() -> Vec<Minute> {
        quarter((0..15).map(|_| (50e6, 3.0)))
    }

    #[test]
    fn a_last_quarter_is_flat_unless_it_grows_or_is_later() {
        let cases: [(&str, bool, fn(u8) -> (f64, f64)); 4] = [
            ("some are worse", true, |at| {
                (55e6, if at < 6 { 900.0 } else { 3.0 })
            }),
            ("more memory", false, |_| (61e6, 3.0)),
            ("later", false, |_| (50e6, 5.6)),
            // It begins with less memory, and ends with more.
            ("grows", false, |at| (20e6 + 4e6 * f64::from(at), 3.0)),
        ];
        for (name, is_flat, minute) in cases {
            let last = quarter((0..15).map(minute));
            assert_eq!(judge(&[steady(), last]), is_flat, "{name}");
        }
        assert!(!judge(&[steady(), Vec::new()]) && !judge(&[]));
    }
}
