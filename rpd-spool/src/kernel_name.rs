//! Formatting of kernel names.

use std::borrow::Cow;

use crate::demangle::{Dialect, demangle_as};

/// The suffix under which kernel descriptors are registered.
const DESCRIPTOR_SUFFIX: &str = ".kd";

/// Options for the formatting of kernel names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct KernelNames {
    /// Whether names stay as registered, mangled and with `.kd`.
    pub mangled: bool,
    /// The function name alone; wins over `mangled`.
    pub truncate: bool,
    /// The innermost open ROCTx push range of the submitting thread names the kernel.
    pub rename: bool,
    /// Names that rocprofv3 cannot demangle are left as registered.
    pub original: bool,
}

impl KernelNames {
    fn dialect(self) -> Dialect {
        if self.original {
            Dialect::Rocprofv3
        } else {
            Dialect::Any
        }
    }
}

/// All spellings of one kernel's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelSpellings {
    /// The form of names in a "kernel name" column.
    pub formatted: String,
    /// Demangled with the descriptor suffix in place.
    pub demangled: String,
    /// The function name alone, cut from `demangled`.
    pub truncated: String,
}

/// The name of a kernel registered as `raw`, in the form that `names` selects (renaming aside).
pub fn formatted(raw: &str, names: KernelNames) -> Cow<'_, str> {
    let mangled = match raw.strip_suffix(DESCRIPTOR_SUFFIX) {
        None | Some("") => raw,
        Some(mangled) => mangled,
    };
    if names.truncate {
        match demangle_as(mangled, names.dialect()) {
            Cow::Borrowed(text) => Cow::Borrowed(truncated(text)),
            Cow::Owned(text) => Cow::Owned(truncated(&text).to_owned()),
        }
    } else if names.mangled {
        Cow::Borrowed(raw)
    } else {
        demangle_as(mangled, names.dialect())
    }
}

/// The name of a kernel that was never registered, which has number `kernel` in its recording. With
/// [`KernelNames::original`] it is the number alone, as rocprofv3 has it.
pub fn without_symbol(kernel: u64, names: KernelNames) -> String {
    if names.original {
        kernel.to_string()
    } else {
        format!("kernel {kernel} (no symbol)")
    }
}

/// Every spelling of the kernel registered as `raw`.
pub fn spellings(raw: &str, names: KernelNames) -> KernelSpellings {
    let demangled = demangle_as(raw, names.dialect()).into_owned();
    KernelSpellings {
        formatted: formatted(raw, names).into_owned(),
        truncated: truncated(&demangled).to_owned(),
        demangled,
    }
}

/// The function name alone in a demangled name: from the right end blanks and balanced groups in `()`, `<>`, `[]` are
/// skipped, then the text back to the blank or colon before it is taken. Never empty unless `name` is.
pub fn truncated(name: &str) -> &str {
    let bytes = name.as_bytes();
    let mut end = bytes.len();
    while let Some(&last) = bytes[..end].last() {
        // Argument lists, template arguments and clone suffixes are taken off the end until the name itself is last.
        let open = match last {
            b' ' => {
                end -= 1;
                continue;
            }
            b')' => b'(',
            b'>' => b'<',
            b']' => b'[',
            _ => break,
        };
        // Scanned from the end, the matching bracket is the first at which as many were opened as closed.
        let mut depth = 0usize;
        let start = bytes[..end].iter().rposition(|&byte| {
            if byte == last {
                depth += 1;
            } else if byte == open {
                depth -= 1;
            }
            depth == 0
        });
        match start {
            Some(start) => end = start,
            // Unbalanced: this is no C++ name, and what is left of it is shown.
            None => break,
        }
    }
    // A return type or a namespace stands in front of the name.
    let start = bytes[..end]
        .iter()
        .rposition(|byte| matches!(byte, b' ' | b':'))
        .map_or(0, |at| at + 1);
    // All cuts are beside ASCII bytes.
    match &name[start..end] {
        "" => name,
        text => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDITION: &str = "_Z15addition_kernelIfEvPT_PKS0_S3_ii.kd";

    #[test]
    fn formatted_names_of_recorded_kernels_are_those_of_rocprofv3() {
        let name = |mangled, truncate| {
            formatted(
                ADDITION,
                KernelNames {
                    mangled,
                    truncate,
                    ..KernelNames::default()
                },
            )
        };
        assert_eq!(
            name(false, false),
            "void addition_kernel<float>(float*, float const*, float const*, int, int)"
        );
        assert_eq!(name(true, false), ADDITION);
        assert_eq!(name(false, true), "addition_kernel");
        assert_eq!(name(true, true), "addition_kernel");
    }

    /// Files and tables have no kernel without a name.
    #[test]
    fn formatted_keeps_a_name_that_is_only_the_suffix() {
        for truncate in [false, true] {
            let names = KernelNames {
                truncate,
                ..KernelNames::default()
            };
            assert_eq!(formatted(".kd", names), ".kd");
        }
    }

    #[test]
    fn spellings_keep_the_suffix_where_rocprofv3_does() {
        let all = spellings("__amd_rocclr_initHeap.kd", KernelNames::default());
        assert_eq!(all.formatted, "__amd_rocclr_initHeap");
        assert_eq!(all.demangled, "__amd_rocclr_initHeap.kd");
        assert_eq!(all.truncated, "__amd_rocclr_initHeap.kd");
        let all = spellings(ADDITION, KernelNames::default());
        assert_eq!(
            all.demangled,
            "void addition_kernel<float>(float*, float const*, float const*, int, int) [clone .kd]"
        );
        assert_eq!(all.truncated, "addition_kernel");
    }

    #[test]
    fn original_mode_keeps_names_that_rocprofv3_cannot_demangle() {
        let externalized = "_Z6reducePv.intern.b96e08b3df0d779d.kd";
        let long = format!("_Z1kI{}Evv", "5types".repeat(200));
        let original = KernelNames {
            original: true,
            ..KernelNames::default()
        };
        let own = KernelNames::default();
        assert_eq!(
            formatted(externalized, original),
            "_Z6reducePv.intern.b96e08b3df0d779d"
        );
        assert_eq!(
            formatted(externalized, own),
            "reduce(void*) [clone .intern] [clone .b96e08b3df0d779d]"
        );
        assert_eq!(spellings(externalized, original).demangled, externalized);
        assert_eq!(formatted(&long, original), long);
        assert!(formatted(&long, own).starts_with("void k<types, types, "));
        assert_eq!(formatted(ADDITION, original), formatted(ADDITION, own));
    }

    #[test]
    fn truncated_leaves_the_function_name_alone() {
        for (name, mangled) in [
            ("void ns::k<float>(float*, int)", "k"),
            ("f(int) [clone .kd]", "f"),
            ("a::b<c<d>, e>::run(x<y>) const", "const"),
            ("plain", "plain"),
            ("", ""),
            ("()", "()"),
            ("unbalanced>)", "unbalanced>)"),
            ("f<1>  ", "f"),
            ("π::κέρνελ(int)", "κέρνελ"),
        ] {
            assert_eq!(truncated(name), mangled, "{name}");
        }
    }
}
