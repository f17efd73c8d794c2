//! Text of immediates, for instructions of all generations.

/// Text of a number in the form in which LLVM prints most immediates: decimal up to 64, hexadecimal beyond.
pub(super) fn small_or_hexadecimal(value: u32) -> String {
    if value <= 64 {
        value.to_string()
    } else {
        format!("{value:#x}")
    }
}

/// Text of counters, given as name, value and maximum. Counters with the maximum are omitted.
pub(super) fn counts_text(counts: &[(&str, u32, u32)]) -> String {
    let all = counts.iter().all(|(_, count, most)| count == most);
    let texts = counts
        .iter()
        .filter(|(_, count, most)| all || count != most);
    texts
        .map(|(name, count, _)| format!("{name}({count})"))
        .collect::<Vec<_>>()
        .join(" ")
}
