use std::sync::Arc;
use std::time::Duration;

/// How a delivery has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The delivery succeeded: the timer is settled.
    Well,
    /// The delivery failed: the timer is retried after the next retry delay.
    Failed(Arc<str>),
    /// The timer is retried after this delay, capped at a year, instead of the next retry delay. It still counts against the number of retry delays.
    Later(Arc<str>, Duration),
    /// The timer is delivered again after this delay, capped at a year. That is no failure.
    Snoozed(Duration),
    /// The timer is not retried.
    Dead(Arc<str>),
}

impl Ended {
    /// Returns it as it is stored: a word, the delay in microseconds if there is one, and the error.
    #[must_use]
    pub fn to_stored(&self) -> Vec<u8> {
        match self {
            Ended::Well => "well ".to_owned(),
            Ended::Failed(error) => format!("failed {error}"),
            Ended::Later(error, delay) => format!("later {} {error}", delay.as_micros()),
            Ended::Snoozed(delay) => format!("snoozed {}", delay.as_micros()),
            Ended::Dead(error) => format!("dead {error}"),
        }
        .into_bytes()
    }

    /// Returns what was stored, or `None` if a newer version has written it.
    #[must_use]
    pub fn from_stored(stored: &[u8]) -> Option<Ended> {
        let delay = |micros: &str| Some(Duration::from_micros(micros.parse().ok()?));
        let (word, rest) = str::from_utf8(stored).ok()?.split_once(' ')?;
        Some(match word {
            "well" => Ended::Well,
            "failed" => Ended::Failed(rest.into()),
            "later" => {
                let (micros, error) = rest.split_once(' ')?;
                Ended::Later(error.into(), delay(micros)?)
            }
            "snoozed" => Ended::Snoozed(delay(rest)?),
            "dead" => Ended::Dead(rest.into()),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_read_as_it_was_stored() {
        let error = || Arc::from("503 from bank\nretry later\0");
        let (none, long) = (Duration::ZERO, Duration::from_secs(31_536_000));
        for ended in [
            Ended::Well,
            Ended::Failed(error()),
            Ended::Failed("".into()),
            Ended::Later(error(), none),
            Ended::Later("".into(), long),
            Ended::Snoozed(long),
            Ended::Dead(error()),
        ] {
            assert_eq!(Ended::from_stored(&ended.to_stored()), Some(ended));
        }
        for newer in [
            "",
            "well",
            "later 5",
            "later soon x",
            "snoozed ",
            "moved 5",
            "\u{fffd}",
        ] {
            assert_eq!(Ended::from_stored(newer.as_bytes()), None, "{newer}");
        }
        assert_eq!(Ended::from_stored(&[b'd', 0xff]), None);
    }
}
