//! Kernels and the code objects they come from.

use std::collections::HashMap;
use std::ffi::CString;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, RwLock};

use crate::hip::device::Device;
use crate::hip::error::{HipResult, code};
use crate::hip::hsa::{Executable, KernelSymbol};
use crate::hip::runtime::{read, write};
use rpd_gfx::codeobj::{ArgKind, CodeObject, Kernel};

/// An argument the program passes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExplicitArgument {
    pub(crate) offset: usize,
    pub(crate) size: usize,
}

/// A kernel, ready to be launched.
#[derive(Debug)]
pub(crate) struct Function {
    /// Name as compiled, without the ending `.kd` of its descriptor.
    pub(crate) name: CString,
    pub(crate) device: &'static Device,
    pub(crate) symbol: KernelSymbol,
    /// Bytes to provide for the arguments, hidden ones included.
    pub(crate) kernarg_bytes: usize,
    /// Bytes of the arguments that the program provides.
    pub(crate) explicit_bytes: usize,
    pub(crate) explicit: Vec<ExplicitArgument>,
    /// Kind, offset and size of each argument that the runtime provides.
    pub(crate) hidden: Vec<(ArgKind, usize, usize)>,
    pub(crate) kernel: Kernel,
    /// Value of `hipFuncAttributeMaxDynamicSharedMemorySize` in bytes.
    pub(crate) max_dynamic_shared: AtomicU32,
    /// Formats of buffered `printf`, of all kernels of the code object.
    formats: Arc<[(u64, Vec<u8>)]>,
    /// Value of `hipFuncAttributes::constSizeBytes`.
    const_size: usize,
}

/// A loaded code object.
#[derive(Debug)]
pub(crate) struct Module {
    device: &'static Device,
    executable: Executable,
    object: CodeObject,
    /// Formats of buffered `printf`.
    formats: Arc<[(u64, Vec<u8>)]>,
    /// Bytes of its variables that the runtime counts as constants.
    const_size: usize,
    functions: RwLock<HashMap<String, Arc<Function>>>,
}

/// Bytes of constants as the real runtime counts them: those of all variables in writable memory, where compilers put
/// `__constant__` variables as well, except the byte of `__hip_cuid_*`, which every module has.
fn const_size(object: &CodeObject) -> usize {
    let variables = object.variables();
    let counted = variables.filter(|variable| object.is_writable(variable));
    let bytes: u64 = counted.map(|variable| variable.size).sum();
    bytes.saturating_sub(1) as usize
}

impl Module {
    /// Loads a code object.
    ///
    /// # Safety
    /// The image stays in place as long as the module.
    pub(crate) unsafe fn load(device: &'static Device, image: &[u8]) -> HipResult<Self> {
        let object = CodeObject::parse(image).map_err(|error| {
            eprintln!("rpd-sim: code object refused: {error}");
            code::INVALID_IMAGE
        })?;
        // SAFETY: by contract.
        let executable = unsafe { Executable::load(device.agent, image)? };
        let module = Self {
            device,
            executable,
            formats: object.printf_formats().into(),
            const_size: const_size(&object),
            object,
            functions: RwLock::default(),
        };
        for kernel in module.object.kernels() {
            let function = module.prepare(kernel)?;
            // Of several kernels with a name, the first has it.
            write(&module.functions)
                .entry(kernel.name.clone())
                .or_insert(function);
        }
        Ok(module)
    }

    /// A kernel by its name.
    pub(crate) fn function(&self, name: &str) -> HipResult<Arc<Function>> {
        if let Some(function) = read(&self.functions).get(name) {
            return Ok(Arc::clone(function));
        }
        let kernel = self.object.kernel(name).ok_or(code::NOT_FOUND)?;
        let function = self.prepare(kernel)?;
        write(&self.functions).insert(name.to_owned(), Arc::clone(&function));
        Ok(function)
    }

    fn prepare(&self, kernel: &Kernel) -> HipResult<Arc<Function>> {
        let kernel = kernel.clone();
        let text = |text: &str| CString::new(text).map_err(|_| code::INVALID_VALUE);
        let symbol = self.executable.kernel(&text(&kernel.symbol)?)?;
        let explicit: Vec<ExplicitArgument> = kernel
            .explicit_args()
            .map(|arg| ExplicitArgument {
                offset: arg.offset as usize,
                size: arg.size as usize,
            })
            .collect();
        let hidden: Vec<_> = kernel
            .hidden_args()
            .map(|arg| (arg.kind.clone(), arg.offset as usize, arg.size as usize))
            .collect();
        Ok(Arc::new(Function {
            name: text(&kernel.name)?,
            device: self.device,
            symbol,
            kernarg_bytes: kernel.kernarg_bytes().max(symbol.kernarg_size) as usize,
            explicit_bytes: explicit
                .iter()
                .map(|arg| arg.offset + arg.size)
                .max()
                .unwrap_or(0),
            explicit,
            hidden,
            max_dynamic_shared: AtomicU32::new(
                self.device
                    .figures
                    .layout
                    .lds_bytes
                    .saturating_sub(symbol.group_size),
            ),
            kernel,
            formats: Arc::clone(&self.formats),
            const_size: self.const_size,
        }))
    }

    /// Names of the kernels in the code object.
    pub(crate) fn kernel_names(&self) -> impl Iterator<Item = &str> {
        self.object
            .kernels()
            .iter()
            .map(|kernel| kernel.name.as_str())
    }

    /// Names of the variables in the code object.
    pub(crate) fn variable_names(&self) -> impl Iterator<Item = &str> {
        self.object
            .variables()
            .map(|variable| variable.name.as_str())
    }

    /// Address and size of a variable.
    pub(crate) fn variable(&self, name: &str) -> HipResult<(usize, usize)> {
        self.executable
            .variable(&CString::new(name).map_err(|_| code::INVALID_VALUE)?)
    }

    /// Unloads the code object, whose kernels have all ended.
    pub(crate) fn unload(&self) {
        self.executable.destroy();
    }
}

impl Function {
    /// The kernel's attributes as a `hipFuncAttributes`.
    pub(crate) fn attributes(&self) -> crate::hip::types::FuncAttributes {
        crate::hip::types::FuncAttributes {
            binary_version: 90,
            cache_mode_ca: 0,
            const_size_bytes: self.const_size,
            local_size_bytes: self.symbol.private_size as usize,
            max_dynamic_shared_size_bytes: self.max_dynamic_shared.load(Ordering::Relaxed) as i32,
            max_threads_per_block: self.max_threads() as i32,
            num_regs: self.kernel.vgpr_count as i32,
            preferred_shmem_carveout: 0,
            ptx_version: 90,
            shared_size_bytes: self.symbol.group_size as usize,
        }
    }

    /// Formats of buffered `printf`, with the numbers that messages have for them.
    pub(crate) fn module_formats(&self) -> &[(u64, Vec<u8>)] {
        &self.formats
    }

    /// Most work-items that a workgroup of this kernel may have.
    pub(crate) fn max_threads(&self) -> u32 {
        match self.kernel.max_flat_workgroup_size {
            0 => 1024,
            n => n.min(1024),
        }
    }
}
