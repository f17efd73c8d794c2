//! Replays what a program did on a real GPU, from a file with a line for each call and record.
//!
//! A line is `KIND key=value ...`, with `name=` last or before `sym=`. Calls (`CBR` of the runtime, `CBD` of the driver) nest by their
//! times. Records keep their order and come after all calls; their times are moved to the present.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};

use cupti_sys::activity::kind;
use cupti_sys::callback::{CallbackData, domain};

use crate::cupti;
use crate::records::Record;

/// A line.
struct Line {
    kind: String,
    values: HashMap<String, String>,
    name: String,
}

impl Line {
    fn parse(text: &str) -> Option<Line> {
        let (text, name) = match text.split_once(" name=") {
            Some((text, name)) => (text, name.split(" sym=").next().unwrap_or_default()),
            None => (text, ""),
        };
        let mut words = text.split(' ');
        let kind = words.next()?.to_owned();
        let values = words.filter_map(|word| {
            let (key, value) = word.split_once('=')?;
            Some((key.to_owned(), value.to_owned()))
        });
        Some(Line {
            kind,
            values: values.collect(),
            name: name.to_owned(),
        })
    }

    fn text(&self, key: &str) -> &str {
        self.values.get(key).map_or("", String::as_str)
    }

    fn number(&self, key: &str) -> u64 {
        let text = self.text(key);
        text.parse().unwrap_or(0)
    }

    fn word(&self, key: &str) -> u32 {
        self.number(key) as u32
    }

    fn three(&self, key: &str) -> [u32; 3] {
        let mut parts = self.text(key).split(',');
        [(); 3].map(|()| parts.next().and_then(|part| part.parse().ok()).unwrap_or(0))
    }
}

/// A call that has begun and not returned.
struct OpenCall {
    domain: c_int,
    function: u32,
    end: u64,
    correlation: u32,
    status: u32,
    of_tool: Box<u64>,
}

impl OpenCall {
    fn call(&mut self, site: c_int) {
        if !cupti::wants(self.domain, self.function) {
            return;
        }
        let data = CallbackData {
            site,
            function: c"".as_ptr(),
            parameters: std::ptr::null(),
            return_value: &raw const self.status,
            symbol: std::ptr::null(),
            context: std::ptr::null_mut(),
            context_id: 1,
            correlation_data: &raw mut *self.of_tool,
            correlation_id: self.correlation,
        };
        let data: *const c_void = (&raw const data).cast();
        cupti::call(self.domain, self.function, data);
    }
}

fn calls(lines: &[Line]) {
    let mut calls: Vec<(&Line, c_int)> = lines
        .iter()
        .filter_map(|line| match &*line.kind {
            "CBR" => Some((line, domain::RUNTIME)),
            "CBD" => Some((line, domain::DRIVER)),
            _ => None,
        })
        .collect();
    calls.sort_by_key(|(line, _)| line.number("start"));
    let mut open: Vec<OpenCall> = Vec::new();
    for (line, domain) in calls {
        while let Some(mut last) = open.pop_if(|last| last.end < line.number("start")) {
            last.call(1);
        }
        let mut call = OpenCall {
            domain,
            function: line.word("cbid"),
            end: line.number("end"),
            correlation: line.word("corr"),
            status: line.word("ret"),
            of_tool: Box::new(0),
        };
        call.call(0);
        open.push(call);
    }
    while let Some(mut last) = open.pop() {
        last.call(1);
    }
}

/// Number of the kind and the record of a line; `None` for lines that are no record of work.
fn record(line: &Line, shift: u64) -> Option<(c_int, Record)> {
    let time = |key| line.number(key).wrapping_add(shift);
    let times = |record: Record, at| record.with(at, time("start")).with(at + 8, time("end"));
    Some(match &*line.kind {
        "KERNEL" => {
            // Records refer to names as long as the module is loaded: for ever.
            let name = CString::new(&*line.name).unwrap_or_default().into_raw();
            let record = times(Record::new(kind::CONCURRENT_KERNEL), 16)
                .with(6, line.word("regs") as u16)
                .with(40, line.word("dev"))
                .with(44, line.word("ctx"))
                .with(48, line.word("stream"))
                .with(76, line.word("ssm"))
                .with(80, line.word("dsm"))
                .with(84, line.word("lmem"))
                .with(92, line.word("corr"))
                .with(104, name as u64)
                .with(144, line.number("graphNode"))
                .with(156, line.word("graph"));
            let (grid, block) = (line.three("grid"), line.three("block"));
            let record = (0..3).fold(record, |record, axis| {
                record
                    .with(52 + 4 * axis, grid[axis])
                    .with(64 + 4 * axis, block[axis])
            });
            (kind::CONCURRENT_KERNEL, record)
        }
        "MEMCPY" => (
            kind::MEMCPY,
            times(Record::new(kind::MEMCPY), 16)
                .with(4, line.word("copyKind") as u8)
                .with(5, line.word("src") as u8)
                .with(6, line.word("dst") as u8)
                .with(7, line.word("flags") as u8)
                .with(8, line.number("bytes"))
                .with(32, line.word("dev"))
                .with(36, line.word("ctx"))
                .with(40, line.word("stream"))
                .with(44, line.word("corr"))
                .with(64, line.number("graphNode"))
                .with(72, line.word("graph")),
        ),
        "MEMSET" => (
            kind::MEMSET,
            times(Record::new(kind::MEMSET), 16)
                .with(4, line.word("value"))
                .with(8, line.number("bytes"))
                .with(32, line.word("dev"))
                .with(36, line.word("ctx"))
                .with(40, line.word("stream"))
                .with(44, line.word("corr"))
                .with(50, line.word("memKind") as u16)
                .with(64, line.number("graphNode"))
                .with(72, line.word("graph")),
        ),
        "MEMORY2" => (
            kind::MEMORY2,
            Record::new(kind::MEMORY2)
                .with(4, line.word("op"))
                .with(8, line.word("memKind"))
                .with(12, line.word("corr"))
                .with(16, u64::from_str_radix(line.text("addr"), 16).unwrap_or(0))
                .with(24, line.number("bytes"))
                .with(32, time("t"))
                .with(52, line.word("dev"))
                .with(56, line.word("ctx"))
                .with(60, line.word("stream"))
                .with(72, line.word("async")),
        ),
        "SYNC" => (
            kind::SYNCHRONIZATION,
            times(Record::new(kind::SYNCHRONIZATION), 8)
                .with(4, line.word("type"))
                .with(24, line.word("corr"))
                .with(28, line.word("ctx"))
                .with(32, line.word("stream"))
                .with(36, line.word("event")),
        ),
        _ => return None,
    })
}

/// Replays a file: its calls on this thread, then its records. 1 when the file cannot be read.
///
/// # Safety
///
/// `path` is text.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rpd_cuda_sim_replay(path: *const c_char) -> c_int {
    // SAFETY: by the contract of this function.
    let path = unsafe { CStr::from_ptr(path) }.to_string_lossy();
    let Ok(text) = std::fs::read_to_string(&*path) else {
        return 1;
    };
    let lines: Vec<Line> = text.lines().filter_map(Line::parse).collect();
    let starts = lines.iter().map(|line| line.number("start"));
    let first = starts.filter(|start| *start > 0).min().unwrap_or(0);
    let shift = cupti::now().wrapping_sub(first);
    calls(&lines);
    for line in &lines {
        if let Some((kind, record)) = record(line, shift)
            && cupti::records(kind)
            && let Some(place) = cupti::append(&record)
        {
            cupti::complete(place, None);
        }
    }
    0
}
