//! Makes a capture of some calls of another capture: plays the calls before them, and stores the memory that these
//! calls access.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rpd_capture::{Call, Capture, ExcerptSummary, ExcerptWriter, Memory};
use rpd_spool::capture::{HandleKind, data_use, item, memory_kind};

use crate::arrays::SavedArray;
use crate::checks;
use crate::code::Variable;
use crate::error::{ReplayError, Status};
use crate::kernel::{KernelChoice, SavedMemory};
use crate::player::{Options, Player, Step};

/// Bytes of memory that are read at once when pointers are looked for.
const PART: u64 = 16 << 20;

/// The calls that an excerpt is about.
#[derive(Debug, Clone)]
pub enum Part {
    /// All calls from the first to the last, with all memory.
    Calls(u64, u64),
    /// One launch, with the memory that it needs.
    Launch {
        /// Kernel and number of the launch.
        choice: KernelChoice,
        /// Whether all memory is taken, and not only that which can be reached from the arguments and the variables of
        /// the kernel's code.
        all_memory: bool,
    },
}

/// The content of an excerpt.
#[derive(Debug, Clone)]
pub struct Excerpt {
    /// The first and the last call of the excerpt.
    pub calls: (u64, u64),
    /// The launch of the excerpt, as `NAME#N`.
    pub launch: Option<String>,
    /// Number of memory ranges that are stored, and their size in bytes.
    pub memory: (u64, u64),
    /// Contents of the excerpt's files.
    pub summary: ExcerptSummary,
}

/// Writes an excerpt of the capture in `path` into the directory `target`, which exists and is empty. What it has of memory are
/// addresses of the capture, even where those of the replay differ.
///
/// # Errors
/// As for a replay; also when a result before the part differs from the capture, since then its memory would too.
pub fn excerpt(
    path: &Path,
    mut options: Options,
    part: &Part,
    target: &Path,
) -> Result<Excerpt, ReplayError> {
    let capture = Capture::open(path)?;
    match part {
        Part::Calls(first, last) => {
            if *first < 1 || first > last || *last > capture.last() {
                return Err(ReplayError::failed(format!(
                    "{}: its calls are 1 to {}, not {first} to {last}",
                    path.display(),
                    capture.last()
                )));
            }
            options.until = Some(*last);
        }
        Part::Launch { choice, .. } => options.kernel = Some(choice.clone()),
    }
    checks::capture(&capture, &options)?;
    let mut player = Player::new(capture, options)?;
    // Memory has other addresses here; stored with them it would mean nothing to a later replay.
    if !player.same {
        player.options.deep = true;
        player.note(
            "pointers in memory are found by their value: words that look like addresses are changed to those of the capture"
                .to_owned(),
        );
    }
    // From here on the launch is a call as any other.
    let launch = player.options.kernel.take();
    let (first, last) = match (part, launch.as_ref().and_then(|launch| launch.seq)) {
        (Part::Calls(first, last), _) => (*first, *last),
        (Part::Launch { .. }, seq) => (seq.unwrap_or(player.last), player.last),
    };
    // Opened a second time: the player reads data while calls are read.
    let mut rows = Capture::open(path)?;
    player.play_calls(&rows, (1, first - 1), |_, _| Ok(Step::Go))?;
    // Memory that differs already would make a wrong excerpt, without any sign of it later.
    if let Some(mismatch) = player.report.mismatches.first() {
        return Err(ReplayError::new(
            Status::Differs,
            format!("{mismatch}: what is in memory at call {first} is not what the program had"),
        ));
    }
    let launching = rows.call(first)?;
    // A launch of its own takes the place of that of a graph.
    if let Some(alone) = player.alone(&launching)? {
        player.play_before_kernel(&launching)?;
        player.capture.substitute(alone.clone());
        rows.substitute(alone);
    }
    let mut taker = MemoryReader {
        writer: ExcerptWriter::new(&rows, (first, last), target)?,
        memory: rows.memory()?,
        chosen: BTreeMap::new(),
        arrays: BTreeSet::new(),
        variables: Vec::new(),
        bytes: 0,
    };
    let call = rows.call(first)?;
    let name = launch.map(|launch| format!("{}#{}", player.kernel_name(&call), launch.launch));
    taker.take_state(&mut player, part, &call)?;
    // Calls whose results are copies to the host are compared by these; a launch has none.
    let (saved, arrays) = if name.is_some() || !has_results(&rows, first, last)? {
        (player.save()?, player.save_arrays()?)
    } else {
        taker.variables.clear();
        (Vec::new(), Vec::new())
    };
    player.play_calls(&rows, (first, last), |_, _| Ok(Step::Go))?;
    taker.take_results(&mut player, saved, name.is_some())?;
    taker.take_array_results(&mut player, arrays, name.is_some())?;
    taker.take_variable_results(&mut player, name.is_some())?;
    // Which earlier calls are needed depends on the memory that was chosen.
    let pieces = taker.chosen.len() + taker.arrays.len();
    let memory = (pieces as u64, taker.bytes);
    let chosen = taker.chosen;
    let summary = taker.writer.finish(
        &mut player.capture,
        &|address| at(&chosen, address).is_some(),
        name.clone(),
    )?;
    Ok(Excerpt {
        calls: (first, last),
        launch: name,
        memory,
        summary,
    })
}

