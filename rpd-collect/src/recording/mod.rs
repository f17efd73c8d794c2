//! What is written and when, without any knowledge of the provider.

pub(crate) mod arguments;
pub(crate) mod guard;
pub(crate) mod kernel_selection;
pub(crate) mod meta;
pub(crate) mod process;
pub(crate) mod stacks;
pub(crate) mod switch;
pub(crate) mod text;
pub(crate) mod thread;
pub(crate) mod totals;
