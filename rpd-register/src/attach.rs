//! The variables by which a program is recorded, for programs that are started without them: with an environment of their
//! own (`env -i`, `posix_spawn`), or after `unset LD_PRELOAD`.
//!
//! What the loader, the registration library and the collector need is added to the environment of the next program, and
//! nothing else is: a variable that the program gets keeps its value, but that rpd's entry is added to a list.
//!
//! Everything here may run between `fork` and `exec`, and in a child that shares its parent's memory: it makes no
//! allocation.

use std::ffi::{CStr, CString, c_char};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::OnceLock;

/// The variable with the run's directory, which the collector reads. One with another value is that of another rpd.
const SPOOL: &str = "RPD_SPOOL";
/// Variables that are added where they are missing, with the values that this program was started with.
const WHOLE: [&str; 11] = [
    "RPD_COLLECT",
    "RPD_SDK",
    "ROCPROFILER_REGISTER_LIBRARY",
    "CUDA_INJECTION64_PATH",
    "NVTX_INJECTION64_PATH",
    "ROCPROFILER_PC_SAMPLING_BETA_ENABLED",
    "RPD_SIM_GPU",
    "RPD_SIM_GPUS",
    "RPD_SIM_SEED",
    "ROCPROF_MPI_RANK_VAR",
    "ROCPROF_MPI_SIZE_VAR",
];
/// File name of the simulator's library. Its directory has to be searched by the loader; those of a ROCm installation are found
/// as they are without rpd.
const SIMULATOR: &[u8] = b"librpd_sim.so";

/// A list to which an entry of rpd's is added.
struct List {
    /// The name with `=`.
    name: &'static [u8],
    /// Bytes that separate entries; the first one is used.
    separators: &'static [u8],
    /// Whether rpd's entry comes before the others.
    first: bool,
    entry: Vec<u8>,
}

impl List {
    fn has(&self, value: &[u8]) -> bool {
        value
            .split(|byte| self.separators.contains(byte))
            .any(|entry| entry == self.entry)
    }
}

/// Variables that this program was started with, and that further programs need.
struct Variables {
    /// The entry `RPD_SPOOL=...` of the environment.
    spool: CString,
    whole: Vec<CString>,
    lists: Vec<List>,
}

static VARIABLES: OnceLock<Variables> = OnceLock::new();

/// Reads the variables of this program. To be called when the library is loaded, for a process that is recorded.
pub(crate) fn prepare(register: &[u8]) {
    let text = |name: &str| {
        let value = std::env::var_os(name)?;
        CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()).ok()
    };
    let Some(spool) = text(SPOOL) else { return };
    let mut lists = vec![List {
        name: b"LD_PRELOAD=",
        separators: b": ",
        first: false,
        entry: register.to_vec(),
    }];
    let list = |name: &'static [u8], separators, entry: &[u8]| List {
        name,
        separators,
        first: false,
        entry: entry.to_vec(),
    };
    let value = crate::sdk::variable;
    const ORDER: &[u8] = b"verify_asan_link_order=0";
    if value("ASAN_OPTIONS").ends_with(ORDER) {
        lists.push(list(b"ASAN_OPTIONS=", b":", ORDER));
    }
    let kokkos = value("KOKKOS_TOOLS_LIBS");
    if let Some(last) = kokkos.rsplit(|byte| *byte == b';').next()
        && last.ends_with(b"/librpd_collect.so")
    {
        lists.push(list(b"KOKKOS_TOOLS_LIBS=", b";", last));
    }
    let sdk = value("RPD_SDK");
    let directory = sdk.len() - crate::sdk::file_name(&sdk).len();
    let is_simulated = std::fs::canonicalize(std::ffi::OsStr::from_bytes(&sdk)).is_ok_and(|path| {
        path.file_name()
            .is_some_and(|name| name.as_bytes() == SIMULATOR)
    });
    if is_simulated && directory > 1 {
        lists.push(List {
            first: true,
            ..list(b"LD_LIBRARY_PATH=", b":", &sdk[..directory - 1])
        });
    }
    let whole = WHOLE.iter().filter_map(|name| text(name)).collect();
    let _ = VARIABLES.set(Variables {
        spool,
        whole,
        lists,
    });
}

/// An environment: pointers to text, ended by a null pointer, or null, which is an empty one.
pub(crate) type Environment = *const *const c_char;

