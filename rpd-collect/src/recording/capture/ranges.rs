//! The host memory that a copy reads or writes.

use rpd_spool::capture::structs::{any_node, node_type, type_of_node};
use rpd_spool::capture::{Argument, Role, call_flag, data_use, item, number};

use super::Begun;
use super::graphs::HostUse;
use super::state::STATE;
use super::{behind, order, pinned, runtime};

/// Host memory: rows of `width` bytes, `pitch` bytes apart, in slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) address: u64,
    pub(super) pitch: u64,
    pub(super) width: u64,
    /// Rows of each slice that are part of it.
    pub(super) rows: u64,
    /// Rows from one slice to the next.
    pub(super) slice_rows: u64,
    pub(super) slices: u64,
}

impl Range {
    /// Bytes in a row.
    pub(super) fn flat(address: u64, size: u64) -> Range {
        Range {
            address,
            pitch: 0,
            width: size,
            rows: 1,
            slice_rows: 1,
            slices: 1,
        }
    }

    /// Bytes of all rows.
    pub(super) fn bytes(&self) -> u64 {
        self.width * self.rows * self.slices
    }

    /// Distance from the first byte of the range to the byte behind its last.
    pub(super) fn span(&self) -> u64 {
        let rows = self.slices.saturating_sub(1) * self.slice_rows + self.rows.saturating_sub(1);
        rows * self.pitch + self.width
    }

    /// Whether some bytes from the first to the last are those of the other range as well.
    pub(super) fn overlaps(&self, other: &Range) -> bool {
        self.address < other.address + other.span() && other.address < self.address + self.span()
    }

    /// The parts of a row of bytes that are in none of `others`, each of which counts from its first byte to its last.
    pub(super) fn without(&self, others: &[Range]) -> Vec<Range> {
        let mut rest = vec![(self.address, self.address + self.span())];
        for other in others {
            let (start, end) = (other.address, other.address + other.span());
            rest = rest
                .into_iter()
                .flat_map(|(from, to)| [(from, to.min(start)), (from.max(end), to)])
                .filter(|(from, to)| from < to)
                .collect();
        }
        rest.iter()
            .map(|(from, to)| Range::flat(*from, to - from))
            .collect()
    }

    /// Address and length of the pieces, in order; rows without gaps are one piece.
    pub(super) fn pieces(&self) -> impl Iterator<Item = (u64, u64)> {
        let range = *self;
        let dense = range.rows * range.slices <= 1
            || range.pitch == range.width && range.slice_rows == range.rows;
        let (slices, rows, width) = if dense {
            (1, 1, range.bytes())
        } else {
            (range.slices, range.rows, range.width)
        };
        (0..slices)
            .flat_map(move |slice| (0..rows).map(move |row| (slice, row)))
            .map(move |(slice, row)| {
                let rows_before = slice * range.slice_rows + row;
                (range.address + rows_before * range.pitch, width)
            })
            .filter(|(_, len)| *len > 0)
    }
}

/// The memory that a copy reads and writes, by the program's pointers.
struct Copy {
    source: Option<Range>,
    destination: Option<Range>,
    /// Memory of the device that it writes.
    written: Option<Range>,
    /// Whether the call returns when the copy is done.
    blocks: bool,
}

/// Values of `hipMemcpyKind`.
mod kind {
    pub(super) const HOST_TO_HOST: u64 = 0;
    pub(super) const HOST_TO_DEVICE: u64 = 1;
    pub(super) const DEVICE_TO_HOST: u64 = 2;
    pub(super) const DEVICE_TO_DEVICE: u64 = 3;
}

fn word(bytes: &[u8], index: usize) -> u64 {
    let found = bytes.get(index * 8..index * 8 + 8);
    found.map_or(0, |found| {
        u64::from_le_bytes(found.try_into().unwrap_or_default())
    })
}

