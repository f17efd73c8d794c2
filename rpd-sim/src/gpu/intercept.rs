//! Packets that pass through functions of the program before a processor takes them.
//!
//! The program writes to a queue in front; ringing its doorbell passes each packet to the handler registered last,
//! which writes packets of its own choice to the handler registered before, and so on, until they reach the ring
//! of the queue behind. Packets that a handler writes together are put there together, or wait until there is room for all.

use core::ffi::c_void;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError, RwLock};

use super::aql::{BarrierPacket, HEADER_BARRIER, PACKET_BYTES, packet_type, signal_kind};
use super::handler::Work;
use super::machine::machine;
use super::queue::Queue;
use super::signal::{Condition, Signal};

/// Function that passes packets on to the next handler; its parameters are the packets and their number.
pub(crate) type Writer = unsafe extern "C" fn(*const c_void, u64);
/// A handler of packets. Parameters: packets, their number, index of the program's first packet, the handler's data,
/// and the function that passes packets on.
pub(crate) type Handler = unsafe extern "C" fn(*const c_void, u64, u64, *mut c_void, Writer);

type Packet = [u64; PACKET_BYTES / 8];

/// Format byte of the vendor packet that is a function call in the stream of packets, and is executed on the host.
const AMD_FORMAT_INTERCEPT_MARKER: u8 = 0xFE;

/// The interception between two queues.
pub(crate) struct Intercept {
    front: &'static Queue,
    behind: &'static Queue,
    handlers: RwLock<Vec<(Handler, usize)>>,
    ended: AtomicBool,
    state: Mutex<InterceptState>,
    /// Signal that is decremented when the queue behind has room again.
    room: OnceLock<Signal>,
}

#[derive(Default)]
struct InterceptState {
    /// Index of the first packet that has not been passed to the handlers.
    next: u64,
    /// Packets that wait for room in the queue behind.
    overflow: Vec<Packet>,
    /// Whether a packet in the queue behind will signal that there is room.
    waiting: bool,
}

/// Place of this thread in a chain of handlers: the queue whose packets it passes on, and the next handler.
#[derive(Clone, Copy)]
struct Cursor {
    intercept: *const Intercept,
    index: u64,
    handler: usize,
    state: *mut InterceptState,
}

thread_local! {
    static CURSOR: Cell<Cursor> = const {
        Cell::new(Cursor {
            intercept: std::ptr::null(),
            index: 0,
            handler: 0,
            state: std::ptr::null_mut(),
        })
    };
}

impl Intercept {
    /// Sets up the interception between `front`, which programs write to, and `behind`, which a processor serves.
    pub(crate) fn new(front: &'static Queue, behind: &'static Queue) -> Self {
        Self {
            front,
            behind,
            handlers: RwLock::default(),
            ended: AtomicBool::new(false),
            state: Mutex::default(),
            room: OnceLock::new(),
        }
    }

