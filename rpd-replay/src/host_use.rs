//! Work under way that may access memory of the host.
//!
//! A replay puts data into memory of the host where the program did so. The program knew that the device was done with that memory,
//! also in ways that no capture shows: it may have looked at a flag that a kernel stores. Before a replay writes, it therefore
//! waits for the work that may access the same memory, and for no other.
//!
//! All addresses here are those of the capture.

use std::collections::{BTreeMap, HashMap, HashSet};

use rpd_capture::Call;
use rpd_spool::capture::{Group, Operation, call_flag, data_use, item, memory_kind, number as n};

use crate::error::ReplayError;
use crate::hip::{SUCCESS, word_of};
use crate::host;
use crate::player::Player;

/// Number of uses under way after which complete ones are looked for.
const MANY: usize = 64;
/// Value `hipEventDisableTiming`.
const WITHOUT_TIME: u64 = 2;

/// A range of addresses: the first, and the one after the last.
type Place = (u64, u64);

fn overlap(one: &Place, other: &Place) -> bool {
    one.0 < other.1 && other.0 < one.1
}

/// Work that may access memory of the host.
struct Use {
    places: Vec<Place>,
    /// Whether the work may access all memory that the device reaches.
    all_visible: bool,
    device: i32,
    /// Event that is recorded behind the work in its stream.
    event: u64,
}

/// The memory of the host that the device reaches, and the work that may access memory of the host.
#[derive(Default)]
pub(crate) struct HostUses {
    /// Pinned, registered and managed memory: bytes by address.
    visible: BTreeMap<u64, u64>,
    /// Other addresses of host-visible memory that the device has: size in bytes and the host's address.
    aliases: BTreeMap<u64, (u64, u64)>,
    /// Whether host-visible memory is known to be reached through pointers in memory.
    through_memory: bool,
    /// Memory of the host that the arguments of the current call name.
    named: Vec<Place>,
    /// Memory of the host that nodes of graphs name, and calls that became nodes.
    of_graphs: Vec<Place>,
    under_way: Vec<Use>,
    /// Number of uses under way at which it is looked for complete ones.
    look_at: usize,
    /// Events that are not in use, by device.
    events: HashMap<i32, Vec<u64>>,
    /// Streams that wait for a value which the host may have to write.
    held_streams: HashSet<u64>,
}

impl HostUses {
    /// Notes that memory that the device reaches was allocated or registered.
    pub(crate) fn allocated(&mut self, kind: u32, base: u64, size: u64) {
        if memory_kind::is_host_visible(kind) {
            self.visible.insert(base, size);
        }
    }

    /// Notes that the memory at `base` was freed.
    pub(crate) fn freed(&mut self, base: u64) {
        self.visible.remove(&base);
        self.aliases.retain(|_, (_, host)| *host != base);
    }

    /// Notes that the device has `size` bytes of the memory at `host` at another address.
    pub(crate) fn aliased(&mut self, device: u64, size: u64, host: u64) {
        self.aliases.insert(device, (size, host));
    }

    /// The memory that the device reaches and in which an address lies, and the host's address for it.
    fn visible_at(&self, address: u64) -> Option<(Place, u64)> {
        let alias = self.aliases.range(..=address).next_back();
        let address = match alias {
            Some((base, (size, host))) if address - base < *size => host + (address - base),
            _ => address,
        };
        let (base, size) = self.visible.range(..=address).next_back()?;
        (address - base < *size).then(|| ((*base, base.saturating_add(*size)), address))
    }

    /// An argument of the current call names `size` bytes. `of_runtime`: it is memory that the runtime gave to the program.
    pub(crate) fn name(&mut self, address: u64, size: u64, of_runtime: bool) {
        let address = match (self.visible_at(address), of_runtime) {
            (Some((_, address)), _) => address,
            (None, true) => return,
            (None, false) => address,
        };
        self.named.push((address, address.saturating_add(size)));
    }

    /// Content of memory: if there are pointers to memory of the host in it, kernels may reach that from anywhere.
    pub(crate) fn look_for_pointers(&mut self, bytes: &[u8]) {
        if self.through_memory || self.visible.is_empty() {
            return;
        }
        let words = bytes.as_chunks::<8>().0.iter();
        self.through_memory = words
            .map(|word| u64::from_le_bytes(*word))
            .any(|word| self.visible_at(word).is_some());
    }

