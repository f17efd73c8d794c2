//! Kernels: any dwords can be decoded and executed. A kernel ends, with or without a fault, and accesses no memory but
//! its own.
//!
//! The input is a kernel descriptor of 64 bytes, of which only what sizes registers and memory is used, and a bit that chooses
//! the instruction set; then the code. It is disassembled as well.

use std::sync::atomic::{AtomicBool, Ordering};

use rpd_gfx::codeobj::{CodeObject, Image, KernelDescriptor};
use rpd_gfx::device::Device;
use rpd_gfx::disasm::Disassembler;
use rpd_gfx::isa::{
    Control, Dispatch, Extent, InstructionSet, Memory, Probe, Program, Step, Workgroup,
    watch_dispatch,
};

use super::assert_one_line;
use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "instructions",
    run,
    seeds,
    longest: 1024,
    mutations: 1000,
};

/// Size of a kernel descriptor in bytes.
const DESCRIPTOR: usize = 64;
/// Instructions after which a kernel is stopped.
const MOST_STEPS: u64 = 1000;
/// Size of the code of a seed in bytes.
const SEED_CODE: usize = 256;

const OBJECTS: [&[u8]; 2] = [
    include_bytes!("../../../rpd-gfx/testdata/kernels-O0.co"),
    include_bytes!("../../../rpd-gfx/testdata/kernels-O3.co"),
];

/// Inputs that once made the target fail.
const FAILED: &[&[u8]] = &[include_bytes!(
    "../../regressions/instructions/scratch-offset"
)];

/// Parts of the test kernels' code.
fn seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = FAILED.iter().map(|input| input.to_vec()).collect();
    for bytes in OBJECTS {
        let object = CodeObject::parse(bytes).expect("a code object");
        let image = Image::load(&object, |_| None).expect("loaded");
        for kernel in object.kernels() {
            let Some(descriptor) = object.symbol(&kernel.symbol) else {
                continue;
            };
            let (address, parsed) = image
                .descriptor(&object, &kernel.symbol)
                .expect("a descriptor");
            let entry = address.wrapping_add_signed(parsed.entry_offset);
            let at = |address: u64| {
                let address = address.wrapping_sub(image.delta());
                let found = object.segments().iter().find(|segment| {
                    (segment.address..segment.address + segment.file_size).contains(&address)
                });
                let segment = found.expect("a segment");
                (segment.offset + (address - segment.address)) as usize
            };
            let from = at(descriptor.value.wrapping_add(image.delta()));
            let mut seed = bytes[from..from + DESCRIPTOR].to_vec();
            let code = &bytes[at(entry)..];
            seed.extend(&code[..SEED_CODE.min(code.len())]);
            seeds.push(seed);
        }
    }
    seeds
}

/// Memory of a kernel: one range and nothing else.
struct Arena(Extent);

impl Memory for Arena {
    fn changes(&self) -> u64 {
        0
    }

    fn extent(&self, address: u64, _write: bool) -> Option<Extent> {
        (self.0.start..self.0.end)
            .contains(&address)
            .then_some(self.0)
    }
}

/// Probe that stops a kernel after a number of steps.
struct Limit<'a> {
    steps: u64,
    stop: &'a AtomicBool,
}

impl Probe for Limit<'_> {
    fn started(&mut self, _: &Workgroup) {}

    fn executed(&mut self, step: &Step<'_>) {
        assert!(step.length == 4 || step.length == 8 || step.length == 12);
        self.steps += 1;
        if self.steps >= MOST_STEPS {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    fn released(&mut self, _: u64) {}

    fn ended(&mut self, _: u64) {}
}

/// Changes relative branches to go forward only: a loop would run for a whole turn before it is stopped.
fn straighten(word: u32) -> u32 {
    let is_sopp = word >> 23 == 0b1_0111_1111;
    let is_sopk = word >> 28 == 0b1011;
    if is_sopp || is_sopk {
        word & !0x8000
    } else {
        word
    }
}

fn run(data: &[u8]) {
    let Some((descriptor, code)) = data.split_first_chunk::<DESCRIPTOR>() else {
        return;
    };
    let words = code.as_chunks::<4>().0.iter();
    let words: Vec<u32> = words
        .map(|bytes| straighten(u32::from_le_bytes(*bytes)))
        .collect();
    // The instruction set is selected by a bit that descriptors do not use.
    let set = InstructionSet::ALL[usize::from(descriptor[DESCRIPTOR - 1] & 1)];
    let disassembler = Disassembler::new(set.processor()).expect("a table");
    let printed = disassembler.instructions(code, 0).map(|(_, found)| {
        assert_one_line(&found.text);
        found.bytes as usize
    });
    // Also bytes that are no instruction have to be printed.
    assert_eq!(printed.sum::<usize>(), code.len());
    let mut descriptor = KernelDescriptor::parse(descriptor).expect("64 bytes");
    // The program has one entry, and small sizes, so that runs are short and differ in their instructions.
    descriptor.entry_offset = 0;
    descriptor.preload = 0;
    descriptor.group_segment_size &= 0x1_ffff;
    descriptor.private_segment_size &= 0xfff;

    let mut memory = vec![0u64; 4096];
    let start = memory.as_mut_ptr() as u64;
    let arena = Arena(Extent {
        start,
        end: start + 8 * memory.len() as u64,
        writable: true,
        fine_grained: false,
    });
    // Pointers among the arguments, so that loads and stores find memory.
    for (number, word) in memory[..64].iter_mut().enumerate() {
        *word = start + 512 + 256 * number as u64;
    }
    let address = words.as_ptr() as u64;
    // SAFETY: the range is that of `words`, which is neither changed nor dropped before the program.
    let program = unsafe { Program::new(address, 4 * words.len() as u64, set) };
    let dispatch = Dispatch {
        device: Device::find(set.processor()).expect("a device"),
        kernel: "fuzzed",
        program: &program,
        kernel_object: address,
        descriptor,
        // More than a wave and no multiple of one: the last wave has lanes that are off.
        grid: [70, 1, 1],
        workgroup: [70, 1, 1],
        group_segment_size: 0,
        private_segment_size: 0,
        kernarg: start,
        packet: start,
        queue: start,
        dispatch_id: 0,
    };
    let stop = AtomicBool::new(false);
    let mut limit = Limit {
        steps: 0,
        stop: &stop,
    };
    // Several threads would make failures depend on their order.
    let control = Control {
        threads: 1,
        stop: &stop,
        seed: None,
    };
    match watch_dispatch(&dispatch, &arena, &control, &mut limit) {
        Ok(_) => {}
        Err(fault) => assert_one_line(&fault.to_string()),
    }
}
