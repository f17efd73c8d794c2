//! Counts of the workloads' kernels, compared with values that were derived by hand from their disassembly
//! (`llvm-objdump -d`).

#![expect(clippy::unwrap_used, reason = "a test ends where something is missing")]

use super::*;
use crate::codeobj::bundle::pick;
use crate::device::{DEVICES, Device};
use crate::isa::tests::{Everything, Module, OBJECTS};
use crate::isa::{Control, Dispatch, watch_dispatch};
use std::sync::atomic::AtomicBool;

const VECTOR_OPS: &[u8] =
    include_bytes!("../../../tests/workloads/kernels/prebuilt/vector_ops.hipfb");
const TRANSPOSE: &[u8] =
    include_bytes!("../../../tests/workloads/kernels/prebuilt/transpose.hipfb");

/// Numbers at the start of a page, so that counts of cache lines do not depend on the allocator.
#[repr(align(4096))]
struct Numbers([f32; 4096]);

impl Numbers {
    fn new() -> Box<Self> {
        Box::new(Self(std::array::from_fn(|n| n as f32)))
    }

    fn pointer(&mut self) -> [u8; 8] {
        (self.0.as_mut_ptr() as u64).to_le_bytes()
    }
}

fn count(
    bundle: &[u8],
    kernel: &str,
    grid: [u32; 3],
    workgroup: [u16; 3],
    args: &[&[u8]],
) -> Counts {
    let object = pick(bundle, &Device::find("gfx90a").unwrap().target()).unwrap();
    let module = Module::load(&object);
    module.dispatch(kernel, grid, workgroup, 0, args, watch)
}

/// Executes a dispatch on one thread and counts it.
pub(crate) fn watch(dispatch: &Dispatch<'_>) -> Counts {
    let local = |_| PageMemory::LOCAL;
    let stop = AtomicBool::new(false);
    let mut model = Model::new(dispatch, &local);
    let control = Control {
        threads: 1,
        stop: &stop,
        seed: None,
    };
    watch_dispatch(dispatch, &Everything, &control, &mut model).unwrap();
    model.finish()
}

/// The addition of two vectors: 128 x 16 elements in workgroups of 64 x 4, one for each engine.
fn addition(left: &mut Numbers, right: &mut Numbers) -> Counts {
    let mut sums = Numbers::new();
    let args: [&[u8]; 5] = [
        &sums.pointer(),
        &left.pointer(),
        &right.pointer(),
        &128i32.to_le_bytes(),
        &16i32.to_le_bytes(),
    ];
    let name = "_Z15addition_kernelIfEvPT_PKS0_S3_ii";
    let counts = count(VECTOR_OPS, name, [128, 16, 1], [64, 4, 1], &args);
    assert_eq!(sums.0[2047], left.0[2047] + right.0[2047]);
    counts
}

fn transpose() -> Counts {
    let (mut from, mut to) = (Numbers::new(), Numbers::new());
    let size = 32u32.to_le_bytes();
    let args: [&[u8]; 4] = [&from.pointer(), &to.pointer(), &size, &size];
    let name = "_Z16transpose_kernelPKfPfjj";
    let counts = count(TRANSPOSE, name, [32, 32, 1], [16, 16, 1], &args);
    assert_eq!(to.0[5 * 32 + 9], from.0[9 * 32 + 5]);
    counts
}

/// Value of a counter, summed over all instances.
pub(crate) fn sum(counts: &Counts, counter: &str) -> u64 {
    let (block, event, _) = determined_events()
        .find(|(_, _, name)| *name == counter)
        .unwrap();
    let (engines, instances) = match block {
        "SQ" | "SPI" => (8, 1),
        "TA" | "TD" | "TCP" => (8, 14),
        "TCC" | "TCA" => (1, 32),
        "GRBM" | "CPC" | "CPF" => (1, 1),
        _ => panic!("block {block}"),
    };
    (0..engines)
        .flat_map(|engine| (0..instances).map(move |instance| (engine, instance)))
        .map(|(engine, instance)| counts.value(block, event, engine, instance).unwrap() as u64)
        .sum()
}

fn check(counts: &Counts, expected: &[(&str, u64)]) {
    for (counter, value) in expected {
        assert_eq!(sum(counts, counter), *value, "{counter}");
    }
}

