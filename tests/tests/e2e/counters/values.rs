//! Values against what launch geometry and machine code imply.
//!
//! The instruction counts are those of `workloads/kernels/prebuilt`, read with
//! `clang-offload-bundler-19 --unbundle --type=o --targets=hipv4-amdgcn-amd-amdhsa--gfx90a` and
//! `llvm-objdump-19 -d --mcpu=gfx90a`.

use std::collections::BTreeMap;

use rpd_tests::run::Rpd;

use super::{VECTOR_OPS, by_kernel, json, pmc, rows, values};

/// 256 x 256 work-items in groups of 64, a wave each.
const WAVES: f64 = 1024.0;

/// Instructions of a wave that runs a kernel of `vector-ops` from start to end, all lanes within the matrix:
/// vector, scalar, scalar memory, loads, stores, branches.
const INSTRUCTIONS: [(&str, [f64; 6]); 4] = [
    (VECTOR_OPS[0], [18.0, 6.0, 4.0, 2.0, 1.0, 1.0]),
    (VECTOR_OPS[1], [18.0, 6.0, 4.0, 2.0, 1.0, 1.0]),
    (VECTOR_OPS[2], [18.0, 6.0, 4.0, 2.0, 1.0, 1.0]),
    (VECTOR_OPS[3], [28.0, 6.0, 4.0, 2.0, 1.0, 1.0]),
];

const COUNTED: [&str; 6] = [
    "SQ_INSTS_VALU",
    "SQ_INSTS_SALU",
    "SQ_INSTS_SMEM",
    "SQ_INSTS_VMEM_RD",
    "SQ_INSTS_VMEM_WR",
    "SQ_INSTS_BRANCH",
];

#[test]
fn counters_of_vector_ops_are_exact() {
    let outcome = pmc(["SQ_WAVES"].into_iter().chain(COUNTED))
        .workload("vector-ops", ["1", "2"])
        .success();
    let rows = rows(&outcome);
    assert_eq!(rows.len(), 8 * 7, "8 dispatches, 7 counters");
    assert_eq!(values(&rows, "SQ_WAVES"), [WAVES; 8]);
    for (index, counter) in COUNTED.iter().enumerate() {
        let expected: BTreeMap<&str, Vec<f64>> = INSTRUCTIONS
            .iter()
            .map(|(kernel, each)| (*kernel, vec![each[index] * WAVES; 2]))
            .collect();
        assert_eq!(by_kernel(&rows, counter), expected, "{counter}");
    }
}

#[test]
fn counters_of_work_items_and_wave_sizes_are_exact() {
    let outcome = pmc(["SQ_ITEMS", "SQ_WAVES_EQ_64", "SQ_WAVES_LT_64"])
        .workload("vector-ops", ["1", "1"])
        .success();
    let rows = rows(&outcome);
    assert_eq!(values(&rows, "SQ_ITEMS"), [65536.0; 4]);
    assert_eq!(values(&rows, "SQ_WAVES_EQ_64"), [WAVES; 4]);
    assert_eq!(values(&rows, "SQ_WAVES_LT_64"), [0.0; 4]);
}

const TILE: u32 = 16;

/// Waves of `transpose_kernel`: all of them, those with an element to store in the tile, and those with one to take from
/// it. A wave is four rows of a tile; one whose lanes are all outside the matrix, or the turned one, skips that half.
fn transposing(width: u32, height: u32) -> [u32; 3] {
    let [mut all, mut storing, mut taking] = [0; 3];
    for column in 0..width.div_ceil(TILE) {
        for row in 0..height.div_ceil(TILE) {
            for wave in 0..4 {
                all += 1;
                storing += u32::from(row * TILE + wave * 4 < height);
                // Turned, the tile's columns are rows, and a lane's x and y have changed places.
                taking += u32::from(column * TILE + wave * 4 < width);
            }
        }
    }
    [all, storing, taking]
}

fn transposed(width: u32, height: u32) -> f64 {
    let [_, storing, taking] = transposing(width, height);
    f64::from(storing + taking)
}

