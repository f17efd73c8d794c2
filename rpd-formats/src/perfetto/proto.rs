//! Encoder of protocol buffers, as far as traces need it.

/// Field numbers of Perfetto's messages.
pub(super) mod field {
    pub(in super::super) const PACKET: u32 = 1;

    pub(in super::super) mod packet {
        pub(in super::super::super) const CLOCK_SNAPSHOT: u32 = 6;
        pub(in super::super::super) const TIMESTAMP: u32 = 8;
        pub(in super::super::super) const SEQUENCE: u32 = 10;
        pub(in super::super::super) const TRACK_EVENT: u32 = 11;
        pub(in super::super::super) const INTERNED_DATA: u32 = 12;
        pub(in super::super::super) const SEQUENCE_FLAGS: u32 = 13;
        pub(in super::super::super) const DEFAULTS: u32 = 59;
        pub(in super::super::super) const TRACK_DESCRIPTOR: u32 = 60;
        pub(in super::super::super) const FIRST_ON_SEQUENCE: u32 = 87;
    }

    pub(in super::super) mod clocks {
        pub(in super::super::super) const CLOCK: u32 = 1;
        pub(in super::super::super) const PRIMARY: u32 = 2;
        pub(in super::super::super) const ID: u32 = 1;
        pub(in super::super::super) const TIMESTAMP: u32 = 2;
    }

    pub(in super::super) mod defaults {
        pub(in super::super::super) const CLOCK: u32 = 58;
    }

    pub(in super::super) mod event {
        pub(in super::super::super) const CATEGORY: u32 = 3;
        pub(in super::super::super) const TYPE: u32 = 9;
        pub(in super::super::super) const NAME: u32 = 10;
        pub(in super::super::super) const TRACK: u32 = 11;
        pub(in super::super::super) const COUNTER: u32 = 30;
        pub(in super::super::super) const DOUBLE_COUNTER: u32 = 44;
        pub(in super::super::super) const CALLSTACK: u32 = 56;
    }

    pub(in super::super) mod interned {
        pub(in super::super::super) const CATEGORIES: u32 = 1;
        pub(in super::super::super) const EVENT_NAMES: u32 = 2;
        pub(in super::super::super) const ANNOTATION_NAMES: u32 = 3;
        pub(in super::super::super) const FUNCTION_NAMES: u32 = 5;
        pub(in super::super::super) const FRAMES: u32 = 6;
        pub(in super::super::super) const CALLSTACKS: u32 = 7;
        pub(in super::super::super) const BUILD_IDS: u32 = 16;
        pub(in super::super::super) const MAPPING_PATHS: u32 = 17;
        pub(in super::super::super) const SOURCE_PATHS: u32 = 18;
        pub(in super::super::super) const MAPPINGS: u32 = 19;
        pub(in super::super::super) const ID: u32 = 1;
        pub(in super::super::super) const TEXT: u32 = 2;
    }

    pub(in super::super) mod mapping {
        pub(in super::super::super) const ID: u32 = 1;
        pub(in super::super::super) const BUILD_ID: u32 = 2;
        pub(in super::super::super) const START: u32 = 4;
        pub(in super::super::super) const END: u32 = 5;
        pub(in super::super::super) const LOAD_BIAS: u32 = 6;
        pub(in super::super::super) const PATH: u32 = 7;
    }

    pub(in super::super) mod frame {
        pub(in super::super::super) const ID: u32 = 1;
        pub(in super::super::super) const FUNCTION: u32 = 2;
        pub(in super::super::super) const MAPPING: u32 = 3;
        pub(in super::super::super) const ADDRESS: u32 = 4;
        pub(in super::super::super) const SOURCE_PATH: u32 = 5;
        pub(in super::super::super) const LINE: u32 = 6;
    }

    pub(in super::super) mod callstack {
        pub(in super::super::super) const ID: u32 = 1;
        pub(in super::super::super) const FRAMES: u32 = 2;
    }

    pub(in super::super) mod track {
        pub(in super::super::super) const UUID: u32 = 1;
        pub(in super::super::super) const NAME: u32 = 2;
        pub(in super::super::super) const PROCESS: u32 = 3;
        pub(in super::super::super) const THREAD: u32 = 4;
        pub(in super::super::super) const PARENT: u32 = 5;
        pub(in super::super::super) const COUNTER: u32 = 8;
    }

    pub(in super::super) mod process {
        pub(in super::super::super) const PID: u32 = 1;
        pub(in super::super::super) const COMMAND: u32 = 2;
        pub(in super::super::super) const NAME: u32 = 6;
        pub(in super::super::super) const START: u32 = 7;
    }

    pub(in super::super) mod thread {
        pub(in super::super::super) const PID: u32 = 1;
        pub(in super::super::super) const TID: u32 = 2;
        pub(in super::super::super) const NAME: u32 = 5;
    }

    pub(in super::super) mod counter {
        pub(in super::super::super) const UNIT: u32 = 3;
        pub(in super::super::super) const MULTIPLIER: u32 = 4;
    }
}

