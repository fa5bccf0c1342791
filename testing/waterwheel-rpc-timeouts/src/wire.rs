//! The frames on a socket: a length and a few bytes, by tokio-util's codec.

use std::io;

use bytes::{Buf as _, BufMut as _, BytesMut};
use tokio_util::codec::{Decoder, Encoder, LengthDelimitedCodec};

use crate::plan::CallId;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// Client to server: answer this.
    Call(CallId),
    /// Server to client: the answer. Replies come in the order of their delays, not of their calls.
    Reply(CallId),
    /// Client to server: keeps the connection open.
    Heartbeat,
}

const CALL: u8 = 1;
const REPLY: u8 = 2;
const HEARTBEAT: u8 = 3;

/// The longest frame: one byte for its kind, then the call's id.
const LONGEST: usize = 1 + size_of::<u64>();

pub(crate) struct FrameCodec {
    lengths: LengthDelimitedCodec,
}

impl FrameCodec {
    pub(crate) fn new() -> Self {
        let lengths = LengthDelimitedCodec::builder()
            .length_field_type::<u16>()
            .max_frame_length(LONGEST)
            .new_codec();
        FrameCodec { lengths }
    }
}

impl Encoder<Frame> for FrameCodec {
    type Error = io::Error;

    fn encode(&mut self, frame: Frame, out: &mut BytesMut) -> io::Result<()> {
        let mut payload = BytesMut::with_capacity(LONGEST);
        match frame {
            Frame::Call(CallId(id)) => {
                payload.put_u8(CALL);
                payload.put_u64(id);
            }
            Frame::Reply(CallId(id)) => {
                payload.put_u8(REPLY);
                payload.put_u64(id);
            }
            Frame::Heartbeat => payload.put_u8(HEARTBEAT),
        }
        self.lengths.encode(payload.freeze(), out)
    }
}

impl Decoder for FrameCodec {
    type Item = Frame;
    type Error = io::Error;

    fn decode(&mut self, input: &mut BytesMut) -> io::Result<Option<Frame>> {
        let Some(mut payload) = self.lengths.decode(input)? else {
            return Ok(None);
        };
        let kind = payload.try_get_u8().ok();
        let id = payload.try_get_u64().ok().map(CallId);
        match (kind, id) {
            (Some(CALL), Some(id)) => Ok(Some(Frame::Call(id))),
            (Some(REPLY), Some(id)) => Ok(Some(Frame::Reply(id))),
            (Some(HEARTBEAT), None) => Ok(Some(Frame::Heartbeat)),
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a frame of an unknown kind or a wrong length",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_survive_the_wire_however_the_bytes_are_cut() {
        let frames = [
            Frame::Call(CallId::new(3, 4)),
            Frame::Heartbeat,
            Frame::Reply(CallId(u64::MAX)),
        ];
        let mut codec = FrameCodec::new();
        let mut wire = BytesMut::new();
        for frame in frames {
            codec.encode(frame, &mut wire).expect("short enough");
        }
        let mut arrived = BytesMut::new();
        let mut decoded = Vec::new();
        for byte in wire {
            arrived.put_u8(byte);
            decoded.extend(codec.decode(&mut arrived).expect("frames"));
        }
        assert_eq!(decoded, frames);
    }

    #[test]
    fn rubbish_is_an_error() {
        for rubbish in [&[0, 0][..], &[0, 1, 9], &[0, 2, CALL, 0], &[255, 255, 0]] {
            let mut wire = BytesMut::from(rubbish);
            assert!(FrameCodec::new().decode(&mut wire).is_err(), "{rubbish:?}");
        }
    }
}
