//! Plays the calls of a capture, one after the other.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rpd_capture::{Call, Capture, CodeRow, StreamCaptures};
use rpd_spool::capture::{DataHeader, Group, HandleKind, data_use, item};
use serde::Serialize;

use crate::Placement;
use crate::addresses::{self, HeldRanges, Translation};
use crate::arrays::Array;
use crate::checks;
use crate::code::SharedVariable;
use crate::code_places::CodePlace;
use crate::error::{ReplayError, Status};
use crate::fault;
use crate::graph_kernel::ChosenNode;
use crate::hip::{Hip, SUCCESS, WRONG_TARGET, word_of};
use crate::host::{self, HostMemory};
use crate::host_use::HostUses;
use crate::images::Image;
use crate::kernel::{KernelChoice, KernelRuns};
use crate::repeat::{Repeat, Results};
use crate::verify::{self, Mismatch, Outcome, Varying, Verify};
use crate::virtual_memory::ReservedRange;

/// Options of a replay.
#[derive(Debug, Clone)]
pub struct Options {
    /// The HIP runtime's library.
    pub library: PathBuf,
    /// The first call whose results are compared; `None` compares from the start.
    pub from: Option<u64>,
    /// The last call that is played; `None` plays all.
    pub until: Option<u64>,
    /// Whether memory gets the addresses of the capture.
    pub placement: Placement,
    /// Whether all work goes to one stream.
    pub serial: bool,
    /// Way of comparing results.
    pub verify: Verify,
    /// Results of another replay.
    pub repeat: Option<Repeat>,
    /// Devices by number in the capture; others keep their number.
    pub devices: BTreeMap<i32, i32>,
    /// Whether to play although calls cannot be replayed or lack data.
    pub force: bool,
    /// Whether to translate words of uploaded data that look like addresses.
    pub deep: bool,
    /// Whether to translate words of arguments passed by value that look like addresses.
    pub guess: bool,
    /// The launch that is run many times; `None` plays all calls.
    pub kernel: Option<KernelChoice>,
    /// Code that replaces the program's code, for kernels: name of the kernel, and path of the file.
    pub replace: Vec<(String, PathBuf)>,
    /// Called with each of [`Report::notes`] when it is made: a replay that the runtime aborts returns no report.
    pub print_note: fn(&str),
}

/// Result of a replay.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Report {
    /// Number of calls that were played.
    pub calls: u64,
    /// Calls that had failed in the capture, or that have no effect in a replay.
    pub skipped: u64,
    /// Number of launches that were played.
    pub launches: u64,
    /// Number of results that were compared.
    pub compared: u64,
    /// Results that differ from the capture.
    pub mismatches: Vec<Mismatch>,
    /// Results that differ from the capture and from replay to replay, within the tolerance.
    pub varying: Vec<Varying>,
    /// Whether memory has the addresses of the capture.
    pub same_addresses: bool,
    /// Words that were translated as pointers, and because they look like addresses.
    pub translated: (u64, u64),
    /// Notes for the user.
    pub notes: Vec<String>,
    /// Nanoseconds from the first to after the last call.
    pub duration: u64,
    /// Times of the runs of one launch.
    pub kernel: Option<KernelRuns>,
}

/// What happens after a call: the result of `step`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Continue with the call.
    Go,
    /// End the replay here.
    End,
}