/// The memory of `ranges` (bytes by base) that an address lies in: its base.
fn at(ranges: &BTreeMap<u64, u64>, address: u64) -> Option<u64> {
    let (&base, &size) = ranges.range(..=address).next_back()?;
    (address - base < size).then_some(base)
}

/// Whether calls copy results to the host, with which a replay of them alone can be compared.
fn has_results(capture: &Capture, first: u64, last: u64) -> Result<bool, ReplayError> {
    let mut found = false;
    capture.calls(first, last, |call| -> Result<bool, ReplayError> {
        found |= call
            .data()
            .any(|data| data.purpose == data_use::OUTPUT && (data.copy == 0 || data.copy >= first));
        Ok(!found)
    })?;
    Ok(found)
}

/// Takes memory out of a replay.
struct MemoryReader {
    writer: ExcerptWriter,
    memory: Vec<Memory>,
    /// Size in bytes of the memory that is part of the excerpt, by its base.
    chosen: BTreeMap<u64, u64>,
    /// Arrays that are part of the excerpt, by their handles in the capture.
    arrays: BTreeSet<u64>,
    /// Variables that are part of the excerpt, with their content before.
    variables: Vec<SavedVariable>,
    bytes: u64,
}

/// A device variable and its content.
struct SavedVariable {
    code: i64,
    device: i32,
    variable: Variable,
    content: Vec<u8>,
}

impl MemoryReader {
    /// Takes the memory and the variables that the first call finds.
    fn take_state(
        &mut self,
        player: &mut Player,
        part: &Part,
        call: &Call,
    ) -> Result<(), ReplayError> {
        // Variables of all modules, or only those that the launched kernel can name.
        let codes: Vec<(i64, i32)> = match part {
            Part::Calls(..) => player.modules.keys().copied().collect(),
            Part::Launch { .. } => rpd_capture::code_objects(call)
                .filter_map(|provider| player.code_at(provider, call.seq))
                .map(|code| (code, call.device))
                .collect(),
        };
        player.find_code(call)?;
        // Content of variables counts as a source of pointers, as it does on the device.
        let mut words = Vec::new();
        for (code, device) in codes {
            self.take_variables(player, code, device, &mut words)?;
        }
        player.set_device(call.device)?;
        match part {
            Part::Launch {
                all_memory: false, ..
            } => {
                let arguments = call
                    .items()
                    .filter(|item| item.kind == item::KERNEL_ARGUMENTS);
                words.extend(arguments.flat_map(|item| words_of(item.payload)));
                let found = reachable(player, words)?;
                self.chosen = found.memory;
                self.take_images(player, found.images);
            }
            _ => {
                let all = player.translation.all();
                self.chosen = all.map(|(base, size, _)| (base, size)).collect();
                self.arrays.extend(player.arrays.keys());
                self.take_images(player, player.images.keys().copied().collect());
            }
        }
        for &handle in &self.arrays {
            let content = player.array_content(handle)?;
            self.bytes += content.len() as u64;
            self.writer.handle(HandleKind::Array, handle);
            add_array(&mut self.writer, handle, data_use::ARRAY, true, &content)?;
        }
        for (&base, &size) in &self.chosen {
            let Some((_, _, now)) = player.translation.memory(base) else {
                continue;
            };
            let live = |one: &&Memory| {
                one.base == base
                    && one.life.0 < call.seq
                    && one.life.1.is_none_or(|freed| freed >= call.seq)
            };
            let is_visible = self
                .memory
                .iter()
                .find(live)
                .is_some_and(|one| memory_kind::is_host_visible(one.kind));
            // Host-visible memory is written by the host in a replay; other memory by a copy.
            let purpose = if is_visible {
                data_use::UPDATE
            } else {
                data_use::MEMORY
            };
            self.bytes += size;
            self.writer.memory(base, size, purpose, true, |at, bytes| {
                player.read(now + at, bytes)
            })?;
        }
        Ok(())
    }

    /// Takes textures and surfaces, by their values in the capture, and their arrays.
    fn take_images(&mut self, player: &Player, images: BTreeSet<u64>) {
        for value in images {
            if let Some(image) = player.images.get(&value) {
                self.writer.handle(image.kind, value);
                let array = Some(image.array).filter(|array| player.arrays.contains_key(array));
                self.arrays.extend(array);
            }
        }
    }

