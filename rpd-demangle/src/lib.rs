//! The demangler for Itanium C++ names.

use std::borrow::Cow;
use std::collections::HashMap;

use parse::Whole;

mod parse;
mod print;
mod tables;
mod tree;

/// Which names are accepted, and how far.
#[derive(Debug, Clone, Copy)]
struct Rules {
    /// Bytes of the longest mangled name.
    longest_name: usize,
    /// Bytes of the longest text. Substitutions let a short name stand for an exponentially long one.
    longest_text: usize,
    /// Whether a word in the suffix of a clone may have digits.
    digits_in_clone_suffixes: bool,
}

/// Those of the GNU C++ library, with a limit of the text.
const RULES: Rules = Rules {
    longest_name: 1024,
    longest_text: 1 << 20,
    digits_in_clone_suffixes: true,
};

/// The demangled C++ name, or `name` itself when it is not a mangled name.
pub fn demangle(name: &str) -> Cow<'_, str> {
    if !name.starts_with("_Z") {
        return Cow::Borrowed(name);
    }
    try_demangle(name, Whole::Symbol).map_or(Cow::Borrowed(name), Cow::Owned)
}

/// The demangled C++ type of `mangled` (as `typeid().name()` returns it), or `mangled` itself.
pub fn demangle_type(mangled: &str) -> Cow<'_, str> {
    try_demangle(mangled, Whole::Type).map_or(Cow::Borrowed(mangled), Cow::Owned)
}

fn try_demangle(name: &str, whole: Whole) -> Option<String> {
    if name.len() > RULES.longest_name {
        return None;
    }
    let parsed = parse::parse(name.as_bytes(), whole, &RULES)?;
    let text = print::print(&parsed, &RULES).ok()?;
    // A length may end an identifier within a character.
    String::from_utf8(text).ok()
}

/// Demangles names, and caches the results.
#[derive(Debug, Default)]
pub struct Demangler {
    known: HashMap<Box<str>, Box<str>>,
}

impl Demangler {
    /// A demangler with empty caches.
    pub fn new() -> Demangler {
        Demangler::default()
    }

    /// As [`demangle`], with cached results.
    pub fn demangle(&mut self, name: &str) -> &str {
        if !self.known.contains_key(name) {
            self.known.insert(name.into(), demangle(name).into());
        }
        self.known.get(name).map_or("", |text| text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_golden_run() {
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
    fn spellings_are_those_of_the_gnu_demangler() {
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
    fn types() {
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
        assert_eq!(demangle(&nested), nested);
        let pointers = format!("_Z1f{}i", "P".repeat(100_000));
        assert!(!demangle(&pointers).is_empty());
        // Each substitution doubles the one before.
        let mut bomb = String::from("_Z1fI1aI1bS_E");
        for _ in 0..60 {
            bomb.push_str("1cIS0_S0_E");
        }
        bomb.push_str("Evv");
        assert!(demangle(&bomb).len() <= MAX_DEMANGLED);
    }

    #[test]
    fn results_are_cached() {
        let mut demangler = Demangler::new();
        assert_eq!(demangler.demangle("_Z1fv"), "f()");
        assert_eq!(demangler.demangle("_Z1fv"), "f()");
        assert_eq!(demangler.known.len(), 1);
    }
}
