//! What operations and calls count as, by their names. The lists are data: the first match wins.

use regex::Regex;

/// Class of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// A kernel of none of the other classes.
    Compute,
    /// A kernel of a communication library.
    Comm,
    /// A copy, by an engine or by a kernel of the runtime.
    Copy,
    /// A fill by a kernel of the runtime.
    Fill,
}

impl Class {
    /// All classes, in the order in which exposed time is given to them.
    pub const ALL: [Class; 4] = [Class::Compute, Class::Comm, Class::Copy, Class::Fill];

    /// The word in tables.
    pub const fn word(self) -> &'static str {
        match self {
            Class::Compute => "compute",
            Class::Comm => "comm",
            Class::Copy => "copy",
            Class::Fill => "fill",
        }
    }

    /// The bit that stands for it in a [`crate::Running`].
    pub const fn bit(self) -> u8 {
        1 << self as u8
    }

    /// Whether it is the work of kernels: all but copies.
    pub const fn is_kernel_work(self) -> bool {
        !matches!(self, Class::Copy)
    }
}

/// Names of kernels that are not computation: what they begin with, or hold where the flag is set.
const KERNELS: [(&str, bool, Class); 8] = [
    ("ncclDev", false, Class::Comm),
    ("ncclKernel", false, Class::Comm),
    ("mscclKernel", false, Class::Comm),
    ("rccl", false, Class::Comm),
    ("rocshmem", false, Class::Comm),
    ("cross_device_reduce", true, Class::Comm),
    ("__amd_rocclr_copy", false, Class::Copy),
    ("__amd_rocclr_fill", false, Class::Fill),
];

/// The class of a kernel, by its name.
pub fn of_kernel(name: &str) -> Class {
    let found = KERNELS.iter().find(|(text, anywhere, _)| {
        if *anywhere {
            name.contains(text)
        } else {
            name.starts_with(text)
        }
    });
    found.map_or(Class::Compute, |found| found.2)
}

/// What a thread does while a GPU waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Doing {
    /// In a call that waits for a GPU.
    Sync,
    /// In a call that allocates, frees or registers memory.
    Alloc,
    /// In a call that loads or compiles code.
    Load,
    /// In a call that launches other work.
    Launch,
    /// In another recorded call.
    Api,
    /// In the program's own code.
    Program,
}

impl Doing {
    /// All, in the order of columns.
    pub const ALL: [Doing; 6] = [
        Doing::Sync,
        Doing::Alloc,
        Doing::Load,
        Doing::Launch,
        Doing::Api,
        Doing::Program,
    ];

    /// The word in tables.
    pub const fn word(self) -> &'static str {
        match self {
            Doing::Sync => "sync",
            Doing::Alloc => "alloc",
            Doing::Load => "load",
            Doing::Launch => "launch",
            Doing::Api => "api",
            Doing::Program => "program",
        }
    }
}

/// Functions by what the whole name matches.
const CALLS: [(Doing, &str); 4] = [
    (
        Doing::Sync,
        "hip(Device|Stream|Event|Ctx)?Synchronize(_spt)?|hipStreamWaitValue.*|hipMemcpy(|2D|3D|HtoD|DtoH|DtoD|ToSymbol|FromSymbol|\
         Peer|WithStream|Atoh|HtoA|2DToArray|2DFromArray|ToArray|FromArray|Param2D|Param3D)(_spt)?|hipMemset(|D8|D16|D32|2D|3D)(_spt)?|\
         hsa_signal_wait.*|hsa_amd_signal_wait.*",
    ),
    (
        Doing::Alloc,
        "hip(Ext|Host|Managed)?Malloc.*|hip(Host)?Free.*|hipArray(3D)?Create|hipArrayDestroy|hipHost(Alloc|Register|Unregister)|\
         hipMem(Alloc.*|Pool.*|Create|Release|Map|Unmap|Address.*|SetAccess)|hsa_(amd_)?memory_(pool_)?(allocate|free|lock|unlock).*",
    ),
    (
        Doing::Load,
        "hipModule(Load|Unload|GetFunction).*|hipLink.*|hipLibrary.*|hiprtc.*|__hipRegister.*|__hipUnregister.*|hipFuncGetAttributes|\
         hsa_executable_(load|freeze).*|hsa_code_object_reader.*",
    ),
    (
        Doing::Launch,
        "hip.*Launch.*|hipGraph(Instantiate|ExecUpdate|Upload).*|hipMemcpy.*Async.*|hipMemset.*Async.*|hipStreamBeginCapture.*|\
         hipStreamEndCapture|__hip(Push|Pop)CallConfiguration|nccl.*|hsa_signal_store.*",
    ),
];