#[test]
fn the_addition_kernel_has_its_known_counts_of_instructions() {
    let counts = addition(&mut Numbers::new(), &mut Numbers::new());
    let waves = 32;
    check(
        &counts,
        &[
            ("SQ_WAVES", waves),
            ("SQ_WAVES_EQ_64", waves),
            ("SQ_WAVES_LT_64", 0),
            ("SQ_ITEMS", 2048),
            ("SPI_CSN_NUM_THREADGROUPS", 8),
            ("SPI_CSN_WAVE", waves),
            ("SQ_INSTS", 36 * waves),
            ("SQ_INSTS_VALU", 18 * waves),
            ("SQ_INSTS_VALU_INT32", 13 * waves),
            ("SQ_INSTS_VALU_INT64", waves),
            ("SQ_INSTS_VALU_ADD_F32", waves),
            ("SQ_INSTS_VALU_MUL_F32", 0),
            ("SQ_INSTS_SALU", 6 * waves),
            ("SQ_INSTS_SMEM", 4 * waves),
            ("SQ_INSTS_VMEM_RD", 2 * waves),
            ("SQ_INSTS_VMEM_WR", waves),
            ("SQ_INSTS_VMEM", 3 * waves),
            ("SQ_INSTS_FLAT", 3 * waves),
            ("SQ_INSTS_LDS", 0),
            ("SQ_INSTS_BRANCH", waves),
            ("SQ_INSTS_SENDMSG", waves),
            ("SQ_ACTIVE_INST_VALU", 18 * waves),
            ("SQ_ACTIVE_INST_VMEM", 0),
            ("SQ_ACTIVE_INST_FLAT", 3 * waves),
            ("SQ_THREAD_CYCLES_VALU", 18 * 64 * waves),
            ("SQC_DCACHE_REQ_READ_1", waves),
            ("SQC_DCACHE_REQ_READ_2", 2 * waves),
            ("SQC_DCACHE_REQ_READ_4", waves),
        ],
    );
    // One workgroup of four waves on each engine.
    for engine in 0..8 {
        assert_eq!(counts.value("SQ", 4, engine, 0), Some(4.0));
        assert_eq!(counts.value("TA", 32, engine, 0), Some(12.0));
        assert_eq!(counts.value("TA", 32, engine, 1), Some(0.0));
        assert_eq!(counts.value("TA", 32, engine, 13), Some(0.0));
    }
}

#[test]
fn the_addition_kernel_has_its_known_memory_traffic() {
    let counts = addition(&mut Numbers::new(), &mut Numbers::new());
    let waves = 32;
    check(
        &counts,
        &[
            // Each instruction touches 256 bytes: 16 quads of lanes in 4 lines.
            ("TA_TOTAL_WAVEFRONTS", 3 * waves),
            ("TA_FLAT_READ_WAVEFRONTS", 2 * waves),
            ("TA_BUFFER_WAVEFRONTS", 0),
            ("TA_TA_BUSY", 3 * 16 * waves),
            ("TD_COALESCABLE_WAVEFRONT", 3 * waves),
            ("TCP_TOTAL_ACCESSES", 3 * 16 * waves),
            ("TCP_TOTAL_READ", 2 * 16 * waves),
            ("TCP_TOTAL_WRITE", 16 * waves),
            ("TCP_TOTAL_CACHE_ACCESSES", 3 * 4 * waves),
            ("TCP_TCC_READ_REQ", 2 * 4 * waves),
            ("TCP_TCC_WRITE_REQ", 4 * waves),
            // Every engine reads the arguments' line and the four lines of code, 32 bytes at a time.
            ("SQC_DCACHE_REQ", 4 * waves),
            ("SQC_DCACHE_MISSES", 8),
            ("SQ_IFETCH", 7 * waves),
            ("SQC_ICACHE_MISSES", 8 * 4),
            ("SQC_TC_REQ", 8 + 8 * 4),
            // 8 KiB each of two vectors, and a line of arguments and two of code for the first wave.
            ("TCC_READ", 256 + 8 + 32),
            ("TCC_WRITE", 128),
            ("TCC_REQ", 424),
            ("TCC_MISS", 128 + 64 + 1 + 2),
            ("TCC_HIT", 424 - 195),
            ("TCC_EA_RDREQ", 256 + 2 + 4),
            ("TCC_EA_RDREQ_32B", 0),
            ("TCC_EA_RDREQ_DRAM", 256 + 2 + 4),
            ("TCC_EA_WRREQ", 128),
            ("TCC_EA_WRREQ_64B", 128),
            ("TCC_WRITEBACK", 64),
            ("TCC_NORMAL_EVICT", 0),
        ],
    );
}