/// # Safety
/// As for [`super::begin`].
unsafe fn copy(begun: &Begun, arguments: &[u8]) -> Option<Copy> {
    use number as n;
    let named = |name: &str| begun.argument(arguments, name);
    let name = begun.operation.name();
    // Functions with this word in their names return before the copy is done.
    let blocks = !name.contains("Async");
    let one = |address: u64, size: u64| Some(Range::flat(address, size));
    let rows = |address: u64, pitch: u64| {
        Some(Range {
            address,
            pitch,
            width: named("width"),
            rows: named("height"),
            slice_rows: named("height"),
            slices: 1,
        })
    };
    // Of copies without a direction each side is the host's if its address is.
    let host = |address: u64, range: Range| {
        STATE
            .with(|state| state.is_host(address))
            .unwrap_or(false)
            .then_some(range)
    };
    // Each family of functions names its arguments in its own way. A side that is an array, a variable or another
    // device's memory has no range, because no host memory is there.
    let (source, destination, kind) = match begun.number {
        n::hipMemcpyHtoD | n::hipMemcpyHtoDAsync => (
            one(named("src"), named("sizeBytes")),
            one(named("dst"), named("sizeBytes")),
            kind::HOST_TO_DEVICE,
        ),
        n::hipMemcpyDtoH | n::hipMemcpyDtoHAsync => (
            None,
            one(named("dst"), named("sizeBytes")),
            kind::DEVICE_TO_HOST,
        ),
        n::hipMemcpyDtoD | n::hipMemcpyDtoDAsync | n::hipMemcpyPeer | n::hipMemcpyPeerAsync => {
            (None, None, kind::DEVICE_TO_DEVICE)
        }
        n::hipMemcpy
        | n::hipMemcpy_spt
        | n::hipMemcpyAsync
        | n::hipMemcpyAsync_spt
        | n::hipMemcpyWithStream => {
            let size = named("sizeBytes");
            (
                one(named("src"), size),
                one(named("dst"), size),
                named("kind"),
            )
        }
        n::hipMemcpyToSymbol
        | n::hipMemcpyToSymbol_spt
        | n::hipMemcpyToSymbolAsync
        | n::hipMemcpyToSymbolAsync_spt => {
            let symbol = begun
                .operation
                .with_role(Role::Symbol)
                .map_or(0, |argument| argument.value(arguments));
            // Only what is copied while the program runs is read back.
            let variable = if blocks {
                0
            } else {
                runtime::symbol_address(symbol).map_or(0, |at| at + named("offset"))
            };
            let size = named("sizeBytes");
            (one(named("src"), size), one(variable, size), named("kind"))
        }
        n::hipMemcpyFromSymbol
        | n::hipMemcpyFromSymbol_spt
        | n::hipMemcpyFromSymbolAsync
        | n::hipMemcpyFromSymbolAsync_spt => {
            (None, one(named("dst"), named("sizeBytes")), named("kind"))
        }
        n::hipMemcpy2D | n::hipMemcpy2D_spt | n::hipMemcpy2DAsync | n::hipMemcpy2DAsync_spt => {
            let source = rows(named("src"), named("spitch"));
            (source, rows(named("dst"), named("dpitch")), named("kind"))
        }
        n::hipMemcpy2DToArray
        | n::hipMemcpy2DToArray_spt
        | n::hipMemcpy2DToArrayAsync
        | n::hipMemcpy2DToArrayAsync_spt => {
            (rows(named("src"), named("spitch")), None, named("kind"))
        }
        n::hipMemcpy2DFromArray
        | n::hipMemcpy2DFromArray_spt
        | n::hipMemcpy2DFromArrayAsync
        | n::hipMemcpy2DFromArrayAsync_spt => {
            (None, rows(named("dst"), named("dpitch")), named("kind"))
        }
        n::hipMemcpyToArray => (one(named("src"), named("count")), None, named("kind")),
        n::hipMemcpyFromArray | n::hipMemcpyFromArray_spt => {
            (None, one(named("dst"), named("count")), named("kind"))
        }
        n::hipMemcpyHtoA => (
            one(named("srcHost"), named("count")),
            None,
            kind::HOST_TO_DEVICE,
        ),
        n::hipMemcpyHtoAAsync => (
            one(named("srcHost"), named("ByteCount")),
            None,
            kind::HOST_TO_DEVICE,
        ),
        n::hipMemcpyAtoH => (
            None,
            one(named("dst"), named("count")),
            kind::DEVICE_TO_HOST,
        ),
        n::hipMemcpyAtoHAsync => (
            None,
            one(named("dstHost"), named("ByteCount")),
            kind::DEVICE_TO_HOST,
        ),
        n::hipMemcpyAtoD | n::hipMemcpyDtoA | n::hipMemcpyAtoA | n::hipMemcpy2DArrayToArray => {
            (None, None, kind::DEVICE_TO_DEVICE)
        }
        n::hipMemcpyParam2D | n::hipMemcpyParam2DAsync | n::hipDrvMemcpy2DUnaligned => {
            let pointer =
                begun.operation.with_role(Role::Copy2d)?.value(arguments) as *const [u8; 128];
            if pointer.is_null() {
                return None;
            }
            // SAFETY: the call reads the struct.
            let p = unsafe { &*pointer };
            // srcXInBytes srcY srcMemoryType srcHost srcDevice srcArray srcPitch; the same of the destination; width, height.
            let side = |first: usize, kind: u64, base: usize| {
                let pitch = match word(p, first + 6) {
                    0 => word(p, 14),
                    pitch => pitch,
                };
                let before = word(p, first) + word(p, first + 1) * pitch;
                (word(p, first + 2) & 0xffff_ffff == kind).then_some(Range {
                    address: word(p, first + base) + before,
                    pitch,
                    width: word(p, 14),
                    rows: word(p, 15),
                    slice_rows: word(p, 15),
                    slices: 1,
                })
            };
            // The type of memory, and the place of the address.
            let unified = |first| side(first, UNIFIED, 4);
            let found = |first| unified(first).and_then(|range| host(range.address, range));
            // Unified memory is the host's only if the address is known as such.
            let on_host = |first| side(first, ON_HOST, 3).or_else(|| found(first));
            let destination = on_host(7);
            let written = side(7, ON_DEVICE, 4).or_else(|| unified(7));
            return Some(Copy {
                source: on_host(0),
                destination,
                // A side is either read by the host as a result, or written on the device: never both.
                written: written.filter(|_| destination.is_none()),
                blocks,
            });
        }
        n::hipDrvMemcpy3D | n::hipDrvMemcpy3DAsync => {
            let pointer = begun
                .operation
                .with_role(Role::DriverCopy3d)?
                .value(arguments) as *const [u8; 184];
            if pointer.is_null() {
                return None;
            }
            // SAFETY: the call reads the struct.
            let side = driver_box(unsafe { &*pointer });
            let unified = |first| side(first, UNIFIED);
            let found = |first| unified(first).and_then(|range| host(range.address, range));
            let on_host = |first| side(first, ON_HOST).or_else(|| found(first));
            let destination = on_host(10);
            let written = side(10, ON_DEVICE).or_else(|| unified(10));
            return Some(Copy {
                source: on_host(0),
                destination,
                written: written.filter(|_| destination.is_none()),
                blocks,
            });
        }
        n::hipMemcpy3D | n::hipMemcpy3D_spt | n::hipMemcpy3DAsync | n::hipMemcpy3DAsync_spt => {
            let pointer = begun.operation.with_role(Role::Copy3d)?.value(arguments);
            let pointer = pointer as *const [u8; 160];
            // SAFETY: the call reads the struct, unless it is null.
            box_of(unsafe { pointer.as_ref()? })
        }
        _ => return None,
    };
    let (from_host, to_host) = match kind {
        kind::HOST_TO_HOST => (true, true),
        kind::HOST_TO_DEVICE => (true, false),
        kind::DEVICE_TO_HOST => (false, true),
        kind::DEVICE_TO_DEVICE => (false, false),
        // The addresses decide.
        _ => {
            // `hipMemcpyDefault`: the runtime decides by the addresses, and so does the capture.
            let source = source.and_then(|range| host(range.address, range));
            let to_host = destination.and_then(|range| host(range.address, range));
            return Some(Copy {
                source,
                destination: to_host,
                written: destination.filter(|_| to_host.is_none()),
                blocks,
            });
        }
    };
    Some(Copy {
        source: source.filter(|_| from_host),
        destination: destination.filter(|_| to_host),
        written: destination.filter(|range| !to_host && range.address != 0),
        blocks,
    })
}