    /// Whether work that may access a range can be under way.
    fn is_used(&self, one: &Use, place: &Place) -> bool {
        let is_visible = || {
            self.visible
                .iter()
                .any(|(base, size)| overlap(&(*base, base.saturating_add(*size)), place))
        };
        one.places.iter().any(|used| overlap(used, place)) || one.all_visible && is_visible()
    }

    fn complete(&mut self, one: Use) {
        self.events.entry(one.device).or_default().push(one.event);
    }

    /// Notes that all work of a device is complete.
    pub(crate) fn device_is_idle(&mut self, device: i32) {
        let done: Vec<Use> = self
            .under_way
            .extract_if(.., |one| one.device == device)
            .collect();
        done.into_iter().for_each(|one| self.complete(one));
        self.held_streams.clear();
    }

    /// Notes that a stream does not wait for a value any more.
    pub(crate) fn stream_is_idle(&mut self, stream: u64) {
        self.held_streams.remove(&stream);
    }
}

impl Player {
    /// Waits for work under way that may access `size` bytes of the host, which are about to be written.
    pub(crate) fn wait_for_uses(&mut self, address: u64, size: u64) -> Result<(), ReplayError> {
        let place = (address, address.saturating_add(size));
        loop {
            let uses = &self.host_uses;
            let mut under_way = uses.under_way.iter();
            let Some(index) = under_way.position(|one| uses.is_used(one, &place)) else {
                return Ok(());
            };
            let one = self.host_uses.under_way.remove(index);
            self.hip.check("hipEventSynchronize", &[one.event])?;
            self.host_uses.complete(one);
        }
    }

    /// A call was made: notes the memory of the host that the work which it added may access.
    pub(crate) fn note_use(
        &mut self,
        call: &Call,
        operation: &'static Operation,
    ) -> Result<(), ReplayError> {
        let named = std::mem::take(&mut self.host_uses.named);
        let is_captured = call.flags & call_flag::IN_STREAM_CAPTURE != 0;
        match operation.group {
            Group::Transfer | Group::Launch if !is_captured => {}
            Group::Transfer | Group::Launch | Group::Graph => {
                self.host_uses.of_graphs.extend(named);
                return Ok(());
            }
            Group::Order => {
                self.note_order(call, operation);
                return Ok(());
            }
            _ => return Ok(()),
        }
        // It may be complete only after the host has written a value, for which it cannot be waited then.
        if !self.host_uses.held_streams.is_empty() {
            return Ok(());
        }
        let (places, all_visible, stream) = match operation.group {
            Group::Launch => {
                let (places, all_visible) = self.places_of_launch(call, operation);
                (places, all_visible, self.launch_stream(call, operation)?)
            }
            _ if is_complete(call, operation) => return Ok(()),
            _ => (named, false, self.stream(call, operation)),
        };
        if places.is_empty() && !all_visible {
            return Ok(());
        }
        self.host_is_used(places, all_visible, stream)
    }

    /// The memory of the host that a launch may access, and whether that is all that the device reaches.
    fn places_of_launch(&self, call: &Call, operation: &Operation) -> (Vec<Place>, bool) {
        let uses = &self.host_uses;
        let mut places: Vec<Place> = call
            .data()
            .filter(|data| matches!(data.purpose, data_use::SOURCE | data_use::UPDATE))
            .map(|data| {
                let end = data.address.saturating_add(host::span(&data));
                (data.address, end)
            })
            .collect();
        if operation.name().contains("GraphLaunch") {
            places.extend(&uses.of_graphs);
            return (places, !uses.visible.is_empty());
        }
        let packed = call
            .items()
            .filter(|item| item.kind == item::KERNEL_ARGUMENTS);
        let words = packed.flat_map(|item| item.payload.as_chunks::<8>().0);
        let words = words.map(|word| u64::from_le_bytes(*word));
        let memory = |word| self.images.get(&word).map_or(word, |image| image.memory);
        let managed = self.managed.iter().map(|(_, base)| *base);
        let reached = words.map(memory).chain(managed);
        places.extend(reached.filter_map(|word| Some(uses.visible_at(word)?.0)));
        let is_assisted = |how: &String| how == "assisted";
        let options = &self.capture.manifest().options;
        let finds_more = uses.through_memory || !options.get("memory").is_none_or(is_assisted);
        (places, finds_more && !uses.visible.is_empty())
    }