/// Tells what a thread does from the name of the function that it is in.
#[derive(Debug)]
pub struct Calls {
    known: Vec<(Doing, Regex)>,
}

impl Default for Calls {
    fn default() -> Calls {
        let compile = |(doing, text): &(Doing, &str)| {
            let whole = format!("^(?:{text})$");
            (*doing, Regex::new(&whole).expect("a constant expression"))
        };
        Calls {
            known: CALLS.iter().map(compile).collect(),
        }
    }
}

impl Calls {
    /// What a call of this function is.
    pub fn doing(&self, function: &str) -> Doing {
        let found = self.known.iter().find(|known| known.1.is_match(function));
        found.map_or(Doing::Api, |known| known.0)
    }

    /// What calls of each of these functions are.
    pub fn of_all(&self, functions: &[String]) -> Vec<Doing> {
        functions.iter().map(|name| self.doing(name)).collect()
    }
}

/// The user's categories of kernels: the first whose expression is found in a name.
#[derive(Debug, Default)]
pub struct Categories {
    known: Vec<(String, Regex)>,
    last_wins: bool,
}

impl Categories {
    /// Categories by name and expression, in their order; `last_wins` gives a name to the last one that matches.
    pub fn new(known: Vec<(String, Regex)>, last_wins: bool) -> Categories {
        Categories { known, last_wins }
    }

    /// The category of a kernel: the user's, else the built-in class.
    pub fn of<'a>(&'a self, name: &str) -> &'a str {
        let mut found = self.known.iter().filter(|known| known.1.is_match(name));
        let found = if self.last_wins {
            found.next_back()
        } else {
            found.next()
        };
        found.map_or(of_kernel(name).word(), |known| &known.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_apart_by_their_names() {
        let calls = Calls::default();
        for (name, doing) in [
            ("hipStreamSynchronize", Doing::Sync),
            ("hipDeviceSynchronize", Doing::Sync),
            ("hipMemcpy", Doing::Sync),
            ("hipMemcpyAsync", Doing::Launch),
            ("hipMemset", Doing::Sync),
            ("hipMemsetAsync", Doing::Launch),
            ("hipMalloc", Doing::Alloc),
            ("hipMallocAsync", Doing::Alloc),
            ("hipHostFree", Doing::Alloc),
            ("hipModuleLoadData", Doing::Load),
            ("hipLaunchKernel", Doing::Launch),
            ("hipModuleLaunchKernel", Doing::Launch),
            ("hipGraphLaunch", Doing::Launch),
            ("hipGetDevice", Doing::Api),
        ] {
            assert_eq!(calls.doing(name), doing, "{name}");
        }
    }

    #[test]
    fn kernels_of_the_runtime_and_of_libraries_are_told_apart_by_their_names() {
        for (name, class) in [
            ("add(float*)", Class::Compute),
            ("__amd_rocclr_copyBuffer", Class::Copy),
            ("__amd_rocclr_fillBufferAligned", Class::Fill),
            ("ncclDevKernel_AllReduce", Class::Comm),
            ("void vllm::cross_device_reduce_1stage<float>", Class::Comm),
            ("my_ncclDev", Class::Compute),
        ] {
            assert_eq!(of_kernel(name), class, "{name}");
        }
    }

    #[test]
    fn categories_take_the_first_match_or_the_last() {
        let known = || {
            let regex = |text| Regex::new(text).expect("an expression");
            vec![
                ("gemm".to_owned(), regex("^Cijk")),
                ("f16".to_owned(), regex("HHS")),
            ]
        };
        let name = "Cijk_HHS";
        assert_eq!(Categories::new(known(), false).of(name), "gemm");
        assert_eq!(Categories::new(known(), true).of(name), "f16");
        assert_eq!(Categories::new(known(), false).of("other"), "compute");
    }
}