/// A replay of a capture: the runtime, and the state that its calls have made.
pub struct Player {
    pub(crate) capture: Capture,
    pub(crate) hip: Hip,
    pub(crate) options: Options,
    pub(crate) report: Report,
    pub(crate) translation: Translation,
    pub(crate) host: HostMemory,
    pub(crate) host_uses: HostUses,
    pub(crate) handles: HashMap<(HandleKind, u64), u64>,
    /// Textures and surfaces, by their value in the capture.
    pub(crate) images: HashMap<u64, Image>,
    /// Arrays, by their handle in the capture.
    pub(crate) arrays: BTreeMap<u64, Array>,
    /// Addresses that the program has reserved, in a replay at other addresses.
    pub(crate) reserved: Vec<ReservedRange>,
    /// Per-thread default streams, by thread.
    pub(crate) thread_streams: HashMap<u32, u64>,
    /// Streams of the replay on which a capture began that has not ended.
    pub(crate) stream_captures: Vec<u64>,
    /// Captures of streams where all other work is in one stream, by the streams of the replay on which they began.
    pub(crate) serial_captures: StreamCaptures,
    /// Streams of the replay itself, by device.
    pub(crate) copy_streams: HashMap<i32, u64>,
    pub(crate) codes: Vec<CodeRow>,
    /// Modules of code objects, by number and device.
    pub(crate) modules: HashMap<(i64, i32), u64>,
    /// Places at which code objects are loaded, by number and device, where they were needed; nothing where they are
    /// not known.
    pub(crate) code_places: HashMap<(i64, i32), Option<CodePlace>>,
    /// Variables whose addresses the program has: module, and captured address.
    pub(crate) module_variables: Vec<(u64, u64)>,
    /// Variables that both builds have, of kernels that another build replaces, by function.
    pub(crate) shared_variables: HashMap<u64, Vec<SharedVariable>>,
    /// Managed variables: name and captured address of the memory.
    pub(crate) managed: Vec<(CString, u64)>,
    /// Code objects that the program loaded as modules: the runtime makes their managed variables.
    pub(crate) module_codes: HashSet<i64>,
    /// Kernels by code object, device and name.
    pub(crate) functions: HashMap<(i64, i32, Vec<u8>), Launchable>,
    /// Addresses that are the capture's.
    pub(crate) same: bool,
    pub(crate) device: i32,
    /// Events of frees in the order of streams: captured base, end, stream, event.
    pub(crate) freed: Vec<(u64, u64, u64, u64)>,
    pub(crate) last: u64,
    pub(crate) scratch: Vec<u64>,
    /// The chosen kernel, when a graph launches it.
    pub(crate) chosen_node: Option<ChosenNode>,
    results: Option<Results>,
}

/// A kernel that can be launched.
#[derive(Debug, Clone)]
pub(crate) struct Launchable {
    pub(crate) function: u64,
    /// Offset, size and whether it is a pointer for certain, of the explicit arguments.
    pub(crate) arguments: std::sync::Arc<Vec<(u32, u32, bool)>>,
}

/// Plays the capture in `path`. `step` is called before each call.
///
/// # Errors
/// What ends the replay before the capture does. Results that differ are not errors: see [`Report::mismatches`].
pub fn replay(
    path: &Path,
    options: Options,
    step: impl FnMut(&mut Player, &Call) -> Result<Step, ReplayError>,
) -> Result<Report, ReplayError> {
    let capture = Capture::open(path)?;
    checks::capture(&capture, &options)?;
    let mut player = Player::new(capture, options)?;
    let first = Instant::now();
    // The rows are read by a connection of their own, so that the player can read data meanwhile.
    let rows = Capture::open(path)?;
    player.play_calls(&rows, (1, player.last), step)?;
    if let Some(results) = player.results.take() {
        results.finish()?;
    }
    player.report.duration = u64::try_from(first.elapsed().as_nanos()).unwrap_or(u64::MAX);
    player.report.translated = (player.translation.certain, player.translation.probable);
    Ok(player.report)
}

impl Report {
    /// Adds a note, unless there are many.
    fn note(&mut self, print_note: fn(&str), text: String) {
        const MOST: usize = 20;
        if self.notes.len() < MOST {
            print_note(&text);
            self.notes.push(text);
        }
    }
}

