//! Runs kernels that the distribution's compiler compiled, and compares results with those of the host.

#![expect(clippy::unwrap_used, reason = "a test ends where something is missing")]

mod addressing;
mod atomics;
mod corpus;
mod decode;
mod dispatch;
mod gfx942;
mod gws;
mod images;
mod instructions;
mod kernels;
#[cfg(target_arch = "x86_64")]
mod levels;
mod litmus;
mod machine;
mod matrices;
mod matrix_cases;
mod schedule;
mod sparse;
mod spill_path;
mod spills;
mod throughput;
mod workgroups;

use super::*;
use crate::codeobj::{ArgKind, CodeObject, Image};
use crate::device::Device;
use std::sync::atomic::AtomicBool;

/// Memory that allows all accesses except to the first page and addresses above user space.
pub(crate) struct Everything;

impl Memory for Everything {
    fn changes(&self) -> u64 {
        0
    }

    fn extent(&self, address: u64, _write: bool) -> Option<Extent> {
        let all = Extent {
            start: 0x1000,
            end: 1 << 47,
            writable: true,
            fine_grained: false,
        };
        (all.start..all.end).contains(&address).then_some(all)
    }
}

/// The test code objects, each at another optimisation level.
pub(crate) const OBJECTS: [(&str, &[u8]); 3] = [
    ("O0", include_bytes!("../../../testdata/kernels-O0.co")),
    ("O1", include_bytes!("../../../testdata/kernels-O1.co")),
    ("O3", include_bytes!("../../../testdata/kernels-O3.co")),
];

/// The test code objects for gfx942.
const NEWER: [(&str, &[u8]); 2] = [
    ("O0", include_bytes!("../../../testdata/gfx942-O0.co")),
    ("O3", include_bytes!("../../../testdata/gfx942-O3.co")),
];

/// The kernels of `testdata/kernels.hip` for every instruction set that is executed, each at several optimisation levels.
fn all_objects() -> impl Iterator<Item = (InstructionSet, &'static str, &'static [u8])> {
    InstructionSet::ALL.iter().flat_map(|&set| {
        let objects: &'static [(&str, &[u8])] = match set {
            InstructionSet::Gfx90a => &OBJECTS,
            InstructionSet::Gfx942 => &NEWER,
        };
        objects
            .iter()
            .map(move |&(level, bytes)| (set, level, bytes))
    })
}

/// A loaded code object.
pub(crate) struct Module {
    pub(super) object: CodeObject,
    pub(super) image: Image,
    pub(super) program: Program,
    pub(super) threads: usize,
}

impl Module {
    pub(crate) fn load(bytes: &[u8]) -> Self {
        let object = CodeObject::parse(bytes).unwrap();
        let image = Image::load(&object, |_| None).unwrap();
        let (start, size) = image.code()[0];
        let set = InstructionSet::from_processor(&object.target().processor).unwrap();
        // SAFETY: the image lives as long as the program, both being in the module.
        let program = unsafe { Program::new(start, size, set) };
        Self {
            object,
            image,
            program,
            threads: 1,
        }
    }

    /// Runs a kernel whose explicit arguments are given as bytes, each with the size in the metadata.
    pub(super) fn run(
        &self,
        name: &str,
        grid: [u32; 3],
        workgroup: [u16; 3],
        dynamic_lds: u32,
        args: &[&[u8]],
    ) -> Result<Stats, Fault> {
        self.dispatch(name, grid, workgroup, dynamic_lds, args, |dispatch| {
            let stop = AtomicBool::new(false);
            let control = Control {
                threads: self.threads,
                stop: &stop,
                seed: None,
            };
            run_dispatch(dispatch, &Everything, &control).map(|executed| executed.stats)
        })
    }