#[test]
fn data_that_is_read_twice_hits_the_cache() {
    let name = "_Z15addition_kernelIfEvPT_PKS0_S3_ii";
    let (mut sums, mut both) = (Numbers::new(), Numbers::new());
    let args: [&[u8]; 5] = [
        &sums.pointer(),
        &both.pointer(),
        &both.pointer(),
        &128i32.to_le_bytes(),
        &16i32.to_le_bytes(),
    ];
    let counts = count(VECTOR_OPS, name, [128, 16, 1], [64, 4, 1], &args);
    check(
        &counts,
        &[
            ("TCP_TOTAL_CACHE_ACCESSES", 3 * 4 * 32),
            ("TCP_TCC_READ_REQ", 4 * 32),
            ("TCC_READ", 128 + 8 + 32),
            ("TCC_EA_RDREQ", 128 + 2 + 4),
        ],
    );
}

#[test]
fn the_transpose_kernel_has_its_known_lds_counts() {
    let counts = transpose();
    let waves = 16;
    check(
        &counts,
        &[
            ("SQ_WAVES", waves),
            ("SQ_INSTS", 49 * waves),
            ("SQ_INSTS_VALU", 26 * waves),
            ("SQ_INSTS_SALU", 9 * waves),
            ("SQ_INSTS_BRANCH", 2 * waves),
            ("SQ_INSTS_LDS", 2 * waves),
            // Rows of 17 dwords: the first and the last dword of two rows of 16 are in the same bank.
            ("SQ_LDS_IDX_ACTIVE", 2 * 4 * waves),
            ("SQ_LDS_BANK_CONFLICT", 2 * 2 * waves),
            ("SQ_LDS_ADDR_CONFLICT", 0),
            ("SQ_LDS_ATOMIC_RETURN", 0),
            // Four rows of 64 bytes.
            ("TCP_TOTAL_CACHE_ACCESSES", 2 * 4 * waves),
        ],
    );
}

#[test]
fn the_histogram_kernel_has_its_known_counts_of_atomics() {
    let module = Module::load(OBJECTS[2].1);
    let mut numbers = [Numbers::new(), Box::new(Numbers([0.0; 4096]))];
    let [out, bytes] = numbers.each_mut().map(|numbers| numbers.pointer());
    let size = 64u32.to_le_bytes();
    let args: [&[u8]; 4] = [&out, &bytes, &size, &size];
    // One wave counts 64 zeros into 64 bins.
    let counts = module.dispatch("histogram", [64, 1, 1], [64, 1, 1], 256, &args, watch);
    check(
        &counts,
        &[
            ("SQ_INSTS_LDS", 3),
            // Bins are cleared and read by 32 lanes at a time; all lanes change the first.
            ("SQ_LDS_IDX_ACTIVE", 2 + 64 + 2),
            ("SQ_LDS_ADDR_CONFLICT", 62),
            ("SQ_LDS_BANK_CONFLICT", 0),
            ("SQ_LDS_ATOMIC_RETURN", 0),
            ("TA_FLAT_READ_WAVEFRONTS", 1),
            ("TA_FLAT_ATOMIC_WAVEFRONTS", 1),
            ("TCP_TOTAL_READ", 16),
            ("TCP_TOTAL_ATOMIC_WITHOUT_RET", 16),
            ("TCP_TOTAL_ATOMIC_WITH_RET", 0),
            ("TCP_TOTAL_CACHE_ACCESSES", 1 + 4),
            ("TCP_TCC_READ_REQ", 1),
            ("TCP_TCC_ATOMIC_WITHOUT_RET_REQ", 4),
            ("TCC_ATOMIC", 4),
            ("TCC_EA_WRREQ", 4),
            ("TCC_EA_WRREQ_64B", 4),
        ],
    );
}

