//! Signals: creation, all atomics in all orders, waits, groups, asynchronous handlers.
//!
//! Every change is sequentially consistent, which satisfies each of the weaker orders.

use core::ffi::c_void;
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::state::{lock, state};
use super::support::{agent, api, array, ensure, put};
use super::types::{SignalHandler, Status, status};
use crate::gpu::aql::signal_kind;
use crate::gpu::handler::{PlainCallback, Work};
use crate::gpu::machine::machine;
use crate::gpu::signal::{Condition, Signal, Term, wait_many};

fn signal(handle: u64) -> Result<Signal, Status> {
    Signal::from_handle(handle).ok_or(status::ERROR_INVALID_SIGNAL)
}

/// Prints a message about a bad handle, for functions that have no status to report it with.
#[cold]
fn invalid(function: &str, handle: u64) {
    eprintln!("rpd-sim: {function}: {handle:#x} is not a signal");
}

/// Waiting time of a hint in ticks of the system's clock, nanoseconds; `None` (forever) for the largest hint.
fn timeout(hint: u64) -> Option<Duration> {
    (hint != u64::MAX).then(|| Duration::from_nanos(hint))
}

unsafe fn create(value: i64, consumers: &[u64], result: *mut u64) -> Result<(), Status> {
    ensure(!result.is_null(), status::ERROR_INVALID_ARGUMENT)?;
    for (i, consumer) in consumers.iter().enumerate() {
        agent(*consumer)?;
        let again = consumers[..i].contains(consumer);
        ensure(!again, status::ERROR_INVALID_ARGUMENT)?;
    }
    let signal = machine()
        .signals
        .create(value, signal_kind::USER, 0)
        .ok_or(status::ERROR_OUT_OF_RESOURCES)?;
    // SAFETY: the program's pointer is writable.
    unsafe { put(result, signal.handle()) }
}

/// Creates a signal with an initial value; `consumers` are the agents that will wait for it, all when there are none.
pub(crate) unsafe extern "C" fn hsa_signal_create(
    initial_value: i64,
    num_consumers: u32,
    consumers: *const u64,
    result: *mut u64,
) -> Status {
    api(|| {
        let missing = num_consumers != 0 && consumers.is_null();
        ensure(!missing, status::ERROR_INVALID_ARGUMENT)?;
        // SAFETY: the program's array has the length that it passes.
        unsafe {
            create(
                initial_value,
                array(consumers, num_consumers as usize),
                result,
            )
        }
    })
}

/// Makes a signal with attributes; sharing it between processes is not possible here.
pub(crate) unsafe extern "C" fn hsa_amd_signal_create(
    initial_value: i64,
    num_consumers: u32,
    consumers: *const u64,
    attributes: u64,
    result: *mut u64,
) -> Status {
    api(|| {
        let missing = num_consumers != 0 && consumers.is_null();
        ensure(!missing, status::ERROR_INVALID_ARGUMENT)?;
        ensure(attributes & !3 == 0, status::ERROR_INVALID_ARGUMENT)?;
        ensure(attributes & 2 == 0, status::ERROR)?;
        // SAFETY: the program's array has the length that it passes.
        unsafe {
            create(
                initial_value,
                array(consumers, num_consumers as usize),
                result,
            )
        }
    })
}

/// Makes the handle of a signal invalid.
pub(crate) unsafe extern "C" fn hsa_signal_destroy(handle: u64) -> Status {
    api(|| {
        ensure(handle != 0, status::ERROR_INVALID_ARGUMENT)?;
        let signal = signal(handle)?;
        ensure(!signal.is_doorbell(), status::ERROR_INVALID_SIGNAL)?;
        ensure(
            machine().signals.destroy(signal),
            status::ERROR_INVALID_SIGNAL,
        )
    })
}

/// Writes the address of a signal's value.
pub(crate) unsafe extern "C" fn hsa_amd_signal_value_pointer(
    handle: u64,
    value_ptr: *mut *mut i64,
) -> Status {
    api(|| {
        ensure(!value_ptr.is_null(), status::ERROR_INVALID_ARGUMENT)?;
        let signal = signal(handle)?;
        ensure(!signal.is_doorbell(), status::ERROR_INVALID_ARGUMENT)?;
        // SAFETY: the program's pointer is writable.
        unsafe { put(value_ptr, signal.value_address()) }
    })
}

