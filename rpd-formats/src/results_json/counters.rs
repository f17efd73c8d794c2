//! `callback_records`: what was counted, one element per dispatch.

use std::collections::HashMap;
use std::io::Write as _;

use rpd_core::options::Options;
use rpd_core::session::{CounterValue, KernelSymbol, Session};

use super::records::{Out, external, separate, stream};
use crate::WriteError;
use crate::file::TextFile;

/// Bytes of the original's record.
const DISPATCH_DATA: u32 = 168;

/// Writes the object. Registers and LDS at the end of each element are what the guide lists and the original leaves
/// out.
pub(super) fn write(
    file: &mut TextFile,
    session: &Session,
    options: &Options,
) -> Result<(), WriteError> {
    let counted = &session.counted;
    let table = &counted.dispatches;
    let symbols: HashMap<_, &KernelSymbol> = session
        .kernel_symbols
        .iter()
        .map(|symbol| (symbol.id, symbol))
        .collect();
    let starts: Vec<String> = session
        .counters
        .iter()
        .map(|counter| format!("{{\"counter_id\":{{\"handle\":{}}},\"value\":", counter.id))
        .collect();
    let names: Vec<&str> = session
        .counters
        .iter()
        .map(|counter| counter.name.as_str())
        .collect();
    // The original has the values of a dispatch in the order of names, in which the provider was given the counters.
    let ranks = ranks(&names);
    file.buffer
        .extend_from_slice(b",\"callback_records\":{\"counter_collection\":[");
    let mut first = true;
    for index in counted.indices() {
        separate(file, &mut first);
        Out(&mut file.buffer)
            .text("{\"thread_id\":")
            .number(table.thread[index].0)
            .text(",\"dispatch_data\":{\"size\":")
            .number(DISPATCH_DATA)
            .correlation(
                table.correlation[index],
                external(session, table.region[index], options),
            )
            .times(table.start[index], table.end[index])
            .dispatch_info(table, index)
            .text("}")
            .replay_pass(table.replay_pass(index))
            .text(",\"records\":[");
        let values = by_name(counted.values_of(index), &ranks);
        for (position, value) in values.enumerate() {
            if position > 0 {
                file.buffer.push(b',');
            }
            let start = starts.get(value.counter as usize);
            Out(&mut file.buffer).text(start.map_or("{\"value\":", String::as_str));
            write_value(&mut file.buffer, value.value);
            file.buffer.push(b'}');
        }
        // Registers and LDS are properties of the kernel, not of the dispatch; a kernel without symbol has zeros.
        let symbol = symbols.get(&table.kernel[index]);
        let lds = symbol.map_or(0, |symbol| symbol.granted_lds());
        Out(&mut file.buffer)
            .text("]")
            .handle("stream_id", stream(table.stream[index], options))
            .text(",\"arch_vgpr_count\":")
            .number(symbol.map_or(0, |symbol| symbol.arch_vgpr_count))
            .text(",\"accum_vgpr_count\":")
            .number(symbol.map_or(0, |symbol| symbol.accum_vgpr_count))
            .text(",\"sgpr_count\":")
            .number(symbol.map_or(0, |symbol| symbol.sgpr_count))
            .text(",\"lds_block_size_v\":")
            .number(lds)
            .text("}");
        file.flush_if_full()?;
    }
    file.buffer.extend_from_slice(b"]},");
    Ok(())
}

/// The place of every counter in the order of names.
fn ranks(names: &[&str]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_by_key(|&counter| names[counter]);
    let mut ranks = vec![0; order.len()];
    for (rank, counter) in order.into_iter().enumerate() {
        ranks[counter] = rank;
    }
    ranks
}

/// The values of a dispatch, which come counter by counter.
fn by_name<'a>(
    values: &'a [CounterValue],
    ranks: &[usize],
) -> impl Iterator<Item = &'a CounterValue> + use<'a> {
    let mut counters: Vec<&[CounterValue]> =
        values.chunk_by(|a, b| a.counter == b.counter).collect();
    counters.sort_by_key(|chunk| ranks.get(chunk[0].counter as usize));
    counters.into_iter().flatten()
}

/// A number that reads as a floating one; JSON has none for what is none.
fn write_value(out: &mut Vec<u8>, value: f64) {
    if value.is_finite() {
        // Writing to a `Vec` cannot fail.
        let _ = write!(out, "{value:?}");
    } else {
        out.extend_from_slice(b"null");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counter_values_stand_in_the_order_of_names() {
        let value = |counter, instance| CounterValue {
            counter,
            instance,
            value: 0.0,
        };
        let values = [value(0, 0), value(0, 1), value(1, 0)];
        let order: Vec<_> = by_name(&values, &ranks(&["SQ_WAVES", "MY_WAVES"]))
            .map(|value| (value.counter, value.instance))
            .collect();
        assert_eq!(order, [(1, 0), (0, 0), (0, 1)]);
    }
}