/// The entries of an environment.
///
/// # Safety
///
/// `list` is an environment, and is not changed meanwhile.
pub(crate) unsafe fn entries(list: Environment) -> impl Iterator<Item = &'static CStr> {
    let mut at = list;
    std::iter::from_fn(move || {
        if at.is_null() {
            return None;
        }
        // SAFETY: the entry with which the list ends is read last.
        let entry = unsafe { *at };
        if entry.is_null() {
            return None;
        }
        // SAFETY: it was not the last one.
        at = unsafe { at.add(1) };
        // SAFETY: entries are text.
        Some(unsafe { CStr::from_ptr(entry) })
    })
}

/// The name with `=` of an entry that has this form.
fn name(entry: &[u8]) -> &[u8] {
    let end = entry.iter().position(|byte| *byte == b'=');
    end.map_or(entry, |end| &entry[..=end])
}

/// Size in bytes of the environment that [`write`] makes of this one, a multiple of 8; `None` where nothing is to be
/// added.
///
/// # Safety
///
/// `environment` is one, and is not changed meanwhile.
pub(crate) unsafe fn size(environment: Environment) -> Option<usize> {
    let variables = VARIABLES.get()?;
    // SAFETY: by the contract of this function.
    let entries = || unsafe { entries(environment) }.map(CStr::to_bytes);
    let find = |wanted: &[u8]| entries().find(|entry| name(entry) == wanted);
    let spool = variables.spool.to_bytes();
    if find(name(spool)).is_some_and(|found| found != spool) {
        return None;
    }
    let missing = |whole: &CString| find(name(whole.to_bytes())).is_none();
    let mut pointers = entries().count() + 1;
    let mut changes = 0;
    let mut text = 0;
    let whole = variables.whole.iter().chain([&variables.spool]);
    let added = whole.filter(|whole| missing(whole)).count();
    pointers += added;
    changes += added;
    for list in &variables.lists {
        let value = find(list.name).map(|entry| &entry[list.name.len()..]);
        if value.is_some_and(|value| list.has(value)) {
            continue;
        }
        changes += 1;
        pointers += usize::from(value.is_none());
        // Name, value, separator, entry, NUL.
        text += list.name.len() + value.map_or(0, <[u8]>::len) + 1 + list.entry.len() + 1;
    }
    (changes > 0).then(|| (pointers * size_of::<usize>() + text).next_multiple_of(8))
}

/// Bytes of the texts that [`write`] may refer to without a copy, each with its NUL.
pub(crate) fn texts() -> usize {
    let whole = VARIABLES.get().map(|variables| {
        let whole = variables.whole.iter().chain([&variables.spool]);
        whole.map(|whole| whole.count_bytes() + 1).sum()
    });
    whole.unwrap_or(0)
}

/// Writes to memory one value after the other.
struct Cursor(*mut u8);

impl Cursor {
    /// # Safety
    ///
    /// There is room for the text.
    unsafe fn text(&mut self, text: &[u8]) {
        // SAFETY: by the contract of this function.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), self.0, text.len());
            self.0 = self.0.add(text.len());
        }
    }
}