    /// Takes the variables of a code object, and adds the words of their content to `words`.
    fn take_variables(
        &mut self,
        player: &mut Player,
        code: i64,
        device: i32,
        words: &mut Vec<u64>,
    ) -> Result<(), ReplayError> {
        for variable in player.variables(code, device)? {
            let (now, size) = variable.place;
            let mut content = vec![0u8; size as usize];
            player.read(now, &mut content)?;
            words.extend(words_of(&content));
            self.writer
                .variable(code, device, variable.name.as_bytes(), &content)?;
            self.variables.push(SavedVariable {
                code,
                device,
                variable,
                content,
            });
        }
        Ok(())
    }

    /// Adds the content of device variables afterwards, for the variables whose content was stored.
    fn take_variable_results(
        &mut self,
        player: &mut Player,
        keep: bool,
    ) -> Result<(), ReplayError> {
        let device = player.device;
        for saved in std::mem::take(&mut self.variables) {
            let SavedVariable { code, device, .. } = saved;
            let name = saved.variable.name;
            // The part may have unloaded its module, and what managed variables hold are addresses.
            let is_managed = player.managed.iter().any(|(known, _)| *known == name);
            if is_managed || !player.modules.contains_key(&(code, device)) {
                continue;
            }
            player.set_device(device)?;
            let mut content = vec![0u8; saved.content.len()];
            player.read(saved.variable.place.0, &mut content)?;
            if content != saved.content {
                let name = name.as_bytes();
                self.writer
                    .variable_result(code, device, name, &content, keep)?;
            }
        }
        player.set_device(device)
    }

    /// Takes memory that differs from the copies in `saved`: with `keep` the content, otherwise its hash.
    fn take_results(
        &mut self,
        player: &mut Player,
        mut saved: Vec<SavedMemory>,
        keep: bool,
    ) -> Result<(), ReplayError> {
        saved.retain(|one| {
            self.chosen.contains_key(&one.base)
                && player.translation.memory(one.base) == Some((one.base, one.size, one.now))
        });
        player.find_written(&mut saved)?;
        for one in &saved {
            for &(offset, size) in &one.written {
                let (address, now) = (one.base + offset, one.now + offset);
                self.writer
                    .memory(address, size, data_use::RESULT, keep, |at, bytes| {
                        player.read(now + at, bytes)
                    })?;
            }
        }
        player.release(saved)
    }

    /// As [`MemoryReader::take_results`], for arrays.
    fn take_array_results(
        &mut self,
        player: &mut Player,
        mut saved: Vec<SavedArray>,
        keep: bool,
    ) -> Result<(), ReplayError> {
        saved.retain(|one| {
            self.arrays.contains(&one.handle) && player.arrays.get(&one.handle) == Some(&one.array)
        });
        player.find_written_arrays(&mut saved)?;
        for one in saved.iter().filter(|one| one.written) {
            let content = player.array_content(one.handle)?;
            let purpose = data_use::ARRAY_RESULT;
            add_array(&mut self.writer, one.handle, purpose, keep, &content)?;
        }
        Ok(())
    }
}

fn add_array(
    writer: &mut ExcerptWriter,
    handle: u64,
    purpose: u32,
    keep: bool,
    content: &[u8],
) -> Result<(), ReplayError> {
    writer.memory(handle, content.len() as u64, purpose, keep, |at, part| {
        part.copy_from_slice(&content[at as usize..][..part.len()]);
        Ok(())
    })
}

fn words_of(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    let words = bytes.as_chunks::<8>().0.iter();
    words.map(|word| u64::from_le_bytes(*word))
}

/// Memory that a launch can reach.
#[derive(Default)]
struct Reached {
    /// Size in bytes of each allocation that a launch can access, by its address.
    memory: BTreeMap<u64, u64>,
    /// Textures and surfaces, by their values in the capture.
    images: BTreeSet<u64>,
}

/// The live memory, textures and surfaces that `words` name, and those that the content of such memory names. Every
/// word that looks like an address, or like a texture or surface, counts as one.
fn reachable(player: &mut Player, mut words: Vec<u64>) -> Result<Reached, ReplayError> {
    let mut found = Reached::default();
    while let Some(word) = words.pop() {
        if let Some(image) = player.images.get(&word) {
            found.images.insert(word);
            words.extend(Some(image.memory).filter(|memory| *memory != 0));
            continue;
        }
        let Some((base, size, now)) = player.translation.memory(word) else {
            continue;
        };
        if found.memory.insert(base, size).is_some() {
            continue;
        }
        let mut at = 0;
        while at < size {
            let mut bytes = vec![0u8; PART.min(size - at) as usize];
            player.read(now + at, &mut bytes)?;
            let pointers = words_of(&bytes).filter(|word| {
                let target = player.translation.memory(*word);
                target.is_some_and(|(base, ..)| !found.memory.contains_key(&base))
                    || player.images.contains_key(word) && !found.images.contains(word)
            });
            words.extend(pointers);
            at += PART;
        }
    }
    Ok(found)
}
