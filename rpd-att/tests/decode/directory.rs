//! Lines of a real code object, and the directory for the viewer made of them.

use std::path::Path;

use rpd_att::{CodeObjects, Directory, Listing, Pc, Record, decode};
use rpd_gfx::disasm::Category;
use serde_json::Value;

use crate::encoder::{BASE, Gfx9};

const OBJECT: &[u8] = include_bytes!("../../../rpd-gfx/testdata/kernels-O3.co");

/// A code object with id 3, and the address of a function in it that begins with a few lines without a branch.
fn code() -> (CodeObjects, u64) {
    let mut code = CodeObjects::default();
    code.add(3, OBJECT).expect("a code object");
    // Kernels begin at multiples of 256.
    let entry = (0..0x10000u64)
        .step_by(256)
        .find(|address| {
            let pc = Pc {
                address: *address,
                code_object: 3,
            };
            code.function(pc)
                .is_some_and(|f| f.address == *address && f.size > 64)
        })
        .expect("a kernel");
    (code, entry)
}

/// A stream of waves that execute the first lines of the kernel, up to the first branch; returns the number of the
/// lines, too.
fn stream(code: &CodeObjects, entry: u64, waves: u64) -> (Vec<u8>, usize) {
    let mut stream = Gfx9::new(1);
    stream
        .start_words()
        .code_object(3, BASE, 0x100_0000, 2)
        .kernel(BASE + entry);
    let mut lines = 0;
    for slot in 0..waves {
        let mut time = stream.time + 40;
        stream.wave_start(time, 1, 0, slot);
        let mut address = entry;
        lines = 0;
        loop {
            let pc = Pc {
                address,
                code_object: 3,
            };
            let instruction = code.instruction(pc).expect("code");
            time += 20;
            let kind = match instruction.category {
                Category::Salu => 1,
                Category::Smem => 0,
                Category::Vmem => 2,
                Category::Valu => 5,
                Category::Lds => 6,
                Category::Wait | Category::Internal => {
                    stream.issue(time, 0, &[(slot, 3)]);
                    address += u64::from(instruction.bytes);
                    lines += 1;
                    continue;
                }
                _ => break,
            };
            stream.issue(time, 0, &[(slot, 2)]);
            time += 8;
            stream.inst(time, 0, slot, kind);
            address += u64::from(instruction.bytes);
            lines += 1;
        }
        stream.wave_end(time + 40, 1, 0, slot);
    }
    (stream.bytes, lines)
}

fn read(directory: &Path, name: &str) -> Value {
    let text = std::fs::read(directory.join(name)).unwrap_or_else(|_| panic!("{name}"));
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Checks thread-trace-42, thread-trace-43, thread-trace-47, thread-trace-51 and thread-trace-52.
#[test]
fn decoded_files_have_the_lines_and_sums_of_the_trace() {
    let (code, entry) = code();
    let (stream, executed) = stream(&code, entry, 3);
    assert!(executed > 3, "{executed}");
    let place = tempfile::tempdir().expect("a directory");
    let mut directory = Directory::new(place.path().to_owned());
    let mut listing = Listing::default();
    let (mut durations, mut stalls) = (0u64, 0u64);
    let mut sink = |record: Record<'_>| match record {
        Record::Gfx(major) => directory.gfx(major),
        Record::Wave(wave) => {
            for instruction in wave.instructions {
                assert!(instruction.pc.is_known());
                durations += instruction.duration as u64;
                stalls += u64::from(instruction.stall);
            }
            listing.add(&wave, &code);
            directory.wave(0, &wave, &listing).expect("written");
        }
        Record::Occupancy(records) => directory.occupancy(0, records),
        _ => {}
    };
    let diagnosis = decode(&stream[..], &mut &code, &mut sink).expect("a trace");
    assert_eq!(diagnosis.to_string(), "");
    assert_eq!(diagnosis.instructions as usize, 3 * executed);

    // thread-trace-43: sums over lines are the sums over instructions.
    let lines = listing.lines();
    assert_eq!(
        lines.iter().map(|line| line.latency).sum::<u64>(),
        durations
    );
    assert_eq!(lines.iter().map(|line| line.stall).sum::<u64>(), stalls);
    assert!(lines.iter().all(|line| line.stall <= line.latency));
    assert_eq!(lines.iter().filter(|line| line.hits == 3).count(), executed);
    // thread-trace-42: the whole kernel is there, with zeros.
    let pc = Pc {
        address: entry,
        code_object: 3,
    };
    let kernel = code.function(pc).expect("a kernel");
    let last = lines.last().expect("lines").pc.address;
    assert!(last > entry && last < entry + kernel.size);
    assert!(lines.iter().any(|line| line.hits == 0));
    assert_eq!(listing.label(pc), Some(kernel.name.as_str()));
    assert_eq!(lines[0].number, 1);

    // Sources with all that JSON has to escape: thread-trace-47.
    let source = |pc: Pc| {
        if pc.address == entry {
            "/a \"b\"/c,d\\e.hip:3 -> /f.hip:9".to_owned()
        } else {
            String::new()
        }
    };
    let counters = ["SQ_WAVES".to_owned()];
    directory
        .finish(&listing, &code, &counters, &source, &|name| {
            format!("{name}()")
        })
        .expect("written");
    let directory = place.path();
    let names = read(directory, "filenames.json");
    assert_eq!(names["gfxv"], "vega");
    assert_eq!(names["gfxip"], 9);
    assert_eq!(names["counter_names"][0], "SQ_WAVES");
    let file = names["wave_filenames"]["0"]["0"]["2"]["0"][0]
        .as_str()
        .expect("a wave");
    assert_eq!(file, "se0_sm0_sl2_wv0.json");
    let wave = read(directory, file);
    assert_eq!(wave["num_insts"], executed);
    assert_eq!(wave["num_stitched"], executed);
    let begin = wave["wave"]["begin"].as_i64().expect("a time");
    let end = wave["wave"]["end"].as_i64().expect("a time");
    assert_eq!(wave["duration"], end - begin);
    let timeline = wave["wave"]["timeline"].as_array().expect("a list");
    let sum: i64 = timeline
        .iter()
        .map(|span| span[1].as_i64().unwrap_or(0))
        .sum();
    assert_eq!(sum, end - begin);
    assert_eq!(wave["wave"]["instructions"][0][4], 1);
    assert!(wave["wave"]["waitcnt"].is_array());

    let code_file = read(directory, "code.json");
    assert_eq!(
        code_file["header"],
        "ISA, _, LineNumber, Source, Codeobj, Vaddr, Hit, Latency, Stall, Idle"
    );
    let rows = code_file["code"].as_array().expect("rows");
    assert_eq!(rows[0][0], format!("; {}", kernel.name));
    assert_eq!(rows[0][2], 0);
    assert_eq!(rows[0][3], format!("{}()", kernel.name));
    assert_eq!(rows[1][3], "/a \"b\"/c,d\\e.hip:3 -> /f.hip:9");
    assert_eq!(rows[1][6], 3);
    assert_eq!(rows.len(), lines.len() + 1);
    // None of these sources exists.
    assert!(!directory.join("snapshots.json").exists());

    let occupancy = read(directory, "occupancy.json");
    assert_eq!(occupancy["0"].as_array().map(Vec::len), Some(6));
    assert_eq!(occupancy["0"][0][4], 1);
    assert_eq!(occupancy["dispatches"]["0"], "0 / 0x0");
    assert_eq!(occupancy["dispatches"]["1"], kernel.name);

    // thread-trace-49: numbers of waves in a state are never negative, and 0 at the end.
    for state in 1..5 {
        let name = format!("wstates{state}.json");
        if !directory.join(&name).exists() {
            continue;
        }
        let states = read(directory, &name);
        let counts = states["state"].as_array().expect("a list");
        assert!(
            counts.iter().all(|count| count.as_i64() >= Some(0)),
            "{name}"
        );
        assert_eq!(counts.last().and_then(Value::as_i64), Some(0), "{name}");
    }
}

