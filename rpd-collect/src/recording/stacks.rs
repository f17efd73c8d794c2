//! Call stacks of recorded events: selection of the operations that have one, the time at which it is taken, and the
//! place where its parts are written.

use std::borrow::Cow;
use std::mem::offset_of;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rpd_spool::format::{
    self, CallRecord, StackCode, StackLocation, StackModule, StackNode, StackObject, StackRef,
    call_flag, stack_flag,
};
use rpd_spool::hidden_frames;
use rpd_spool::options::CollectorOptions;
use rpd_spool::record::RecordKind;
use rpd_spool::stacks::{self, StackMode, StackOptions};
use rpd_spool::writer::{OpenRecord, StreamWriter, now, record_len};
use rpd_stacks::{
    FrameClass, JitObject, Location, Mode, Module, Node, Options, PythonCode, Sink, Stacks,
    ThreadStacks,
};
use zerocopy::{Immutable, IntoBytes};

use super::fork::ForkHook;
use super::guard::Service;
use super::meta;
use super::process;
use super::python_files;
use super::setting::Setting;
use super::thread::{self, Thread};

static SERVICE: Service = Service::new("call stacks");
static RECORDER: Setting<Recorder> = Setting::new();

/// Shortest duration of a call whose stack is kept: [`StackOptions::min_duration`].
static MIN_DURATION: AtomicU64 = AtomicU64::new(0);
/// Hook for a forked child, which records the parts of its stacks again, in streams of its own.
pub(super) static FORK: ForkHook = ForkHook::new().in_child(forked);

struct Recorder {
    stacks: Stacks,
    /// What the stacks were made with.
    mode: StackMode,
    depth: u32,
    /// Flags that all stacks of the process have.
    flags: u32,
}

/// Gets ready to take stacks if any are requested.
pub(crate) fn prepare(options: &CollectorOptions) {
    let wanted = &options.stacks;
    let mode = match wanted.mode {
        StackMode::Off => return,
        StackMode::Native => Mode::Native,
        StackMode::Python => Mode::Python,
        StackMode::Merged => Mode::Merged,
    };
    SERVICE.run(|| {
        let flags = if wanted.every > 1 {
            stack_flag::SAMPLED
        } else {
            0
        };
        let before = RECORDER.get();
        if before.is_some() {
            // An earlier recording of a process that is attached to: ids start again, and its memory is given back.
            forked();
        }
        let is_same = |before: &&Recorder| {
            (before.mode, before.depth, before.flags) == (wanted.mode, wanted.depth, flags)
        };
        if before.filter(is_same).is_none() {
            RECORDER.set(Recorder {
                stacks: Stacks::new(Options {
                    mode,
                    depth: wanted.depth,
                })
                .with_classes(class_of),
                mode: wanted.mode,
                depth: wanted.depth,
                flags,
            });
        }
        MIN_DURATION.store(wanted.min_duration, Ordering::Relaxed);
        FORK.register();
    });
}

/// Class of the frames of a module in reports.
fn class_of(path: &[u8]) -> FrameClass {
    match std::str::from_utf8(path) {
        Ok(path) if hidden_frames::is_profiler(path) => FrameClass::Profiler,
        Ok(path) if hidden_frames::is_runtime(path) => FrameClass::Runtime,
        Ok(path) if hidden_frames::is_interpreter(path) => FrameClass::Interpreter,
        _ => FrameClass::Other,
    }
}

fn forked() {
    if let Some(recorder) = RECORDER.get() {
        SERVICE.run(|| recorder.stacks.forked());
        python_files::forked();
    }
}

/// Whether stacks with Python frames are taken, once there is a runtime. A forked child is as its parent.
pub(crate) fn has_python() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    let has = |process: &process::Process| {
        matches!(
            process.options.stacks.mode,
            StackMode::Python | StackMode::Merged
        )
    };
    // A process that is attached to has recordings with and without.
    match process::existing() {
        Some(process) if process::can_be_attached_to() => has(process),
        _ => *HAS.get_or_init(|| process::current().is_some_and(has)),
    }
}

