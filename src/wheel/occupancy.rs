//! Which slots hold a timer: one bit for each slot, and one for each word of these bits. A search skips 4096 empty
//! slots at a step.

pub(super) struct Occupancy {
    words: Box<[u64]>,
    /// One bit for each of `words`, set if that is not zero.
    summary: Box<[u64]>,
}

impl Occupancy {
    pub(super) fn new(slots: u32) -> Occupancy {
        let words = slots.div_ceil(u64::BITS) as usize;
        let summary = words.div_ceil(u64::BITS as usize);
        Occupancy {
            words: vec![0; words].into(),
            summary: vec![0; summary].into(),
        }
    }

    #[inline]
    pub(super) fn set(&mut self, slot: u32) {
        let (word, bit) = split(slot as usize);
        self.words[word] |= bit;
        let (summary, bit) = split(word);
        self.summary[summary] |= bit;
    }

    #[inline]
    pub(super) fn clear(&mut self, slot: u32) {
        let (word, bit) = split(slot as usize);
        self.words[word] &= !bit;
        if self.words[word] == 0 {
            let (summary, bit) = split(word);
            self.summary[summary] &= !bit;
        }
    }

    pub(super) fn clear_all(&mut self) {
        self.words.fill(0);
        self.summary.fill(0);
    }

    pub(super) fn contains(&self, slot: u32) -> bool {
        let (word, bit) = split(slot as usize);
        self.words[word] & bit != 0
    }

    /// The first occupied slot from `slot` on, and before `end`.
    pub(super) fn first(&self, slot: u32, end: u32) -> Option<u32> {
        let slot = slot as usize;
        let from = slot / BITS;
        let found = match self.words.get(from)? >> (slot % BITS) {
            0 => self.first_beyond_word(from + 1)?,
            bits => slot + bits.trailing_zeros() as usize,
        };
        let found = found as u32;
        (found < end).then_some(found)
    }

    /// All bits, in words.
    pub(super) fn words(&self) -> &[u64] {
        &self.words
    }

    fn first_beyond_word(&self, word: usize) -> Option<usize> {
        let mut index = word / BITS;
        let mut bits = self.summary.get(index)? >> (word % BITS) << (word % BITS);
        while bits == 0 {
            index += 1;
            bits = *self.summary.get(index)?;
        }
        let word = index * BITS + bits.trailing_zeros() as usize;
        Some(word * BITS + self.words[word].trailing_zeros() as usize)
    }
}

const BITS: usize = u64::BITS as usize;

#[inline]
fn split(index: usize) -> (usize, u64) {
    (index / BITS, 1 << (index % BITS))
}

#[cfg(test)]
mod tests {
    use super::Occupancy;

    #[test]
    fn finds_each_bit_from_every_start() {
        for slots in [1, 63, 64, 65, 1_209, 10_209] {
            let mut occupancy = Occupancy::new(slots);
            assert_eq!(occupancy.first(0, slots), None);
            for slot in [0, 1, 62, 63, 64, 65, 4_095, 4_096, slots - 1] {
                if slot >= slots {
                    continue;
                }
                occupancy.set(slot);
                assert!(occupancy.contains(slot));
                assert_eq!(occupancy.first(0, slots), Some(slot));
                assert_eq!(occupancy.first(slot, slots), Some(slot));
                assert_eq!(occupancy.first(slot / 2, slots), Some(slot));
                assert_eq!(occupancy.first(slot + 1, slots), None);
                assert_eq!(occupancy.first(0, slot), None);
                occupancy.clear(slot);
                assert!(!occupancy.contains(slot));
            }
        }
    }
}