/// Makes the environment with what is missing at `memory`, and returns it.
///
/// # Safety
///
/// `environment` is one, and is not changed meanwhile; [`size`] answered for it, and `memory` has as many bytes and is aligned to 8.
pub(crate) unsafe fn write(environment: Environment, memory: *mut u8) -> Environment {
    let Some(variables) = VARIABLES.get() else {
        return environment;
    };
    // SAFETY: by the contract of this function.
    let all = || unsafe { entries(environment) };
    let find = |wanted: &[u8]| {
        all()
            .map(CStr::to_bytes)
            .find(|entry| name(entry) == wanted)
    };
    let list_of = |entry: &[u8]| variables.lists.iter().find(|list| list.name == name(entry));
    let whole = || {
        let whole = variables.whole.iter().chain([&variables.spool]);
        whole.filter(|whole| find(name(whole.to_bytes())).is_none())
    };
    let lists = || {
        variables
            .lists
            .iter()
            .filter(|list| find(list.name).is_none())
    };
    // Pointers first and their texts behind them, in the order in which `size` counted both.
    let pointers = all().count() + whole().count() + lists().count() + 1;
    // SAFETY: the memory begins with the pointers, as `size` counted them.
    let mut text = Cursor(unsafe { memory.add(pointers * size_of::<usize>()) });
    let mut at = memory.cast::<*const c_char>();
    let mut push = |entry: *const c_char| {
        // SAFETY: `size` counted this pointer.
        unsafe {
            at.write(entry);
            at = at.add(1);
        }
    };
    let mut joined = |list: &List, value: Option<&[u8]>| {
        let begin = text.0.cast::<c_char>().cast_const();
        let value = value.unwrap_or_default();
        let separator = match value {
            [] => &[][..],
            _ => &list.separators[..1],
        };
        let (before, after) = if list.first {
            (list.entry.as_slice(), value)
        } else {
            (value, list.entry.as_slice())
        };
        for part in [list.name, before, separator, after, b"\0"] {
            // SAFETY: `size` counted these parts.
            unsafe { text.text(part) };
        }
        begin
    };
    for entry in all() {
        let bytes = entry.to_bytes();
        match list_of(bytes) {
            // Of a name that stands twice, programs read the first.
            Some(list) if find(list.name).is_some_and(|first| std::ptr::eq(first, bytes)) => {
                let value = &bytes[list.name.len()..];
                push(if list.has(value) {
                    entry.as_ptr()
                } else {
                    joined(list, Some(value))
                });
            }
            // Other entries keep their texts: the memory of the old environment outlives the new one.
            _ => push(entry.as_ptr()),
        }
    }
    for whole in whole() {
        push(whole.as_ptr());
    }
    for list in lists() {
        push(joined(list, None));
    }
    push(std::ptr::null());
    memory.cast::<*const c_char>().cast_const()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(environment: &[&str]) -> Option<Vec<String>> {
        let texts: Vec<CString> = environment
            .iter()
            .map(|text| CString::new(*text).expect("text"))
            .collect();
        let mut list: Vec<*const c_char> = texts.iter().map(|text| text.as_ptr()).collect();
        list.push(std::ptr::null());
        // SAFETY: a list of text with a null pointer at its end.
        let size = unsafe { size(list.as_ptr()) }?;
        let mut memory = vec![u64::MAX; size / 8 + 1];
        // SAFETY: the memory has as many bytes as were asked for.
        let made = unsafe { write(list.as_ptr(), memory.as_mut_ptr().cast()) };
        // SAFETY: what was just made.
        let made = unsafe { entries(made) };
        let made = made
            .map(|entry| entry.to_string_lossy().into_owned())
            .collect();
        assert_eq!(
            memory[size / 8],
            u64::MAX,
            "no byte more than was asked for"
        );
        Some(made)
    }

    #[test]
    fn write_adds_missing_variables_and_changes_nothing_else() {
        let variables = Variables {
            spool: c"RPD_SPOOL=/run".to_owned(),
            whole: vec![c"RPD_SDK=/sdk".to_owned()],
            lists: vec![
                List {
                    name: b"LD_PRELOAD=",
                    separators: b": ",
                    first: false,
                    entry: b"/reg.so".to_vec(),
                },
                List {
                    name: b"LD_LIBRARY_PATH=",
                    separators: b":",
                    first: true,
                    entry: b"/sim".to_vec(),
                },
            ],
        };
        assert!(VARIABLES.set(variables).is_ok());
        let all = [
            "RPD_SDK=/sdk",
            "RPD_SPOOL=/run",
            "LD_PRELOAD=/reg.so",
            "LD_LIBRARY_PATH=/sim",
        ];
        assert_eq!(with(&all), None);
        assert_eq!(with(&["RPD_SPOOL=/other"]), None, "of another rpd");
        assert_eq!(with(&[]).expect("changed"), all);
        assert_eq!(
            with(&[
                "A=1",
                "LD_PRELOAD=/x.so /y.so",
                "odd",
                "LD_LIBRARY_PATH=/a",
                "RPD_SDK="
            ]),
            Some(
                [
                    "A=1",
                    "LD_PRELOAD=/x.so /y.so:/reg.so",
                    "odd",
                    "LD_LIBRARY_PATH=/sim:/a",
                    "RPD_SDK=",
                    "RPD_SPOOL=/run",
                ]
                .map(str::to_owned)
                .to_vec()
            )
        );
        // SAFETY: a null pointer is an empty environment.
        assert!(unsafe { size(std::ptr::null()) }.is_some());
    }
}