macro_rules! loads {
    ($($name:ident),*) => {$(
        #[doc = concat!("`", stringify!($name), "`: the value; zero for what is not a signal.")]
        pub(crate) unsafe extern "C" fn $name(handle: u64) -> i64 {
            match Signal::from_handle(handle) {
                Some(signal) => signal.load(),
                None => {
                    invalid(stringify!($name), handle);
                    0
                }
            }
        }
    )*};
}

macro_rules! changes {
    ($($name:ident = $method:ident;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`.")]
        pub(crate) unsafe extern "C" fn $name(handle: u64, value: i64) {
            match Signal::from_handle(handle) {
                Some(signal) => { $method(signal, value); }
                None => invalid(stringify!($name), handle),
            }
        }
    )*};
}

fn store(signal: Signal, value: i64) {
    signal.store(value);
}

fn silent_store(signal: Signal, value: i64) {
    signal.store_silently(value);
}

fn add(signal: Signal, value: i64) {
    signal.update(|old| old.fetch_add(value, Ordering::SeqCst));
}

fn subtract(signal: Signal, value: i64) {
    signal.update(|old| old.fetch_sub(value, Ordering::SeqCst));
}

fn and(signal: Signal, value: i64) {
    signal.update(|old| old.fetch_and(value, Ordering::SeqCst));
}

fn or(signal: Signal, value: i64) {
    signal.update(|old| old.fetch_or(value, Ordering::SeqCst));
}

fn xor(signal: Signal, value: i64) {
    signal.update(|old| old.fetch_xor(value, Ordering::SeqCst));
}

loads!(hsa_signal_load_relaxed, hsa_signal_load_scacquire);

changes! {
    hsa_signal_store_relaxed = store;
    hsa_signal_store_screlease = store;
    hsa_signal_silent_store_relaxed = silent_store;
    hsa_signal_silent_store_screlease = silent_store;
    hsa_signal_and_relaxed = and;
    hsa_signal_and_scacquire = and;
    hsa_signal_and_screlease = and;
    hsa_signal_and_scacq_screl = and;
    hsa_signal_or_relaxed = or;
    hsa_signal_or_scacquire = or;
    hsa_signal_or_screlease = or;
    hsa_signal_or_scacq_screl = or;
    hsa_signal_xor_relaxed = xor;
    hsa_signal_xor_scacquire = xor;
    hsa_signal_xor_screlease = xor;
    hsa_signal_xor_scacq_screl = xor;
    hsa_signal_add_relaxed = add;
    hsa_signal_add_scacquire = add;
    hsa_signal_add_screlease = add;
    hsa_signal_add_scacq_screl = add;
    hsa_signal_subtract_relaxed = subtract;
    hsa_signal_subtract_scacquire = subtract;
    hsa_signal_subtract_screlease = subtract;
    hsa_signal_subtract_scacq_screl = subtract;
}

macro_rules! exchanges {
    ($($name:ident),*) => {$(
        #[doc = concat!("`", stringify!($name), "`: the old value.")]
        pub(crate) unsafe extern "C" fn $name(handle: u64, value: i64) -> i64 {
            match Signal::from_handle(handle) {
                Some(signal) => signal.update(|old| old.swap(value, Ordering::SeqCst)),
                None => {
                    invalid(stringify!($name), handle);
                    0
                }
            }
        }
    )*};
}

exchanges!(
    hsa_signal_exchange_relaxed,
    hsa_signal_exchange_scacquire,
    hsa_signal_exchange_screlease,
    hsa_signal_exchange_scacq_screl
);

macro_rules! compare_and_swaps {
    ($($name:ident),*) => {$(
        #[doc = concat!("`", stringify!($name), "`: the value found.")]
        pub(crate) unsafe extern "C" fn $name(handle: u64, expected: i64, value: i64) -> i64 {
            match Signal::from_handle(handle) {
                Some(signal) => signal.update(|old| {
                    old.compare_exchange(expected, value, Ordering::SeqCst, Ordering::SeqCst)
                        .unwrap_or_else(|found| found)
                }),
                None => {
                    invalid(stringify!($name), handle);
                    0
                }
            }
        }
    )*};
}

compare_and_swaps!(
    hsa_signal_cas_relaxed,
    hsa_signal_cas_scacquire,
    hsa_signal_cas_screlease,
    hsa_signal_cas_scacq_screl
);

macro_rules! waits {
    ($($name:ident),*) => {$(
        #[doc = concat!("`", stringify!($name), "`: the value seen last.")]
        pub(crate) unsafe extern "C" fn $name(
            handle: u64,
            condition: u32,
            compare_value: i64,
            timeout_hint: u64,
            wait_state_hint: u32,
        ) -> i64 {
            match Signal::from_handle(handle).zip(Condition::from_raw(condition)) {
                Some((signal, condition)) => {
                    signal.wait(condition, compare_value, timeout(timeout_hint), wait_state_hint == 1)
                }
                None => {
                    invalid(stringify!($name), handle);
                    0
                }
            }
        }
    )*};
}

waits!(hsa_signal_wait_relaxed, hsa_signal_wait_scacquire);

unsafe fn terms(
    count: u32,
    signals: *const u64,
    conditions: *const u32,
    values: *const i64,
) -> Option<Vec<Term>> {
    let count = count as usize;
    // SAFETY: the program's arrays have `count` members or are null.
    let (signals, conditions, values) = unsafe {
        (
            array(signals, count),
            array(conditions, count),
            array(values, count),
        )
    };
    if signals.len() != count || conditions.len() != count || values.len() != count {
        return None;
    }
    let parts = signals.iter().zip(conditions).zip(values);
    parts
        .map(|((&signal, &condition), &reference)| {
            Some(Term {
                signal: Signal::from_handle(signal)?,
                condition: Condition::from_raw(condition)?,
                reference,
            })
        })
        .collect()
}

/// Waits for any of several signals; returns the index of the first that met its condition, or all ones.
pub(crate) unsafe extern "C" fn hsa_amd_signal_wait_any(
    signal_count: u32,
    signals: *const u64,
    conds: *const u32,
    values: *const i64,
    timeout_hint: u64,
    _wait_hint: u32,
    satisfying_value: *mut i64,
) -> u32 {
    // SAFETY: the program's arrays have the length that it passes.
    let Some(terms) = (unsafe { terms(signal_count, signals, conds, values) }) else {
        invalid("hsa_amd_signal_wait_any", 0);
        return u32::MAX;
    };
    match wait_many(&terms, false, timeout(timeout_hint)) {
        Some((index, value)) => {
            if !satisfying_value.is_null() {
                // SAFETY: the program's pointer is writable.
                unsafe { satisfying_value.write(value) };
            }
            index as u32
        }
        None => u32::MAX,
    }
}

/// Waits for all of several signals; returns zero, or all ones when the time is over.
pub(crate) unsafe extern "C" fn hsa_amd_signal_wait_all(
    signal_count: u32,
    signals: *const u64,
    conds: *const u32,
    values: *const i64,
    timeout_hint: u64,
    _wait_hint: u32,
    satisfying_values: *mut i64,
) -> u32 {
    // SAFETY: the program's arrays have the length that it passes.
    let Some(terms) = (unsafe { terms(signal_count, signals, conds, values) }) else {
        invalid("hsa_amd_signal_wait_all", 0);
        return u32::MAX;
    };
    if wait_many(&terms, true, timeout(timeout_hint)).is_none() {
        return u32::MAX;
    }
    if !satisfying_values.is_null() {
        for (i, term) in terms.iter().enumerate() {
            // SAFETY: the program's array has a member for each signal.
            unsafe { satisfying_values.add(i).write(term.signal.load()) };
        }
    }
    0
}

fn with_groups<R>(act: impl FnOnce(&mut HashMap<u64, Vec<u64>>) -> R) -> R {
    act(&mut lock(&state().groups))
}

/// Makes a group of signals that a thread can wait for together.
pub(crate) unsafe extern "C" fn hsa_signal_group_create(
    num_signals: u32,
    signals: *const u64,
    num_consumers: u32,
    consumers: *const u64,
    signal_group: *mut u64,
) -> Status {
    api(|| {
        let missing = signals.is_null() || (num_consumers != 0 && consumers.is_null());
        let empty = num_signals == 0 || signal_group.is_null();
        ensure(!missing && !empty, status::ERROR_INVALID_ARGUMENT)?;
        // SAFETY: the program's arrays have the length that it passes.
        let (members, consumers) = unsafe {
            (
                array(signals, num_signals as usize),
                array(consumers, num_consumers as usize),
            )
        };
        for &member in members {
            signal(member)?;
        }
        for &consumer in consumers {
            agent(consumer)?;
        }
        let handle = state().handle();
        with_groups(|groups| groups.insert(handle, members.to_vec()));
        // SAFETY: the program's pointer is writable.
        unsafe { put(signal_group, handle) }
    })
}

/// Destroys a group; its signals stay.
pub(crate) unsafe extern "C" fn hsa_signal_group_destroy(signal_group: u64) -> Status {
    api(|| {
        let found = with_groups(|groups| groups.remove(&signal_group)).is_some();
        ensure(found, status::ERROR_INVALID_SIGNAL_GROUP)
    })
}

unsafe fn group_wait(
    group: u64,
    conditions: *const u32,
    values: *const i64,
    result: *mut u64,
    value: *mut i64,
) -> Status {
    api(|| {
        let members = with_groups(|groups| groups.get(&group).cloned());
        let members = members.ok_or(status::ERROR_INVALID_SIGNAL_GROUP)?;
        let places = !result.is_null() && !value.is_null();
        ensure(places, status::ERROR_INVALID_ARGUMENT)?;
        let count = members.len() as u32;
        // SAFETY: the program's arrays have a member for each signal of the group.
        let terms = unsafe { terms(count, members.as_ptr(), conditions, values) };
        let terms = terms.ok_or(status::ERROR_INVALID_ARGUMENT)?;
        let (index, found) = wait_many(&terms, false, None).ok_or(status::ERROR)?;
        // SAFETY: the program's pointers are writable.
        unsafe {
            put(result, members[index])?;
            put(value, found)
        }
    })
}

/// Waits until any signal of a group meets its condition, with acquire order.
pub(crate) unsafe extern "C" fn hsa_signal_group_wait_any_scacquire(
    signal_group: u64,
    conditions: *const u32,
    compare_values: *const i64,
    _wait_state_hint: u32,
    signal: *mut u64,
    value: *mut i64,
) -> Status {
    // SAFETY: the same promises.
    unsafe { group_wait(signal_group, conditions, compare_values, signal, value) }
}

/// Waits until any signal of a group meets its condition, in relaxed order.
pub(crate) unsafe extern "C" fn hsa_signal_group_wait_any_relaxed(
    signal_group: u64,
    conditions: *const u32,
    compare_values: *const i64,
    _wait_state_hint: u32,
    signal: *mut u64,
    value: *mut i64,
) -> Status {
    // SAFETY: the same promises.
    unsafe { group_wait(signal_group, conditions, compare_values, signal, value) }
}

/// Calls back on the runtime's thread once a signal meets a condition.
pub(crate) unsafe extern "C" fn hsa_amd_signal_async_handler(
    handle: u64,
    cond: u32,
    value: i64,
    handler: SignalHandler,
    arg: *mut c_void,
) -> Status {
    api(|| {
        let handler = handler.ok_or(status::ERROR_INVALID_ARGUMENT)?;
        let signal = signal(handle)?;
        let condition = Condition::from_raw(cond).ok_or(status::ERROR_INVALID_ARGUMENT)?;
        machine()
            .handler
            .when(signal, condition, value, handler, arg as usize);
        Ok(())
    })
}

/// Calls a function on the runtime's thread.
pub(crate) unsafe extern "C" fn hsa_amd_async_function(
    callback: Option<PlainCallback>,
    arg: *mut c_void,
) -> Status {
    api(|| {
        let callback = callback.ok_or(status::ERROR_INVALID_ARGUMENT)?;
        machine().handler.submit(Work::Call {
            callback,
            data: arg as usize,
        });
        Ok(())
    })
}
