//! Looks up many distinct addresses of one file and prints how long it took: `symbolize-many FILE [COUNT]`.

use std::time::Instant;

use object::{Object as _, ObjectSection as _, SectionKind};
use rpd_symbols::{Evidence, Module, Search, Symbolizer};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("symbolize-many FILE [COUNT]")?;
    let count: u64 = arguments.next().map_or(Ok(5000), |count| count.parse())?;
    let data = std::fs::read(&path)?;
    let object = object::File::parse(&*data)?;
    let text = object
        .sections()
        .filter(|section| section.kind() == SectionKind::Text)
        .max_by_key(|section| section.size())
        .ok_or("no code in it")?;
    let step = (text.size() / count).max(1);
    let addresses: Vec<u64> = (0..count).map(|n| text.address() + n * step).collect();
    let build_id = object
        .build_id()?
        .map(|id| id.iter().map(|byte| format!("{byte:02x}")).collect());
    let module = Module {
        path: path.clone(),
        build_id,
    };
    let start = Instant::now();
    let frames = Symbolizer::new(Search::default()).frames(&module, &addresses);
    let time = start.elapsed();
    let known = frames
        .iter()
        .filter(|found| matches!(found[0].evidence, Evidence::Dwarf))
        .count();
    let all: usize = frames.iter().map(Vec::len).sum();
    println!(
        "{} addresses of {path} ({:.1} MB): {:.1} ms, {:.1} us each; {all} frames, {known} addresses with lines",
        addresses.len(),
        data.len() as f64 / 1e6,
        time.as_secs_f64() * 1e3,
        time.as_secs_f64() * 1e6 / addresses.len() as f64
    );
    Ok(())
}
