//! Environment variables that switch parts of the SDK on and off.

/// Value of a variable that is a truth value; `None` when it is unset or neither true nor false.
pub(crate) fn truth(name: &str) -> Option<bool> {
    match std::env::var(name).ok()?.to_ascii_lowercase().as_str() {
        "1" | "on" | "yes" | "true" | "y" | "t" => Some(true),
        "0" | "off" | "no" | "false" | "n" | "f" => Some(false),
        _ => None,
    }
}
