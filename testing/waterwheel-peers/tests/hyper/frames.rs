//! HTTP/2 by hand, as far as a peer needs it that answers no PING.

/// The first bytes of a client: the preface, and its settings, which are the default.
pub(crate) fn client_begins() -> Vec<u8> {
    [PREFACE, &SETTINGS].concat()
}

pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A frame of settings that changes none: no payload, the type 4, no flags, the stream 0.
pub(crate) const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];

const PING: u8 = 6;
const ACKNOWLEDGED: u8 = 1;

/// How many of these frames are a PING that asks for an answer. The last frame may be cut short.
pub(crate) fn pings(mut frames: &[u8]) -> usize {
    let mut count = 0;
    while let &[high, middle, low, kind, flags, ..] = frames {
        count += usize::from(kind == PING && flags & ACKNOWLEDGED == 0);
        let length = u32::from_be_bytes([0, high, middle, low]) as usize;
        frames = frames.get(9 + length..).unwrap_or_default();
    }
    count
}
