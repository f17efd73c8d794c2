//! Operations of INST tokens: category and cycles of the instruction that each stands for.

use crate::header::{Generation, Header};
use crate::record::Category;

/// Class of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    /// An instruction of the wave: its category and its cycles.
    Is(Category, u32),
    /// An instruction of another SIMD: its category and its cycles.
    Other(Category, u32),
    /// A jump to the address in a register.
    Jump,
    Trap,
    /// Return from a trap handler.
    Return,
    /// Barrier of a workgroup.
    Barrier,
    /// The wave halts and does not continue.
    Halt,
    Unknown,
}

fn common(op: u32) -> Op {
    use Category::{Bvh, Jump, Lds, Message, Next, Salu, Smem, Valu, Vmem};
    match op {
        0 | 7 => Op::Is(Salu, 1),
        1 | 2 => Op::Is(Smem, 1),
        3 => Op::Is(Jump, 1),
        4 => Op::Is(Next, 1),
        5 => Op::Jump,
        6 => Op::Trap,
        8 => Op::Halt,
        9 => Op::Is(Message, 1),
        10 | 12 | 18 => Op::Is(Valu, 1),
        11 | 14 => Op::Is(Valu, 4),
        13 => Op::Is(Valu, 2),
        15 => Op::Is(Valu, 16),
        16 | 17 => Op::Is(Valu, 1),
        19 => Op::Barrier,
        41 | 42 => Op::Is(Lds, 1),
        43..=46 => Op::Is(Lds, op - 41),
        47 | 48 => Op::Is(Vmem, op - 46),
        49..=54 => Op::Is(Vmem, op - 48),
        55..=66 => Op::Is(Vmem, op - 54),
        68..=71 => Op::Is(Vmem, op - 67),
        72..=78 => Op::Is(Vmem, op - 70),
        103 => Op::Is(Bvh, 8),
        104 => Op::Is(Bvh, 9),
        105 => Op::Is(Bvh, 11),
        106 => Op::Is(Bvh, 12),
        110 | 111 => Op::Is(Lds, 1),
        112 | 113 => Op::Is(Salu, 1),
        117 => Op::Return,
        _ => Op::Unknown,
    }
}

fn gfx10(op: u32, rate: u32) -> Op {
    use Category::{Flat, Valu, Vmem};
    match op {
        30 => Op::Is(Flat, 1),
        31..=34 => Op::Is(Flat, op - 29),
        35 | 36 => Op::Is(Vmem, 1),
        37..=40 => Op::Is(Vmem, op - 35),
        12..=17 => match common(op) {
            Op::Is(Valu, cycles) => Op::Is(Valu, cycles * rate),
            op => op,
        },
        _ => common(op),
    }
}

fn gfx11(op: u32, rate: u32) -> Op {
    use Category::{Flat, Lds, Salu, Valu, Vmem};
    match op {
        10 | 15 => Op::Is(Valu, rate),
        28..=32 => Op::Is(Flat, op - 26),
        33 | 34 => Op::Is(Vmem, op - 32),
        35..=40 => Op::Is(Vmem, op - 34),
        80..=84 => Op::Other(Lds, op - 79),
        85..=89 => Op::Other(Flat, op - 83),
        90..=101 => Op::Other(Vmem, op - 89),
        114 => Op::Is(Salu, 1),
        115 => Op::Is(Valu, 1),
        116 => Op::Is(Valu, 2),
        118 => Op::Is(Lds, 6),
        119 => Op::Other(Lds, 6),
        _ => common(op),
    }
}

fn gfx12(op: u32, rate: u32, derate: u32) -> Op {
    use Category::{Bvh, Lds, Message, Salu, Smem, Valu, Vmem};
    match op {
        10 => Op::Is(Valu, 1),
        15 => Op::Is(Valu, 16),
        16 | 17 | 90..=101 | 112 | 113 => Op::Unknown,
        118 => Op::Is(Bvh, 6),
        120 => Op::Other(Lds, 10),
        121 => Op::Is(Bvh, 10),
        122 | 138 => Op::Is(Message, 1),
        135..=137 => Op::Is(Salu, 1),
        140..=143 => Op::Is(Valu, 8 << (op - 140)),
        146 => Op::Is(Valu, rate),
        147 => Op::Is(Valu, rate * derate),
        150 | 151 => Op::Is(Smem, 1),
        152 => Op::Is(Salu, 3),
        153 => Op::Is(Valu, 1),
        155 => Op::Is(Salu, 2),
        156 => Op::Is(Salu, 5),
        188..=221 => Op::Other(Vmem, op - 187),
        222..=255 => Op::Is(Vmem, op - 221),
        _ => gfx11(op, rate),
    }
}

/// Operation of each instruction type of a generation, by its number in tokens.
pub(super) type Ops = [Op; 256];

/// The operations of a stream with this header.
pub(super) fn ops(header: &Header) -> Box<Ops> {
    let (rate, derate) = (header.double_rate, header.derate);
    Box::new(std::array::from_fn(|op| {
        let op = op as u32;
        match header.generation {
            Generation::Gfx12 => gfx12(op, rate, derate),
            Generation::Gfx11 => gfx11(op, rate),
            _ => gfx10(op, rate),
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(generation: Generation) -> Box<Ops> {
        // Version, with double-precision rate 3 and derating 1.
        let version = match generation {
            Generation::Gfx10 => 2u64,
            Generation::Gfx11 => 3,
            _ => 4,
        };
        let word = 0x11 | version << 7 | 3 << 28 | 1 << 33;
        ops(&Header::parse(&word.to_le_bytes()).expect("a header"))
    }

    #[test]
    fn operation_numbers_have_the_meaning_of_their_generation() {
        use Category::{Bvh, Flat, Jump, Lds, Valu, Vmem};
        let (ten, eleven, twelve) = (
            of(Generation::Gfx10),
            of(Generation::Gfx11),
            of(Generation::Gfx12),
        );
        for ops in [&ten, &eleven, &twelve] {
            assert_eq!(ops[3], Op::Is(Jump, 1));
            assert_eq!(ops[42], Op::Is(Lds, 1));
            assert_eq!(ops[46], Op::Is(Lds, 5));
            assert_eq!(ops[66], Op::Is(Vmem, 12));
            assert_eq!(ops[19], Op::Barrier);
            assert_eq!(ops[117], Op::Return);
        }
        assert_eq!(ten[34], Op::Is(Flat, 5));
        assert_eq!(ten[40], Op::Is(Vmem, 5));
        assert_eq!(eleven[28], Op::Is(Flat, 2));
        assert_eq!(eleven[40], Op::Is(Vmem, 6));
        assert_eq!(eleven[15], Op::Is(Valu, 4));
        assert_eq!(eleven[101], Op::Other(Vmem, 12));
        assert_eq!(twelve[221], Op::Other(Vmem, 34));
        assert_eq!(twelve[143], Op::Is(Valu, 64));
        assert_eq!(twelve[147], Op::Is(Valu, 8));
        assert_eq!(ten[200], Op::Unknown);
        // Steps through the tree of a scene are the wave's own.
        assert_eq!(eleven[118], Op::Is(Lds, 6));
        assert_eq!(twelve[118], Op::Is(Bvh, 6));
        assert_eq!(twelve[121], Op::Is(Bvh, 10));
        assert_eq!((ten[16], twelve[16]), (Op::Is(Valu, 4), Op::Unknown));
    }
}