impl Player {
    pub(crate) fn new(capture: Capture, options: Options) -> Result<Player, ReplayError> {
        let results = options.repeat.as_ref().map(Results::open).transpose()?;
        let memory = capture.memory()?;
        let last = options.until.unwrap_or(u64::MAX).min(capture.last());
        let mut report = Report::default();
        // Addresses are held before the runtime is loaded, which would take some of them itself.
        let held = match options.placement {
            Placement::Remap => None,
            Placement::Same | Placement::Auto => {
                let held = match capture.mapped_again(last)? {
                    // At the addresses of the capture all memory is there from the start, each piece by itself.
                    Some(seq) => Err(format!(
                        "call {seq} maps physical memory that was mapped at another address before"
                    )),
                    None => HeldRanges::hold(addresses::regions(&memory)),
                };
                match held {
                    Ok(held) => Some(held),
                    Err(reason) if options.placement == Placement::Same => {
                        return Err(addresses::refused(&reason));
                    }
                    Err(reason) => {
                        report.note(options.print_note, remapped(&reason));
                        None
                    }
                }
            }
        };
        let mut hip = Hip::load(&options.library)?;
        hip.check("hipInit", &[0])?;
        let mut count = 0i32;
        hip.check("hipGetDeviceCount", &[word_of(&mut count)])?;
        if count < 1 {
            return Err(ReplayError::new(Status::Api, "the HIP runtime has no GPU"));
        }
        let devices = options.devices.clone();
        let place = |device: i32| devices.get(&device).copied().unwrap_or(device);
        checks::devices(&capture, count, place)?;
        // The runtime gets the held addresses as its own memory.
        let mut same = false;
        if let Some(held) = held {
            match held.occupy(&mut hip, place) {
                Ok(()) => same = true,
                Err(reason) if options.placement == Placement::Same => {
                    return Err(addresses::refused(&reason));
                }
                Err(reason) => report.note(options.print_note, remapped(&reason)),
            }
        }
        report.same_addresses = same;
        let codes = capture.codes()?;
        let mut player = Player {
            capture,
            hip,
            options,
            report,
            translation: Translation::default(),
            host: HostMemory::default(),
            host_uses: HostUses::default(),
            handles: HashMap::new(),
            images: HashMap::new(),
            arrays: BTreeMap::new(),
            reserved: Vec::new(),
            thread_streams: HashMap::new(),
            stream_captures: Vec::new(),
            serial_captures: StreamCaptures::default(),
            copy_streams: HashMap::new(),
            codes,
            modules: HashMap::new(),
            shared_variables: HashMap::new(),
            code_places: HashMap::new(),
            module_variables: Vec::new(),
            managed: Vec::new(),
            module_codes: HashSet::new(),
            functions: HashMap::new(),
            same,
            device: 0,
            freed: Vec::new(),
            last,
            scratch: vec![0; 1 << 13],
            chosen_node: None,
            results,
        };
        // All of it can fail for reasons of the capture or the options: before the first call is played.
        player.check_replacements()?;
        player.load_code()?;
        player.prepare_kernel()?;
        Ok(player)
    }

    /// Loads the code of all launches, so that a GPU that does not run it, and code that cannot replace a kernel, are known before
    /// anything is launched.
    fn load_code(&mut self) -> Result<(), ReplayError> {
        let needed: Vec<(i64, i32, String)> = {
            let database = self.capture.database();
            let mut statement = database
                .prepare(
                    "SELECT DISTINCT k.code, c.dev, k.name FROM launch l JOIN kernel k ON k.id = l.kernel
                     JOIN call c ON c.seq = l.seq WHERE l.seq <= ?",
                )
                .map_err(broken)?;
            let rows = statement
                .query_map([i64::try_from(self.last).unwrap_or(i64::MAX)], |row| {
                    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
                })
                .map_err(broken)?;
            rows.collect::<Result<_, _>>().map_err(broken)?
        };
        for (code, device, name) in needed {
            self.set_device(device)?;
            self.launchable(code, name.as_bytes())?;
        }
        self.set_device(0)
    }

    /// The number of a device in the replay.
    pub(crate) fn place(&self, device: i32) -> i32 {
        self.options.devices.get(&device).copied().unwrap_or(device)
    }