/// Local memory instructions of `block_sum_kernel`: each of a block's four waves stores once, then halves of the block
/// are added (two loads and a store in each wave with active lanes), and the first wave loads the sum.
fn summed(blocks: u32, block: u32) -> f64 {
    let mut instructions = block / 64 + 1;
    let mut half = block / 2;
    while half > 0 {
        instructions += 3 * half.div_ceil(64);
        half /= 2;
    }
    f64::from(blocks * instructions)
}

#[test]
fn lds_counters_of_transpose_follow_from_its_geometry() {
    let outcome = pmc(["SQ_INSTS_LDS", "SQ_WAVES"])
        .workload("transpose", [""; 0])
        .success();
    let rows = rows(&outcome);
    let local = by_kernel(&rows, "SQ_INSTS_LDS");
    let turned = "transpose_kernel(float const*, float*, unsigned int, unsigned int)";
    let sums = "block_sum_kernel(unsigned int const*, unsigned int*)";
    assert_eq!(local[turned], [transposed(250, 130), transposed(130, 250)]);
    assert_eq!(local[sums], [summed(37, 256)]);
    let waves = by_kernel(&rows, "SQ_WAVES");
    assert_eq!(waves[turned], [f64::from(16 * 9 * 4); 2]);
    assert_eq!(waves[sums], [f64::from(37 * 4)]);
    assert_eq!(
        transposed(250, 130),
        1095.0,
        "of 1152, were no wave outside"
    );
}

#[test]
fn instructions_that_waves_skip_are_not_counted() {
    let counters = [
        "SQ_INSTS_VMEM_RD",
        "SQ_INSTS_VMEM_WR",
        "SQ_INSTS_VALU",
        "SQ_INSTS_SMEM",
        "SQ_INSTS_BRANCH",
        "SPI_CSN_NUM_THREADGROUPS",
    ];
    let outcome = pmc(counters).workload("transpose", [""; 0]).success();
    let rows = rows(&outcome);
    let turned = "transpose_kernel(float const*, float*, unsigned int, unsigned int)";
    let expected = [(250, 130), (130, 250)].map(|(width, height)| {
        let [all, storing, taking] = transposing(width, height);
        // Of 26 vector instructions each half has eight.
        [
            storing,
            taking,
            10 * all + 8 * (storing + taking),
            2 * all,
            2 * all,
            all / 4,
        ]
    });
    for (index, counter) in counters.iter().enumerate() {
        let expected = expected.map(|of| f64::from(of[index]));
        assert_eq!(by_kernel(&rows, counter)[turned], expected, "{counter}");
    }
}

#[test]
fn memory_counters_give_the_bytes_of_vector_ops() {
    let counters = ["WRITE_SIZE", "FETCH_SIZE", "SQ_INSTS", "SQ_INSTS_FLAT"];
    let outcome = pmc(counters).workload("vector-ops", ["1", "1"]).success();
    let rows = rows(&outcome);
    assert_eq!(values(&rows, "WRITE_SIZE"), [256.0; 4], "KiB of results");
    for fetched in values(&rows, "FETCH_SIZE") {
        // Two matrices, and then code and arguments, which lie in host memory that the second level does not keep.
        assert!(fetched > 512.0 && fetched <= 516.0, "{fetched}");
    }
    assert_eq!(
        values(&rows, "SQ_INSTS_FLAT"),
        [3.0 * WAVES; 4],
        "global is flat"
    );
    let all = [36.0, 36.0, 36.0, 46.0].map(|instructions| instructions * WAVES);
    assert_eq!(values(&rows, "SQ_INSTS"), all, "waits and the end included");
}

