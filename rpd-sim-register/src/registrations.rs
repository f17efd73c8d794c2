//! The tables that runtimes registered.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::code::Code;
use crate::listener;
use crate::sdk::{self, truth};

/// Names with which runtimes register, by their index in ids.
const NAMES: [&CStr; 8] = [
    c"hsa",
    c"hip",
    c"roctx",
    c"hip_compiler",
    c"rccl",
    c"rocdecode",
    c"rocjpeg",
    c"rocattach",
];
/// Most sets of tables of one name.
const MOST_INSTANCES: u64 = 8;

/// A table of a runtime.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Table(*mut c_void);

// SAFETY: tables live as long as the process, and runtimes and SDKs change their slots at any time.
unsafe impl Send for Table {}

/// The tables of a runtime.
#[derive(Debug, Clone)]
pub(crate) struct Registered {
    pub(crate) name: &'static CStr,
    pub(crate) version: u32,
    instance: u64,
    pub(crate) tables: Vec<Table>,
    /// Whether an SDK has them.
    handed_over: bool,
}

static REGISTERED: Mutex<Vec<Registered>> = Mutex::new(Vec::new());
/// Whether tables are being registered or handed over.
static AT_WORK: AtomicBool = AtomicBool::new(false);

/// Ends with the work.
struct Work;

impl Work {
    /// `None` while other work is under way: that may be what calls.
    fn begin() -> Option<Work> {
        // Made only where it is the one: another would end the work under way when it is dropped.
        let is_free = !AT_WORK.swap(true, Ordering::AcqRel);
        is_free.then(|| Work)
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        AT_WORK.store(false, Ordering::Release);
    }
}

fn registered() -> MutexGuard<'static, Vec<Registered>> {
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All sets of tables, in the order in which they came.
pub(crate) fn all() -> Vec<Registered> {
    registered().clone()
}

/// Registers tables: their id, and what the runtime is told.
///
/// # Errors
/// The code for tables that are not taken.
pub(crate) fn add(name: &CStr, version: u32, tables: &[*mut c_void]) -> Result<(u64, Code), Code> {
    if truth("ROCPROFILER_REGISTER_ENABLED") == Some(false) {
        return Err(Code::NoTools);
    }
    let Some(index) = NAMES.iter().position(|known| *known == name) else {
        return Err(Code::UnsupportedApi);
    };
    let _work = Work::begin().ok_or(Code::Deadlock)?;
    let name = NAMES[index];
    let instance = {
        let mut registered = registered();
        let instance = registered.iter().filter(|it| it.name == name).count() as u64;
        if instance >= MOST_INSTANCES {
            return Err(Code::ExcessApiInstances);
        }
        registered.push(Registered {
            name,
            version,
            instance,
            tables: tables.iter().map(|table| Table(*table)).collect(),
            handed_over: false,
        });
        instance
    };
    let id = MOST_INSTANCES * index as u64 + instance;
    if sdk::tool_assumed() {
        return Ok((id, give_to_sdk(false)));
    }
    if truth("ROCP_TOOL_ATTACH") == Some(true) && !listener::start() {
        eprintln!("rpd-sim: ROCP_TOOL_ATTACH: no thread for attachers can be started");
    }
    Ok((id, Code::NoTools))
}

/// Hands tables to the SDK: all of them, or those that no SDK has yet.
pub(crate) fn hand_over(all: bool) -> Code {
    match Work::begin() {
        Some(_work) => give_to_sdk(all),
        None => Code::Deadlock,
    }
}

fn give_to_sdk(all: bool) -> Code {
    let Some(sdk) = sdk::find() else {
        return Code::RocprofilerError;
    };
    // No lock is held: the SDK calls its tools, and these may use a runtime.
    let mut at = 0;
    while let Some(next) = { registered().get(at).cloned() } {
        if all || !next.handed_over {
            let mut tables: Vec<*mut c_void> = next.tables.iter().map(|table| table.0).collect();
            let (version, count) = (u64::from(next.version), tables.len() as u64);
            let pointer = tables.as_mut_ptr();
            // SAFETY: the tables with which a runtime of this name registered.
            let status = unsafe {
                (sdk.set_api_table)(next.name.as_ptr(), version, next.instance, pointer, count)
            };
            if status != 0 {
                return Code::RocprofilerError;
            }
            if let Some(entry) = registered().get_mut(at) {
                entry.handed_over = true;
            }
        }
        at += 1;
    }
    Code::Success
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn add_gives_ids_by_name_and_instance_and_refuses_the_rest() {
        let mut place = 0u64;
        let table = [(&raw mut place).cast::<c_void>()];
        assert_eq!(add(c"hip", 1, &table), Ok((8, Code::NoTools)));
        assert_eq!(add(c"hip", 1, &table), Ok((9, Code::NoTools)));
        assert_eq!(add(c"rccl", 1, &table), Ok((32, Code::NoTools)));
        assert_eq!(add(c"cuda", 1, &table), Err(Code::UnsupportedApi));
        for _ in 0..6 {
            assert!(add(c"hip", 1, &table).is_ok());
        }
        assert_eq!(add(c"hip", 1, &table), Err(Code::ExcessApiInstances));
        assert_eq!(all().len(), 9);
        let work = Work::begin();
        assert_eq!(add(c"hsa", 1, &table), Err(Code::Deadlock));
        assert_eq!(hand_over(true), Code::Deadlock);
        drop(work);
    }
}