    /// Makes a device of the capture the current one.
    pub(crate) fn set_device(&mut self, device: i32) -> Result<(), ReplayError> {
        let now = self.place(device);
        self.hip
            .check("hipSetDevice", &[u64::from(now.cast_unsigned())])?;
        self.device = device;
        Ok(())
    }

    /// The module of a code object on the current device.
    pub(crate) fn module(&mut self, code: i64) -> Result<u64, ReplayError> {
        let key = (code, self.device);
        if let Some(found) = self.modules.get(&key) {
            return Ok(*found);
        }
        let Some(row) = self.codes.iter().find(|row| row.id == code).cloned() else {
            return Err(ReplayError::damaged(format!(
                "the capture has no code object {code}"
            )));
        };
        let bytes = self.code_bytes(&row)?;
        let module = self.load_module(&bytes, &row.triple)?;
        self.modules.insert(key, module);
        for (name, base) in self.managed.clone() {
            self.set_managed(code, key.1, &name, base)?;
        }
        Ok(module)
    }

    /// The bytes of a code object, or of the build that replaces it.
    fn code_bytes(&mut self, row: &CodeRow) -> Result<Vec<u8>, ReplayError> {
        Ok(self.capture.bytes(row.blob)?)
    }

    pub(crate) fn load_module(&mut self, bytes: &[u8], triple: &str) -> Result<u64, ReplayError> {
        let mut module = 0u64;
        let words = [word_of(&mut module), bytes.as_ptr() as u64];
        match self.hip.call("hipModuleLoadData", &words)? {
            SUCCESS => Ok(module),
            error if WRONG_TARGET.contains(&error) => {
                let mut all: Vec<&str> = self.codes.iter().map(|row| row.triple.as_str()).collect();
                all.sort_unstable();
                all.dedup();
                Err(ReplayError::new(
                    Status::Incompatible,
                    format!(
                        "code for {triple} does not run on GPU {} here; the capture has code for {}",
                        self.place(self.device),
                        all.join(", ")
                    ),
                ))
            }
            error => {
                let text = self.hip.error_name(error);
                Err(ReplayError::new(
                    Status::Api,
                    format!("hipModuleLoadData returned {text} for code for {triple}"),
                ))
            }
        }
    }

    /// Plays the calls from the first to the last of `calls`, which `rows` yields, and waits until their work is complete.
    pub(crate) fn play_calls(
        &mut self,
        rows: &Capture,
        calls: (u64, u64),
        mut step: impl FnMut(&mut Player, &Call) -> Result<Step, ReplayError>,
    ) -> Result<(), ReplayError> {
        rows.calls(calls.0, calls.1, |call| -> Result<bool, ReplayError> {
            if step(self, &call)? == Step::End {
                return Ok(false);
            }
            fault::playing(call.operation().map(|operation| (call.seq, operation)));
            self.play(&call)?;
            Ok(true)
        })?;
        self.wait_for_all()?;
        fault::playing(None);
        Ok(())
    }

    /// Makes a call of the capture again.
    pub(crate) fn play(&mut self, call: &Call) -> Result<(), ReplayError> {
        let Some(operation) = call.operation() else {
            return Err(ReplayError::damaged(format!(
                "call {} has the unknown number {}",
                call.seq, call.api
            )));
        };
        if operation.group == Group::Unsupported || call.result != SUCCESS {
            self.report.skipped += 1;
            return self.skip_failed(call, operation);
        }
        let context = |error: ReplayError| ReplayError {
            message: format!(
                "call {} ({}): {}",
                call.seq,
                operation.name(),
                error.message
            ),
            status: error.status,
        };
        if call.device != self.device {
            self.set_device(call.device).map_err(context)?;
        }
        self.follow_serial(call);
        self.prepare_data(call).map_err(context)?;
        if self.is_chosen(call) {
            match self.chosen_node {
                Some(_) => self.run_chosen_node(call, operation).map_err(context)?,
                None => self.run_chosen(call).map_err(context)?,
            }
        }
        self.make(call, operation).map_err(context)?;
        self.follow_graph_kernel(call, operation).map_err(context)?;
        self.note_use(call, operation).map_err(context)?;
        self.report.calls += 1;
        if operation.group == Group::Launch {
            self.report.launches += 1;
        }
        self.compare(call).map_err(context)
    }

