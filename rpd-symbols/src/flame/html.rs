//! A page with the graph, which needs nothing else.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use serde_json::{Value, json};

use super::{Frame, Kind, Profile, Unit};

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Weights of a frame and everything in it, in both profiles.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Difference {
    /// Weight in the profile from before.
    pub before: u64,
    /// Weight in the profile that is shown.
    pub now: u64,
}

#[derive(Default)]
struct Node<'a> {
    weight: Difference,
    inner: BTreeMap<&'a Frame, usize>,
}

pub(super) fn write(
    profile: &Profile,
    before: Option<&Profile>,
    title: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    let data = data(profile, before, title);
    let mut rest = PAGE;
    // In the order of the page; what is put in is not looked through again.
    for (mark, text) in [
        ("%title%", escape(title)),
        ("%style%", STYLE.to_owned()),
        ("%data%", data.to_string().replace('<', "\\u003c")),
        ("%script%", SCRIPT.to_owned()),
    ] {
        if let Some((start, end)) = rest.split_once(mark) {
            out.write_all(start.as_bytes())?;
            out.write_all(text.as_bytes())?;
            rest = end;
        }
    }
    out.write_all(rest.as_bytes())
}

/// Texts, frames and nodes of the tree, each by number. A node is its frame, the number of its parent, and its weights;
/// parents come first.
fn data(profile: &Profile, before: Option<&Profile>, title: &str) -> Value {
    // Both profiles share one tree, so that a frame has its weights side by side.
    let mut nodes = vec![Node::default()];
    let sides = [(before, true), (Some(profile), false)];
    // Kept apart from the tree, which borrows from it.
    let ordered: Vec<_> = sides
        .iter()
        .filter_map(|(profile, is_before)| Some((profile.as_ref()?.ordered(), *is_before)))
        .collect();
    for (samples, is_before) in &ordered {
        for (stack, weight) in samples {
            let mut at = 0;
            for frame in std::iter::once(None).chain(stack.iter().copied().map(Some)) {
                if let Some(frame) = frame {
                    let next = nodes.len();
                    let inner = *nodes[at].inner.entry(frame).or_insert(next);
                    if inner == next {
                        nodes.push(Node::default());
                    }
                    at = inner;
                }
                let sum = &mut nodes[at].weight;
                match is_before {
                    true => sum.before += weight,
                    false => sum.now += weight,
                }
            }
        }
    }
    let mut frames = Vec::new();
    let mut numbers: HashMap<&Frame, usize> = HashMap::new();
    let mut rows = Vec::with_capacity(nodes.len());
    // Outer nodes first, so that a row can refer to its parent's.
    let mut open = vec![(0, None, None)];
    while let Some((index, frame, parent)) = open.pop() {
        let node: &Node<'_> = &nodes[index];
        let frame = frame.map(|frame| {
            *numbers.entry(frame).or_insert_with(|| {
                let kind = match frame.kind {
                    Kind::Native => 0,
                    Kind::Python => 1,
                    Kind::Call => 2,
                    Kind::Note => 3,
                };
                frames.push(json!([frame.name, frame.file, frame.line, kind]));
                frames.len() - 1
            })
        });
        let row = rows.len();
        rows.push(json!([frame, parent, node.weight.now, node.weight.before]));
        // Reversed, because the list is a stack: children come out in their order.
        let inner = node.inner.iter().rev();
        open.extend(inner.map(|(frame, index)| (*index, Some(*frame), Some(row))));
    }
    let unit = match profile.unit {
        Unit::Count => "",
        Unit::Nanoseconds => "ns",
        Unit::Bytes => "B",
    };
    json!({
        "title": title,
        "weight": profile.weight,
        "unit": unit,
        "difference": before.is_some(),
        "frames": frames,
        "nodes": rows,
    })
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