/// Checks thread-trace-48.
#[test]
fn a_trace_without_waves_of_the_target_has_files_and_a_warning() {
    let code = CodeObjects::default();
    let mut stream = Gfx9::new(1);
    stream
        .start_words()
        .wave_start(40, 5, 0, 0)
        .wave_end(80, 5, 0, 0);
    let place = tempfile::tempdir().expect("a directory");
    let mut directory = Directory::new(place.path().to_owned());
    let mut sink = |record: Record<'_>| {
        if let Record::Occupancy(records) = record {
            directory.occupancy(0, records);
        }
        assert!(!matches!(record, Record::Wave(_)));
    };
    decode(&stream.bytes[..], &mut &code, &mut sink).expect("a trace");
    let listing = Listing::default();
    directory
        .finish(&listing, &code, &[], &|_| String::new(), &str::to_owned)
        .expect("written");
    let directory = place.path();
    assert_eq!(read(directory, "code.json")["code"], serde_json::json!([]));
    assert_eq!(
        read(directory, "occupancy.json")["0"]
            .as_array()
            .map(Vec::len),
        Some(2)
    );
    assert_eq!(
        read(directory, "filenames.json")["wave_filenames"],
        serde_json::json!({})
    );
}

#[test]
fn existing_sources_are_copied_into_the_directory() {
    let (code, entry) = code();
    let (stream, _) = stream(&code, entry, 1);
    let directory = tempfile::tempdir().expect("a directory");
    let real = directory.path().join("kernel.hip");
    std::fs::write(&real, "code").expect("written");
    let target = directory.path().join("ui");
    std::fs::create_dir(&target).expect("made");
    let mut directory = Directory::new(target.clone());
    let mut listing = Listing::default();
    let mut sink = |record: Record<'_>| {
        if let Record::Wave(wave) = record {
            listing.add(&wave, &code);
        }
    };
    decode(&stream[..], &mut &code, &mut sink).expect("a trace");
    directory.gfx(9);
    let source = |_| format!("{}:3", real.display());
    directory
        .finish(&listing, &code, &[], &source, &str::to_owned)
        .expect("written");
    assert_eq!(
        std::fs::read_to_string(target.join("source_0_kernel.hip")).expect("copied"),
        "code"
    );
    let mut at = &read(&target, "snapshots.json");
    for part in real.components() {
        at = &at[part.as_os_str().to_str().expect("UTF-8")];
    }
    assert_eq!(at, "source_0_kernel.hip");
}
