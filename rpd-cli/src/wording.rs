//! Words and forms of numbers in messages.

use std::fmt::Display;

/// Text for a number of things, by the noun in singular: `1 dispatch`, `3 dispatches`.
pub(crate) fn count<N: Display + PartialEq + From<u8>>(number: N, noun: &str) -> String {
    let plural = match noun {
        _ if number == N::from(1) => "",
        "copy" => return format!("{number} copies"),
        _ if noun.ends_with("ch") || noun.ends_with('s') => "es",
        _ => "s",
    };
    format!("{number} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_uses_the_singular_for_one() {
        let nouns = ["call", "copy", "dispatch", "process", "launch"];
        let plurals = nouns.map(|noun| count(2_u64, noun));
        assert_eq!(
            plurals,
            [
                "2 calls",
                "2 copies",
                "2 dispatches",
                "2 processes",
                "2 launches"
            ]
        );
        for noun in nouns {
            assert_eq!(count(1_u64, noun), format!("1 {noun}"));
        }
    }
}
