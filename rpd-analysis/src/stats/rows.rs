//! The rows of reports. Titles are those of the reports of Nsight Systems, where it has the report; what rpd adds comes last.

use crate::answer::columns;

columns! {
    /// Kernels of one name.
    KernelSumRow {
        time_share: Share "Time (%)" 0 "Share of the total of all rows",
        total_ns: Nanoseconds "Total Time (ns)" 0 "Durations added up",
        instances: Count "Instances" 0 "Number of dispatches",
        avg_ns: Nanoseconds "Avg (ns)" 1 "Mean duration",
        med_ns: Nanoseconds "Med (ns)" 2 "Median duration",
        min_ns: Nanoseconds "Min (ns)" 3 "Least duration",
        max_ns: Nanoseconds "Max (ns)" 3 "Greatest duration",
        stddev_ns: Nanoseconds "StdDev (ns)" 4 "Standard deviation of the durations; null below two",
        name: Name "Name" 0 "Name of the kernel",
        wall_share: Share "Wall (%)" 5 "Share of the window, which the shares of concurrent operations may add up beyond",
        key: Key "Key" 9 "Identity of the row: `kernel` and the name",
    }
}

columns! {
    /// Kernels of one name and geometry.
    KernelGeometryRow {
        time_share: Share "Time (%)" 0 "Share of the total of all rows",
        total_ns: Nanoseconds "Total Time (ns)" 0 "Durations added up",
        instances: Count "Instances" 0 "Number of dispatches",
        avg_ns: Nanoseconds "Avg (ns)" 1 "Mean duration",
        med_ns: Nanoseconds "Med (ns)" 2 "Median duration",
        min_ns: Nanoseconds "Min (ns)" 3 "Least duration",
        max_ns: Nanoseconds "Max (ns)" 3 "Greatest duration",
        stddev_ns: Nanoseconds "StdDev (ns)" 4 "Standard deviation of the durations; null below two",
        grid: Word "GridXYZ" 1 "Workgroups of the grid: x, y, z",
        group: Word "BlockXYZ" 1 "Work items of a workgroup: x, y, z",
        name: Name "Name" 0 "Name of the kernel",
        wall_share: Share "Wall (%)" 5 "Share of the window, which the shares of concurrent operations may add up beyond",
        key: Key "Key" 9 "Identity of the row: `kernel`, name and geometry",
    }
}

columns! {
    /// Kernels of one name that one function launched, from one thread to one GPU.
    ExecSumRow {
        pid: Count "PID" 4 "Process id",
        tid: Count "TID" 4 "Thread id",
        device: Count "DevId" 3 "Number of the GPU",
        count: Count "Count" 0 "Number of kernels",
        qcount: Count "QCount" 1 "Number of kernels with a queue time",
        tavg_ns: Nanoseconds "TAvg (ns)" 3 "Mean time from the begin of the call to the end of the kernel",
        tmed_ns: Nanoseconds "TMed (ns)" 5 "Median time from the begin of the call to the end of the kernel",
        tmin_ns: Nanoseconds "TMin (ns)" 6 "Least time from the begin of the call to the end of the kernel",
        tmax_ns: Nanoseconds "TMax (ns)" 6 "Greatest time from the begin of the call to the end of the kernel",
        tstddev_ns: Nanoseconds "TStdDev (ns)" 6 "Standard deviation of the time from the begin of the call to the end of the kernel; null below two",
        aavg_ns: Nanoseconds "AAvg (ns)" 3 "Mean time in the call",
        amed_ns: Nanoseconds "AMed (ns)" 5 "Median time in the call",
        amin_ns: Nanoseconds "AMin (ns)" 6 "Least time in the call",
        amax_ns: Nanoseconds "AMax (ns)" 6 "Greatest time in the call",
        astddev_ns: Nanoseconds "AStdDev (ns)" 6 "Standard deviation of the time in the call; null below two",
        qavg_ns: Nanoseconds "QAvg (ns)" 1 "Mean time from the end of the call to the start of the kernel, of those that started later",
        qmed_ns: Nanoseconds "QMed (ns)" 5 "Median time from the end of the call to the start of the kernel, of those that started later",
        qmin_ns: Nanoseconds "QMin (ns)" 6 "Least time from the end of the call to the start of the kernel, of those that started later",
        qmax_ns: Nanoseconds "QMax (ns)" 6 "Greatest time from the end of the call to the start of the kernel, of those that started later",
        qstddev_ns: Nanoseconds "QStdDev (ns)" 6 "Standard deviation of the time from the end of the call to the start of the kernel, of those that started later; null below two",
        kavg_ns: Nanoseconds "KAvg (ns)" 1 "Mean duration of the kernel",
        kmed_ns: Nanoseconds "KMed (ns)" 5 "Median duration of the kernel",
        kmin_ns: Nanoseconds "KMin (ns)" 6 "Least duration of the kernel",
        kmax_ns: Nanoseconds "KMax (ns)" 6 "Greatest duration of the kernel",
        kstddev_ns: Nanoseconds "KStdDev (ns)" 6 "Standard deviation of the duration of the kernel; null below two",
        api: Name "API Name" 1 "Function that launches",
        name: Name "Kernel Name" 0 "Name of the kernel",
        key: Key "Key" 9 "Identity of the row: `exec`, process, thread, GPU, function and kernel",
    }
}