#[test]
fn memory_fills_are_counted_as_dispatches() {
    let outcome = Rpd::new(["--pmc", "SQ_WAVES", "--kernel-trace", "-f", "csv"])
        .workload("transpose", [""; 0])
        .success();
    let traced = outcome.csv("kernel_trace");
    let mut traced: Vec<(u64, String)> = traced
        .numbers("Dispatch_Id")
        .into_iter()
        .zip(traced.column("Kernel_Name").into_iter().map(str::to_owned))
        .collect();
    traced.sort();
    let counted: Vec<(u64, String)> = rows(&outcome)
        .into_iter()
        .map(|row| (row.dispatch, row.kernel))
        .collect();
    assert_eq!(
        counted, traced,
        "a value for each dispatch of the trace, no more"
    );
}

#[test]
fn counters_are_sums_in_csv_and_instances_in_json() {
    let counters = ["SQ_WAVES", "TCC_REQ", "TCP_TOTAL_ACCESSES", "GRBM_COUNT"];
    let options = ["--pmc"]
        .into_iter()
        .chain(counters)
        .chain(["-f", "csv", "json"]);
    let outcome = Rpd::new(options)
        .workload("vector-ops", ["1", "1"])
        .success();
    let json = json(&outcome);
    let names: BTreeMap<u64, (&str, u64)> = json["counters"]
        .as_array()
        .expect("counters")
        .iter()
        .map(|counter| {
            let instances: u64 = counter["dimensions"]
                .as_array()
                .expect("dimensions")
                .iter()
                .map(|dimension| dimension["instance_size"].as_u64().expect("a size"))
                .product();
            (
                counter["id"]["handle"].as_u64().expect("an id"),
                (counter["name"].as_str().expect("a name"), instances),
            )
        })
        .collect();
    let mut sums: BTreeMap<(u64, String), (f64, u64)> = BTreeMap::new();
    for dispatch in json["callback_records"]["counter_collection"]
        .as_array()
        .expect("counted dispatches")
    {
        let number = dispatch["dispatch_data"]["dispatch_info"]["dispatch_id"]
            .as_u64()
            .expect("a dispatch id");
        for record in dispatch["records"].as_array().expect("records") {
            let (name, _) = names[&record["counter_id"]["handle"].as_u64().expect("an id")];
            let sum = sums.entry((number, name.to_owned())).or_default();
            sum.0 += record["value"].as_f64().expect("a value");
            sum.1 += 1;
        }
    }
    let rows = rows(&outcome);
    assert_eq!(rows.len(), 4 * counters.len());
    for row in &rows {
        let (sum, instances) = sums[&(row.dispatch, row.counter.clone())];
        assert_eq!(row.value, sum, "{row:?}");
        let expected = names.values().find(|(name, _)| *name == row.counter);
        assert_eq!(Some(instances), expected.map(|(_, instances)| *instances));
    }
    for (counter, instances) in [
        ("SQ_WAVES", 8),
        ("TCC_REQ", 32),
        ("TCP_TOTAL_ACCESSES", 112),
    ] {
        assert_eq!(sums[&(1, counter.to_owned())].1, instances, "{counter}");
    }
}

/// The values of all counters of one run, by dispatch.
fn together<const N: usize>(counters: [&str; N]) -> BTreeMap<u64, BTreeMap<String, f64>> {
    let outcome = pmc(counters).workload("vector-ops", ["1", "1"]).success();
    let mut dispatches: BTreeMap<u64, BTreeMap<String, f64>> = BTreeMap::new();
    for row in rows(&outcome) {
        dispatches
            .entry(row.dispatch)
            .or_default()
            .insert(row.counter, row.value);
    }
    assert_eq!(dispatches.len(), 4);
    assert!(dispatches.values().all(|values| values.len() == N));
    dispatches
}

