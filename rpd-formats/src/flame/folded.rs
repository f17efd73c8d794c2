//! Folded stacks: `outer;inner 12`, and with a profile from before `outer;inner 10 12`.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::{Frame, Profile};

pub(super) fn write(
    profile: &Profile,
    before: Option<&Profile>,
    out: &mut dyn Write,
) -> io::Result<()> {
    // Stacks that differ in lines only are one here.
    let mut lines: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    let sides = [before, Some(profile)];
    for (side, profile) in sides.into_iter().enumerate() {
        for (stack, weights) in profile.iter().flat_map(|profile| profile.ordered()) {
            if weights[0] == 0 {
                continue;
            }
            let names: Vec<String> = stack.into_iter().map(name).collect();
            lines.entry(names.join(";")).or_default()[side] += weights[0];
        }
    }
    for (stack, [earlier, now]) in lines {
        match before {
            Some(_) => writeln!(out, "{stack} {earlier} {now}")?,
            None => writeln!(out, "{stack} {now}")?,
        }
    }
    Ok(())
}

/// Name of a frame, without characters that separate names, stacks and lines.
fn name(frame: &Frame) -> String {
    let plain = |letter: char| match letter {
        ';' => ':',
        letter if letter.is_control() => ' ',
        letter => letter,
    };
    frame.name.chars().map(plain).collect()
}
