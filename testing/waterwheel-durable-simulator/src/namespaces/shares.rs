use super::NAMES;

const COUNT: usize = NAMES.len();

/// The number of deliveries that each namespace has begun while another one waited for a place.
///
/// A waiting namespace gets its whole quantum in each round. So another one has begun no more than its own quantum for each round of the first, and for two partial
/// rounds.
#[derive(Debug, Default)]
pub struct Shares {
    waits: [bool; COUNT],
    /// The number of deliveries that the others have begun while this one waited.
    begun: [[u64; COUNT]; COUNT],
}

impl Shares {
    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Shares::default();
    }

    /// Notes that a delivery of this namespace has begun.
    pub fn begins(&mut self, at: usize) {
        for (waits, begun) in self.waits.into_iter().zip(&mut self.begun) {
            begun[at] += u64::from(waits);
        }
    }

    /// Checks that each waiting namespace has its share, with these priorities. A priority of zero is unknown.
    ///
    /// # Errors
    ///
    /// A namespace has less than its share.
    pub fn look(&mut self, waits: [bool; COUNT], priorities: [u64; COUNT]) -> Result<(), String> {
        for at in 0..COUNT {
            if !waits[at] || !self.waits[at] {
                self.begun[at] = [0; COUNT];
                continue;
            }
            let rounds = self.begun[at][at] / priorities[at] + 2;
            for other in 0..COUNT {
                let begun = self.begun[at][other];
                if other != at && priorities[other] > 0 && begun > rounds * priorities[other] {
                    return Err(format!(
                        "{} has begun {begun} while {} waited, which has begun {:?}: {priorities:?}",
                        NAMES[other], NAMES[at], self.begun[at]
                    ));
                }
            }
        }
        self.waits = waits;
        Ok(())
    }
}
