use fastrand::Rng;

/// Decides which of the unsynced changes survive.
pub trait Choice {
    /// The length of a sector.
    fn sector(&self) -> usize;

    /// Returns how many of the changes of a sector, or of a length, survive: the first ones. A change is identified by the disk call that made it, and the
    /// file by a number.
    fn keep(&mut self, file: usize, changes: &[u64]) -> usize;
}

/// Chooses by a random number.
#[derive(Debug)]
pub struct Chance<'a> {
    rng: &'a mut Rng,
    sector: usize,
    way: Way,
}

#[derive(Debug)]
enum Way {
    None,
    All,
    /// Keeps the changes up to this call of the disk.
    Until(u64),
    /// Keeps those of some files, chosen by the bits of a number.
    Files(u64),
    /// Keeps this percentage, keeps another part up to a point, and loses the rest.
    Some(u32),
}

impl<'a> Chance<'a> {
    /// Chooses how to lose changes, on a disk that has had this many calls.
    pub fn new(rng: &'a mut Rng, calls: u64) -> Chance<'a> {
        let way = match rng.u32(0..10) {
            0 => Way::None,
            1 => Way::All,
            2 | 3 => Way::Until(calls.saturating_sub(rng.u64(0..64))),
            4 => Way::Files(rng.u64(..)),
            _ => Way::Some(*rng.choice(&[3, 50, 80, 97]).unwrap_or(&50)),
        };
        let sector = if rng.bool() { 512 } else { 4_096 };
        Chance { rng, sector, way }
    }
}

impl Choice for Chance<'_> {
    fn sector(&self) -> usize {
        self.sector
    }

    fn keep(&mut self, file: usize, changes: &[u64]) -> usize {
        let all = changes.len();
        match self.way {
            Way::None => 0,
            Way::All => all,
            Way::Until(call) => changes.partition_point(|at| *at <= call),
            Way::Files(bits) => match bits >> (file % 64) & 1 {
                1 => all,
                _ => 0,
            },
            Way::Some(_) if self.rng.u32(0..4) == 0 => self.rng.usize(0..=all),
            Way::Some(percent) if self.rng.u32(0..100) < percent => all,
            Way::Some(_) => 0,
        }
    }
}

/// Iterates over all possible choices, like an odometer.
#[derive(Debug)]
pub struct Each {
    sector: usize,
    /// The chosen number of changes, and the maximum, for each digit.
    digits: Vec<(usize, usize)>,
    asked: usize,
}

impl Each {
    /// The first choice, which keeps nothing.
    #[must_use]
    pub fn new(sector: usize) -> Each {
        Each {
            sector,
            digits: Vec::new(),
            asked: 0,
        }
    }

    /// Advances to the next choice. Returns false after the last.
    pub fn advance(&mut self) -> bool {
        self.asked = 0;
        while let Some((chosen, limit)) = self.digits.pop() {
            if chosen < limit {
                self.digits.push((chosen + 1, limit));
                return true;
            }
        }
        false
    }
}

impl Choice for Each {
    fn sector(&self) -> usize {
        self.sector
    }

    fn keep(&mut self, _: usize, changes: &[u64]) -> usize {
        if self.asked == self.digits.len() {
            self.digits.push((0, changes.len()));
        }
        self.asked += 1;
        self.digits[self.asked - 1].0
    }
}
