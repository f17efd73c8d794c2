//! Small recordings for tests, with times in microseconds.

use crate::classes::{Class, of_kernel};
use crate::records::{Call, Gpu, Launch, Memory, NONE, Op, Process, Range, Style, Thread};

/// A recording that is put together record by record.
#[derive(Default)]
pub(crate) struct Example {
    memory: Memory,
}

/// Nanoseconds of some microseconds.
pub(crate) fn us(time: u64) -> u64 {
    time * 1_000
}

impl Example {
    pub(crate) fn new() -> Example {
        let mut example = Example::default();
        example.memory.facts.processes.push(Process {
            guid: "0000002a".to_owned(),
            pid: 7,
            ..Process::default()
        });
        example
            .memory
            .facts
            .threads
            .push(Thread { process: 0, tid: 7 });
        example.memory.facts.recorded.copies = true;
        example.gpu();
        example
    }

    /// Takes all calls away, and with them the launches of operations.
    pub(crate) fn forget_calls(&mut self) {
        self.memory.calls.clear();
        for op in &mut self.memory.ops {
            op.launch = None;
        }
    }

    /// Gives the latest operation a grid that fills its GPU for eight rounds.
    pub(crate) fn last_fills_gpu(&mut self) {
        let op = self.memory.ops.last_mut().expect("an operation");
        (op.grid, op.group) = ([256 * 832 * 8, 1, 1], [256, 1, 1]);
    }

    pub(crate) fn gpu(&mut self) -> u32 {
        let number = self.memory.facts.gpus.len() as u32;
        self.memory.facts.gpus.push(Gpu {
            node: "n1".to_owned(),
            id: number.to_string(),
            number,
            arch: "gfx90a".to_owned(),
            units: 104,
            wave_size: 64,
            dies: 1,
            shader_mhz: 1700,
            memory_mhz: 1600,
            memory_bits: 4096,
            ..Gpu::default()
        });
        number
    }

    pub(crate) fn process(&mut self) -> u32 {
        let number = self.memory.facts.processes.len() as u32;
        let (pid, guid) = (7 + number, format!("{:08x}", 0x2a + number));
        self.memory.facts.processes.push(Process {
            guid,
            pid,
            ..Process::default()
        });
        self.memory.facts.threads.push(Thread {
            process: number,
            tid: pid,
        });
        number
    }

    pub(crate) fn name(&mut self, name: &str) -> u32 {
        let names = &mut self.memory.facts.names;
        let found = names.iter().position(|known| known == name);
        found.unwrap_or_else(|| {
            names.push(name.to_owned());
            names.len() - 1
        }) as u32
    }

    /// A kernel, or a copy when the name begins with `MEMORY_COPY`; its call is known from [`Example::launched`].
    pub(crate) fn op(&mut self, name: &str, start: u64, end: u64) -> &mut Op {
        let is_kernel = !name.starts_with("MEMORY_COPY");
        let name_id = self.name(name);
        self.memory.facts.recorded.copies |= !is_kernel;
        self.memory.ops.push(Op {
            id: self.memory.ops.len() as u64 + 1,
            is_kernel,
            is_second: false,
            start: us(start),
            end: us(end),
            gpu: 0,
            process: 0,
            queue: if is_kernel { 0 } else { NONE },
            stream: 0,
            name: name_id,
            class: if is_kernel {
                of_kernel(name)
            } else {
                Class::Copy
            },
            kernel: NONE,
            bytes: 0,
            host_address: 0,
            grid: [64, 1, 1],
            group: [64, 1, 1],
            lds: 0,
            scratch: 0,
            launch: None,
        });
        self.memory.ops.last_mut().expect("just added")
    }

    /// A call of the first thread; the number of the call.
    pub(crate) fn call(&mut self, name: &str, start: u64, end: u64) -> u64 {
        let id = self.memory.calls.len() as u64 + 1;
        let name = self.name(name);
        self.memory.facts.recorded.calls = true;
        self.memory.calls.push(Call {
            start: us(start),
            end: us(end),
            thread: 0,
            name,
            id,
            range: NONE,
        });
        id
    }

    /// An operation with the call that requests it.
    pub(crate) fn launched(
        &mut self,
        function: &str,
        call: (u64, u64),
        name: &str,
        start: u64,
        end: u64,
    ) -> &mut Op {
        let id = self.call(function, call.0, call.1);
        let launch = self.launch(id);
        let op = self.op(name, start, end);
        op.launch = Some(launch);
        op
    }

    /// The launch that a call is.
    pub(crate) fn launch(&mut self, call: u64) -> Launch {
        let call = self.memory.calls[call as usize - 1];
        let is_graph = self.memory.facts.names[call.name as usize] == "hipGraphLaunch";
        Launch {
            begin: call.start,
            end: call.end,
            thread: call.thread,
            name: call.name,
            call: call.id,
            is_graph,
            range: NONE,
        }
    }

    pub(crate) fn range(&mut self, name: &str, start: u64, end: u64) -> u32 {
        let name = self.name(name);
        self.memory.facts.recorded.markers = true;
        let id = self.memory.ranges.len() as u32;
        self.memory.ranges.push(Range {
            id,
            start: us(start),
            end: us(end),
            thread: 0,
            name,
            style: Style::Nested,
        });
        id
    }

    pub(crate) fn memory(&mut self) -> &mut Memory {
        &mut self.memory
    }

    /// The recording, its records in the order of time.
    pub(crate) fn done(mut self) -> Memory {
        self.memory.ops.sort_by_key(|op| op.start);
        self.memory.calls.sort_by_key(|call| call.start);
        self.memory
    }
}

/// Example G1: one queue, four kernels and a copy, of one thread.
pub(crate) fn g1() -> Example {
    let mut example = Example::new();
    example.launched("hipLaunchKernel", (0, 10), "K1", 20, 120);
    example.launched("hipLaunchKernel", (15, 25), "K2", 125, 225);
    example.call("hipStreamSynchronize", 30, 230);
    example.launched("hipLaunchKernel", (260, 270), "K3", 290, 390);
    example.launched(
        "hipMemcpyAsync",
        (280, 285),
        "MEMORY_COPY_HOST_TO_DEVICE",
        395,
        445,
    );
    example.launched("hipLaunchKernel", (400, 410), "K4", 460, 560);
    example
}

/// Example G2: a thousand short kernels, each launched as soon as the call before has returned.
pub(crate) fn g2() -> Example {
    let mut example = Example::new();
    for number in 0..1_000 {
        let call = (8 * number, 8 * number + 8);
        example.launched(
            "hipLaunchKernel",
            call,
            "K",
            8 * number + 10,
            8 * number + 13,
        );
    }
    example
}

/// Example G3: a graph of three kernels.
pub(crate) fn g3() -> Example {
    let mut example = Example::new();
    let call = example.call("hipGraphLaunch", 0, 8);
    let launch = example.launch(call);
    for (start, end) in [(20, 30), (32, 42), (60, 70)] {
        example.op("K", start, end).launch = Some(launch);
    }
    example
}
