//! Symbols of executables: kernels and global variables.

use core::ffi::c_void;
use std::sync::Arc;

use super::state::{lock, state};
use super::support::{Outcome, api, ensure, put, put_text};
use super::types::{Status, status};
use crate::gpu::agents::Agent;

/// The object that a symbol refers to.
#[derive(Debug, Clone)]
pub(super) enum SymbolKind {
    /// A kernel, with the sizes in its metadata in bytes.
    Kernel {
        kernarg_size: u32,
        kernarg_align: u32,
        group_size: u32,
        private_size: u32,
        dynamic_stack: bool,
    },
    /// A global variable, with its size in bytes.
    Variable { size: u32, is_writable: bool },
}

/// An `hsa_executable_symbol_t`: a kernel or a variable of an executable.
#[derive(Debug)]
pub(crate) struct Symbol {
    pub(super) handle: u64,
    pub(super) name: String,
    pub(super) agent: &'static Agent,
    /// Device address of the kernel descriptor or the variable.
    pub(super) address: u64,
    pub(super) kind: SymbolKind,
}

/// The symbol of a handle; `ERROR_INVALID_EXECUTABLE_SYMBOL` when there is none.
fn symbol(handle: u64) -> Result<Arc<Symbol>, Status> {
    let symbols = lock(&state().symbols);
    let symbol = symbols.get(&handle).cloned();
    symbol.ok_or(status::ERROR_INVALID_EXECUTABLE_SYMBOL)
}

/// Writes the value of an `hsa_executable_symbol_info_t`.
pub(crate) unsafe extern "C" fn hsa_executable_symbol_get_info(
    executable_symbol: u64,
    attribute: u32,
    value: *mut c_void,
) -> Status {
    api(|| {
        ensure(!value.is_null(), status::ERROR_INVALID_ARGUMENT)?;
        let symbol = symbol(executable_symbol)?;
        // SAFETY: the program's pointer has room for the attribute's type.
        unsafe { info(&symbol, attribute, value) }
    })
}

unsafe fn info(symbol: &Symbol, attribute: u32, value: *mut c_void) -> Outcome {
    let is_kernel = matches!(symbol.kind, SymbolKind::Kernel { .. });
    // SAFETY: the caller's promise, passed on.
    unsafe {
        match attribute {
            0 => return put(value, u32::from(is_kernel)),
            1 => return put(value, symbol.name.len() as u32),
            // The length counts no end, and none is written.
            2 => {
                let name = symbol.name.as_bytes();
                value.cast::<u8>().copy_from(name.as_ptr(), name.len());
                return Ok(());
            }
            3 => return put(value, 0u32),
            4 => return put_text(value, "", 0),
            5 => return put(value, 1u32),
            17 => return put(value, true),
            20 => return put(value, symbol.agent.handle()),
            _ => {}
        }
        match (&symbol.kind, attribute) {
            (SymbolKind::Kernel { .. }, 22) => put(value, symbol.address),
            (SymbolKind::Kernel { kernarg_size, .. }, 11) => put(value, *kernarg_size),
            (SymbolKind::Kernel { kernarg_align, .. }, 12) => put(value, *kernarg_align),
            (SymbolKind::Kernel { group_size, .. }, 13) => put(value, *group_size),
            (SymbolKind::Kernel { private_size, .. }, 14) => put(value, *private_size),
            (SymbolKind::Kernel { dynamic_stack, .. }, 15) => put(value, *dynamic_stack),
            (SymbolKind::Kernel { .. }, 18) => put(value, 0u32),
            (SymbolKind::Variable { .. }, 21) => put(value, symbol.address),
            (SymbolKind::Variable { .. }, 6 | 7) => put(value, 0u32),
            (SymbolKind::Variable { .. }, 8) => put(value, 0u32),
            (SymbolKind::Variable { size, .. }, 9) => put(value, *size),
            // Whether it is constant; the real runtime reports also those that are not as constant.
            (SymbolKind::Variable { is_writable, .. }, 10) => put(value, *is_writable),
            _ => Err(status::ERROR_INVALID_ARGUMENT),
        }
    }
}
