//! Encoding of steps in bytes: integers of variable length, differences to the step before, and lane addresses as
//! first address and stride where there is a stride.

use crate::isa::{Operation, Space, Transfer, lanes};

/// An instruction that a wave executed, with its memory accesses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Step {
    /// Number of the workgroup in the dispatch.
    pub group: u64,
    /// Number of the wave in the workgroup.
    pub wave: u64,
    /// Offset of the instruction from the first instruction of the code object, in bytes.
    pub offset: u64,
    /// Lanes that were active: one bit for each.
    pub exec: u64,
    /// Memory accesses of the lanes; addresses of inactive lanes are 0.
    pub transfers: Vec<Transfer>,
    /// Address and length in bytes of each range that a scalar load read.
    pub scalar: Vec<(u64, u64)>,
}

/// Values of earlier steps, to which the encoding of a step refers.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EncodingState {
    group: u64,
    wave: u64,
    offset: u64,
    exec: u64,
    /// Last address in each space, then of scalar loads.
    last: [u64; 4],
}

const NEW_GROUP: u8 = 1;
const NEW_WAVE: u8 = 2;
const NEW_EXEC: u8 = 4;
const TRANSFERS_SHIFT: u8 = 3;
/// Value of a count field for this many transfers or more; the number follows.
const MORE: usize = 3;
const SCALAR: u8 = 32;

/// Greatest size of an access of one lane, or of a scalar load, in bytes.
const LARGEST: u64 = 64;
/// Greatest number of transfers, or of ranges of scalar loads, of an instruction. Damaged files have more.
const MOST: u64 = 64;

const OPERATION_SHIFT: u8 = 2;
const OTHER_LANES: u8 = 16;
const SHAPE_SHIFT: u8 = 5;
/// Encodings of lane addresses: all equal, with a constant stride between active lanes, or listed.
const SAME: u8 = 0;
const STRIDE: u8 = 1;
const LIST: u8 = 2;

const SPACES: [Space; 3] = [Space::Global, Space::Scratch, Space::Lds];
const SCALAR_SPACE: usize = 3;
const OPERATIONS: [Operation; 4] = [
    Operation::Load,
    Operation::Store,
    Operation::Atomic(false),
    Operation::Atomic(true),
];

fn number_of<T: PartialEq>(list: &[T], value: &T) -> usize {
    list.iter().position(|one| one == value).unwrap_or(0)
}

