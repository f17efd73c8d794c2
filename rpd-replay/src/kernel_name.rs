//! Kernels by the names that users give.

use std::sync::Arc;

use rpd_spool::demangle::demangle_any;
use rpd_spool::kernel_filter::Matcher;

/// Kernels that a user has named: by a name or part of one, or by a pattern.
#[derive(Debug, Clone)]
pub struct KernelName {
    text: String,
    pattern: Result<Arc<Matcher>, String>,
}

/// Whether a kernel is one that the user has named: by its name, or by a part of the name that people read.
pub(crate) fn is_called(name: &str, wanted: &str) -> bool {
    name == wanted || demangle_any(name).contains(wanted)
}

impl KernelName {
    /// The kernels that `text` names. `pattern` is the table that filters of kernels make of it, or why they make none.
    pub fn new(text: String, pattern: Result<Matcher, String>) -> KernelName {
        KernelName {
            text,
            pattern: pattern.map(Arc::new),
        }
    }

    /// The text as the user gave it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Tests whether a kernel is named by the user, among `all` kernels. The text counts as a pattern, searched for in
    /// the names that people read, only where it is no name and no part of one: names of templates have characters that
    /// mean something else in patterns.
    pub(crate) fn test<'a>(
        &self,
        mut all: impl Iterator<Item = &'a str>,
    ) -> impl Fn(&str) -> bool + '_ {
        let literal = all.any(|name| is_called(name, &self.text));
        move |name| match (literal, &self.pattern) {
            (true, _) => is_called(name, &self.text),
            (false, Ok(pattern)) => pattern.is_match(&demangle_any(name)),
            (false, Err(_)) => false,
        }
    }

    /// Addition to the message that no kernel is named: the reason why the text is no pattern.
    pub(crate) fn remark(&self) -> String {
        match &self.pattern {
            Ok(_) => String::new(),
            Err(error) => format!("; as a pattern it is wrong: {error}"),
        }
    }
}
