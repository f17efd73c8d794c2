//! The symbols of executables, by name and one after the other.

use core::ffi::{c_char, c_void};
use std::sync::Arc;

use super::executable::executable;
use super::support::{Outcome, agent, api, each, ensure, put, text};
use super::symbol::Symbol;
use super::types::{Status, status};

unsafe fn find(handle: u64, name: *const c_char, agent: Option<u64>, result: *mut u64) -> Outcome {
    let executable = executable(handle)?;
    let valid = !name.is_null() && !result.is_null();
    ensure(valid, status::ERROR_INVALID_ARGUMENT)?;
    // SAFETY: the program's string is ended by a zero.
    let name = unsafe { text(name) }.ok_or(status::ERROR_INVALID_SYMBOL_NAME)?;
    let agent = agent.map(self::agent).transpose()?;
    let found = agent.and_then(|agent| executable.symbol(name, agent));
    let found = found.ok_or(status::ERROR_INVALID_SYMBOL_NAME)?;
    // SAFETY: the program's pointer is writable.
    unsafe { put(result, found.handle) }
}

/// Finds a symbol by name for an agent. Fails without an agent, because all symbols belong to one.
pub(crate) unsafe extern "C" fn hsa_executable_get_symbol_by_name(
    handle: u64,
    symbol_name: *const c_char,
    agent: *const u64,
    symbol: *mut u64,
) -> Status {
    // SAFETY: the program's pointers are null or readable.
    api(|| unsafe { find(handle, symbol_name, agent.as_ref().copied(), symbol) })
}

/// Finds a symbol by name for an agent. A module name must be absent: symbols do not have one here.
pub(crate) unsafe extern "C" fn hsa_executable_get_symbol(
    handle: u64,
    module_name: *const c_char,
    symbol_name: *const c_char,
    agent: u64,
    _call_convention: i32,
    symbol: *mut u64,
) -> Status {
    api(|| {
        // SAFETY: the program's strings are null or ended by a zero.
        unsafe {
            let module = text(module_name).unwrap_or_default();
            ensure(module.is_empty(), status::ERROR_INVALID_SYMBOL_NAME)?;
            find(handle, symbol_name, Some(agent), symbol)
        }
    })
}

fn symbols(handle: u64) -> Result<Vec<Arc<Symbol>>, Status> {
    Ok(executable(handle)?.symbols())
}

/// Callback for symbols; its parameters are executable, symbol, data.
type SymbolCallback = Option<unsafe extern "C" fn(u64, u64, *mut c_void) -> Status>;
/// Callback for symbols of an agent; its parameters are executable, agent, symbol, data.
type AgentSymbolCallback = Option<unsafe extern "C" fn(u64, u64, u64, *mut c_void) -> Status>;

/// Calls back for every symbol.
pub(crate) unsafe extern "C" fn hsa_executable_iterate_symbols(
    handle: u64,
    callback: SymbolCallback,
    data: *mut c_void,
) -> Status {
    api(|| {
        let callback = callback.ok_or(status::ERROR_INVALID_ARGUMENT)?;
        each(symbols(handle)?, |symbol| {
            // SAFETY: the program's callback takes its own data.
            unsafe { callback(handle, symbol.handle, data) }
        })
    })
}

/// Calls back for every symbol of an agent.
pub(crate) unsafe extern "C" fn hsa_executable_iterate_agent_symbols(
    handle: u64,
    agent_handle: u64,
    callback: AgentSymbolCallback,
    data: *mut c_void,
) -> Status {
    api(|| {
        let agent = agent(agent_handle)?;
        let callback = callback.ok_or(status::ERROR_INVALID_ARGUMENT)?;
        let symbols = symbols(handle)?;
        let own = symbols
            .iter()
            .filter(|symbol| symbol.agent.index == agent.index);
        each(own, |symbol| {
            // SAFETY: the program's callback takes its own data.
            unsafe { callback(handle, agent_handle, symbol.handle, data) }
        })
    })
}

/// Calls back for symbols without an agent, of which there are none.
pub(crate) unsafe extern "C" fn hsa_executable_iterate_program_symbols(
    handle: u64,
    callback: SymbolCallback,
    _data: *mut c_void,
) -> Status {
    api(|| {
        executable(handle)?;
        ensure(callback.is_some(), status::ERROR_INVALID_ARGUMENT)
    })
}
