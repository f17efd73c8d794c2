//! Selects kernels and dispatches by a text that the user gives.

use rpd_demangle::demangle_any;

/// Selects all dispatches of a kernel, or one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelChoice {
    name: String,
    nth: Option<u64>,
}

impl KernelChoice {
    /// Parses `NAME` or `NAME#N`. `NAME` is the name as compiled, or a part of the demangled name; `N` is the number
    /// of the kernel's dispatch, from 1. `None` when `N` is not such a number.
    pub fn parse(text: &str) -> Option<KernelChoice> {
        let (name, nth) = match text.rsplit_once('#') {
            Some((name, number)) => (name, Some(number.parse().ok().filter(|n| *n > 0)?)),
            None => (text, None),
        };
        Some(KernelChoice {
            name: name.to_owned(),
            nth,
        })
    }

    /// Whether the `nth` dispatch (from 1) of a kernel is selected.
    pub fn takes(&self, kernel: &str, nth: u64) -> bool {
        self.nth.is_none_or(|wanted| wanted == nth)
            && (self.name == kernel || demangle_any(kernel).contains(&self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_choice_matches_names_and_dispatch_numbers() {
        let choice = |text| KernelChoice::parse(text).expect("a choice");
        assert!(choice("scale").takes("_Z5scalePf", 7));
        assert!(choice("scale(float*)#2").takes("_Z5scalePf", 2));
        assert!(!choice("scale#2").takes("_Z5scalePf", 1));
        assert!(choice("_Z5scalePf").takes("_Z5scalePf", 1));
        assert!(!choice("copy").takes("_Z5scalePf", 1));
        assert_eq!(KernelChoice::parse("scale#0"), None);
        assert_eq!(KernelChoice::parse("scale#x"), None);
    }
}