/// Bytes kept free for the length of a nested message.
const LENGTH: usize = 2;

#[inline]
pub(super) fn varint(out: &mut Vec<u8>, mut value: u64) {
    let mut bytes = [0; 10];
    let mut len = 0;
    while value >= 0x80 {
        bytes[len] = value as u8 | 0x80;
        value >>= 7;
        len += 1;
    }
    bytes[len] = value as u8;
    out.extend_from_slice(&bytes[..=len]);
}

#[inline]
fn tag(out: &mut Vec<u8>, field: u32, wire_type: u32) {
    varint(out, u64::from(field << 3 | wire_type));
}

/// A field with an integer.
#[inline]
pub fn uint(out: &mut Vec<u8>, field: u32, value: u64) {
    tag(out, field, 0);
    varint(out, value);
}

/// A field with a floating number.
#[inline]
pub(super) fn double(out: &mut Vec<u8>, field: u32, value: f64) {
    tag(out, field, 1);
    out.extend_from_slice(&value.to_le_bytes());
}

/// A field with text.
#[inline]
pub fn text(out: &mut Vec<u8>, field: u32, value: &str) {
    tag(out, field, 2);
    varint(out, value.len() as u64);
    out.extend_from_slice(value.as_bytes());
}

/// A field with a message that `fill` appends.
#[inline]
pub fn nested(out: &mut Vec<u8>, field: u32, fill: impl FnOnce(&mut Vec<u8>)) {
    tag(out, field, 2);
    let at = out.len();
    out.extend_from_slice(&[0; LENGTH]);
    fill(out);
    let len = out.len() - at - LENGTH;
    if len < 1 << (7 * LENGTH) {
        // A length may be spelled with more bytes than it needs.
        out[at] = len as u8 & 0x7f | 0x80;
        out[at + 1] = (len >> 7) as u8;
    } else {
        long_length(out, at, len);
    }
}

#[cold]
fn long_length(out: &mut Vec<u8>, at: usize, len: usize) {
    let mut length = Vec::new();
    varint(&mut length, len as u64);
    out.splice(at..at + LENGTH, length);
}

/// A debug annotation with an unsigned number.
#[inline]
pub(super) fn annotation(out: &mut Vec<u8>, name: u64, value: u64) {
    number_annotation(out, name, 3 << 3, value);
}

/// A debug annotation with a signed number; `value` is not negative.
#[inline]
pub(super) fn signed_annotation(out: &mut Vec<u8>, name: u64, value: u64) {
    number_annotation(out, name, 4 << 3, value);
}

#[inline]
fn number_annotation(out: &mut Vec<u8>, name: u64, tag: u8, value: u64) {
    out.extend_from_slice(&[4 << 3 | 2, 0]);
    let at = out.len();
    out.push(1 << 3);
    varint(out, name);
    out.push(tag);
    varint(out, value);
    // Two numbers at most: less than 128.
    out[at - 1] = (out.len() - at) as u8;
}

/// A debug annotation with a floating number.
#[inline]
pub(super) fn double_annotation(out: &mut Vec<u8>, name: u64, value: f64) {
    nested(out, 4, |out| {
        uint(out, 1, name);
        double(out, 5, value);
    });
}

/// A debug annotation with text.
#[inline]
pub(super) fn text_annotation(out: &mut Vec<u8>, name: u64, value: &str) {
    nested(out, 4, |out| {
        uint(out, 1, name);
        text(out, 6, value);
    });
}

/// The flow that an event belongs to.
#[inline]
pub(super) fn flow(out: &mut Vec<u8>, id: u64) {
    tag(out, 47, 1);
    out.extend_from_slice(&id.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protobuf_fields_have_varints_and_lengths() {
        let mut out = Vec::new();
        uint(&mut out, 1, 300);
        uint(&mut out, 58, u64::MAX);
        assert_eq!(out[..5], [8, 0xac, 2, 0xd0, 3]);
        assert_eq!(out[5..], [255, 255, 255, 255, 255, 255, 255, 255, 255, 1]);
        out.clear();
        nested(&mut out, 2, |out| text(out, 1, "ab"));
        assert_eq!(out, [0x12, 0x84, 0, 0x0a, 2, b'a', b'b']);
        out.clear();
        nested(&mut out, 2, |out| text(out, 1, &"x".repeat(20_000)));
        // 20,004 is 0b1_0011100_0100100.
        assert_eq!(out[..4], [0x12, 0xa4, 0x9c, 1]);
        assert_eq!(out.len(), 4 + 20_004);
        out.clear();
        annotation(&mut out, 300, 1);
        assert_eq!(out, [0x22, 5, 8, 0xac, 2, 0x18, 1]);
        out.clear();
        double_annotation(&mut out, 3, 1.0);
        assert_eq!(
            out,
            [0x22, 0x8b, 0, 8, 3, 0x29, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]
        );
    }
}