    /// The queue that a processor serves.
    pub(crate) fn behind(&self) -> &'static Queue {
        self.behind
    }

    /// Registers a handler, which gets packets before all handlers that are registered already.
    pub(crate) fn register(&self, handler: Handler, data: usize) {
        let mut handlers = self
            .handlers
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        handlers.push((handler, data));
    }

    /// Ends the interception: the queue in front is destroyed, and the queue behind with it.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
        // Waits for threads that ring the doorbell now, unless it is this thread.
        if CURSOR.get().intercept.is_null() {
            drop(self.state.lock().unwrap_or_else(PoisonError::into_inner));
        }
        self.behind.destroy();
    }

    /// Rings the doorbell of the queue in front: all packets that were written there go to the handlers.
    pub(crate) fn ring(&self) {
        // Programs may ring the doorbell of a queue that another thread destroys.
        if self.ended.load(Ordering::SeqCst) {
            return;
        }
        if !CURSOR.get().intercept.is_null() {
            // A handler rings: its packets' turn comes when it has returned.
            machine().handler.submit(Work::Call {
                callback: ring_later,
                data: self.front.address() as usize,
            });
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // Packets that wait are older than all in the ring in front.
        let overflow = std::mem::take(&mut state.overflow);
        let submitted = self.submit(&mut state, &overflow);
        if submitted < overflow.len() {
            state.overflow = overflow[submitted..].to_vec();
            return;
        }
        let write = &self.front.amd.write_dispatch_id;
        let size = u64::from(self.front.amd.hsa_queue.size);
        // The program may have reserved more slots than the ring has.
        let end = write.load(Ordering::Acquire).min(state.next + size);
        while state.next < end && state.overflow.is_empty() {
            let index = state.next;
            let header = self.front.header(index);
            // Reserved and not written yet; the program rings again when it has written the packet.
            if header.load(Ordering::Acquire) & 0xff == packet_type::INVALID {
                break;
            }
            // SAFETY: the program has written the packet and leaves it alone until its header is invalid again.
            let packet: Packet = unsafe { self.front.packet(index) };
            let handlers = self
                .handlers
                .read()
                .unwrap_or_else(PoisonError::into_inner)
                .len();
            // The handlers' functions have no argument for the queue: it is found through the thread.
            CURSOR.set(Cursor {
                intercept: self,
                index,
                handler: handlers,
                state: &raw mut *state,
            });
            // SAFETY: one packet, which outlives the call; the cursor belongs to its queue.
            unsafe { write_on(packet.as_ptr().cast(), 1) };
            CURSOR.set(Cursor {
                intercept: std::ptr::null(),
                index: 0,
                handler: 0,
                state: std::ptr::null_mut(),
            });
            // The slot is free for the program only now: its handlers may have read the packet until then.
            header.store(packet_type::INVALID, Ordering::Release);
            state.next += 1;
            let read = &self.front.amd.read_dispatch_id;
            read.store(state.next, Ordering::Release);
        }
    }

    /// Puts packets into the ring behind; returns how many. Packets of which the whole ring could hold all are put
    /// there together or not at all.
    fn submit(&self, state: &mut InterceptState, packets: &[Packet]) -> usize {
        if packets.is_empty() {
            return 0;
        }
        let size = self.behind.amd.hsa_queue.size as usize;
        let write = self.behind.amd.write_dispatch_id.load(Ordering::Relaxed);
        let read = self.behind.amd.read_dispatch_id.load(Ordering::Acquire);
        let free = size - (write - read) as usize;
        // One slot for the packet that signals free space, unless such a packet is in the ring already.
        let reserved = usize::from(!state.waiting);
        let real = packets.iter().filter(|packet| !is_marker(packet)).count();
        let mut room = real;
        // Packets that can never be there together are passed on piece by piece.
        if real >= size {
            room = free - reserved;
        } else if free < real + reserved {
            room = 0;
        }
        let mut index = write;
        let mut first = None;
        let mut done = 0;
        for packet in packets {
            // Markers take no slot: they are calls in the order of the packets.
            if is_marker(packet) {
                // SAFETY: the program made this packet for this call.
                unsafe { self.call_marker(packet, index) };
            } else if room > 0 {
                // The first header is stored last, so that all become visible together.
                let header = (packet[0] & 0xffff) as u16;
                let start = self.behind.packet_address(index) as *mut Packet;
                let mut body = *packet;
                if first.is_none() {
                    body[0] = body[0] & !0xffff | u64::from(packet_type::INVALID);
                    first = Some((index, header));
                }
                // SAFETY: the slot is in the ring behind and free; only this function, with the state locked,
                // writes there.
                unsafe { start.write_volatile(body) };
                index += 1;
                room -= 1;
            } else {
                break;
            }
            done += 1;
        }
        // Readers see the new index no earlier than the packets, and the first header after all of them.
        if let Some((slot, header)) = first {
            self.behind
                .amd
                .write_dispatch_id
                .store(index, Ordering::Release);
            self.behind.header(slot).store(header, Ordering::Release);
        }
        if done < packets.len() && !state.waiting {
            index += u64::from(self.await_room(index));
            state.waiting = true;
        }
        if index > write {
            self.behind.ring(index as i64 - 1);
        }
        done
    }

    /// Writes a packet into the ring behind that signals once all packets before it are processed; false if no signal
    /// can be made.
    fn await_room(&self, index: u64) -> bool {
        let made = || machine().signals.create(0, signal_kind::USER, 0);
        let Some(&signal) = self.room.get().or_else(|| {
            let signal = made()?;
            Some(self.room.get_or_init(|| signal))
        }) else {
            return false;
        };
        signal.store(1);
        machine().handler.when(
            signal,
            Condition::Lt,
            1,
            room_made,
            self.front.address() as usize,
        );
        let packet = BarrierPacket {
            header: packet_type::INVALID,
            completion_signal: signal.handle(),
            ..BarrierPacket::default()
        };
        let start = self.behind.packet_address(index) as *mut BarrierPacket;
        // SAFETY: `submit` keeps this slot free.
        unsafe { start.write_volatile(packet) };
        self.behind
            .amd
            .write_dispatch_id
            .store(index + 1, Ordering::Release);
        let header = packet_type::BARRIER_AND | HEADER_BARRIER;
        self.behind.header(index).store(header, Ordering::Release);
        true
    }

    /// # Safety
    /// The packet is a marker of the program.
    unsafe fn call_marker(&self, packet: &Packet, index: u64) {
        type Callback = unsafe extern "C" fn(*const c_void, *mut c_void, u64);
        // SAFETY: in a marker packet the second word is the function's address.
        let callback = unsafe { core::mem::transmute::<u64, Option<Callback>>(packet[1]) };
        if let Some(callback) = callback {
            // SAFETY: the program's function for this call.
            unsafe {
                callback(
                    packet.as_ptr().cast(),
                    self.behind.hsa_queue().cast(),
                    index,
                )
            };
        }
    }
}

