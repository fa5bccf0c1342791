/// FNV-1a with 64 bits: the same on each machine and in each version, as what is stored has to be. Nothing depends on it that a user could forge.
#[derive(Debug, Clone, Copy)]
pub struct Hash(u64);

impl Hash {
    /// Of nothing yet.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "nothing is generic over it")]
    pub fn new() -> Hash {
        Hash(0xcbf2_9ce4_8422_2325)
    }

    /// Goes on by these bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Goes on by a number.
    pub fn number(&mut self, number: i64) {
        self.bytes(&number.to_le_bytes());
    }

    /// The hash of all that was given.
    #[must_use]
    pub fn finish(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_its_inventors() {
        // From the test vectors of the FNV page.
        for (text, expected) in [
            ("", 0xcbf2_9ce4_8422_2325),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0x8594_4171_f739_67e8),
        ] {
            let mut hash = Hash::new();
            hash.bytes(text.as_bytes());
            assert_eq!(hash.finish(), expected, "{text}");
        }
    }
}
