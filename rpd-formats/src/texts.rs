//! Texts and their numbers.

use std::collections::HashMap;

/// Texts numbered from 0 in the order in which they came; 0 is the empty one.
pub(crate) struct Texts {
    texts: Vec<Box<str>>,
    ids: HashMap<Box<str>, u32>,
}

impl Texts {
    pub(crate) fn new() -> Texts {
        let mut texts = Texts {
            texts: Vec::new(),
            ids: HashMap::new(),
        };
        texts.id("");
        texts
    }

    /// The number of `text`, a new one when it is new.
    pub(crate) fn id(&mut self, text: &str) -> u32 {
        if let Some(&id) = self.ids.get(text) {
            return id;
        }
        let id = self.texts.len() as u32;
        self.texts.push(text.into());
        self.ids.insert(text.into(), id);
        id
    }

    /// The text with this number; empty when there is none.
    pub(crate) fn get(&self, id: u32) -> &str {
        self.texts.get(id as usize).map_or("", |text| text)
    }

    /// In the order of numbers.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.texts.iter().map(|text| &**text)
    }
}
