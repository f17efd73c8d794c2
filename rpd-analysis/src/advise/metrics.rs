//! The figures that rules use: a fixed catalogue, and where they come from.

mod counted;
mod measure;
mod ranks;
mod streams;

use std::collections::HashMap;

use serde::Deserialize;

use crate::answer::{Unit, Window};

pub(super) use measure::measure;

/// What figures are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The recording.
    Run,
    /// A GPU.
    Gpu,
    /// A kernel with its geometry.
    Kernel,
    /// A function.
    Call,
    /// A direction of copies.
    Copy,
}

impl Source {
    /// The word in rules.
    pub const fn word(self) -> &'static str {
        match self {
            Source::Run => "run",
            Source::Gpu => "gpu",
            Source::Kernel => "kernel",
            Source::Call => "call",
            Source::Copy => "copy",
        }
    }
}

/// Stands for the counters of bytes behind L2, which differ between GPUs.
pub(super) const FABRIC: &str = "fabric";

/// A figure that rules may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// What it is of.
    pub source: Source,
    /// Name in rules.
    pub name: &'static str,
    /// Unit.
    pub unit: Unit,
    /// Definition.
    pub meaning: &'static str,
    /// Records that it needs; empty for those of operations alone.
    pub needs: &'static str,
}

macro_rules! metrics {
    ($($source:ident { $($name:ident: $unit:ident $needs:literal $meaning:literal,)* })*) => {
        /// The catalogue of figures.
        pub const METRICS: &[Metric] = &[
            $($(Metric {
                source: Source::$source,
                name: stringify!($name),
                unit: Unit::$unit,
                meaning: $meaning,
                needs: $needs,
            },)*)*
        ];
    };
}