/// The operations of a kind that have stacks.
#[derive(Debug)]
pub(crate) struct Selection {
    /// Selected operations: a bit each, by operation number.
    picked: Box<[u64]>,
    /// Number of calls so far, by operation number; empty when every call has a stack.
    calls: Box<[AtomicU32]>,
    every: u32,
}

impl Selection {
    /// Selection of `operations` by the user's globs; `None` when they match none.
    pub(crate) fn from_options(
        options: &StackOptions,
        operations: &[(i32, Cow<'static, str>)],
    ) -> Option<Selection> {
        if !options.any() {
            return None;
        }
        let numbers = operations.iter().filter_map(|(number, name)| {
            let number = usize::try_from(*number).ok()?;
            stacks::picks(&options.apis, name).then_some(number)
        });
        let numbers: Vec<usize> = numbers.collect();
        let count = numbers.iter().max()? + 1;
        let mut picked = vec![0_u64; count.div_ceil(64)];
        for number in numbers {
            picked[number / 64] |= 1 << (number % 64);
        }
        let counted = if options.every > 1 { count } else { 0 };
        Some(Selection {
            picked: picked.into(),
            calls: (0..counted).map(|_| AtomicU32::new(0)).collect(),
            every: options.every,
        })
    }

    /// Whether this call of an operation has a stack. With sampling, the call is counted.
    #[inline]
    pub(crate) fn takes(&self, operation: i32) -> bool {
        let number = operation.cast_unsigned() as usize;
        let picked = self.picked.get(number / 64);
        if picked.is_none_or(|bits| bits >> (number % 64) & 1 == 0) {
            return false;
        }
        match self.calls.get(number) {
            Some(calls) => {
                let before = calls.fetch_add(1, Ordering::Relaxed);
                before.is_multiple_of(self.every)
            }
            None => true,
        }
    }
}

/// Notes globs that match none of `operations`, which are all that the provider has.
pub(crate) fn note_useless_globs<'a>(
    options: &StackOptions,
    operations: impl Iterator<Item = &'a str> + Clone,
) {
    if !options.any() || options.apis == StackOptions::default().apis {
        return;
    }
    for glob in &options.apis {
        let alone = [glob.trim_start_matches('!').to_owned()];
        if !operations.clone().any(|name| stacks::picks(&alone, name)) {
            meta::note(&format!(
                "--stacks-apis {glob}: this provider has no operation of such a name"
            ));
        }
    }
}

/// Shortest duration of a call whose stack is kept, in nanoseconds; 0 keeps all stacks.
#[inline]
fn min_duration() -> u64 {
    MIN_DURATION.load(Ordering::Relaxed)
}

/// Stack field of the record of a beginning call: `None` when the record has no such field. The field stays empty until
/// the call's end where only long calls have stacks.
#[inline]
pub(super) fn at_begin(thread: &mut Thread, wanted: bool) -> Option<StackRef> {
    if !wanted {
        None
    } else if min_duration() > 0 {
        Some(StackRef::default())
    } else {
        take(thread)
    }
}

/// Bytes that the stack field returned by [`at_begin`] takes in a record.
#[inline]
pub(super) fn room(stack: Option<StackRef>) -> usize {
    match stack {
        Some(stack) => size_of_val(&stack),
        None => 0,
    }
}

/// The record flag for the stack field returned by [`at_begin`].
#[inline]
pub(super) fn flag(stack: Option<StackRef>) -> u32 {
    match stack {
        Some(_) => call_flag::STACK,
        None => 0,
    }
}

/// Writes the stack field returned by [`at_begin`] at the start of a record's tail; returns the rest of the tail.
#[inline]
pub(super) fn put(stack: Option<StackRef>, tail: &mut [u8]) -> &mut [u8] {
    match stack {
        Some(stack) => {
            let (own, rest) = tail.split_at_mut(size_of::<StackRef>());
            own.copy_from_slice(stack.as_bytes());
            rest
        }
        None => tail,
    }
}

/// Takes the stack of a call that returned at `end` and took long enough, where only those have stacks.
#[inline]
pub(super) fn at_end(thread: &mut Thread, record: OpenRecord, end: u64) {
    let least = min_duration();
    if least > 0 {
        take_of_long_call(thread, record, end, least);
    }
}

#[cold]
fn take_of_long_call(thread: &mut Thread, record: OpenRecord, end: u64, least: u64) {
    let Some(call) = thread.records.open_call(record) else {
        return;
    };
    if call.flags & call_flag::STACK != 0
        && end.saturating_sub(call.start) >= least
        && let Some(stack) = take(thread)
    {
        // The node last: without it there is no stack.
        let at = size_of::<CallRecord>();
        let (stack_at, flags_at) = (offset_of!(StackRef, stack), offset_of!(StackRef, flags));
        let records = &thread.records;
        records.patch(record, at + flags_at, stack.flags);
        records.patch(record, at + stack_at, stack.stack);
    }
}

/// The stack of the calling thread for a record that is written once, of something that took `duration` nanoseconds:
/// `None` when there is none.
pub(super) fn of_event(wanted: bool, duration: u64) -> Option<StackRef> {
    if wanted && duration >= min_duration() {
        thread::with(take).flatten()
    } else {
        None
    }
}

/// The stack of the calling thread. What it refers to is in the thread's stream before it returns.
fn take(thread: &mut Thread) -> Option<StackRef> {
    let recorder = RECORDER.get()?;
    if thread.is_nested() {
        // The interrupted writer may be adding to the tree of calls.
        return Some(StackRef {
            stack: 0,
            flags: stack_flag::LOST,
        });
    }
    // Taken out meanwhile: the sink is a part of the thread's state as well.
    let own = thread.stacks.take();
    let mut own = own.unwrap_or_else(|| Box::new(ThreadStacks::new()));
    let mut sink = SpoolSink(thread.facts());
    let captured = SERVICE.run(|| recorder.stacks.capture(&mut own, &mut sink));
    thread.stacks = Some(own);
    let captured = captured?;
    if captured.stack != 0 || captured.flags != 0 {
        Some(StackRef {
            stack: captured.stack,
            flags: captured.flags | recorder.flags,
        })
    } else {
        None
    }
}

/// Sink that writes the parts of stacks into the stream of a thread.
struct SpoolSink<'a>(&'a mut StreamWriter);

