//! The page's listings: instructions and source lines of kernels with PC samples or thread traces.

use std::collections::HashMap;

use rpd_core::options::Options;
use rpd_core::session::Session;
use rpd_core::session::hot::{Listing, Tally, listings};
use rpd_core::session::totals::InstructionTotals;

use super::quoted;
use crate::json::Object;

/// Functions that are listed; the others have few samples.
const LISTINGS: usize = 20;
/// Instructions of all listings.
const INSTRUCTIONS: usize = 20_000;

/// A JSON object for each function, hottest first.
pub(super) fn all(session: &Session, options: &Options) -> Vec<String> {
    let totals = InstructionTotals::from_any(session);
    let all = totals.places.values().flat_map(|place| &place.counts);
    let all: u64 = all.map(|(_, count)| count.samples).sum();
    let mut left = INSTRUCTIONS;
    let mut sources: HashMap<&str, Vec<&str>> = HashMap::new();
    for source in &session.code.sources {
        let path = session.strings.get(source.path);
        sources.insert(path, source.text.lines().collect());
    }
    let mut objects = Vec::new();
    for listing in listings(session, &totals, options.kernel_names, |_| true)
        .iter()
        .take(LISTINGS)
    {
        let Some(rest) = left.checked_sub(listing.instructions.len()) else {
            break;
        };
        left = rest;
        objects.push(object(listing, all, &sources));
    }
    objects
}

fn object(listing: &Listing, all: u64, sources: &HashMap<&str, Vec<&str>>) -> String {
    let mut last = None;
    let rows: Vec<String> = listing
        .instructions
        .iter()
        .map(|instruction| {
            // A line has its text once, with the first of the instructions that follow one another in it.
            let is_new = last != Some(&instruction.chain);
            last = Some(&instruction.chain);
            let own = instruction.chain.first().filter(|_| is_new);
            let text = own.and_then(|own| {
                let line = (own.line as usize).checked_sub(1)?;
                sources.get(own.file.as_str())?.get(line).copied()
            });
            let places: Vec<String> = instruction
                .chain
                .iter()
                .map(|place| format!("{}:{} {}", place.file, place.line, place.function))
                .collect();
            let mut row = Object::new()
                .number("offset", instruction.offset)
                .text("text", &instruction.text);
            if let Some(own) = own {
                row = row
                    .number("line", own.line)
                    .text("source", text.unwrap_or_default())
                    .text("places", &places.join("\n"));
            }
            if instruction.tally.samples > 0 {
                row = row.json("tally", &tally(&instruction.tally, &listing.tally));
            }
            row.end()
        })
        .collect();
    Object::new()
        .text("kernel", &listing.kernel)
        .text("function", &listing.function)
        .text("measure", listing.measure.plural())
        .number("samples", listing.tally.samples)
        .number("all", all)
        .array("rows", rows)
        .end()
}

/// Samples of an instruction, as JSON.
fn tally(tally: &Tally, whole: &Tally) -> String {
    let reasons = tally
        .reasons()
        .into_iter()
        .map(|(reason, samples)| format!("[{},{samples}]", quoted(reason)));
    let mut object = Object::new().number("samples", tally.samples);
    if let Some(lanes) = tally.mean_lanes() {
        object = object.number("lanes", format!("{lanes:.1}"));
    }
    if let Some(error) = tally.error(whole) {
        object = object.number("error", format!("{:.2}", error * 100.0));
    }
    if tally.stochastic > 0 {
        object = object
            .number("issued", tally.issued)
            .array("stalls", reasons);
    }
    object.end()
}