#[test]
fn waves_with_inactive_lanes_have_their_known_counts() {
    let mut numbers = [Numbers::new(), Numbers::new(), Numbers::new()];
    let [a, b, c] = numbers.each_mut().map(|numbers| numbers.pointer());
    let (width, height) = (250i32.to_le_bytes(), 1i32.to_le_bytes());
    let args: [&[u8]; 5] = [&a, &b, &c, &width, &height];
    let name = "_Z15multiply_kernelPfPKfS1_ii";
    // Workgroups of 100, 100 and 50 work-items: waves of 64, 36, 64, 36 and 50.
    let counts = count(VECTOR_OPS, name, [250, 1, 1], [100, 1, 1], &args);
    check(
        &counts,
        &[
            ("SQ_WAVES", 5),
            ("SQ_WAVES_EQ_64", 2),
            ("SQ_WAVES_LT_64", 3),
            ("SQ_WAVES_LT_48", 2),
            ("SQ_WAVES_LT_32", 0),
            ("SQ_ITEMS", 250),
            ("SQ_INSTS_VALU_MUL_F32", 5),
            ("SQ_THREAD_CYCLES_VALU", 18 * 250),
        ],
    );
}

#[test]
fn active_and_waiting_cycles_add_up_to_wave_cycles() {
    for counts in [
        addition(&mut Numbers::new(), &mut Numbers::new()),
        transpose(),
    ] {
        let of = |counter| sum(&counts, counter);
        assert_eq!(
            of("SQ_WAVE_CYCLES"),
            of("SQ_ACTIVE_INST_ANY") + of("SQ_WAIT_ANY") + of("SQ_WAIT_INST_ANY")
        );
        assert!(of("SQ_WAIT_ANY") > 0);
        assert!(of("GRBM_SPI_BUSY") < of("GRBM_GUI_ACTIVE"));
        assert!(of("GRBM_GUI_ACTIVE") <= of("GRBM_COUNT"));
        // A SIMD issues at most one instruction of a kind in a quad-cycle.
        assert!(of("SQ_ACTIVE_INST_VALU") <= 4 * of("SQ_BUSY_CU_CYCLES"));
        let waves: f64 = (0..8)
            .map(|engine| counts.accumulated("SQ", 5, engine, 0).unwrap())
            .sum();
        assert_eq!(waves as u64, 4 * of("SQ_WAVE_CYCLES"));
    }
}

#[test]
fn counters_are_the_same_in_every_run() {
    let first = format!("{:?}", transpose());
    for _ in 0..3 {
        assert_eq!(format!("{:?}", transpose()), first);
    }
}

#[test]
fn determined_events_have_a_value_and_others_have_none() {
    let gfx90a = Device::find("gfx90a").unwrap();
    let counts = transpose();
    for block in [
        "SQ", "SPI", "TA", "TD", "TCP", "TCC", "TCA", "GRBM", "CPC", "CPF",
    ] {
        for event in 0..400 {
            let value = counts.value(block, event, 0, 0);
            assert_eq!(
                value.is_some(),
                determined(gfx90a, block, event),
                "{block} {event}"
            );
            let level = counts.accumulated(block, event, 0, 0);
            assert_eq!(
                level.is_some(),
                accumulates(gfx90a, block, event),
                "{block} {event}"
            );
        }
    }
    assert!(determined(gfx90a, "SQ", 4) && !accumulates(gfx90a, "SQ", 4));
    assert!(determined(gfx90a, "SQ", 5) && accumulates(gfx90a, "SQ", 5));
    assert!(
        !determined(gfx90a, "SQ", 1),
        "what counts depends on others"
    );
}

/// Every counter of the hardware can be collected, but for those that add up what another one counts.
#[test]
fn every_counter_of_every_device_is_determined_except_accumulators() {
    for device in DEVICES {
        let missing: Vec<&str> = device
            .counters
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter(|line| {
                let fields: Vec<&str> = line.split(';').collect();
                let event = fields[2].parse();
                event.is_ok_and(|event| !determined(device, fields[1], event))
            })
            .filter_map(|line| line.split(';').next())
            .collect();
        assert_eq!(
            missing,
            ["SQ_ACCUM_PREV", "SQ_ACCUM_PREV_HIRES"],
            "{}",
            device.name
        );
    }
}

