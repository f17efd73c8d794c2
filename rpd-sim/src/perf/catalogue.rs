//! Which hardware events the simulator determines.

/// Events of the sequencers that a counted dispatch determines.
const SQ: &[u32] = &[4, 14];

/// Whether the simulator determines an event of a hardware block (`SQ`, `TCC`, ...), by its number.
pub(crate) fn determined(block: &str, event: u32) -> bool {
    events(block).contains(&event)
}

/// Whether the simulator determines the accumulated level of an event: the sum of the level over all cycles,
/// which is what the event selected behind it (`SQ_ACCUM_PREV`, `SQ_ACCUM_PREV_HIRES`) reads.
pub(crate) fn accumulates(_block: &str, _event: u32) -> bool {
    false
}

/// All events that are determined, by block.
#[cfg_attr(not(test), expect(dead_code, reason = "for tests and lists"))]
pub(crate) fn determined_events() -> impl Iterator<Item = (&'static str, u32)> {
    BLOCKS
        .iter()
        .flat_map(|block| events(block).iter().map(|event| (*block, *event)))
}

/// Blocks that have events.
const BLOCKS: [&str; 1] = ["SQ"];

fn events(block: &str) -> &'static [u32] {
    match block {
        "SQ" => SQ,
        _ => &[],
    }
}
