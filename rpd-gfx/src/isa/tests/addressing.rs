//! Addresses at the limits of memory, with the kernels of `testdata/addressing.s`.

use super::*;

static ADDRESSING: &[u8] = include_bytes!("../../../testdata/addressing.co");

/// Allows accesses to these extents only.
struct DeclaredExtents<'a>(&'a [Extent]);

impl Memory for DeclaredExtents<'_> {
    fn changes(&self) -> u64 {
        0
    }

    fn extent(&self, address: u64, _write: bool) -> Option<Extent> {
        let holds = |extent: &&Extent| (extent.start..extent.end).contains(&address);
        self.0.iter().find(holds).copied()
    }
}

fn extent<T>(slice: &[T]) -> Extent {
    let range = slice.as_ptr_range();
    Extent {
        start: range.start as u64,
        end: range.end as u64,
        writable: true,
        fine_grained: false,
    }
}

/// Runs a kernel of one wave that may access `out` and its arguments.
fn run(name: &str, out: &mut [u32], second: u32, third: u32) -> Result<(), Fault> {
    let module = Module::load(ADDRESSING);
    let args: [&[u8]; 3] = [&pointer(out), &second.to_le_bytes(), &third.to_le_bytes()];
    module.dispatch(name, [64, 1, 1], [64, 1, 1], 0, &args, |dispatch| {
        let arguments = Extent {
            start: dispatch.kernarg,
            end: dispatch.kernarg + 16,
            writable: false,
            fine_grained: false,
        };
        let stop = AtomicBool::new(false);
        let control = Control {
            threads: 1,
            stop: &stop,
            seed: None,
        };
        run_dispatch(
            dispatch,
            &DeclaredExtents(&[extent(out), arguments]),
            &control,
        )
        .map(|_| ())
    })
}

#[test]
fn negative_scratch_offsets_in_registers_wrap() {
    for (register, found) in [(-8, true), (-12, false)] {
        let mut out = vec![u32::MAX; 64];
        run("scratch_offset", &mut out, register as u32, 0).unwrap();
        let expected = |lane: u32| if found { lane } else { 0 };
        for (lane, value) in out.iter().enumerate() {
            assert_eq!(*value, expected(lane as u32), "{register}, lane {lane}");
        }
    }
}

/// A register and a constant are added with 32 bits: -64 + 64 is 0, which is inside. Stores outside are dropped.
#[test]
fn negative_buffer_offsets_in_registers_wrap() {
    for (register, records) in [(-64, 256), (-68, 256), (-128, 256), (-32, 256), (0, 100)] {
        let mut out = vec![7; 64];
        run("buffer_offset", &mut out, register as u32, records as u32).unwrap();
        let mut expected = vec![7; 64];
        for lane in 0..64 {
            let offset = register + 4 * lane + 64;
            if (0..=records - 4).contains(&offset) {
                expected[offset as usize / 4] = 100 + lane as u32;
            }
        }
        assert_eq!(out, expected, "{register} of {records}");
    }
}

/// For 100 bytes of LDS, 512 are allocated, and flat addresses can access all of them.
#[test]
fn flat_addresses_reach_all_of_the_allocated_lds() {
    for offset in [0, 96, 100, 104, 256, 508] {
        let mut out = vec![0; 2];
        run("flat_lds", &mut out, offset, 0).unwrap();
        assert_eq!(out, [0x55aa; 2], "offset {offset}");
    }
    for offset in [509, 512, 4096, 65536] {
        let mut out = vec![0; 2];
        let fault = run("flat_lds", &mut out, offset, 0).unwrap_err();
        let missed = AddressTarget::Lds {
            byte: offset.into(),
            size: 512,
        };
        assert!(
            matches!(
                fault,
                Fault::Memory {
                    access: Access::Write,
                    bytes: 4,
                    aim,
                    ..
                } if aim == missed
            ),
            "offset {offset}: {fault}"
        );
        assert_eq!(out, [0; 2]);
    }
    // Accesses beyond LDS fail, even if the host has memory there that the kernel may access.
    let mut out = vec![0u32; 2];
    let module = Module::load(ADDRESSING);
    let (second, third) = (4096u32.to_le_bytes(), 0u32.to_le_bytes());
    let args: [&[u8]; 3] = [&pointer(&mut out), &second, &third];
    let fault = module
        .run("flat_lds", [64, 1, 1], [64, 1, 1], 0, &args)
        .unwrap_err();
    let outside = 0x1_0000_0000_1000;
    assert!(
        matches!(fault, Fault::Memory { address, .. } if address == outside),
        "{fault:?}"
    );
}

/// LDS instructions never fault: stores outside are dropped, loads yield 0.
#[test]
fn lds_loads_outside_of_the_allocation_give_zero() {
    for (offset, expected) in [
        (0, 0x55aa),
        (508, 0x55aa),
        (512, 0),
        (65536, 0),
        (u32::MAX - 3, 0),
    ] {
        let mut out = vec![1; 2];
        run("direct_lds", &mut out, offset, 0).unwrap();
        assert_eq!(out, [expected; 2], "offset {offset}");
    }
}