columns! {
    /// A kernel with its call.
    ExecTraceRow {
        api_start_ns: Nanoseconds "API Start (ns)" 4 "Begin of the call",
        api_dur_ns: Nanoseconds "API Dur (ns)" 1 "Time in the call",
        queue_start_ns: Nanoseconds "Queue Start (ns)" 6 "End of the call; null when the kernel started inside it",
        queue_dur_ns: Nanoseconds "Queue Dur (ns)" 0 "Time from the end of the call to the start of the kernel; null when it started inside the call",
        kernel_start_ns: Nanoseconds "Kernel Start (ns)" 5 "Start of the kernel",
        kernel_dur_ns: Nanoseconds "Kernel Dur (ns)" 0 "Duration of the kernel",
        total_dur_ns: Nanoseconds "Total Dur (ns)" 1 "Begin of the call to the end of call and kernel",
        pid: Count "PID" 5 "Process id",
        tid: Count "TID" 5 "Thread id",
        device: Count "DevId" 4 "Number of the GPU",
        api: Name "API Function" 2 "Function that launches",
        grid: Word "GridXYZ" 3 "Workgroups of the grid: x, y, z",
        group: Word "BlockXYZ" 3 "Work items of a workgroup: x, y, z",
        name: Name "Kernel Name" 0 "Name of the kernel",
        key: Key "Key" 9 "Identity of the row: `kernel`, recording and dispatch",
    }
}

columns! {
    /// Copies of one direction, by time.
    CopySumRow {
        time_share: Share "Time (%)" 0 "Share of the total of all rows",
        total_ns: Nanoseconds "Total Time (ns)" 0 "Durations added up",
        count: Count "Count" 0 "Number of copies",
        avg_ns: Nanoseconds "Avg (ns)" 1 "Mean duration",
        med_ns: Nanoseconds "Med (ns)" 2 "Median duration",
        min_ns: Nanoseconds "Min (ns)" 3 "Least duration",
        max_ns: Nanoseconds "Max (ns)" 3 "Greatest duration",
        stddev_ns: Nanoseconds "StdDev (ns)" 4 "Standard deviation of the durations; null below two",
        operation: Name "Operation" 0 "Direction",
        wall_share: Share "Wall (%)" 5 "Share of the window, which the shares of concurrent operations may add up beyond",
        key: Key "Key" 9 "Identity of the row: `copy` and the direction",
    }
}

columns! {
    /// Copies of one direction, by size.
    CopySizeRow {
        total_bytes: Bytes "Total (B)" 0 "Bytes added up",
        count: Count "Count" 0 "Number of copies",
        avg_bytes: Bytes "Avg (B)" 1 "Mean size",
        med_bytes: Bytes "Med (B)" 1 "Median size",
        min_bytes: Bytes "Min (B)" 2 "Least size",
        max_bytes: Bytes "Max (B)" 2 "Greatest size",
        stddev_bytes: Bytes "StdDev (B)" 3 "Standard deviation of the sizes; null below two",
        operation: Name "Operation" 0 "Direction",
        rate: Rate "Rate (B/s)" 2 "Bytes over the time of the copies",
        key: Key "Key" 9 "Identity of the row: `copy` and the direction",
    }
}