/// Value of `hipMemoryType` for host memory.
const ON_HOST: u64 = 1;
const ON_DEVICE: u64 = 2;
const UNIFIED: u64 = 11;

/// The sides of a copy that `HIP_MEMCPY3D` describes, by the first word of a side and the type of memory; none where it is of
/// another type.
fn driver_box(p: &[u8; 184]) -> impl Fn(usize, u64) -> Option<Range> {
    // x, y, z, level, type, host, device, array, pitch, rows of a slice; the same of the destination; extent (3).
    let (width, rows, slices) = (word(p, 20), word(p, 21), word(p, 22));
    move |first: usize, kind: u64| {
        let or = |given: u64, otherwise: u64| if given == 0 { otherwise } else { given };
        let pitch = or(word(p, first + 8), width);
        let slice_rows = or(word(p, first + 9), rows);
        let rows_before = word(p, first + 2)
            .wrapping_mul(slice_rows)
            .wrapping_add(word(p, first + 1));
        let before = rows_before.wrapping_mul(pitch).wrapping_add(word(p, first));
        let base = first + if kind == ON_HOST { 5 } else { 6 };
        (word(p, first + 4) & 0xffff_ffff == kind).then(|| Range {
            address: word(p, base).wrapping_add(before),
            pitch,
            width,
            rows,
            slice_rows,
            slices,
        })
    }
}