impl SpoolSink<'_> {
    fn write<T: IntoBytes + Immutable>(&mut self, record: &T) -> bool {
        self.0.append(size_of::<T>(), |bytes| {
            bytes.copy_from_slice(record.as_bytes());
        })
    }
}

impl Sink for SpoolSink<'_> {
    fn module(&mut self, module: &Module<'_>) -> bool {
        let parts = [module.path, module.build_id];
        let tail = parts.iter().map(|part| part.len()).sum();
        let record = StackModule {
            header: RecordKind::StackModule.head(tail),
            id: module.id,
            path_len: module.path.len() as u32,
            build_id_len: module.build_id.len() as u32,
            reserved: 0,
            base: module.bias,
            start: module.start,
            end: module.end,
            time: now(),
        };
        self.0.append_parts(record.as_bytes(), &parts)
    }

    fn code(&mut self, code: &PythonCode<'_>) -> bool {
        let parts = [code.file, code.name, code.qualname, code.line_table];
        let tail = parts.iter().map(|part| part.len()).sum();
        let record = StackCode {
            header: RecordKind::StackCode.head(tail),
            id: code.id,
            first_line: code.first_line,
            version: code.version,
            file_len: code.file.len() as u32,
            name_len: code.name.len() as u32,
            qualname_len: code.qualname.len() as u32,
            lines_len: code.line_table.len() as u32,
            reserved: 0,
        };
        let is_stored = self.0.append_parts(record.as_bytes(), &parts);
        python_files::met(code.file);
        is_stored
    }

    fn object(&mut self, object: &JitObject) -> bool {
        let [sections_len, symbols_len, names_len] = object.lens();
        let tail = (sections_len + symbols_len + names_len) as usize;
        let len = record_len(size_of::<StackObject>(), tail);
        let record = StackObject {
            header: RecordKind::StackObject.head(tail).with_aux(object.kind),
            id: object.id,
            sections_len,
            symbols_len,
            names_len,
        };
        self.0.append(len, |bytes| {
            let (fixed, rest) = bytes.split_at_mut(size_of::<StackObject>());
            fixed.copy_from_slice(record.as_bytes());
            object.copy_to(&mut rest[..tail]);
        })
    }

    fn location(&mut self, location: &Location) -> bool {
        self.write(&StackLocation {
            header: RecordKind::StackLocation
                .head(0)
                .with_aux(kind_number(location)),
            id: location.id,
            owner: location.module | location.code | location.object,
            offset: location.offset,
        })
    }

    fn node(&mut self, node: &Node) -> bool {
        self.write(&StackNode {
            header: RecordKind::StackNode.head(0),
            id: node.id,
            parent: node.parent,
            location: node.location,
            depth: node.depth,
        })
    }
}

