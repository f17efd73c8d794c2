//! Patterns for kernel names: any text is a pattern that the collector can use for any name, or gives an error in one
//! line. The input is the pattern, a zero byte, and names with zero bytes between. With a first byte of 255 the rest
//! takes the place of a compiled pattern.

use rpd_spool::kernel_filter::{Matcher, compile};
use rpd_spool::kernel_name::{KernelNames, formatted, spellings, truncated};

use super::assert_one_line;
use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "kernel-filter",
    run,
    seeds,
    longest: 2048,
    mutations: 1000,
};

const COMPILED: u8 = 0xff;

const SEEDS: &[&str] = &[
    ".*_kernel\0addition_kernel(float*, int)\0_Z15addition_kernelPfS_i.kd",
    "^(transpose|multiply)\\(.*int\\)$\0transpose(int, void const*)",
    "a{2,5}?[^\\w\\s-]|\\bx\\B\\x41\\u0042\\cJ\0axe",
    "[[:alpha:]]+(?:void )?ns::f<\\d*>\0void ns::f<3, float>(int (*)(char))\0_ZN2ns1fILi3EfEEvPFicE",
    "(?=look)\0a\0_ZNSt6vectorIiSaIiEE9push_backERKi [clone .kd]",
    "\\u0\n\0a",
    "(a)\\1\0\0(anonymous namespace)::g<(lambda)#1>",
];

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = SEEDS.iter().map(|seed| seed.as_bytes().to_vec()).collect();
    let table = compile("ab|c").expect("a pattern");
    seeds.push([&[COMPILED], table.as_slice()].concat());
    seeds
}

fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split('\0')
}

fn run(data: &[u8]) {
    if let Some((&COMPILED, table)) = data.split_first() {
        if let Some(matcher) = Matcher::from_bytes(table.to_vec()) {
            for name in ["", "abc", "addition_kernel(float*, int)"] {
                matcher.is_match(name);
            }
        }
        return;
    }
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let (pattern, rest) = text.split_once('\0').unwrap_or((text, ""));
    let matcher = match compile(pattern) {
        Ok(table) => Some(Matcher::from_bytes(table).expect("a table that was just made")),
        Err(error) => {
            assert_one_line(&error.to_string());
            None
        }
    };
    for name in names(rest) {
        let short = truncated(name);
        assert!(short.len() <= name.len());
        for truncate in [false, true] {
            for mangled in [false, true] {
                let how = KernelNames {
                    truncate,
                    mangled,
                    ..KernelNames::default()
                };
                let shown = formatted(name, how);
                let spelt = spellings(name, how);
                assert_eq!(shown.is_empty(), name.is_empty(), "{name:?}");
                drop(spelt);
                if let Some(matcher) = &matcher {
                    matcher.is_match(&shown);
                }
            }
        }
    }
}