metrics! {
    Run {
        window_ns: Nanoseconds "" "Length of the window",
        is_simulated: Count "" "1 where all GPUs are simulated, whose times are those of an interpreter",
        gpus: Count "" "Number of GPUs that the program could use",
        used_gpus: Count "" "Number of GPUs with operations",
        idle_gpus: Count "" "Number of GPUs with less than 1 % of the time of the busiest one",
        imbalance: Share "" "Greatest time of computation of a used GPU over the mean, less 1",
        imbalance_lost_ns: Nanoseconds "" "Time that GPUs wait for the one with the most computation",
        iterations: Count "" "Number of iterations after the warm-up; 0 when none are found",
        period: Count "" "Launches of an iteration",
        period_confidence: Share "" "Share of the launches that are in iterations and match; 1 for markers",
        syncs_per_iteration: Number "hip_calls" "Calls that wait, for each iteration",
        launching_ns: Nanoseconds "hip_calls" "Launch part of gaps, and host part in calls that launch; of a simulated GPU also kernels below 30 us that are of no graph, and the gaps before them behind their calls: its interpreter needs some 10 us for a kernel of nothing",
        allocs_per_iteration: Number "hip_calls" "Calls that allocate or free, for each iteration",
        allocs: Count "hip_calls" "Number of these calls",
        launches: Count "hip_calls" "Calls that launch a kernel",
        allocs_rate: Number "hip_calls" "These calls for each second of the window",
        alloc_ns: Nanoseconds "hip_calls" "Time in these calls in the window",
        alloc_gap_ns: Nanoseconds "hip_calls" "Host parts in calls, and launch parts, of the gaps whose longest call is one of these",
        alloc_mean_ns: Nanoseconds "hip_calls" "Mean time of these calls",
        alloc_pool_share: Share "hip_calls" "Share of these calls that use a pool (Async)",
        free_waits: Count "hip_calls" "Calls of hipFree of 100 us or more, in 80 % of which kernels run or are in a queue",
        free_wait_ns: Nanoseconds "hip_calls" "Time in these calls",
        loads_in_iterations: Count "hip_calls" "Calls that load or compile code in iterations after the warm-up",
        load_in_iterations_ns: Nanoseconds "hip_calls" "Time in these calls",
        load_gap_ns: Nanoseconds "hip_calls" "Host parts in such calls of gaps, those before the first launch of a kernel left out",
        graph_launches: Count "hip_calls" "Launches of graphs",
        graph_instantiations: Count "hip_calls" "Instantiations of graphs in the window",
        graph_instantiation_ns: Nanoseconds "hip_calls" "Time in these calls",
        graph_gap_ns: Nanoseconds "hip_calls" "Host and launch parts of gaps that a graph ends",
        pageable_copies: Count "allocations" "Asynchronous copies whose host address is in no live allocation of the host's",
        pageable_call_share: Share "allocations" "Time in their calls over their durations",
        pageable_ns: Nanoseconds "allocations" "Time in their calls",
        round_trips: Count "copies" "Copies to the host that are followed by one of the same size from the same address",
        round_trip_ns: Nanoseconds "copies" "Time of both copies of each",
        markers: Count "" "Number of markers",
        lost: Count "" "Number of lost records",
        skewed_share: Share "hip_calls" "Share of operations that begin before their calls",
        warm_up_share: Share "" "Warm-up as a share of all iterations' time",
        cost_share: Share "cost" "Cost of recording as a share of the window",
        host_func_wait_ns: Nanoseconds "hip_calls" "Wait and turnaround parts of gaps that end with an operation behind a function of the host in its stream",
        collective_median_bytes: Bytes "rccl_calls" "Median size of collectives",
        collectives_per_iteration: Number "rccl_calls" "Collectives in an iteration",
        collective_ns: Nanoseconds "rccl_calls" "Time of collectives",
        matched_collectives: Count "" "Collectives, matched between ranks by name, grid and order of their kernels",
        straggler_share: Share "" "Share of these for which the others wait for the rank that delays most of them",
        straggler_lost_ns: Nanoseconds "" "Time that they wait for it, the median of the others in each collective",
    }
    Gpu {
        window_ns: Nanoseconds "" "Length of the window",
        gpus: Count "" "Number of GPUs",
        is_simulated: Count "" "1 for a simulated GPU, whose times are those of its interpreter",
        ops: Count "" "Number of operations",
        kernels: Count "" "Number of kernels",
        graph_ops: Count "" "Number of operations of graphs",
        busy_ns: Nanoseconds "" "Time in which anything runs",
        several_ns: Nanoseconds "" "Time in which two operations or more run",
        kernel_ns: Nanoseconds "" "Durations of kernels added up",
        median_kernel_ns: Nanoseconds "" "Median duration of kernels",
        gap_ns: Nanoseconds "" "Time of gaps",
        host_ns: Nanoseconds "hip_calls" "Host part of gaps",
        host_launch_ns: Nanoseconds "hip_calls" "Host part of gaps in calls that launch",
        launch_ns: Nanoseconds "hip_calls" "Launch part of gaps",
        wait_ns: Nanoseconds "hip_calls" "Wait part of gaps",
        starved_gaps: Count "hip_calls" "Gaps of at least 1 ms and 0.5 % of the window that are the host's for half, of a simulated GPU without the time in calls that wait",
        starved_ns: Nanoseconds "hip_calls" "Time of these gaps",
        low_ns: Nanoseconds "" "Time of the thirtieths of the window, between the GPU's first and last operation, with a utilisation below 50 %",
        low_busy_ns: Nanoseconds "" "Time in these in which anything runs; of a simulated GPU also in which its interpreter had not come to what was requested, or a busy host had not woken",
        inner_copy_ns: Nanoseconds "copies" "Copy part of gaps between kernels",
        exposed_comm_ns: Nanoseconds "" "Time of communication that no computation covers, without the part in which it waits for other ranks",
        comm_overlap: Share "" "Share of communication under computation; 0 without any",
        shader_copy_ns: Nanoseconds "" "Time of kernels of the runtime that copy",
        streams: Count "" "Streams with 10 % of the kernels or more",
        event_waits: Count "hip_calls" "Calls before the end of the window that make a stream wait for an event",
        rounds: Number "" "How many times a launch fills the GPU, weighted by time",
        filling_share: Share "" "Share of the time of kernels that fill the GPU at least once",
        null_stream_ops: Count "hip_calls" "Operations of the null stream that began when all that was requested before in other streams had ended",
        null_stream_broken: Count "hip_calls" "Operations that did not wait for the null stream, or that it did not wait for",
        null_stream_wait_ns: Nanoseconds "hip_calls" "Time for which operations are held back by the null stream, or it by them",
        shared_queue_wait_ns: Nanoseconds "hip_calls" "Time for which operations wait for one of another stream before them on their queue",
    }
    Kernel {
        window_ns: Nanoseconds "" "Length of the window",
        calls: Count "" "Number of launches",
        sum_ns: Nanoseconds "" "Durations added up",
        time_share: Share "" "Share of the time of all kernels",
        median_ns: Nanoseconds "" "Median duration",
        call_ns: Nanoseconds "hip_calls" "Median time in the launching call",
        variation: Share "" "Robust coefficient of variation of the durations",
        varsum_ns: Nanoseconds "" "Time above the best",
        gap_before_ns: Nanoseconds "" "Time of the gaps that the kernel ends",
        is_comm: Count "" "1 for a kernel of a communication library",
        is_compute: Count "" "1 for a kernel of the program: of no communication library, and none that copies or fills for the runtime",
        is_simulated: Count "" "1 on a simulated GPU, whose times are those of its interpreter",
        overlap_share: Share "" "Share of the GPU's busy time in which two operations or more run",
        groups: Count "" "Workgroups of a launch",
        items: Count "" "Work items of a workgroup",
        units: Count "" "Compute units of the GPU",
        waves_of_group: Count "" "Waves of a workgroup",
        lanes_lost: Share "" "Share of the lanes of a workgroup's waves without an item",
        vgprs: Count "" "Vector registers",
        sgprs: Count "" "Scalar registers",
        lds: Bytes "" "LDS of a workgroup",
        scratch: Bytes "" "Scratch of a work item",
        waves: Count "occupancy" "Waves that a unit can hold",
        occupancy: Share "occupancy" "Waves that a unit can hold over its places",
        is_limited_by_vgpr: Count "occupancy" "1 when vector registers limit the waves",
        is_limited_by_lds: Count "occupancy" "1 when LDS limits the waves",
        is_limited_by_sgpr: Count "occupancy" "1 when scalar registers limit the waves",
        rounds: Number "occupancy" "How many times the groups of a launch fill the GPU",
        ceil_rounds: Number "occupancy" "rounds, rounded up",
        achieved_occupancy: Share "counters:MeanOccupancyPerCU" "Waves that run over the places for them",
        greatest_share: Share "counters:GRBM_GUI_ACTIVE,SQ_ACTIVE_INST_VALU,SQ_VALU_MFMA_BUSY_CYCLES,SQ_LDS_IDX_ACTIVE,TCP_TOTAL_CACHE_ACCESSES_sum,TCC_REQ_sum" "Greatest share of a peak",
        compute_share: Share "counters:GRBM_GUI_ACTIVE,SQ_ACTIVE_INST_VALU,SQ_VALU_MFMA_BUSY_CYCLES" "Greatest share of the peak of a unit that computes",
        memory_share: Share "counters:GRBM_GUI_ACTIVE,SQ_LDS_IDX_ACTIVE,TCP_TOTAL_CACHE_ACCESSES_sum,TCC_REQ_sum" "Greatest share of the peak of a unit that moves data",
        valu_share: Share "counters:GRBM_GUI_ACTIVE,SQ_ACTIVE_INST_VALU" "Share of the cycles in which vector instructions are issued",
        active_units: Share "counters:GRBM_GUI_ACTIVE,SQ_BUSY_CU_CYCLES" "Share of the compute units' cycles in which they have waves",
        data_wait_share: Share "counters:SQ_WAIT_ANY,SQ_WAVE_CYCLES" "Share of the waves' cycles in which they wait for data, a barrier or instructions",
        lds_conflicts: Number "counters:SQ_LDS_BANK_CONFLICT,SQ_LDS_IDX_ACTIVE" "Cycles of conflicts for each useful one",
        lds_busy: Share "counters:GRBM_GUI_ACTIVE,SQ_LDS_IDX_ACTIVE" "Share of the cycles in which LDS is busy",
        l1_hit: Share "counters:TCP_TOTAL_CACHE_ACCESSES_sum,TCP_TCC_READ_REQ_sum,TCP_TCC_WRITE_REQ_sum,TCP_TCC_ATOMIC_WITH_RET_REQ_sum,TCP_TCC_ATOMIC_WITHOUT_RET_REQ_sum" "Share of requests that L1 has",
        l2_hit: Share "counters:TCC_HIT_sum,TCC_MISS_sum" "Share of requests that L2 has",
        fabric_share: Share "counters:GRBM_GUI_ACTIVE,fabric" "Bytes behind L2 over what the memory can move in the time",
        fabric_bytes: Bytes "counters:fabric" "Bytes behind L2 of a launch",
        lanes_active: Share "counters:SQ_THREAD_CYCLES_VALU,SQ_ACTIVE_INST_VALU" "Lanes that are active in vector instructions",
        mfma_flops: Number "counters:SQ_INSTS_VALU_MFMA_MOPS_F16,SQ_INSTS_VALU_MFMA_MOPS_BF16,SQ_INSTS_VALU_MFMA_MOPS_F32,SQ_INSTS_VALU_MFMA_MOPS_F64" "Operations of matrix units",
        fma_share: Share "counters:SQ_INSTS_VALU_ADD_F16,SQ_INSTS_VALU_MUL_F16,SQ_INSTS_VALU_FMA_F16,SQ_INSTS_VALU_ADD_F32,SQ_INSTS_VALU_MUL_F32,SQ_INSTS_VALU_FMA_F32,SQ_INSTS_VALU_ADD_F64,SQ_INSTS_VALU_MUL_F64,SQ_INSTS_VALU_FMA_F64" "Share of multiply-adds in the operations on floats, each of which is two",
        double_share: Share "counters:SQ_INSTS_VALU_ADD_F16,SQ_INSTS_VALU_MUL_F16,SQ_INSTS_VALU_FMA_F16,SQ_INSTS_VALU_ADD_F32,SQ_INSTS_VALU_MUL_F32,SQ_INSTS_VALU_FMA_F32,SQ_INSTS_VALU_ADD_F64,SQ_INSTS_VALU_MUL_F64,SQ_INSTS_VALU_FMA_F64" "Share of operations in double precision",
        unfused_share: Share "counters:SQ_INSTS_VALU_ADD_F16,SQ_INSTS_VALU_MUL_F16,SQ_INSTS_VALU_FMA_F16,SQ_INSTS_VALU_ADD_F32,SQ_INSTS_VALU_MUL_F32,SQ_INSTS_VALU_FMA_F32,SQ_INSTS_VALU_ADD_F64,SQ_INSTS_VALU_MUL_F64,SQ_INSTS_VALU_FMA_F64" "Share of additions and multiplications that are not joined",
        atomic_share: Share "counters:TCP_TCC_READ_REQ_sum,TCP_TCC_WRITE_REQ_sum,TCP_TCC_ATOMIC_WITH_RET_REQ_sum,TCP_TCC_ATOMIC_WITHOUT_RET_REQ_sum" "Share of requests to L2 that are atomic",
        lds_address_conflicts: Share "counters:SQ_LDS_ADDR_CONFLICT,SQ_LDS_IDX_ACTIVE" "Share of cycles of LDS with conflicts of addresses",
        lines_per_access: Number "counters:TCP_TOTAL_CACHE_ACCESSES_sum,SQ_INSTS_VMEM" "Cache lines that a vector instruction on memory accesses: 4 for numbers of 4 bytes side by side, 16 for those of 16 bytes",
        instruction_hit: Share "counters:SQC_ICACHE_HITS,SQC_ICACHE_MISSES" "Share of instructions that their cache has",
        samples: Count "samples" "PC samples of the kernel",
        fetch_share: Share "samples" "Share of samples that wait for instructions; samples of the host trap method do not tell why",
        stalled_share: Share "samples" "Share of samples in which no instruction is issued; the host trap method does not tell",
        waitcnt_share: Share "samples" "Share of these that wait for memory",
        barrier_share: Share "samples" "Share of these that wait at a barrier",
        hottest_line_share: Share "samples" "Share of samples at the hottest line",
    }
    Call {
        window_ns: Nanoseconds "" "Length of the window",
        iterations: Count "" "Number of iterations after the warm-up",
        calls: Count "" "Number of calls in the window",
        total_ns: Nanoseconds "" "Time in them",
        per_iteration: Number "" "Calls for each iteration; 0 without iterations",
        rate: Number "" "Calls for each second of the window",
        is_sync: Count "" "1 for a function that waits and is no copy or fill",
        is_sync_copy: Count "" "1 for a copy that waits",
        is_sync_memset: Count "" "1 for a fill that waits",
        is_query: Count "" "1 for a function that asks whether work is done",
        gap_after_ns: Nanoseconds "" "Host parts in calls, and launch parts, of the gaps whose host part has the function as its longest call; behind a wait for a simulated GPU at most 100 us of each, since a host that is busy with its interpreter wakes late",
        copied_ns: Nanoseconds "copies" "Copy part of the gaps in which a copy that this function requested runs",
    }
    Copy {
        window_ns: Nanoseconds "" "Length of the window",
        iterations: Count "" "Number of iterations after the warm-up",
        count: Count "" "Number of copies",
        per_iteration: Number "" "Copies for each iteration; 0 without iterations",
        median_bytes: Bytes "" "Median size",
        time_ns: Nanoseconds "" "Durations added up",
        rate: Rate "" "Bytes over time",
        best_rate: Rate "" "Greatest rate of a copy in this direction, or of 16 GB/s where all are small",
        is_simulated: Count "" "1 where all GPUs are simulated, whose times are those of an interpreter",
        is_peer: Count "" "1 for copies between GPUs",
        large_rate: Rate "link_peaks" "Rate of copies of a megabyte or more",
        link_peak: Rate "link_peaks" "Peak of the link",
    }
}