    /// Puts data into the memory from which the call, or the work that it starts, reads them.
    pub(crate) fn prepare_data(&mut self, call: &Call) -> Result<(), ReplayError> {
        self.set_variables(call)?;
        // What a wait has are values for which the work waits that it waits for.
        let is_wait = call
            .operation()
            .is_some_and(|one| one.group == Group::Order);
        for data in call.data() {
            // Results are compared after the call, and not put anywhere.
            let is_result = matches!(
                data.purpose,
                data_use::OUTPUT | data_use::RESULT | data_use::ARRAY_RESULT
            );
            if is_result || data.size == 0 {
                continue;
            }
            if data.offset == 0 {
                if self.options.force {
                    continue;
                }
                return Err(ReplayError::damaged("its data are not in the capture"));
            }
            let mut bytes = self.capture.data_bytes(&data)?;
            if data.purpose == data_use::ARRAY {
                self.set_array(data.address, &bytes)?;
                continue;
            }
            // Pointers in data tell which memory of the host the device may use later.
            self.host_uses.look_for_pointers(&bytes);
            if self.options.guess {
                self.translate_images(&mut bytes);
            }
            if matches!(data.purpose, data_use::MEMORY | data_use::UPDATE) {
                self.translate_code(&mut bytes);
            }
            // Without `--deep` data stay as they are: a number that looks like an address may be a number.
            if !self.same {
                if self.options.deep {
                    self.translation.probable += self.translation.translate_words(&mut bytes);
                } else {
                    let mut copy = bytes.clone();
                    let words = self.translation.translate_words(&mut copy);
                    if words > 0 {
                        self.note(format!(
                            "call {}: {words} words of its data look like addresses; --deep translates them",
                            call.seq
                        ));
                    }
                }
            }
            // Device memory is written by a copy of the runtime; the rest by the host.
            if data.purpose == data_use::MEMORY {
                let now = self.live(&data)?;
                self.copy(now, bytes.as_ptr() as u64, data.size)?;
                continue;
            }
            if !is_wait {
                self.wait_for_uses(data.address, host::span(&data))?;
            }
            let start = self
                .host
                .locate(&self.translation, data.address, host::span(&data))?;
            // SAFETY: the place has room for the span of the data.
            unsafe { host::scatter(&data, start, &bytes) };
        }
        Ok(())
    }

    /// Address now of the runtime's memory in which data lie as a whole.
    fn live(&self, data: &DataHeader) -> Result<u64, ReplayError> {
        match self.translation.memory(data.address) {
            Some((base, size, now)) if data.size <= size - (data.address - base) => {
                Ok(now + (data.address - base))
            }
            _ => Err(ReplayError::damaged(format!(
                "the capture has no memory for {} bytes at {:#x}",
                data.size, data.address
            ))),
        }
    }

    /// Compares the results that are complete after the call.
    fn compare(&mut self, call: &Call) -> Result<(), ReplayError> {
        let from = self.options.from.unwrap_or(0);
        for data in call.data() {
            let is_result = data.purpose == data_use::RESULT;
            let is_array = data.purpose == data_use::ARRAY_RESULT;
            let compared = (is_result || is_array || data.purpose == data_use::OUTPUT)
                && data.offset != 0
                && data.size > 0;
            if !compared || call.seq < from || self.options.verify == Verify::Off {
                continue;
            }
            let mut bytes = if is_result {
                let now = self.live(&data)?;
                self.wait_for_all()?;
                let mut bytes = vec![0; data.size as usize];
                self.read(now, &mut bytes)?;
                bytes
            } else if is_array {
                self.wait_for_all()?;
                self.array_content(data.address)?
            } else {
                let start = self
                    .host
                    .locate(&self.translation, data.address, host::span(&data))?;
                // SAFETY: the place has the span of the data, and the work that writes it is complete.
                unsafe { host::gather(&data, start) }
            };
            if self.options.deep && !self.same && !is_array {
                self.translation.restore_words(&mut bytes);
            }
            self.compare_bytes(call.seq, &data, &bytes, None)?;
        }
        self.compare_variables(call)
    }

