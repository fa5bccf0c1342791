//! The part of HTTP/2 that a peer needs that answers no PING.

/// The first bytes of a client: the preface, and the default settings.
pub(crate) fn client_begins() -> Vec<u8> {
    [PREFACE, &SETTINGS].concat()
}

pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A settings frame that changes nothing: no payload, the type 4, no flags, the stream 0.
pub(crate) const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];

const PING: u8 = 6;
const ACKNOWLEDGED: u8 = 1;

/// The number of frames that are a PING that asks for an answer. The last frame may be cut short.
pub(crate) fn pings(mut frames: &[u8]) -> usize {
    let mut count = 0;
    while let &[high, middle, low, kind, flags, ..] = frames {
        count += usize::from(kind == PING && flags & ACKNOWLEDGED == 0);
        let length = u32::from_be_bytes([0, high, middle, low]) as usize;
        frames = frames.get(9 + length..).unwrap_or_default();
    }
    count
}
