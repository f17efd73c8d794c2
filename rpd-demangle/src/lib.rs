//! The demangler for Itanium C++ names.

use std::borrow::Cow;
use std::collections::HashMap;

use cpp_demangle::{DemangleOptions, Symbol};

/// Longer mangled names are returned as they are. Kernels with many template arguments have names of tens of KiB.
const MAX_MANGLED: usize = 256 << 10;

/// Demangled names are cut off here. Substitutions let a short mangled name stand for an exponentially long one.
const MAX_DEMANGLED: usize = 1 << 20;

/// Levels of nesting the demangler follows; bounds its use of stack.
const MAX_DEPTH: u32 = 192;

/// The demangled C++ name, or `name` itself when it is not a mangled name.
pub fn demangle(name: &str) -> Cow<'_, str> {
    if !name.starts_with("_Z") {
        return Cow::Borrowed(name);
    }
    try_demangle(name).map_or(Cow::Borrowed(name), Cow::Owned)
}

/// The demangled C++ type of `mangled` (as `typeid().name()` returns it), or `mangled` itself.
pub fn demangle_type(mangled: &str) -> Cow<'_, str> {
    // A type alone is not a symbol that can be demangled; the symbol of its type information (`_ZTI`) is.
    try_demangle(&format!("_ZTI{mangled}"))
        .and_then(|text| text.strip_prefix("typeinfo for ").map(str::to_owned))
        .map_or(Cow::Borrowed(mangled), Cow::Owned)
}

fn try_demangle(name: &str) -> Option<String> {
    if name.len() > MAX_MANGLED {
        return None;
    }
    let symbol = Symbol::new(name).ok()?;
    let mut text = Capped(String::new());
    let options = DemangleOptions::default().recursion_limit(MAX_DEPTH);
    symbol.structured_demangle(&mut text, &options).ok()?;
    Some(gnu_spelling(text.0))
}

/// Suffixes of literals of these types in the output of the GNU demangler, which rocprofv3 uses.
const LITERAL_SUFFIXES: [(&str, &str); 5] = [
    ("(unsigned int)", "u"),
    ("(unsigned long)", "ul"),
    ("(long)", "l"),
    ("(long long)", "ll"),
    ("(unsigned long long)", "ull"),
];

/// Changes the spellings in which the output of `cpp_demangle` differs from that of the GNU demangler.
fn gnu_spelling(mut text: String) -> String {
    for (cast, suffix) in LITERAL_SUFFIXES {
        let mut from = 0;
        while let Some(at) = text[from..].find(cast).map(|at| at + from) {
            let number = at + cast.len();
            let digits = text[number..]
                .bytes()
                .enumerate()
                .take_while(|&(index, byte)| byte.is_ascii_digit() || (index == 0 && byte == b'-'))
                .count();
            from = number;
            if digits > 0 {
                text.insert_str(number + digits, suffix);
                text.replace_range(at..number, "");
                from = at;
            }
        }
    }
    for (long, short) in [
        ("(decltype(nullptr))0", "nullptr"),
        (
            "std::basic_string<char, std::char_traits<char>, std::allocator<char> >",
            "std::string",
        ),
    ] {
        if text.contains(long) {
            text = text.replace(long, short);
        }
    }
    without_local_return_types(text)
}

/// Removes the return type of a template function that is only named as the scope of something local:
/// `void f<int>()::{lambda()#1}` is `f<int>()::{lambda()#1}`.
fn without_local_return_types(mut text: String) -> String {
    let mut from = 0;
    while let Some(at) = text[from..].find(')').map(|at| at + from) {
        from = at + 1;
        let after = &text[from..];
        if !after.starts_with("::") && !after.starts_with(" const::") {
            continue;
        }
        if text[..=at].ends_with("(anonymous namespace)") {
            continue;
        }
        // Search backwards for the start of the enclosing template argument, parameter or text, and for the last blank
        // after it that is outside of all brackets: what stands before that blank is the return type.
        let (mut depth, mut blank, mut start) = (0_u32, None, 0);
        for (index, &byte) in text.as_bytes()[..=at].iter().enumerate().rev() {
            match byte {
                b')' | b'>' | b'}' | b']' => depth += 1,
                b'(' | b'<' | b'{' | b'[' if depth == 0 => {
                    start = index + 1;
                    break;
                }
                b'(' | b'<' | b'{' | b'[' => depth -= 1,
                b',' if depth == 0 => {
                    start = index + 2;
                    break;
                }
                b' ' if depth == 0 && blank.is_none() => blank = Some(index),
                _ => {}
            }
        }
        if let Some(blank) = blank
            && start < blank
            && !text[start..blank].contains("operator")
        {
            text.replace_range(start..=blank, "");
            from -= blank + 1 - start;
        }
    }
    text
}

/// A text that refuses to grow beyond [`MAX_DEMANGLED`].
struct Capped(String);

impl cpp_demangle::DemangleWrite for Capped {
    fn write_string(&mut self, text: &str) -> std::fmt::Result {
        if self.0.len() + text.len() > MAX_DEMANGLED {
            return Err(std::fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
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
