//! The host memory that a copy reads or writes.

use rpd_spool::capture::{Role, call_flag, data_use, number};

use super::Begun;
use super::graphs::HostUse;
use super::state::STATE;
use super::{order, pinned, runtime};

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

    /// Bytes from the first to behind the last.
    pub(super) fn span(&self) -> u64 {
        let rows = self.slices.saturating_sub(1) * self.slice_rows + self.rows.saturating_sub(1);
        rows * self.pitch + self.width
    }

    /// Whether some bytes from the first to the last are those of the other as well.
    pub(super) fn overlaps(&self, other: &Range) -> bool {
        self.address < other.address + other.span() && other.address < self.address + self.span()
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

/// The memory that a copy reads and writes, as far as the program's pointers say.
struct Copy {
    source: Option<Range>,
    destination: Option<Range>,
    /// Memory of the device that it writes.
    written: Option<Range>,
    /// The call returns when the copy is done.
    blocks: bool,
}

/// `hipMemcpyKind`.
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
    let host = |address: u64, range: Range| {
        STATE
            .with(|state| state.is_host(address))
            .unwrap_or(false)
            .then_some(range)
    };
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
            let variable = match blocks {
                true => 0,
                false => runtime::symbol_address(symbol).map_or(0, |at| at + named("offset")),
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
            // `hipMemoryType`, and the place of the address.
            let on_host = |first| side(first, 1, 3);
            let on_device = |first| side(first, 2, 4);
            return Some(Copy {
                source: on_host(0),
                destination: on_host(7),
                written: on_device(7),
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
            let p = unsafe { &*pointer };
            // x, y, z, level, type, host, device, array, pitch, rows of a slice; the same of the destination; extent (3).
            let (width, rows, slices) = (word(p, 20), word(p, 21), word(p, 22));
            let side = |first: usize, kind: u64, base: usize| {
                let or = |given: u64, otherwise: u64| if given == 0 { otherwise } else { given };
                let pitch = or(word(p, first + 8), width);
                let slice_rows = or(word(p, first + 9), rows);
                let rows_before = word(p, first + 2)
                    .wrapping_mul(slice_rows)
                    .wrapping_add(word(p, first + 1));
                let before = rows_before.wrapping_mul(pitch).wrapping_add(word(p, first));
                (word(p, first + 4) & 0xffff_ffff == kind).then(|| Range {
                    address: word(p, first + base).wrapping_add(before),
                    pitch,
                    width,
                    rows,
                    slice_rows,
                    slices,
                })
            };
            // `hipMemoryType`, and the place of the address.
            return Some(Copy {
                source: side(0, 1, 5),
                destination: side(10, 1, 5),
                written: side(10, 2, 6),
                blocks,
            });
        }
        n::hipMemcpy3D | n::hipMemcpy3D_spt | n::hipMemcpy3DAsync | n::hipMemcpy3DAsync_spt => {
            // SAFETY: by the contract of this function.
            let (source, destination, kind) = unsafe { box_of(begun, arguments)? };
            (source, destination, kind)
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

/// Source, destination and kind of a copy that `hipMemcpy3DParms` describes; a side that is an array is none.
///
/// # Safety
/// As for [`super::begin`].
unsafe fn box_of(begun: &Begun, arguments: &[u8]) -> Option<(Option<Range>, Option<Range>, u64)> {
    let pointer = begun.operation.with_role(Role::Copy3d)?.value(arguments) as *const [u8; 160];
    if pointer.is_null() {
        return None;
    }
    // SAFETY: the call reads the struct.
    let p = unsafe { &*pointer };
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
    Some((side(0), side(8), word(p, 19) & 0xffff_ffff))
}

/// Source and destination of the copy of a graph node.
///
/// # Safety
/// As for [`super::begin`].
pub(super) unsafe fn of_node(begun: &Begun, arguments: &[u8]) -> (Option<Range>, Option<Range>) {
    if begun.operation.with_role(Role::Copy3d).is_some() {
        // SAFETY: by the contract of this function.
        let found = unsafe { box_of(begun, arguments) };
        return found.map_or((None, None), |(source, destination, _)| {
            (source, destination)
        });
    }
    let named = |name: &str| begun.argument(arguments, name);
    // One of them is missing where the other side is a variable.
    let flat = |address: u64| (address != 0).then(|| Range::flat(address, named("count")));
    (flat(named("src")), flat(named("dst")))
}

/// Takes the host data that the copy reads.
///
/// # Safety
/// As for [`super::begin`].
pub(super) unsafe fn begin(begun: &mut Begun, arguments: &[u8]) {
    // SAFETY: by the contract of this function.
    let Some(copy) = (unsafe { copy(begun, arguments) }) else {
        return;
    };
    // The host may have written managed memory that the copy reads.
    let from = begun.argument(arguments, "src");
    let managed = STATE.with(|state| state.changed(from));
    for range in managed.unwrap_or_default() {
        begun.items.add_data(&range, data_use::UPDATE, 0, false);
    }
    let stream = begun.stream(arguments);
    let graph = STATE.with(|state| state.graphs.capturing(stream)).flatten();
    if let Some(graph) = graph {
        begun.flags |= call_flag::IN_STREAM_CAPTURE;
        let uses = HostUse {
            source: copy.source,
            destination: copy.destination,
            ..HostUse::default()
        };
        STATE.with(|state| state.graphs.captured(graph, uses));
    } else if let Some(destination) = copy.destination {
        pinned::device_writes(begun, |_| vec![destination]);
        STATE.with(|state| state.copy_writes(&destination));
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
    STATE.with(|state| state.order.enqueue(stream));
    // SAFETY: the call has read what its pointers lead to, and returned.
    let Some(copy) = (unsafe { copy(begun, arguments) }) else {
        return;
    };
    if copy.blocks && (copy.source.is_some() || copy.destination.is_some()) {
        order::settle(begun);
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
    fn rows_without_gaps_are_one_piece() {
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
}