/// A dispatch of `groups` workgroups of 256 work-items, which all fit into one engine's first compute unit at a time.
#[test]
fn workgroups_wait_for_room_on_a_compute_unit() {
    let module = Module::load(OBJECTS[2].1);
    let mut out = vec![0u32; 1 << 20];
    let address = (out.as_mut_ptr() as u64).to_le_bytes();
    let count = |groups: u32| {
        let items = 256 * groups;
        let args: [&[u8]; 2] = [&address, &items.to_le_bytes()];
        module.dispatch("collatz", [items, 1, 1], [256, 1, 1], 0, &args, watch)
    };
    // 8 workgroups of four waves on each of 104 units.
    let (fits, waits) = (count(8 * 104), count(2 * 8 * 104));
    for counter in ["SPI_RA_REQ_NO_ALLOC_CSN", "SPI_RA_WAVE_SIMD_FULL_CSN"] {
        assert_eq!(sum(&fits, counter), 0, "{counter}");
    }
    let waited = sum(&waits, "SPI_RA_REQ_NO_ALLOC_CSN");
    assert!(waited > 0);
    assert_eq!(sum(&waits, "SPI_RA_RES_STALL_CSN"), waited);
    // Each unit of an engine waits at most as long as the engine, with its four SIMDs.
    let full = sum(&waits, "SPI_RA_WAVE_SIMD_FULL_CSN");
    assert!(full > 0 && full <= 4 * 13 * waited, "{full} {waited}");
    for counter in [
        "SPI_RA_VGPR_SIMD_FULL_CSN",
        "SPI_RA_LDS_CU_FULL_CSN",
        "SPI_RA_BAR_CU_FULL_CSN",
    ] {
        assert_eq!(sum(&waits, counter), 0, "{counter}");
    }
    assert!(sum(&waits, "CPC_CPC_STAT_STALL") * 8 >= waited);
    let cycles = sum(&waits, "GRBM_GUI_ACTIVE");
    assert_eq!(sum(&waits, "CPC_CPC_STAT_BUSY"), cycles);
    let interface = ["CPF_CPF_TCIU_BUSY", "CPF_CPF_TCIU_IDLE"].map(|name| sum(&waits, name));
    assert_eq!(interface.iter().sum::<u64>(), cycles);
}

#[test]
fn memory_accesses_are_counted_by_owner_and_grain() {
    let memory = |owner, fine_grained| PageMemory {
        owner,
        fine_grained,
    };
    let count = |memory: PageMemory| {
        let module =
            Module::load(&pick(VECTOR_OPS, &Device::find("gfx90a").unwrap().target()).unwrap());
        let mut numbers = [Numbers::new(), Numbers::new(), Numbers::new()];
        let [sums, left, right] = numbers.each_mut().map(|numbers| numbers.pointer());
        let args: [&[u8]; 5] = [
            &sums,
            &left,
            &right,
            &128i32.to_le_bytes(),
            &16i32.to_le_bytes(),
        ];
        let name = "_Z15addition_kernelIfEvPT_PKS0_S3_ii";
        module.dispatch(name, [128, 16, 1], [64, 4, 1], 0, &args, |dispatch| {
            let of = |_| memory;
            let stop = AtomicBool::new(false);
            let mut model = Model::new(dispatch, &of);
            let control = Control {
                threads: 1,
                stop: &stop,
                seed: None,
            };
            watch_dispatch(dispatch, &Everything, &control, &mut model).unwrap();
            model.finish()
        })
    };
    let waves = 32;
    for (memory, name) in [
        (memory(Owner::Device, false), "RW"),
        (memory(Owner::Device, true), "CC"),
        (memory(Owner::Peer, false), "NC"),
        (memory(Owner::Host, true), "UC"),
    ] {
        let counts = count(memory);
        let of = |what: &str| sum(&counts, &format!("TCP_TCC_{name}_{what}_REQ"));
        assert_eq!(
            (of("READ"), of("WRITE"), of("ATOMIC")),
            (8 * waves, 4 * waves, 0)
        );
        let types = ["NC", "UC", "CC", "RW"].map(|name| sum(&counts, &format!("TCC_{name}_REQ")));
        assert_eq!(types.iter().sum::<u64>(), sum(&counts, "TCC_REQ"));
        let uncached = name == "UC";
        // Arguments and data in memory that is not cached are read each time, in two blocks of 32 bytes.
        let blocks = sum(&counts, "TCC_EA_RD_UNCACHED_32B");
        assert_eq!(blocks, if uncached { 2 * (8 * waves + 8) } else { 0 });
        let written = sum(&counts, "TCC_EA_WR_UNCACHED_32B");
        assert_eq!(written, if uncached { 2 * 4 * waves } else { 0 });
        let local = sum(&counts, "TCC_EA_RDREQ_DRAM") == sum(&counts, "TCC_EA_RDREQ");
        assert_eq!(local, matches!(name, "RW" | "CC"));
    }
}