    /// Compares the device variables that are results.
    fn compare_variables(&mut self, call: &Call) -> Result<(), ReplayError> {
        let from = self.options.from.unwrap_or(0);
        if call.seq < from || self.options.verify == Verify::Off {
            return Ok(());
        }
        let results = call
            .items()
            .filter(|item| item.kind == item::VARIABLE_RESULT);
        for item in results {
            let Some((head, name)) = item.variable() else {
                return Err(ReplayError::damaged("the content of a variable is cut"));
            };
            self.wait_for_all()?;
            let (now, size) = self.place_of_variable(&head, name)?;
            let mut bytes = vec![0; size as usize];
            self.read(now, &mut bytes)?;
            let data = DataHeader {
                address: 0,
                size,
                offset: head.data.cast_unsigned(),
                copy: 0,
                pitch: 0,
                width: size,
                slice_rows: 1,
                rows: 1,
                purpose: data_use::RESULT,
                reserved: 0,
            };
            let name = String::from_utf8_lossy(name).into_owned();
            self.compare_bytes(call.seq, &data, &bytes, Some(name))?;
        }
        if call.device == self.device {
            Ok(())
        } else {
            self.set_device(call.device)
        }
    }

    /// Compares a result, which is that of a device variable if one is named.
    fn compare_bytes(
        &mut self,
        seq: u64,
        data: &DataHeader,
        bytes: &[u8],
        variable: Option<String>,
    ) -> Result<(), ReplayError> {
        let other = match &mut self.results {
            Some(results) => results.exchange(seq, data, bytes)?,
            None => None,
        };
        if matches!(self.results, Some(Results::Write(..))) {
            return Ok(());
        }
        self.report.compared += 1;
        let (verify, other) = (self.options.verify, other.as_deref());
        match verify::compare(&mut self.capture, verify, seq, data, bytes, other)? {
            Outcome::Equal => {}
            Outcome::Varies(found) => self.report.varying.push(Varying { variable, ..found }),
            Outcome::Differs(found) => {
                self.report.mismatches.push(Mismatch { variable, ..found });
            }
        }
        Ok(())
    }

    /// Notes something for the user.
    pub(crate) fn note(&mut self, text: String) {
        self.report.note(self.options.print_note, text);
    }

    /// Report about the calls that were played so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Bytes of memory at an address of the capture, as they are now; `None` where there is no memory of the replay.
    ///
    /// # Errors
    /// When they cannot be copied.
    pub fn peek(&mut self, address: u64, len: u64) -> Result<Option<Vec<u8>>, ReplayError> {
        let Some((base, size, now)) = self.translation.memory(address) else {
            return Ok(None);
        };
        let len = len.min(base + size - address);
        self.wait_for_all()?;
        let mut bytes = vec![0u8; len as usize];
        self.copy(bytes.as_mut_ptr() as u64, now + (address - base), len)?;
        Ok(Some(bytes))
    }

    /// The capture that is played.
    pub fn capture(&self) -> &Capture {
        &self.capture
    }
}

fn remapped(reason: &str) -> String {
    format!("memory has other addresses than in the capture: {reason}")
}

pub(crate) fn broken(error: impl std::fmt::Display) -> ReplayError {
    ReplayError::damaged(format!("the database of the capture: {error}"))
}