columns! {
    /// Operations of one category and name.
    GpuSumRow {
        time_share: Share "Time (%)" 0 "Share of the total of all rows",
        total_ns: Nanoseconds "Total Time (ns)" 0 "Durations added up",
        instances: Count "Instances" 0 "Number of operations",
        avg_ns: Nanoseconds "Avg (ns)" 1 "Mean duration",
        med_ns: Nanoseconds "Med (ns)" 2 "Median duration",
        min_ns: Nanoseconds "Min (ns)" 3 "Least duration",
        max_ns: Nanoseconds "Max (ns)" 3 "Greatest duration",
        stddev_ns: Nanoseconds "StdDev (ns)" 4 "Standard deviation of the durations; null below two",
        category: Word "Category" 1 "compute, comm, copy or fill",
        operation: Name "Operation" 0 "Name of the kernel or direction of the copy",
        wall_share: Share "Wall (%)" 5 "Share of the window, which the shares of concurrent operations may add up beyond",
        key: Key "Key" 9 "Identity of the row: `op`, category and name",
    }
}

columns! {
    /// An operation of a GPU.
    GpuTraceRow {
        start_ns: Nanoseconds "Start (ns)" 1 "Start",
        duration_ns: Nanoseconds "Duration (ns)" 0 "Duration",
        corr_id: Count "CorrId" 5 "Number of the call that requested it",
        grid: Word "GrdXYZ" 2 "Workgroups of the grid: x, y, z",
        group: Word "BlkXYZ" 2 "Work items of a workgroup: x, y, z",
        registers: Count "Reg/Trd" 4 "Vector registers of a work item",
        lds: Bytes "LDS (B)" 4 "LDS of a workgroup",
        scratch: Bytes "Scratch (B)" 5 "Scratch of a work item",
        bytes: Bytes "Bytes (B)" 3 "Bytes that were copied",
        throughput: Rate "Throughput (B/s)" 4 "Bytes over the duration",
        source: Word "SrcMemKd" 5 "Kind of memory that a copy reads: host or device",
        destination: Word "DstMemKd" 5 "Kind of memory that a copy writes: host or device",
        device: Count "Device" 3 "Number of the GPU",
        queue: Count "Queue" 5 "Number of the queue",
        stream: Count "Strm" 4 "Number of the stream",
        name: Name "Name" 0 "Name of the kernel or direction of the copy",
        key: Key "Key" 9 "Identity of the row: `kernel` or `copy`, recording and number",
    }
}

columns! {
    /// Calls of one function.
    ApiSumRow {
        time_share: Share "Time (%)" 0 "Share of the total of all rows",
        total_ns: Nanoseconds "Total Time (ns)" 0 "Durations added up",
        num_calls: Count "Num Calls" 0 "Number of calls that no other call is around",
        avg_ns: Nanoseconds "Avg (ns)" 1 "Mean duration",
        med_ns: Nanoseconds "Med (ns)" 2 "Median duration",
        min_ns: Nanoseconds "Min (ns)" 3 "Least duration",
        max_ns: Nanoseconds "Max (ns)" 3 "Greatest duration",
        stddev_ns: Nanoseconds "StdDev (ns)" 4 "Standard deviation of the durations; null below two",
        name: Name "Name" 0 "Function",
        wall_share: Share "Wall (%)" 5 "Share of the window, which the shares of concurrent operations may add up beyond",
        key: Key "Key" 9 "Identity of the row: `api` and the function",
    }
}

columns! {
    /// A call.
    ApiTraceRow {
        start_ns: Nanoseconds "Start (ns)" 1 "Begin",
        duration_ns: Nanoseconds "Duration (ns)" 0 "Duration",
        name: Name "Name" 0 "Function",
        result: Count "Result" 8 "Result; null because answers do not read it",
        corr_id: Count "CorrID" 3 "Number of the call",
        pid: Count "Pid" 2 "Process id",
        tid: Count "Tid" 2 "Thread id",
        key: Key "Key" 9 "Identity of the row: `call`, recording and number",
    }
}