#[test]
fn requests_for_a_line_in_flight_count_as_duplicate_misses() {
    let counts = addition(&mut Numbers::new(), &mut Numbers::new());
    let parts = |names: [&str; 3]| names.map(|name| sum(&counts, name));
    let fetched = parts([
        "SQC_ICACHE_HITS",
        "SQC_ICACHE_MISSES",
        "SQC_ICACHE_MISSES_DUPLICATE",
    ]);
    assert_eq!(fetched.iter().sum::<u64>(), sum(&counts, "SQC_ICACHE_REQ"));
    // The four waves of a workgroup begin at the same time with the same line.
    assert!(fetched[2] >= 8 * 3, "{fetched:?}");
    let loaded = parts([
        "SQC_DCACHE_HITS",
        "SQC_DCACHE_MISSES",
        "SQC_DCACHE_MISSES_DUPLICATE",
    ]);
    assert_eq!(loaded.iter().sum::<u64>(), sum(&counts, "SQC_DCACHE_REQ"));
    let translated = ["TCP_UTCL1_TRANSLATION_HIT", "TCP_UTCL1_TRANSLATION_MISS"];
    let translated = translated.map(|name| sum(&counts, name));
    let lookups = sum(&counts, "TCP_TOTAL_CACHE_ACCESSES");
    assert_eq!(translated.iter().sum::<u64>(), lookups);
    assert_eq!(sum(&counts, "TCP_UTCL1_REQUEST"), lookups);
    // Each engine's unit uses two pages of input and one of output, of which a page has two workgroups.
    assert_eq!(translated[1], 8 * 3);
    let busy = sum(&counts, "GRBM_GUI_ACTIVE");
    for counter in ["GRBM_TA_BUSY", "GRBM_TC_BUSY", "GRBM_EA_BUSY", "TCA_BUSY"] {
        let instances = if counter == "TCA_BUSY" { 32 } else { 1 };
        let cycles = sum(&counts, counter);
        assert!(
            0 < cycles && cycles <= instances * busy,
            "{counter} {cycles} {busy}"
        );
    }
}

#[test]
fn counters_of_scratch_accesses_are_the_same_in_every_run() {
    let module = Module::load(OBJECTS[0].1);
    let count = || {
        let mut numbers = [Numbers::new(), Numbers::new(), Numbers::new()];
        let [out, a, b] = numbers.each_mut().map(|numbers| numbers.pointer());
        let args: [&[u8]; 4] = [&out, &a, &b, &500u32.to_le_bytes()];
        module.dispatch("arith", [512, 1, 1], [128, 1, 1], 0, &args, watch)
    };
    let first = count();
    // Unoptimised code keeps its variables in scratch.
    assert!(sum(&first, "TA_BUFFER_WAVEFRONTS") > 0);
    assert_eq!(sum(&first, "TCP_TOTAL_ACCESSES"), sum(&first, "TA_TA_BUSY"));
    let _elsewhere: Vec<Vec<u8>> = (0..50).map(|n| vec![0; 1000 * n + 8]).collect();
    assert_eq!(format!("{:?}", count()), format!("{first:?}"));
}

#[test]
fn events_are_listed_in_the_order_of_their_numbers() {
    let events: Vec<_> = determined_events().collect();
    for pair in events.windows(2) {
        assert!(pair[0].0 != pair[1].0 || pair[0].1 < pair[1].1, "{pair:?}");
    }
}