    /// Makes a dispatch of a kernel and passes it to `act`.
    pub(crate) fn dispatch<R>(
        &self,
        name: &str,
        grid: [u32; 3],
        workgroup: [u16; 3],
        dynamic_lds: u32,
        args: &[&[u8]],
        act: impl FnOnce(&Dispatch<'_>) -> R,
    ) -> R {
        let kernel = self.object.kernel(name).unwrap();
        let (kernel_object, descriptor) =
            self.image.descriptor(&self.object, &kernel.symbol).unwrap();
        let mut kernarg = Box::new(Kernarg([0; 4096]));
        let base = kernarg.0.as_mut_ptr();
        assert!(kernel.kernarg_bytes() <= 4096);
        let put = |offset: u32, bytes: &[u8]| {
            assert!(offset + bytes.len() as u32 <= kernel.kernarg_bytes());
            // SAFETY: inside the buffer, as just checked.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    bytes.as_ptr(),
                    base.add(offset as usize),
                    bytes.len(),
                )
            };
        };
        for (arg, bytes) in kernel.explicit_args().zip(args) {
            assert_eq!(arg.size as usize, bytes.len(), "{name}");
            put(arg.offset, bytes);
        }
        assert_eq!(kernel.explicit_args().count(), args.len());
        for arg in kernel.hidden_args() {
            let value = match arg.kind {
                ArgKind::HiddenBlockCountX => u64::from(grid[0] / u32::from(workgroup[0].max(1))),
                ArgKind::HiddenBlockCountY => u64::from(grid[1] / u32::from(workgroup[1])),
                ArgKind::HiddenBlockCountZ => u64::from(grid[2] / u32::from(workgroup[2])),
                ArgKind::HiddenGroupSizeX => u64::from(workgroup[0]),
                ArgKind::HiddenGroupSizeY => u64::from(workgroup[1]),
                ArgKind::HiddenGroupSizeZ => u64::from(workgroup[2]),
                ArgKind::HiddenRemainderX => u64::from(grid[0] % u32::from(workgroup[0].max(1))),
                ArgKind::HiddenRemainderY => u64::from(grid[1] % u32::from(workgroup[1])),
                ArgKind::HiddenRemainderZ => u64::from(grid[2] % u32::from(workgroup[2])),
                ArgKind::HiddenGridDims => 3,
                ArgKind::HiddenDynamicLdsSize => u64::from(dynamic_lds),
                _ => 0,
            };
            put(arg.offset, &value.to_le_bytes()[..arg.size as usize]);
        }
        // The fields of the packet that kernels read: the sizes.
        let mut packet = [0u8; 64];
        for n in 0..3 {
            packet[4 + 2 * n..6 + 2 * n].copy_from_slice(&workgroup[n].to_le_bytes());
            packet[12 + 4 * n..16 + 4 * n].copy_from_slice(&grid[n].to_le_bytes());
        }
        let private = if kernel.uses_dynamic_stack { 4096 } else { 0 };
        let dispatch = Dispatch {
            device: Device::find(&self.object.target().processor).unwrap(),
            kernel: name,
            program: &self.program,
            kernel_object,
            descriptor,
            grid,
            workgroup,
            group_segment_size: descriptor.group_segment_size + dynamic_lds,
            private_segment_size: descriptor.private_segment_size + private,
            kernarg: base as u64,
            packet: packet.as_ptr() as u64,
            queue: 0,
            dispatch_id: 0,
        };
        act(&dispatch)
    }
}

/// Kernel arguments, with an alignment that makes counts of cache lines independent of the allocator.
#[repr(align(4096))]
struct Kernarg([u8; 4096]);

/// Runs `test` with the code object of every optimisation level.
pub(super) fn with_modules(test: impl Fn(&Module)) {
    for (set, level, bytes) in all_objects() {
        println!("at {level} for {}", set.processor());
        let module = Module::load(bytes);
        assert_eq!(module.object.target().processor, set.processor());
        test(&module);
    }
}

/// Every instruction set has code in the bundles whose kernels the end-to-end tests launch.
#[test]
fn workloads_have_code_for_every_instruction_set() {
    let directory = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../tests/workloads/kernels/prebuilt"
    );
    let entries = std::fs::read_dir(directory).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let bundles: Vec<_> = paths
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "hipfb")
        })
        .collect();
    assert!(bundles.len() > 10, "{bundles:?}");
    for path in bundles {
        let bundle = std::fs::read(&path).unwrap();
        for set in InstructionSet::ALL {
            let device = crate::codeobj::bundle::Target::parse(set.processor()).unwrap();
            let found = crate::codeobj::bundle::pick(&bundle, &device);
            assert!(
                found.is_ok(),
                "{}: {}: {:?}",
                path.display(),
                set.processor(),
                found.err()
            );
        }
    }
}

/// The bytes of a pointer to a slice.
pub(super) fn pointer<T>(slice: &mut [T]) -> [u8; 8] {
    (slice.as_mut_ptr() as u64).to_le_bytes()
}

/// Pseudo-random numbers, the same in every run.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}