columns! {
    /// Markers of one message.
    MarkerSumRow {
        time_share: Share "Time (%)" 0 "Share of the total of all rows",
        total_ns: Nanoseconds "Total Time (ns)" 0 "Durations added up",
        instances: Count "Instances" 0 "Number of ranges, or marks",
        avg_ns: Nanoseconds "Avg (ns)" 1 "Mean duration",
        med_ns: Nanoseconds "Med (ns)" 2 "Median duration",
        min_ns: Nanoseconds "Min (ns)" 3 "Least duration",
        max_ns: Nanoseconds "Max (ns)" 3 "Greatest duration",
        stddev_ns: Nanoseconds "StdDev (ns)" 4 "Standard deviation of the durations; null below two",
        style: Word "Style" 1 "nested, across (between threads) or mark",
        range: Name "Range" 0 "Message",
        wall_share: Share "Wall (%)" 5 "Share of the window, which the shares of concurrent operations may add up beyond",
        key: Key "Key" 9 "Identity of the row: `marker`, style and message",
    }
}

columns! {
    /// Ranges of one message with their operations.
    MarkerProjectionRow {
        range: Name "Range" 0 "Message",
        style: Word "Style" 2 "nested or across (between threads)",
        total_proj_ns: Nanoseconds "Total Proj Time (ns)" 0 "First start to last end of the operations of a range, added up",
        total_range_ns: Nanoseconds "Total Range Time (ns)" 0 "Lengths of the ranges added up",
        instances: Count "Range Instances" 1 "Number of ranges with operations",
        avg_ns: Nanoseconds "Proj Avg (ns)" 2 "Mean of the projections",
        med_ns: Nanoseconds "Proj Med (ns)" 3 "Median of the projections",
        min_ns: Nanoseconds "Proj Min (ns)" 4 "Least projection",
        max_ns: Nanoseconds "Proj Max (ns)" 4 "Greatest projection",
        stddev_ns: Nanoseconds "Proj StdDev (ns)" 5 "Standard deviation of the projections; null below two",
        ops: Count "Total GPU Ops" 2 "Number of operations",
        avg_ops: Number "Avg GPU Ops" 4 "Operations of a range",
        avg_level: Number "Avg Range Lvl" 5 "Number of ranges around it",
        avg_children: Number "Avg Num Child" 5 "Ranges right inside a range",
        key: Key "Key" 9 "Identity of the row: `marker` and the message",
    }
}

columns! {
    /// Calls of a function that waits.
    SyncRow {
        name: Name "Function" 0 "Function",
        calls: Count "Calls" 0 "Number of calls",
        total_ns: Nanoseconds "Total (ns)" 0 "Time in the calls",
        busy_ns: Nanoseconds "GPU Busy (ns)" 0 "Part of the time in which a GPU runs an operation",
        idle_ns: Nanoseconds "GPU Idle (ns)" 1 "Part of the time in which none does",
        avg_ns: Nanoseconds "Avg (ns)" 2 "Mean duration",
        max_ns: Nanoseconds "Max (ns)" 2 "Greatest duration",
        key: Key "Key" 9 "Identity of the row: `sync` and the function",
    }
}

columns! {
    /// Allocations of a process.
    AllocRow {
        pid: Count "PID" 1 "Process id",
        where_is: Word "Where" 0 "host or device",
        allocations: Count "Allocations" 0 "Number of allocations",
        frees: Count "Frees" 0 "Number of frees of such memory",
        bytes: Bytes "Total (B)" 0 "Bytes allocated",
        peak_bytes: Bytes "Peak (B)" 0 "Greatest number of bytes in use at once",
        live_bytes: Bytes "Live (B)" 1 "Bytes in use at the end",
        time_ns: Nanoseconds "Time (ns)" 1 "Time in allocations and frees",
        key: Key "Key" 9 "Identity of the row: `alloc`, recording and place",
    }
}