/// Source, destination and kind of a copy that `hipMemcpy3DParms` describes; a side that is an array is none.
fn box_of(p: &[u8; 160]) -> (Option<Range>, Option<Range>, u64) {
    // srcArray, srcPos (3), srcPtr (address, pitch, xsize, ysize); the same of the destination; extent (3), kind.
    let arrays = [word(p, 0), word(p, 8)];
    // With an array the width counts its elements.
    let element = match arrays {
        [0, 0] => 1,
        _ => STATE
            .with(|state| state.images.element_bytes(arrays))
            .unwrap_or(1),
    };
    let side = |first: usize| {
        let (pitch, height) = (word(p, first + 5), word(p, first + 7));
        let rows_before = word(p, first + 3) * height + word(p, first + 2);
        (word(p, first + 4) != 0).then(|| Range {
            address: word(p, first + 4) + word(p, first + 1) + rows_before * pitch,
            pitch,
            width: word(p, 16) * element,
            rows: word(p, 17),
            slice_rows: height,
            slices: word(p, 18),
        })
    };
    (side(0), side(8), word(p, 19) & 0xffff_ffff)
}

/// Source and destination of the copy of a graph node; both none where it is no copy.
pub(super) fn of_node(begun: &Begun, arguments: &[u8]) -> (Option<Range>, Option<Range>) {
    let taken = |position: usize| {
        let items = rpd_spool::capture::Items(begun.items.bytes());
        let mut found = items.filter(|item| item.kind == item::IN);
        found.find(|item| usize::from(item.argument) == position)
    };
    for (position, argument) in begun.operation.arguments().iter().enumerate() {
        let Some(bytes) = taken(position).map(|item| item.payload) else {
            continue;
        };
        let bytes = match argument.role {
            Role::Copy3d => bytes,
            Role::AnyNode if type_of_node(bytes) == node_type::COPY => {
                bytes.get(any_node::COPY..).unwrap_or_default()
            }
            Role::AnyNode => return (None, None),
            Role::DriverCopy3d => {
                let Ok(parameters) = bytes.try_into() else {
                    return (None, None);
                };
                let side = driver_box(parameters);
                let on_host = |first| side(first, ON_HOST).or_else(|| side(first, UNIFIED));
                return (on_host(0), on_host(10));
            }
            _ => continue,
        };
        return match bytes.first_chunk() {
            Some(parameters) => {
                let (source, destination, _) = box_of(parameters);
                (source, destination)
            }
            None => (None, None),
        };
    }
    let named = |name: &str| begun.argument(arguments, name);
    // `src` or `dst` is missing where that side of the copy is a variable.
    let flat = |address: u64| (address != 0).then(|| Range::flat(address, named("count")));
    (flat(named("src")), flat(named("dst")))
}