    /// Work was added to a stream that may access this memory.
    fn host_is_used(
        &mut self,
        places: Vec<Place>,
        all_visible: bool,
        stream: u64,
    ) -> Result<(), ReplayError> {
        let device = self.device;
        let free = self.host_uses.events.get_mut(&device).and_then(Vec::pop);
        let mut event = free.unwrap_or_default();
        if event == 0 {
            let words = [word_of(&mut event), WITHOUT_TIME];
            self.hip.check("hipEventCreateWithFlags", &words)?;
        }
        if self.hip.call("hipEventRecord", &[event, stream])? != SUCCESS {
            // The stream belongs to another device than the current one, whose events cannot be recorded there.
            let free = self.host_uses.events.entry(device).or_default();
            free.push(event);
            return self.hip.check("hipStreamSynchronize", &[stream]);
        }
        self.host_uses.under_way.push(Use {
            places,
            all_visible,
            device,
            event,
        });
        if self.host_uses.under_way.len() >= self.host_uses.look_at.max(MANY) {
            self.forget_complete()?;
        }
        Ok(())
    }

    /// Forgets work that is complete: most programs wait for it by calls that the replay makes as well.
    fn forget_complete(&mut self) -> Result<(), ReplayError> {
        for one in std::mem::take(&mut self.host_uses.under_way) {
            match self.hip.call("hipEventQuery", &[one.event])? {
                SUCCESS => self.host_uses.complete(one),
                _ => self.host_uses.under_way.push(one),
            }
        }
        self.host_uses.look_at = 2 * self.host_uses.under_way.len();
        Ok(())
    }

    /// Follows which streams wait for values.
    fn note_order(&mut self, call: &Call, operation: &'static Operation) {
        match call.api {
            n::hipStreamWaitValue32 | n::hipStreamWaitValue64 | n::hipStreamBatchMemOp => {
                let stream = self.stream(call, operation);
                self.host_uses.held_streams.insert(stream);
            }
            n::hipStreamSynchronize
            | n::hipStreamSynchronize_spt
            | n::hipStreamQuery
            | n::hipStreamQuery_spt => {
                let stream = self.stream(call, operation);
                self.host_uses.stream_is_idle(stream);
            }
            n::hipDeviceSynchronize | n::hipCtxSynchronize => {
                self.host_uses.device_is_idle(self.device);
            }
            _ => {}
        }
    }
}

/// Whether the work of a call that copies or fills is complete when it returns.
fn is_complete(call: &Call, operation: &Operation) -> bool {
    let name = operation.name();
    let mut data = call.data();
    name.starts_with("hipMemcpy")
        && !name.contains("Async")
        && data.any(|data| matches!(data.purpose, data_use::SOURCE | data_use::OUTPUT))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(places: &[Place], all_visible: bool) -> Use {
        Use {
            places: places.to_vec(),
            all_visible,
            device: 0,
            event: 1,
        }
    }

    #[test]
    fn host_use_overlaps_ranges_of_work_under_way() {
        let mut uses = HostUses::default();
        uses.allocated(memory_kind::HOST, 0x1000, 0x100);
        uses.allocated(memory_kind::DEVICE, 0x9000, 0x100);
        let copy = used(&[(0x1000, 0x1080)], false);
        assert!(uses.is_used(&copy, &(0x107f, 0x1081)));
        assert!(!uses.is_used(&copy, &(0x1080, 0x1100)));
        let launch = used(&[], true);
        assert!(uses.is_used(&launch, &(0x10ff, 0x1200)));
        assert!(!uses.is_used(&launch, &(0x9000, 0x9100)));
    }

    #[test]
    fn host_use_takes_names_of_host_memory_only() {
        let mut uses = HostUses::default();
        uses.allocated(memory_kind::HOST, 0x1000, 0x100);
        uses.aliased(0x7000, 0x100, 0x1000);
        uses.name(0x1010, 8, true);
        uses.name(0x7020, 8, true);
        // Memory of the device, and memory that the runtime does not know.
        uses.name(0x9000, 8, true);
        uses.name(0x5000, 8, false);
        assert_eq!(
            uses.named,
            [(0x1010, 0x1018), (0x1020, 0x1028), (0x5000, 0x5008)]
        );
    }

    #[test]
    fn host_use_finds_pointers_in_data() {
        let mut uses = HostUses::default();
        uses.look_for_pointers(&0x1010u64.to_le_bytes());
        uses.allocated(memory_kind::MANAGED, 0x1000, 0x100);
        uses.look_for_pointers(&0x1100u64.to_le_bytes());
        assert!(!uses.through_memory);
        uses.look_for_pointers(&0x10ffu64.to_le_bytes());
        assert!(uses.through_memory);
    }
}