columns! {
    /// A stream or queue.
    LaneRow {
        device: Count "Device" 1 "Number of the GPU",
        number: Count "Number" 0 "Number of the stream or queue",
        ops: Count "Ops" 0 "Number of operations",
        sum_ns: Nanoseconds "Total (ns)" 0 "Durations added up",
        busy_ns: Nanoseconds "Busy (ns)" 0 "Time in which any of them runs",
        overlap_ns: Nanoseconds "With others (ns)" 1 "Part of busy_ns in which an operation of another stream or queue of the GPU runs",
        first_ns: Nanoseconds "First (ns)" 4 "Start of the first",
        last_ns: Nanoseconds "Last (ns)" 4 "End of the last",
        key: Key "Key" 9 "Identity of the row: `stream` or `queue`, GPU and number",
    }
}

columns! {
    /// A kernel or direction of copies, as the view `top` has them.
    TopRow {
        name: Name "Name" 0 "Name",
        total_calls: Count "TotalCalls" 0 "Number of operations",
        total_ns: Nanoseconds "TotalDuration (ns)" 0 "Durations added up",
        avg_ns: Nanoseconds "Ave (ns)" 0 "Mean duration",
        share: Share "Percentage (%)" 0 "Share of the durations of all operations",
        key: Key "Key" 9 "Identity of the row: `top` and the name",
    }
}

columns! {
    /// A GPU, as the view `busy` has it.
    BusyRow {
        gpu: Count "gpuId" 0 "Number of the GPU",
        busy_ns: Nanoseconds "GpuTime (ns)" 0 "Durations added up",
        wall_ns: Nanoseconds "WallTime (ns)" 0 "First start to last end on any GPU",
        busy: Share "Busy (%)" 0 "GpuTime over WallTime, which concurrent operations carry beyond 100 %",
        utilisation: Share "Utilisation (%)" 1 "Time in which any operation runs over WallTime",
        key: Key "Key" 9 "Identity of the row: `busy` and the GPU",
    }
}

columns! {
    /// A kernel, copy or call, as the views of their names have them.
    ViewRow {
        start_ns: Nanoseconds "start (ns)" 1 "Start",
        end_ns: Nanoseconds "end (ns)" 3 "End",
        duration_ns: Nanoseconds "duration (ns)" 0 "Duration",
        pid: Count "pid" 2 "Process id",
        tid: Count "tid" 3 "Thread that called or launched",
        gpu: Count "gpuId" 1 "Number of the GPU; null of calls",
        queue: Count "queueId" 4 "Number of the queue",
        stream: Count "stream" 3 "Number of the stream",
        grid: Word "grid" 3 "Work items of the grid",
        group: Word "workgroup" 3 "Work items of a workgroup",
        bytes: Bytes "size (B)" 2 "Bytes that were copied",
        name: Name "name" 0 "Name",
        key: Key "Key" 9 "Identity of the row: `kernel`, `copy` or `call`, recording and number",
    }
}

columns! {
    /// An operation, as the view `op` has it.
    OpRow {
        gpu: Count "gpuId" 0 "Number of the GPU",
        queue: Count "queueId" 2 "Number of the queue",
        sequence: Count "sequenceId" 2 "Number of the operation",
        start_ns: Nanoseconds "start (ns)" 1 "Start",
        end_ns: Nanoseconds "end (ns)" 1 "End",
        description: Name "description" 0 "Name of the kernel, or direction of the copy",
        op_type: Word "opType" 0 "KernelExecution or CopyDeviceMemory",
        key: Key "Key" 9 "Identity of the row: `kernel` or `copy`, recording and number",
    }
}

columns! {
    /// A sequence of kernels.
    SequenceRow {
        sequence: Name "Sequence" 0 "Names of the kernels in their order",
        category: Word "Category" 2 "Class of the last kernel",
        calls: Count "Calls" 0 "Number of times",
        total_ns: Nanoseconds "Total (ns)" 0 "Durations of the last kernel added up",
        avg_ns: Nanoseconds "Avg (ns)" 1 "Mean duration of the last kernel",
        varsum_ns: Nanoseconds "VarSum (ns)" 0 "Time above the best: what would be saved were all as fast",
        gap_ns: Nanoseconds "Gap (ns)" 1 "Idle time before the last kernel, added up",
        first_ns: Nanoseconds "First (ns)" 4 "Start of the first",
        last_ns: Nanoseconds "Last (ns)" 4 "End of the last",
        key: Key "Key" 9 "Identity of the row: `sequence` and the names",
    }
}