/// The memory that a fill writes, or a copy within the device to an address.
fn filled(begun: &Begun, arguments: &[u8]) -> Option<Range> {
    let named = |name: &str| begun.argument(arguments, name);
    let name = begun.operation.name();
    if let Some(pitched) = begun.operation.with_role(Role::Pitched) {
        // Address, pitch, bytes of a row, rows; the extent counts its bytes and rows.
        let field = |from: &Argument, index: usize| {
            let bytes = arguments.get(usize::from(from.offset)..);
            bytes.map_or(0, |bytes| word(bytes, index))
        };
        let extent = begun.operation.argument("extent")?;
        return Some(Range {
            address: field(pitched, 0),
            pitch: field(pitched, 1),
            width: field(extent, 0),
            rows: field(extent, 1),
            slice_rows: field(pitched, 3),
            slices: field(extent, 2),
        });
    }
    let unit = match name {
        _ if name.contains("D16") => 2,
        _ if name.contains("D32") => 4,
        _ => 1,
    };
    // A function has one of these names; the others are 0.
    let size = named("sizeBytes") | named("count") | named("ByteCount");
    let address = named("dst") | named("dest") | named("dstDevice");
    let is_address = begun.operation.with_role(Role::Address).is_some();
    let rows = named("height");
    let range = match rows {
        0 => Range::flat(address, size.saturating_mul(unit)),
        _ => Range {
            address,
            pitch: named("pitch") | named("dpitch"),
            width: named("width"),
            rows,
            slice_rows: rows,
            slices: 1,
        },
    };
    (is_address && address != 0 && range.bytes() > 0).then_some(range)
}

/// The host-visible memory that a fill writes, or that a copy writes on the device so that the host does not see it
/// at once.
fn written_by_device(begun: &Begun, arguments: &[u8], copy: Option<&Copy>) -> Option<Range> {
    if copy.is_some_and(|copy| copy.destination.is_some()) {
        return None;
    }
    // What a copy between addresses of the device writes has no place of its own in `Copy`.
    let written = copy.and_then(|copy| copy.written);
    let written = written.or_else(|| filled(begun, arguments))?;
    let is_visible = STATE.with(|state| state.is_visible(written.address));
    Some(written).filter(|_| is_visible == Some(true))
}

/// Takes the host data that the copy reads.
///
/// Looks for pointers to host-visible memory in what a copy to memory of the device reads.
///
/// # Safety
/// As for [`super::begin`].
pub(super) unsafe fn note_pointers(begun: &Begun, arguments: &[u8]) {
    // SAFETY: by the contract of this function.
    let copy = unsafe { copy(begun, arguments) };
    if let Some(copy) = copy
        && let Some(source) = copy.source.filter(|_| copy.destination.is_none())
    {
        behind::copied(&source, copy.written.map_or(0, |written| written.address));
    }
}

