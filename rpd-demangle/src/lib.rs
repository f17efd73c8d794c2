//! The demangler for Itanium C++ names. Its texts are those of the GNU C++ library (`__cxa_demangle`), byte for byte:
//! what other tools show is compared and joined with them.

use std::borrow::Cow;

use parse::Whole;

mod parse;
mod print;
mod tables;
mod tree;

/// Length of the longest text in bytes. Substitutions let a short mangled name stand for an exponentially long one.
const LONGEST_TEXT: usize = 1 << 20;

/// Set of names that are demangled. Names that two dialects demangle have the same text in both, except for
/// `std::bfloat16_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Names that the GNU C++ library demangles, except that a text of more than 1 MiB is refused.
    Library,
    /// Names that rocprofv3 shows demangled: it is built with an older library, to which a word with a digit in it
    /// (`.intern.b96e08b3`) is no suffix of a clone.
    Rocprofv3,
    /// Names of [`Dialect::Library`], names of up to 256 KiB, and names with types like `_Float16`, which the library has
    /// since version 13, and `_BitInt(8)`.
    Any,
}

impl Dialect {
    /// Length of the longest mangled name in bytes.
    fn longest_name(self) -> usize {
        match self {
            Dialect::Library | Dialect::Rocprofv3 => 1024,
            // Kernels with many template arguments have names of tens of KiB.
            Dialect::Any => 256 << 10,
        }
    }
}

/// The demangled C++ name as the GNU C++ library has it, or `name` itself when it is not a mangled name.
pub fn demangle(name: &str) -> Cow<'_, str> {
    demangle_as(name, Dialect::Library)
}

/// The demangled C++ name, or `name` itself when it is not a mangled name. For names that are only shown: names that
/// are too long for [`demangle`] are demangled as well.
pub fn demangle_any(name: &str) -> Cow<'_, str> {
    demangle_as(name, Dialect::Any)
}

/// The demangled C++ name, or `name` itself when it is not a mangled name of the dialect.
pub fn demangle_as(name: &str, dialect: Dialect) -> Cow<'_, str> {
    if !name.starts_with("_Z") {
        return Cow::Borrowed(name);
    }
    try_demangle(name, Whole::Symbol, dialect).map_or(Cow::Borrowed(name), Cow::Owned)
}

/// The demangled C++ type of `mangled` (as `typeid().name()` returns it), or `mangled` itself.
pub fn demangle_type(mangled: &str) -> Cow<'_, str> {
    try_demangle(mangled, Whole::Type, Dialect::Library).map_or(Cow::Borrowed(mangled), Cow::Owned)
}

fn try_demangle(name: &str, whole: Whole, dialect: Dialect) -> Option<String> {
    if name.len() > dialect.longest_name() {
        return None;
    }
    let parsed = parse::parse(name.as_bytes(), whole, dialect)?;
    let text = print::print(&parsed).ok()?;
    // A length may end an identifier within a character.
    String::from_utf8(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demangle_writes_the_kernel_names_of_the_golden_run() {
        assert_eq!(
            demangle("_Z15addition_kernelIfEvPT_PKS0_S3_ii"),
            "void addition_kernel<float>(float*, float const*, float const*, int, int)"
        );
        assert_eq!(
            demangle("_Z15addition_kernelIfEvPT_PKS0_S3_ii.kd"),
            "void addition_kernel<float>(float*, float const*, float const*, int, int) [clone .kd]"
        );
        assert_eq!(
            demangle("__amd_rocclr_copyBuffer.kd"),
            "__amd_rocclr_copyBuffer.kd"
        );
        assert_eq!(demangle("_Z"), "_Z");
        assert_eq!(demangle(""), "");
    }

    #[test]
    fn demangle_spells_names_as_the_gnu_demangler_does() {
        for (mangled, text) in [
            ("_Z1fILj64EEvv", "void f<64u>()"),
            ("_Z1fILin5ELm0ELxn7EEvv", "void f<-5, 0ul, -7ll>()"),
            ("_Z1fILb1ELc65EEvv", "void f<true, (char)65>()"),
            ("_Z3fooRKSsSs", "foo(std::string const&, std::string)"),
            (
                "_ZN2at6native18elementwise_kernelILi128ELi4EZNS0_22gpu_kernel_impl_nocastINS0_15CUDAFunctor_addIfEEEE\
                 vRNS_18TensorIteratorBaseERKT_EUliE_EEviT1_",
                "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<\
                 at::native::CUDAFunctor_add<float> >(at::TensorIteratorBase&, at::native::CUDAFunctor_add<float> \
                 const&)::{lambda(int)#1}>(int, at::native::gpu_kernel_impl_nocast<at::native::CUDAFunctor_add<float> >\
                 (at::TensorIteratorBase&, at::native::CUDAFunctor_add<float> const&)::{lambda(int)#1})",
            ),
            (
                "_ZN12_GLOBAL__N_16kernelIfEEvPT_",
                "void (anonymous namespace)::kernel<float>(float*)",
            ),
            (
                "_Z1kIZNK1a1gIiEEjvEUlvE_JfdEEvT_DpT0_",
                "void k<a::g<int>() const::{lambda()#1}, float, double>\
                 (a::g<int>() const::{lambda()#1}, float, double)",
            ),
            (
                "_ZZ1fIiEvvENKUlvE_clEv",
                "f<int>()::{lambda()#1}::operator()() const",
            ),
        ] {
            assert_eq!(demangle(mangled), text);
        }
    }

    #[test]
    fn demangle_type_writes_types() {
        for (mangled, text) in [
            ("PKv", "void const*"),
            ("m", "unsigned long"),
            ("PP12ihipStream_t", "ihipStream_t**"),
            (
                "P15HIP_vector_typeIjLj3EE",
                "HIP_vector_type<unsigned int, 3u>*",
            ),
            (
                "PF12hsa_status_t11hsa_agent_sPvE",
                "hsa_status_t (*)(hsa_agent_s, void*)",
            ),
            ("?", "?"),
            ("", ""),
        ] {
            assert_eq!(demangle_type(mangled), text);
        }
    }

    #[test]
    fn hostile_names_take_bounded_time_and_memory() {
        let nested = format!("_Z{}", "N1a".repeat(20_000));
        assert_eq!(demangle_any(&nested), nested);
        let pointers = format!("_Z1f{}i", "P".repeat(100_000));
        assert_eq!(demangle_any(&pointers), pointers);
        // Each substitution doubles the one before.
        let mut bomb = String::from("_Z1fI1aI1bS_E");
        for _ in 0..60 {
            bomb.push_str("1cIS0_S0_E");
        }
        bomb.push_str("Evv");
        assert!(demangle_any(&bomb).len() <= LONGEST_TEXT);
    }
}