/// Number of the location's kind: one of [`format::location_kind`].
fn kind_number(location: &Location) -> u16 {
    use format::location_kind;
    use rpd_stacks::LocationKind as Kind;
    match location.kind {
        Kind::Native => location_kind::NATIVE,
        Kind::Python => location_kind::PYTHON,
        Kind::Jit => location_kind::JIT,
        Kind::Api => location_kind::API,
        Kind::Script => location_kind::SCRIPT,
        Kind::Generated => location_kind::INDUCTOR,
        Kind::Unplaced => location_kind::UNPLACED_MARKER,
        Kind::Truncated => location_kind::TRUNCATED_MARKER,
        Kind::Gap => location_kind::GAP_MARKER,
        Kind::Guessed => location_kind::GUESSED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operations() -> Vec<(i32, Cow<'static, str>)> {
        let names = [
            (0, "hipInit"),
            (1, "hipMalloc"),
            (70, "hipFree"),
            (-1, "hipBad"),
        ];
        names.map(|(number, name)| (number, name.into())).to_vec()
    }

    fn options(globs: &[&str], every: u32) -> StackOptions {
        StackOptions {
            mode: StackMode::Native,
            apis: globs.iter().map(|glob| (*glob).to_owned()).collect(),
            every,
            ..StackOptions::default()
        }
    }

    #[test]
    fn stack_selection_picks_operations_by_name() {
        let selection =
            Selection::from_options(&options(&["*Malloc", "hipFree"], 1), &operations());
        let selection = selection.expect("two are picked");
        let taken: Vec<i32> = (-1..200)
            .filter(|number| selection.takes(*number))
            .collect();
        assert_eq!(taken, [1, 70]);
        assert!(!selection.takes(i32::MAX));
        assert!(Selection::from_options(&options(&["hsa_*"], 1), &operations()).is_none());
        let off = StackOptions::default();
        assert!(Selection::from_options(&off, &operations()).is_none());
    }

    #[test]
    fn stack_selection_with_sampling_takes_the_first_call_of_each_operation() {
        let selection =
            Selection::from_options(&options(&["hip*"], 3), &operations()).expect("all");
        let taken: Vec<bool> = (0..7).map(|_| selection.takes(1)).collect();
        assert_eq!(taken, [true, false, false, true, false, false, true]);
        assert!(selection.takes(70));
    }
}
