//! Call stacks of files of RPD (ROCm/rocmProfileData): their frames are texts.

use rpd_core::session::stacks::LocationKind;
use rpd_formats::rocpd::read::{ReadError, RpdStacks};

use rpd_formats::flame::{Frame, Kind};

use crate::analysis::Cost;

/// Calls `take` with the calls of a file, those of a function with the same frames at once: the function, what they cost, and
/// their frames, innermost first and without the call itself, `None` for calls without a stack.
///
/// # Errors
/// When the file cannot be read.
pub fn each_rpd_stack(
    file: &RpdStacks,
    mut take: impl FnMut(&str, Cost, Option<&[Frame]>),
) -> Result<(), ReadError> {
    file.each_stack(|stack| {
        let cost = Cost {
            calls: stack.calls,
            cpu: stack.duration,
            gpu: stack.gpu,
            bytes: stack.bytes,
        };
        // The first frame is the call. RPD writes the function into its text in such a way that digits of the address may
        // stand after the parentheses.
        let below_call = stack.frames.split_first().map(|(_, frames)| frames);
        let frames: Option<Vec<Frame>> =
            below_call.map(|frames| frames.iter().map(|text| frame(text)).collect());
        take(&stack.function, cost, frames.as_deref());
    })
}

/// The frame that a text describes: `#2 0x00000000002055ae in main at main.hip:169:5`, `#3 0x00007f35a249d54b at LIBRARY`,
/// `#1 (inlined)          in alloc<int> at alloc.h:9:12`, `#4 (python)           in train at train.py:7`.
fn frame(text: &str) -> Frame {
    // The number of the frame differs from stack to stack, and would keep equal frames apart.
    let text = text
        .trim_start_matches('#')
        .trim_start_matches(|letter: char| letter.is_ascii_digit())
        .trim_start();
    let (head, rest) = text.split_once(' ').unwrap_or((text, ""));
    let rest = format!(" {}", rest.trim());
    let word = head
        .strip_prefix('(')
        .and_then(|word| word.strip_suffix(')'))
        .unwrap_or_default();
    let marker = [
        LocationKind::GapMarker,
        LocationKind::TruncatedMarker,
        LocationKind::UnplacedMarker,
    ]
    .into_iter()
    .find(|kind| kind.word().strip_suffix("-marker") == Some(word))
    .and_then(LocationKind::marker);
    if let Some(marker) = marker {
        return Frame {
            kind: Kind::Note,
            name: marker.to_owned(),
            file: String::new(),
            line: 0,
        };
    }
    // The last ` at `: names of functions may have the word in them.
    let (function, place) = match rest.rfind(" at ") {
        Some(at) => (&rest[..at], &rest[at + 4..]),
        None => (&*rest, ""),
    };
    let (file, line) = file_and_line(place);
    let name = match function.strip_prefix(" in ") {
        Some(name) => name,
        // Addresses differ from run to run.
        None => file.rsplit('/').next().unwrap_or(file),
    };
    let is_native = head.starts_with("0x") || word == "inlined" || word.is_empty();
    Frame {
        kind: if is_native {
            Kind::Native
        } else {
            Kind::Python
        },
        name: name.to_owned(),
        file: file.to_owned(),
        line,
    }
}

/// `FILE`, `FILE:LINE` or `FILE:LINE:COLUMN`.
fn file_and_line(place: &str) -> (&str, u32) {
    let number_behind = |text: &str| {
        let (before, number) = text.rsplit_once(':')?;
        Some((before.len(), number.parse::<u32>().ok()?))
    };
    match number_behind(place) {
        None => (place, 0),
        Some((end, last)) => match number_behind(&place[..end]) {
            None => (&place[..end], last),
            Some((end, line)) => (&place[..end], line),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rpd_file_texts_become_frames() {
        let native = Kind::Native;
        for (text, kind, name, file, line) in [
            (
                "#2 0x00000000002055ae in main_foo(int, char**) at main.hip:169:5",
                native,
                "main_foo(int, char**)",
                "main.hip",
                169,
            ),
            (
                "#1 (inlined)          in hipMalloc<unsigned int>(unsigned int**, unsigned long) at a/hip_runtime_api.h:9360:12",
                native,
                "hipMalloc<unsigned int>(unsigned int**, unsigned long)",
                "a/hip_runtime_api.h",
                9360,
            ),
            (
                "#17 0x0000000000204b04 at /opt/bin/sort",
                native,
                "sort",
                "/opt/bin/sort",
                0,
            ),
            (
                "#3  0x00007f35a249d54b in run at /lib/libx.so",
                native,
                "run",
                "/lib/libx.so",
                0,
            ),
            (
                "#5 (python)           in <module> at train.py:3",
                Kind::Python,
                "<module>",
                "train.py",
                3,
            ),
            ("#5 0x0000000000204b04 in jump at", native, "jump at", "", 0),
            ("#", native, "", "", 0),
            ("", native, "", "", 0),
        ] {
            let expected = Frame {
                kind,
                name: name.to_owned(),
                file: file.to_owned(),
                line,
            };
            assert_eq!(frame(text), expected, "{text}");
        }
        let gap = frame("#12 (gap)              frames left out");
        assert_eq!(gap.kind, Kind::Note);
        assert_eq!(Some(&*gap.name), LocationKind::GapMarker.marker());
    }
}