/// Appends a number in seven-bit groups, the lowest first.
pub(super) fn encode_number(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Appends a difference, small for small magnitudes of either sign.
fn encode_signed(bytes: &mut Vec<u8>, value: u64) {
    let value = value.cast_signed();
    encode_number(bytes, ((value << 1) ^ (value >> 63)).cast_unsigned());
}

/// Removes a number from the front; `None` if it is cut off.
pub(super) fn decode_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn decode_signed(bytes: &mut &[u8]) -> Option<u64> {
    let value = decode_number(bytes)?;
    Some((value >> 1) ^ (value & 1).wrapping_neg())
}

fn decode_mask(bytes: &mut &[u8]) -> Option<u64> {
    let (mask, rest) = bytes.split_first_chunk::<8>()?;
    *bytes = rest;
    Some(u64::from_le_bytes(*mask))
}

fn decode_byte(bytes: &mut &[u8]) -> Option<u8> {
    let (&byte, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(byte)
}

/// Appends a step.
pub(super) fn encode(bytes: &mut Vec<u8>, state: &mut EncodingState, step: &crate::isa::Step<'_>) {
    let wave = step.wave as u64;
    let count = step.transfers.len();
    let mut head = (count.min(MORE) as u8) << TRANSFERS_SHIFT;
    for (bit, differs) in [
        (NEW_GROUP, step.group != state.group),
        (NEW_WAVE, wave != state.wave),
        (NEW_EXEC, step.exec != state.exec),
        (SCALAR, !step.scalar.is_empty()),
    ] {
        head |= if differs { bit } else { 0 };
    }
    bytes.push(head);
    if head & NEW_GROUP != 0 {
        encode_number(bytes, step.group);
    }
    if head & NEW_WAVE != 0 {
        encode_number(bytes, wave);
    }
    if head & NEW_EXEC != 0 {
        bytes.extend_from_slice(&step.exec.to_le_bytes());
    }
    encode_signed(bytes, step.offset.wrapping_sub(state.offset));
    (state.group, state.wave) = (step.group, wave);
    (state.offset, state.exec) = (step.offset, step.exec);
    if count >= MORE {
        encode_number(bytes, (count - MORE) as u64);
    }
    for transfer in step.transfers {
        encode_transfer(bytes, state, transfer);
    }
    if head & SCALAR != 0 {
        encode_number(bytes, step.scalar.len() as u64);
        for &(address, size) in step.scalar {
            encode_signed(bytes, address.wrapping_sub(state.last[SCALAR_SPACE]));
            encode_number(bytes, size);
            state.last[SCALAR_SPACE] = address;
        }
    }
}

fn encode_transfer(bytes: &mut Vec<u8>, state: &mut EncodingState, transfer: &Transfer) {
    let active = lanes(transfer.lanes).map(|lane| transfer.addresses[lane]);
    let first = active.clone().next().unwrap_or(0);
    let steps = active
        .clone()
        .zip(active.skip(1))
        .map(|(a, b)| b.wrapping_sub(a));
    let stride = steps.clone().next().unwrap_or(0);
    let shape = if steps.clone().any(|step| step != stride) {
        LIST
    } else if stride == 0 {
        SAME
    } else {
        STRIDE
    };
    let space = number_of(&SPACES, &transfer.space);
    let operation = number_of(&OPERATIONS, &transfer.operation) as u8;
    let other = transfer.lanes != state.exec;
    bytes.push(
        space as u8
            | operation << OPERATION_SHIFT
            | if other { OTHER_LANES } else { 0 }
            | shape << SHAPE_SHIFT,
    );
    encode_number(bytes, transfer.bytes.into());
    if other {
        bytes.extend_from_slice(&transfer.lanes.to_le_bytes());
    }
    encode_signed(bytes, first.wrapping_sub(state.last[space]));
    state.last[space] = first;
    match shape {
        STRIDE => encode_signed(bytes, stride),
        LIST => steps.for_each(|step| encode_signed(bytes, step)),
        _ => {}
    }
}

/// Removes a step from the front; `None` if it is damaged.
pub(super) fn decode(bytes: &mut &[u8], state: &mut EncodingState, step: &mut Step) -> Option<()> {
    let head = decode_byte(bytes)?;
    if head & NEW_GROUP != 0 {
        state.group = decode_number(bytes)?;
    }
    if head & NEW_WAVE != 0 {
        state.wave = decode_number(bytes)?;
    }
    if head & NEW_EXEC != 0 {
        state.exec = decode_mask(bytes)?;
    }
    state.offset = state.offset.wrapping_add(decode_signed(bytes)?);
    (step.group, step.wave) = (state.group, state.wave);
    (step.offset, step.exec) = (state.offset, state.exec);
    let mut count = u64::from(head >> TRANSFERS_SHIFT & 3);
    if count == MORE as u64 {
        count = count.checked_add(decode_number(bytes)?)?;
    }
    if count > MOST {
        return None;
    }
    step.transfers.clear();
    for _ in 0..count {
        step.transfers.push(decode_transfer(bytes, state)?);
    }
    step.scalar.clear();
    if head & SCALAR != 0 {
        let count = decode_number(bytes)?;
        if count > MOST {
            return None;
        }
        for _ in 0..count {
            let address = state.last[SCALAR_SPACE].wrapping_add(decode_signed(bytes)?);
            step.scalar.push((address, size(bytes)?));
            state.last[SCALAR_SPACE] = address;
        }
    }
    Some(())
}

fn decode_transfer(bytes: &mut &[u8], state: &mut EncodingState) -> Option<Transfer> {
    let head = decode_byte(bytes)?;
    let space = usize::from(head & 3);
    let mut transfer = Transfer {
        space: *SPACES.get(space)?,
        operation: OPERATIONS[usize::from(head >> OPERATION_SHIFT & 3)],
        bytes: u32::try_from(size(bytes)?).ok()?,
        lanes: state.exec,
        addresses: [0; 64],
    };
    if head & OTHER_LANES != 0 {
        transfer.lanes = decode_mask(bytes)?;
    }
    let first = state.last[space].wrapping_add(decode_signed(bytes)?);
    state.last[space] = first;
    let shape = head >> SHAPE_SHIFT;
    let stride = if shape == STRIDE {
        decode_signed(bytes)?
    } else {
        0
    };
    let mut address = first;
    for (nth, lane) in lanes(transfer.lanes).enumerate() {
        if nth > 0 {
            let step = if shape == LIST {
                decode_signed(bytes)?
            } else {
                stride
            };
            address = address.wrapping_add(step);
        }
        transfer.addresses[lane] = address;
    }
    let in_lds = |address: &u64| u32::try_from(*address).is_ok();
    let sound = transfer.space != Space::Lds || transfer.addresses.iter().all(in_lds);
    (shape <= LIST && sound).then_some(transfer)
}

/// Removes the size of an access from the front; `None` if it is damaged.
fn size(bytes: &mut &[u8]) -> Option<u64> {
    decode_number(bytes).filter(|size| (1..=LARGEST).contains(size))
}
