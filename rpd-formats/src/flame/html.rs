//! A page with the graph, which needs nothing else.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use serde_json::{Value, json};

use super::{Frame, Kind, Profile, Unit};

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// A frame, and everything in it.
struct Node<'a> {
    /// For each kind of weight that of the profile that is shown, and of the one from before.
    weights: Vec<[u64; 2]>,
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
    let kinds = profile.kinds_in_use(before);
    let node = || Node {
        weights: vec![[0; 2]; kinds.len()],
        inner: BTreeMap::new(),
    };
    let mut nodes = vec![node()];
    // Kept apart from the tree, which borrows from it.
    let sides = [Some(profile), before];
    let ordered = sides.map(|profile| profile.map_or_else(Vec::new, Profile::ordered));
    for (side, samples) in ordered.iter().enumerate() {
        for (stack, weights) in samples {
            let mut at = 0;
            for frame in std::iter::once(None).chain(stack.iter().copied().map(Some)) {
                if let Some(frame) = frame {
                    let next = nodes.len();
                    let inner = *nodes[at].inner.entry(frame).or_insert(next);
                    if inner == next {
                        nodes.push(node());
                    }
                    at = inner;
                }
                for (sums, (kind, _)) in nodes[at].weights.iter_mut().zip(&kinds) {
                    sums[side] += weights[*kind];
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
        // Reversed, because the list is a stack: children come out in their order.
        let mut cells = vec![json!(frame), json!(parent)];
        cells.extend(
            node.weights
                .as_flattened()
                .iter()
                .map(|&weight| json!(weight)),
        );
        rows.push(Value::Array(cells));
        let inner = node.inner.iter().rev();
        open.extend(inner.map(|(frame, index)| (*index, Some(*frame), Some(row))));
    }
    let weights = kinds.iter().map(|(_, weight)| {
        let unit = match weight.unit {
            Unit::Count => "",
            Unit::Nanoseconds => "ns",
            Unit::Bytes => "B",
        };
        json!({ "name": weight.name, "unit": unit })
    });
    json!({
        "title": title,
        "weights": weights.collect::<Vec<_>>(),
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