/// The figure of a name.
pub(super) fn find(source: Source, name: &str) -> Option<&'static Metric> {
    METRICS
        .iter()
        .find(|metric| metric.source == source && metric.name == name)
}

/// Unit of a figure; that of a number for what is none.
pub(super) fn unit(source: Source, name: &str) -> Unit {
    find(source, name).map_or(Unit::Number, |metric| metric.unit)
}

/// Records that a figure needs, of counters with their names behind a colon; `None` for those of operations alone.
pub(super) fn needs(source: Source, name: &str) -> Option<&'static str> {
    find(source, name)
        .map(|metric| metric.needs)
        .filter(|needs| !needs.is_empty())
}

/// A row of a source.
pub(super) struct Subject {
    pub(super) source: Source,
    pub(super) name: String,
    values: HashMap<&'static str, f64>,
    /// Records for findings: id of the rule, what they are, key.
    pub(super) evidence: Vec<(&'static str, String, String)>,
}

impl Subject {
    fn new(source: Source, name: impl Into<String>, window: &Window) -> Subject {
        let mut subject = Subject {
            source,
            name: name.into(),
            values: HashMap::new(),
            evidence: Vec::new(),
        };
        subject.set("window_ns", window.length() as f64);
        subject
    }

    fn set(&mut self, name: &'static str, value: f64) {
        debug_assert!(
            find(self.source, name).is_some(),
            "{name} is in the catalogue"
        );
        self.values.insert(name, value);
    }

    fn count(&mut self, name: &'static str, value: u64) {
        self.set(name, value as f64);
    }

    fn flag(&mut self, name: &'static str, is_set: bool) {
        self.set(name, f64::from(u8::from(is_set)));
    }

    pub(super) fn value(&self, name: &str) -> Option<f64> {
        self.values.get(name).copied()
    }
}