#[test]
fn derived_counters_equal_their_formulas() {
    for values in together(["SQ_INSTS_VALU", "SQ_WAVES", "VALUInsts", "SQ_WAVES_sum"]).values() {
        assert_eq!(
            values["VALUInsts"],
            values["SQ_INSTS_VALU"] / values["SQ_WAVES"]
        );
        assert_eq!(values["SQ_WAVES_sum"], values["SQ_WAVES"]);
    }
    for values in together(["TCC_EA_RDREQ_sum", "TCC_EA_RDREQ_32B_sum", "FETCH_SIZE"]).values() {
        let narrow = values["TCC_EA_RDREQ_32B_sum"];
        let bytes = narrow * 32.0 + (values["TCC_EA_RDREQ_sum"] - narrow) * 64.0;
        assert_eq!(values["FETCH_SIZE"], bytes / 1024.0);
        assert!(values["FETCH_SIZE"] > 0.0);
    }
    for values in together(["TCC_HIT_sum", "TCC_MISS_sum", "L2CacheHit"]).values() {
        let (hits, misses) = (values["TCC_HIT_sum"], values["TCC_MISS_sum"]);
        let ratio = 100.0 * hits / (hits + misses);
        assert!((values["L2CacheHit"] - ratio).abs() < 1e-6, "{values:?}");
    }
}

#[test]
fn counters_are_equal_in_every_run() {
    // What depends on the work alone. Times and cycles may differ.
    let run = || {
        let counters = [
            "SQ_WAVES",
            "SQ_INSTS_VALU",
            "TCC_HIT",
            "TCC_MISS",
            "FETCH_SIZE",
        ];
        let outcome = pmc(counters).workload("vector-ops", ["1", "2"]).success();
        let rows = rows(&outcome).into_iter();
        rows.map(|row| (row.dispatch, row.kernel, row.counter, row.value))
            .collect::<Vec<_>>()
    };
    let first = run();
    assert_eq!(first.len(), 8 * 5);
    assert_eq!(first, run());
}

#[test]
fn counters_are_separate_for_several_gpus() {
    let outcome = pmc(["SQ_WAVES"])
        .env("RPD_SIM_GPUS", "2")
        .workload("devices", [""; 0])
        .success();
    let found: Vec<(String, f64)> = rows(&outcome)
        .into_iter()
        .map(|row| (row.agent, row.value))
        .collect();
    let agent = |number: u32| format!("Agent {number}");
    assert_eq!(
        found,
        [(agent(1), 1.0), (agent(2), 1.0), (agent(2), 2.0)],
        "GPUs after the CPU"
    );
}

/// A gfx942 has a code object of its own, and its counters are sums over eight dies.
#[test]
fn counters_of_gfx942_are_summed_over_its_dies() {
    let outcome = pmc([
        "SQ_WAVES",
        "SQ_INSTS_VALU_MFMA_MOPS_F8",
        "TCC_EA0_WRREQ_sum",
    ])
    .option(["--sim-gpu", "gfx942", "--kernel-trace"])
    .workload("vector-ops", ["1", "2"])
    .success();
    let rows = rows(&outcome);
    assert_eq!(values(&rows, "SQ_WAVES"), [WAVES; 8]);
    assert_eq!(values(&rows, "SQ_INSTS_VALU_MFMA_MOPS_F8"), [0.0; 8]);
    // 256 x 256 results of 4 bytes, written to memory in 64 bytes each.
    assert_eq!(values(&rows, "TCC_EA0_WRREQ_sum"), [4096.0; 8]);
    let agents = std::fs::read_to_string(outcome.file("agent_info.csv")).expect("agents");
    assert!(agents.contains("gfx942"), "{agents}");
    let mut table = csv::Reader::from_reader(agents.as_bytes());
    let headers = table.headers().expect("a line of names").clone();
    let column = |name: &str| {
        headers
            .iter()
            .position(|header| header == name)
            .expect(name)
    };
    let gpu = table
        .records()
        .flatten()
        .find(|row| &row[column("Agent_Type")] == "GPU");
    let gpu = gpu.expect("a GPU");
    assert_eq!(
        (&gpu[column("Num_Xcc")], &gpu[column("Cu_Count")]),
        ("8", "304")
    );

    let refused =
        Rpd::new(["--sim-gpu", "gfx000", "--kernel-trace"]).workload("vector-ops", [""; 0]);
    let named = "invalid choice: 'gfx000' (choose from gfx90a, gfx942)";
    assert!(refused.stderr.contains(named), "{}", refused.stderr);
}