/// # Safety
/// As for [`super::begin`].
pub(super) unsafe fn begin(begun: &mut Begun, arguments: &[u8]) {
    let stream = begun.stream(arguments);
    let graph = STATE.with(|state| state.graphs.capturing(stream)).flatten();
    // SAFETY: by the contract of this function.
    let copy = unsafe { copy(begun, arguments) };
    let written = written_by_device(begun, arguments, copy.as_ref());
    let Some(copy) = copy else {
        if graph.is_some() {
            begun.flags |= call_flag::IN_STREAM_CAPTURE;
        }
        if let Some(written) = written {
            STATE.with(|state| match graph {
                Some(graph) => {
                    let uses = HostUse::writing(Some(written));
                    state.graphs.captured(graph, uses);
                }
                None => state.copy_writes(&written),
            });
        }
        return;
    };
    // The host may have written managed memory that the copy reads.
    let from = begun.argument(arguments, "src");
    let managed = STATE.with(|state| state.changed(from));
    for range in managed.unwrap_or_default() {
        begun.items.add_data(&range, data_use::UPDATE, 0, false);
    }
    if let Some(graph) = graph {
        begun.flags |= call_flag::IN_STREAM_CAPTURE;
        let uses = HostUse {
            source: copy.source,
            destination: copy.destination,
            ..HostUse::writing(written)
        };
        STATE.with(|state| state.graphs.captured(graph, uses));
    } else {
        if let Some(destination) = copy.destination {
            // Changes that the host has made so far must be taken before the device overwrites them.
            pinned::device_writes(begun, |_| vec![destination]);
            STATE.with(|state| state.copy_writes(&destination));
        }
        if let Some(written) = written {
            STATE.with(|state| state.copy_writes(&written));
        }
        if let Some(source) = copy.source.filter(|_| copy.destination.is_none()) {
            let to = copy.written.map_or(0, |written| written.address);
            behind::copied(&source, to);
        }
    }
    if let Some(source) = copy.source
        && source.bytes() > 0
        && !begun.items.add_data(&source, data_use::SOURCE, 0, false)
    {
        begun.missing("the data of the copy could not be taken");
    }
}

/// Takes the host data that the copy wrote, or notes the range until the copy is done.
pub(super) fn end(begun: &mut Begun, arguments: &[u8]) {
    let stream = begun.stream(arguments);
    if begun.flags & call_flag::IN_STREAM_CAPTURE != 0 {
        return;
    }
    // SAFETY: the call has read what its pointers lead to, and returned.
    let copy = unsafe { copy(begun, arguments) };
    let written = written_by_device(begun, arguments, copy.as_ref());
    STATE.with(|state| {
        // Counted as work of the stream even where no host memory is concerned: later waits cover it.
        state.order.enqueue(stream);
        if let Some(written) = written {
            state.order.pend_write(stream, written);
        }
    });
    let Some(copy) = copy else {
        return;
    };
    // A blocking copy has waited for all work before it in its stream.
    if copy.blocks && (copy.source.is_some() || copy.destination.is_some()) {
        order::take_results(begun);
    }
    if let Some(source) = copy.source.filter(|_| !copy.blocks) {
        pinned::begin(begun, arguments, stream, &source, copy.written);
    }
    let Some(destination) = copy.destination.filter(|range| range.bytes() > 0) else {
        return;
    };
    if copy.blocks {
        begun
            .items
            .add_data(&destination, data_use::OUTPUT, 0, false);
    } else {
        STATE.with(|state| state.order.pend(stream, begun.entry, destination));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_without_gaps_between_rows_is_one_piece() {
        let mut range = Range {
            address: 1000,
            pitch: 8,
            width: 8,
            rows: 4,
            slice_rows: 4,
            slices: 2,
        };
        assert!(range.pieces().eq([(1000, 64)]));
        assert_eq!(range.bytes(), 64);
        range.pitch = 16;
        range.rows = 2;
        assert!(
            range
                .pieces()
                .eq([(1000, 8), (1016, 8), (1064, 8), (1080, 8)])
        );
        assert!(Range::flat(5, 7).pieces().eq([(5, 7)]));
        assert_eq!(Range::flat(5, 0).pieces().count(), 0);
        // Two slices of four rows, of which two are part of it.
        assert_eq!(range.span(), 5 * 16 + 8);
        assert!(range.overlaps(&Range::flat(1087, 1)) && !range.overlaps(&Range::flat(1088, 9)));
    }

    #[test]
    fn range_without_others_is_cut_into_pieces() {
        let whole = Range::flat(100, 100);
        let others = [(90, 20), (150, 10), (155, 10), (300, 5)];
        let others = others.map(|(address, size)| Range::flat(address, size));
        assert_eq!(
            whole.without(&others),
            [Range::flat(110, 40), Range::flat(165, 35)]
        );
        assert!(whole.without(&[Range::flat(0, 1000)]).is_empty());
    }
}
