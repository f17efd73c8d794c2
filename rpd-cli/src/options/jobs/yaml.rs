//! YAML documents: builds a tree with lines and columns from the parser's events.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use saphyr_parser::{Event, Parser, ScalarStyle, Span};

use super::super::node::{Content, DEEPEST, Key, Node};
use super::wrong;
use crate::failure::Failure;

/// Largest number of nodes in a file: several times those of the largest valid file, and read within a second.
const MOST_NODES: usize = 200_000;

/// Largest number of nodes that aliases may add: more than a written file needs, and few enough for the memory.
const MOST_COPIES: usize = 1_000_000;

/// Reads the one document of a source.
pub(super) fn parse(source: &str, file: &Arc<str>) -> Result<Node, Failure> {
    let mut builder = Builder {
        file,
        open: Vec::new(),
        anchors: HashMap::new(),
        nodes: 0,
        copies: 0,
        root: None,
    };
    for event in Parser::new_from_str(source) {
        let (event, span) = event.map_err(|error| {
            let mark = error.marker();
            wrong(file, mark.line(), mark.col() + 1, error.info())
        })?;
        builder.take(event, span)?;
    }
    builder
        .root
        .ok_or_else(|| wrong(file, 1, 1, "the file is empty: the key 'jobs' is needed"))
}

/// A list or mapping that is still open.
struct Open {
    node: Node,
    anchor: usize,
    /// The key whose value is parsed next.
    key: Option<Key>,
}

struct Builder<'a> {
    file: &'a Arc<str>,
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    nodes: usize,
    copies: usize,
    root: Option<Node>,
}

impl Builder<'_> {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Failure> {
        let (line, column) = (span.start.line(), span.start.col() + 1);
        let fail = |message: &str| Err(wrong(self.file, line, column, message));
        let node = |content| Node {
            line,
            column,
            content,
        };
        self.nodes += usize::from(matches!(
            event,
            Event::Scalar(..) | Event::SequenceStart(..) | Event::MappingStart(..)
        ));
        if self.nodes > MOST_NODES {
            return fail(&format!(
                "too many keys, values, lists and mappings: a file may have {MOST_NODES}; use several files"
            ));
        }
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) if self.root.is_some() => {
                fail("a second document begins; a file has one")
            }
            Event::DocumentStart(_) => Ok(()),
            Event::Scalar(text, style, anchor, tag) => {
                let plain = style == ScalarStyle::Plain
                    && tag.is_none_or(|tag| !(tag.is_yaml_core_schema() && tag.suffix == "str"));
                let text = text.into_owned();
                self.add_node(node(Content::Scalar { text, plain }), anchor)
            }
            Event::SequenceStart(..) | Event::MappingStart(..) if self.open.len() >= DEEPEST => {
                fail("lists and mappings are nested too deeply")
            }
            Event::SequenceStart(anchor, _) => {
                self.begin(node(Content::List(Vec::new())), anchor);
                Ok(())
            }
            Event::MappingStart(anchor, _) => {
                self.begin(node(Content::Map(Vec::new())), anchor);
                Ok(())
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(open) => self.add_node(merged(open.node), open.anchor),
                None => fail("a list or mapping ends that did not begin"),
            },
            Event::Alias(anchor) => {
                let Some(copy) = self.anchors.get(&anchor) else {
                    return fail("an alias refers to a node that contains it");
                };
                self.copies += copy.size();
                if self.copies > MOST_COPIES {
                    return fail("aliases make the document too large");
                }
                let content = copy.content.clone();
                self.add_node(node(content), 0)
            }
        }
    }

    fn begin(&mut self, node: Node, anchor: usize) {
        self.open.push(Open {
            node,
            anchor,
            key: None,
        });
    }

    /// Adds a complete node to its parent.
    fn add_node(&mut self, node: Node, anchor: usize) -> Result<(), Failure> {
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match (&mut open.node.content, open.key.take()) {
            (Content::List(items), _) => items.push(node),
            (Content::Map(entries), Some(key)) => entries.push((key, node)),
            (Content::Map(_), None) => match node.content {
                Content::Scalar { text, .. } => {
                    open.key = Some(Key {
                        text,
                        line: node.line,
                        column: node.column,
                    });
                }
                _ => {
                    let message = "a key must be a word";
                    return Err(wrong(self.file, node.line, node.column, message));
                }
            },
            // Scalars are never open.
            (Content::Scalar { .. }, _) => {}
        }
        Ok(())
    }
}

/// Merges into a mapping the entries of the mappings that its keys `<<` name; own entries win, then those named first.
fn merged(mut node: Node) -> Node {
    let Content::Map(entries) = &mut node.content else {
        return node;
    };
    if !entries.iter().any(|(key, _)| key.text == "<<") {
        return node;
    }
    let (bases, mut own): (Vec<_>, Vec<_>) = std::mem::take(entries)
        .into_iter()
        .partition(|(key, _)| key.text == "<<");
    let mut known: HashSet<String> = own.iter().map(|(key, _)| key.normal()).collect();
    let mut add = |base: Node| {
        if let Content::Map(entries) = base.content {
            for (key, value) in entries {
                if known.insert(key.normal()) {
                    own.push((key, value));
                }
            }
        }
    };
    for (_, base) in bases {
        match base.content {
            Content::List(items) => items.into_iter().for_each(&mut add),
            _ => add(base),
        }
    }
    *entries = own;
    node
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(source: &str) -> Result<Node, Failure> {
        parse(source, &Arc::from("f.yaml"))
    }

    #[test]
    fn yaml_aliases_do_not_fill_the_memory() {
        let mut source = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let name = level - 1;
            let items = vec![format!("*a{name}"); 10].join(", ");
            source += &format!("a{level}: &a{level} [{items}]\n");
        }
        let failure = read(&source).expect_err("ten to the twelfth");
        assert!(failure.message.contains("too large"), "{failure}");
        let failure = read(&"[".repeat(10_000)).expect_err("very deep");
        assert!(failure.message.starts_with("f.yaml:1:"), "{failure}");
    }

    #[test]
    fn yaml_with_more_values_than_allowed_is_refused() {
        let list = |count| format!("[{}]", "x,".repeat(count));
        read(&list(MOST_NODES - 1)).expect("allowed");
        let failure = read(&list(MOST_NODES)).expect_err("one too many");
        assert!(failure.message.contains("may have 200000"), "{failure}");
    }

    #[test]
    fn yaml_keys_override_those_of_merged_mappings() {
        let root = read("- &a {x-x: 1, y: 1}\n- &b {y: 2, z: 2}\n- {<<: [*a, *b], x_x: 0}\n");
        let Content::List(items) = root.expect("good").content else {
            panic!("a list");
        };
        let Content::Map(entries) = &items[2].content else {
            panic!("a mapping");
        };
        let shown: Vec<_> = entries
            .iter()
            .map(|(key, value)| (key.text.as_str(), value.scalar().expect("a word")))
            .collect();
        assert_eq!(shown, [("x_x", "0"), ("y", "1"), ("z", "2")]);
    }
}