#[test]
fn the_manual_states_the_numbers_of_counters() {
    let manual = include_str!("../../../docs/simulator-counters.md");
    let device = Device::find("gfx90a").expect("a device");
    let counters = device.counters.lines();
    let counters = counters.filter(|line| !line.starts_with('#'));
    let hardware = counters.filter(|line| {
        line.split(';')
            .nth(1)
            .is_some_and(|block| !block.is_empty())
    });
    let (hardware, determined) = (hardware.count(), determined_events().count());
    let text = format!("Of the {hardware} hardware counters {determined} are");
    assert!(manual.contains(&text), "{text}");
}

/// Prints the cost of counting; run with `--ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn cost_of_counting_is_printed() {
    let module = Module::load(OBJECTS[2].1);
    let mut out = vec![0u32; 65536];
    let address = (out.as_mut_ptr() as u64).to_le_bytes();
    for items in [1u32, 65536] {
        let args: [&[u8]; 2] = [&address, &items.to_le_bytes()];
        let mut instructions = 0;
        let start = std::time::Instant::now();
        let turns = if items == 1 { 1000 } else { 10 };
        for _ in 0..turns {
            let counts = module.dispatch("collatz", [items, 1, 1], [256, 1, 1], 0, &args, watch);
            instructions += sum(&counts, "SQ_INSTS");
        }
        let nanoseconds = start.elapsed().as_nanos() as f64;
        println!(
            "{items} work-items: {:.1} ns a wave instruction, {:.0} us a dispatch",
            nanoseconds / instructions as f64,
            nanoseconds / 1e3 / f64::from(turns)
        );
    }
}

/// Each event of gfx90a that another device has yields a value there as well, under that device's number.
#[test]
fn events_have_a_number_of_their_own_on_each_device() {
    let gfx942 = Device::find("gfx942").unwrap();
    for (block, event, what) in [
        ("SQ", 4, "SQ_WAVES"),
        ("SQ", 56, "SQ_INSTS_MFMA"),
        ("SQ", 55, "SQ_INSTS_VALU_MFMA_MOPS_F8"),
        ("TCP", 28, "TCP_TOTAL_READ"),
        ("TCC", 38, "TCC_EA0_RDREQ"),
        ("TD", 16, "TD_LOAD_WAVEFRONT"),
    ] {
        let row = format!("{what};{block};{event};");
        assert!(
            gfx942.counters.lines().any(|line| line.starts_with(&row)),
            "{row}"
        );
        assert!(determined(gfx942, block, event), "{what}");
    }
    assert!(
        !determined(gfx942, "SQ", 1048),
        "a number that no device has"
    );
    assert!(accumulates(gfx942, "SQ", 72) && !accumulates(gfx942, "SQ", 67));
}

/// A counter whose name in a device's table is not the catalogue's would be listed and not determined.
#[test]
fn other_devices_have_the_events_of_gfx90a() {
    for device in DEVICES.iter().filter(|device| device.name != "gfx90a") {
        let lacking: &[&str] = match device.name {
            "gfx942" => &[
                "SQ_INSTS_FLAT_LDS_ONLY",
                "TCP_TCP_LATENCY",
                "TCP_TCC_READ_REQ_LATENCY",
                "TCP_TCC_WRITE_REQ_LATENCY",
            ],
            name => panic!("which events of gfx90a does {name} lack?"),
        };
        let is_determined = |block, name: &str| {
            let name = name.replacen("TCC_EA_", "TCC_EA0_", 1);
            let listed = |line: &str| {
                let mut fields = line.split(';');
                let is = fields.next() == Some(&name) && fields.next() == Some(block);
                is.then(|| fields.next().and_then(|event| event.parse().ok()))
                    .flatten()
            };
            let event: Option<u32> = device.counters.lines().find_map(listed);
            event.is_some_and(|event| determined(device, block, event))
        };
        let missing: Vec<_> = determined_events()
            .filter(|(block, _, name)| !is_determined(block, name))
            .map(|(_, _, name)| name)
            .collect();
        assert_eq!(missing, lacking, "{}", device.name);
    }
}
