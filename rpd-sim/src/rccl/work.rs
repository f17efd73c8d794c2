//! Operations in the layout that the kernel reads. `device/collectives.hip` has the same structures.

use super::error::{Failure, Outcome};

/// Bits of `Work::flags`.
pub(super) mod flag {
    pub(crate) const SEND: u32 = 1;
    pub(crate) const RECEIVE: u32 = 2;
    /// Only the root contributes.
    pub(crate) const FROM_ROOT: u32 = 4;
    /// Only the root has a result.
    pub(crate) const TO_ROOT: u32 = 8;
    /// Contributions have a part for each rank.
    pub(crate) const PARTS: u32 = 16;
    /// The result is the reduction of the contributions; without the flag, all contributions in order of ranks.
    pub(crate) const REDUCES: u32 = 32;
    /// The factor is the address of the value.
    pub(crate) const DEVICE_SCALAR: u32 = 64;
}

/// Most operations of a launch.
pub(super) const MAX_WORKS: usize = 84;
/// Work-items of a launch.
pub(super) const THREADS: u32 = 256;

/// Part of a rank in an operation.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Work {
    /// Sum of values of [`flag`].
    pub(super) flags: u32,
    /// Rank of the root, or of the peer that is sent to or received from.
    pub(super) root: u32,
    /// `ncclDataType_t`.
    pub(super) kind: u8,
    /// `ncclRedOp_t` by which contributions are combined.
    pub(super) reduction: u8,
    /// Bytes of an element.
    pub(super) size: u16,
    pub(super) unused: u32,
    /// Address of the rank's contribution.
    pub(super) send: u64,
    /// Address of the result.
    pub(super) receive: u64,
    /// Elements of a part, or of the whole contribution if it has no parts.
    pub(super) count: u64,
    /// Factor of contributions in the type of the elements, or its address.
    pub(super) scalar: u64,
}

/// Argument of the kernel that carries out operations.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Arguments {
    pub(super) segment: u64,
    pub(super) rank: u32,
    pub(super) ranks: u32,
    pub(super) works: u32,
    pub(super) unused: u32,
    pub(super) work: [Work; MAX_WORKS],
    pub(super) rest: [u8; 40],
}

const _: () = assert!(size_of::<Work>() == 48 && size_of::<Arguments>() == 4096);

/// A type of elements (`ncclDataType_t`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DataType(u8);

impl DataType {
    const FLOAT16: u8 = 6;
    const FLOAT32: u8 = 7;
    const FLOAT64: u8 = 8;
    const BFLOAT16: u8 = 9;
    const FLOAT8_E4M3: u8 = 10;
    const FLOAT8_E5M2: u8 = 11;

    pub(super) fn new(number: u32) -> Outcome<Self> {
        match number {
            0..=11 => Ok(Self(number as u8)),
            _ => Err(Failure::argument(format!(
                "{number} is not a type of elements"
            ))),
        }
    }

    /// Bytes of an element.
    pub(super) fn size(self) -> u16 {
        match self.0 {
            2 | 3 | Self::FLOAT32 => 4,
            4 | 5 | Self::FLOAT64 => 8,
            Self::FLOAT16 | Self::BFLOAT16 => 2,
            _ => 1,
        }
    }

    /// Bits of `1 / n` in a type of floating point numbers; `None` for integers.
    fn fraction(self, n: u32) -> Option<u64> {
        let single = 1.0 / n as f32;
        // The upper bits of it, rounded to the nearest even: of a normal number this is all that there is to do.
        let upper = |dropped: u32| {
            let bits = single.to_bits();
            (bits + (1 << (dropped - 1)) - 1 + (bits >> dropped & 1)) >> dropped
        };
        match self.0 {
            // Exponents of fewer bits have another bias.
            Self::FLOAT16 => Some(u64::from(upper(13) - (112 << 10))),
            Self::FLOAT8_E4M3 => Some(u64::from(upper(20) - (119 << 3))),
            Self::FLOAT8_E5M2 => Some(u64::from(upper(21) - (111 << 2))),
            Self::FLOAT32 => Some(u64::from(single.to_bits())),
            Self::FLOAT64 => Some((1.0 / f64::from(n)).to_bits()),
            Self::BFLOAT16 => Some(u64::from(upper(16))),
            _ => None,
        }
    }
}

/// A factor that a program has made a reduction of (`ncclRedOpCreatePreMulSum`).
#[derive(Debug, Clone, Copy)]
pub(super) struct Factor {
    pub(super) kind: DataType,
    /// Bits of the factor, or its address.
    pub(super) scalar: u64,
    pub(super) is_address: bool,
}

/// Number of reductions that every communicator has; reductions of programs have the numbers from here on.
pub(super) const REDUCTIONS: u32 = 5;

impl Work {
    /// An operation on `count` elements of a type, with all other fields zero.
    pub(super) fn from_kind(kind: DataType, count: usize) -> Self {
        Self {
            kind: kind.0,
            size: kind.size(),
            count: count as u64,
            ..Self::default()
        }
    }

    /// Makes the operation a reduction: `number` is the `ncclRedOp_t`, `factors` are those that programs have made.
    pub(super) fn reduces(
        mut self,
        kind: DataType,
        number: u32,
        ranks: u32,
        factors: &[Option<Factor>],
    ) -> Outcome<Self> {
        const AVERAGE: u32 = 4;
        const PRE_MUL_SUM: u8 = 4;
        const SUM_POST_DIV: u8 = 5;
        self.flags |= flag::REDUCES;
        self.reduction = match number {
            AVERAGE => match kind.fraction(ranks) {
                Some(fraction) => {
                    self.scalar = fraction;
                    PRE_MUL_SUM
                }
                None => SUM_POST_DIV,
            },
            0..AVERAGE => number as u8,
            _ => {
                let factor = (number as usize).checked_sub(REDUCTIONS as usize);
                let factor = factor.and_then(|n| factors.get(n).copied().flatten());
                let factor = factor
                    .ok_or_else(|| Failure::argument(format!("{number} is not a reduction")))?;
                if factor.kind != kind {
                    let text = format!("reduction {number} was made for another type of elements");
                    return Err(Failure::argument(text));
                }
                self.scalar = factor.scalar;
                if factor.is_address {
                    self.flags |= flag::DEVICE_SCALAR;
                }
                PRE_MUL_SUM
            }
        };
        Ok(self)
    }

    /// Whether the operation is a send or a receive.
    pub(super) fn is_message(&self) -> bool {
        self.flags & (flag::SEND | flag::RECEIVE) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reductions_round_fractions_to_their_type() {
        let fraction = |kind, n| DataType::new(kind).expect("a type").fraction(n);
        assert_eq!(fraction(6, 2), Some(0x3800));
        assert_eq!(fraction(6, 3), Some(0x3555));
        assert_eq!(fraction(6, 7), Some(0x3092));
        assert_eq!(fraction(9, 3), Some(0x3eab));
        assert_eq!(fraction(7, 4), Some(0x3e80_0000));
        assert_eq!(fraction(10, 3), Some(0x33));
        assert_eq!(fraction(10, 64), Some(0x10));
        assert_eq!(fraction(11, 3), Some(0x39));
        assert_eq!(fraction(8, 4), Some(0.25f64.to_bits()));
        assert_eq!(fraction(2, 4), None);
    }
}