fn is_marker(packet: &Packet) -> bool {
    let format = (packet[0] >> 16 & 0xff) as u8;
    packet[0] & 0xff == u64::from(packet_type::VENDOR_SPECIFIC)
        && format == AMD_FORMAT_INTERCEPT_MARKER
}

/// Passes packets to the next handler of the queue that this thread works on, or into the ring behind.
unsafe extern "C" fn write_on(packets: *const c_void, count: u64) {
    let cursor = CURSOR.get();
    // SAFETY: the cursor is set while `ring` is on this thread's stack.
    let Some(intercept) = (unsafe { cursor.intercept.as_ref() }) else {
        eprintln!("rpd-sim: a packet writer was called outside of its handler");
        return;
    };
    if count == 0 {
        return;
    }
    // All handlers have had their turn: the packets go into the ring behind.
    let Some(index) = cursor.handler.checked_sub(1) else {
        // SAFETY: the handler's packets are that many; `ring` holds the lock and does not touch the state meanwhile.
        let (packets, state) = unsafe {
            let packets: *const Packet = packets.cast();
            let packets: Vec<Packet> = (0..count as usize)
                .map(|index| packets.add(index).read_unaligned())
                .collect();
            (packets, &mut *cursor.state)
        };
        // Order is kept: behind what waits, everything waits.
        let submitted = if state.overflow.is_empty() {
            intercept.submit(state, &packets)
        } else {
            0
        };
        state.overflow.extend_from_slice(&packets[submitted..]);
        return;
    };
    // Not held during the call: a handler may register another one.
    let handler = {
        let handlers = intercept
            .handlers
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        handlers.get(index).copied()
    };
    let Some((handler, data)) = handler else {
        return;
    };
    CURSOR.set(Cursor {
        handler: index,
        ..cursor
    });
    // SAFETY: the program registered this function with this data.
    unsafe { handler(packets, count, cursor.index, data as *mut c_void, write_on) };
    CURSOR.set(cursor);
}

/// The queue in front with this address, if it still exists.
fn find(data: *mut c_void) -> Option<&'static Intercept> {
    machine().queue(data as u64)?.intercept()
}

unsafe extern "C" fn ring_later(data: *mut c_void) {
    if let Some(intercept) = find(data) {
        intercept.ring();
    }
}

unsafe extern "C" fn room_made(_value: i64, data: *mut c_void) -> bool {
    if let Some(intercept) = find(data) {
        let mut state = intercept
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        state.waiting = false;
        drop(state);
        intercept.ring();
    }
    false
}
