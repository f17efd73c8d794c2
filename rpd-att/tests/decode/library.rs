//! The C library, called through its own interface and through the loader for libraries of other vendors.

use std::ffi::{CStr, c_char, c_void};
use std::path::PathBuf;

use rpd_att::abi::{self, types};
use rpd_att::{CodeObjects, Info, Library, PluginError, Record, find_library};

use crate::collect::{All, all};
use crate::encoder::{BASE, Gfx9};

fn stream() -> Vec<u8> {
    let mut stream = Gfx9::new(1);
    stream
        .start_words()
        .code_object(3, BASE, 0x10000, 2)
        .kernel(BASE + 0x1000)
        .wave_start(40, 1, 0, 0)
        .run(60, 0)
        .run(80, 5)
        .wave_end(200, 1, 0, 0)
        .wave_start(204, 1, 2, 3)
        .shader_data(208, 1, 0, 77)
        .perf(212, 1, 0, [1, 2, 3, 4]);
    stream.bytes
}

/// State that callbacks of a tool keep.
#[derive(Default)]
struct Tool {
    stream: Vec<u8>,
    given: bool,
    kinds: Vec<(i32, u64)>,
    instructions: Vec<types::Instruction>,
    gfx: usize,
    capacities: Vec<u64>,
    text: String,
}

unsafe extern "C" fn data(buffer: *mut *mut u8, size: *mut u64, user: *mut c_void) -> u64 {
    // SAFETY: the tests pass a `Tool`, and the library pointers that can be written.
    unsafe {
        let tool = &mut *user.cast::<Tool>();
        if std::mem::replace(&mut tool.given, true) {
            return 0;
        }
        *buffer = tool.stream.as_mut_ptr();
        *size = tool.stream.len() as u64;
        *size
    }
}

unsafe extern "C" fn trace(
    kind: i32,
    events: *mut c_void,
    count: u64,
    user: *mut c_void,
) -> types::Status {
    // SAFETY: the tests pass a `Tool`, and the library records of this kind.
    unsafe {
        let tool = &mut *user.cast::<Tool>();
        tool.kinds.push((kind, count));
        match kind {
            types::kind::GFXIP => tool.gfx = events as usize,
            types::kind::WAVE => {
                let wave = &*events.cast::<types::Wave>();
                assert_eq!(wave.size, 64);
                let count = wave.instruction_count as usize;
                if count > 0 {
                    let list = std::slice::from_raw_parts(wave.instructions, count);
                    tool.instructions.extend_from_slice(list);
                }
            }
            _ => {}
        }
    }
    types::SUCCESS
}

unsafe extern "C" fn text(
    text: *mut c_char,
    bytes: *mut u64,
    capacity: *mut u64,
    pc: types::Pc,
    user: *mut c_void,
) -> types::Status {
    // SAFETY: the tests pass a `Tool`, and the library a buffer of `capacity` bytes.
    unsafe {
        let tool = &mut *user.cast::<Tool>();
        tool.capacities.push(*capacity);
        let line = match pc.address {
            0x1000 => tool.text.clone(),
            0x1008 => "v_mov_b32_e32 v0, v1".to_owned(),
            _ => return types::INVALID_ARGUMENT,
        };
        let room = std::ptr::replace(capacity, line.len() as u64);
        if room < line.len() as u64 {
            return types::OUT_OF_RESOURCES;
        }
        std::ptr::copy_nonoverlapping(line.as_ptr(), text.cast(), line.len());
        *bytes = if pc.address == 0x1000 { 8 } else { 4 };
    }
    types::SUCCESS
}

/// Checks thread-trace-40.
#[test]
fn a_text_longer_than_the_buffer_is_asked_for_again() {
    let mut tool = Tool {
        stream: stream(),
        text: format!("s_load_dword s0, s[0:1], 0x0 ; {}", "x".repeat(1000)),
        ..Tool::default()
    };
    // SAFETY: the callbacks have the interface's types, and the tool outlives the call.
    let status = unsafe {
        abi::rocprof_trace_decoder_parse_data(
            Some(data),
            Some(trace),
            Some(text),
            (&raw mut tool).cast(),
        )
    };
    assert_eq!(status, types::SUCCESS);
    assert_eq!(tool.gfx, 9);
    // Called a second time, with the room it needs.
    assert_eq!(tool.capacities[1], tool.text.len() as u64);
    let addresses: Vec<_> = (tool.instructions.iter())
        .map(|instruction| (instruction.category_stall & 0xFF, instruction.pc.address))
        .collect();
    assert_eq!(addresses, [(1, 0x1000), (6, 0x1008)]);
    assert_eq!(tool.kinds[0], (types::kind::GFXIP, 0));
    assert!(tool.kinds.contains(&(types::kind::OCCUPANCY, 3)));
    assert!(tool.kinds.contains(&(types::kind::INFO, 1)));
}

/// Checks thread-trace-23.
#[test]
fn data_that_is_no_trace_has_the_status_for_invalid_data() {
    let mut tool = Tool {
        stream: vec![0; 64],
        ..Tool::default()
    };
    // SAFETY: as above.
    let status = unsafe {
        abi::rocprof_trace_decoder_parse_data(
            Some(data),
            Some(trace),
            Some(text),
            (&raw mut tool).cast(),
        )
    };
    assert_eq!(status, types::INVALID_SHADER_DATA);
    assert!(tool.kinds.is_empty());
    // SAFETY: null callbacks are refused.
    let status =
        unsafe { abi::rocprof_trace_decoder_parse_data(None, None, None, std::ptr::null_mut()) };
    assert_eq!(status, types::INVALID_ARGUMENT);
}

#[test]
fn decoder_handles_have_their_own_code_and_callbacks() {
    let mut handle = types::Handle { handle: 0 };
    // SAFETY: it can be written.
    let made = unsafe { abi::rocprof_trace_decoder_create_handle(&raw mut handle) };
    assert_eq!(made, types::SUCCESS);
    assert_ne!(handle.handle, 0);
    let mut tool = Tool {
        text: "s_load_dword s0, s[0:1], 0x0".to_owned(),
        ..Tool::default()
    };
    let user: *mut c_void = (&raw mut tool).cast();
    let status = abi::rocprof_trace_decoder_set_isa_callback(handle, Some(text), user);
    assert_eq!(status, types::SUCCESS);
    let bytes = stream();
    // SAFETY: the bytes are there, and the tool outlives the call.
    let status = unsafe {
        abi::rocprof_trace_decoder_parse(
            handle,
            bytes.as_ptr().cast(),
            bytes.len() as u64,
            Some(trace),
            user,
        )
    };
    assert_eq!(status, types::SUCCESS);
    assert_eq!(tool.instructions.len(), 2);
    assert_eq!(tool.instructions[1].pc.address, 0x1008);

    let junk = [1u8; 100];
    // SAFETY: the bytes are there.
    let load = |handle| unsafe {
        abi::rocprof_trace_decoder_codeobj_load(handle, 1, 0, 0, junk.as_ptr().cast(), 100)
    };
    assert_eq!(load(handle), types::ERROR);
    assert_eq!(
        abi::rocprof_trace_decoder_codeobj_unload(handle, 1),
        types::ERROR
    );
    assert_eq!(
        abi::rocprof_trace_decoder_destroy_handle(handle),
        types::SUCCESS
    );
    assert_eq!(
        abi::rocprof_trace_decoder_destroy_handle(handle),
        types::INVALID_ARGUMENT
    );
    assert_eq!(load(handle), types::INVALID_ARGUMENT);
}

#[test]
fn each_note_and_status_has_a_text_of_its_own() {
    let shown = |text: *const c_char| {
        // SAFETY: the texts are terminated and never freed.
        unsafe { CStr::from_ptr(text) }
            .to_str()
            .expect("UTF-8")
            .to_owned()
    };
    let mut infos: Vec<_> = (0..5)
        .map(|number| shown(abi::rocprof_trace_decoder_get_info_string(number)))
        .collect();
    assert_eq!(infos[4], "Unknown information");
    infos.dedup();
    assert_eq!(infos.len(), 5);
    let statuses: Vec<_> = (0..7)
        .map(|number| shown(abi::rocprof_trace_decoder_get_status_string(number)))
        .collect();
    assert_eq!(statuses[0], "Success");
    assert_eq!(statuses[6], "Unknown status");
}

/// Path of the library that was built with this test.
fn built() -> PathBuf {
    let test = std::env::current_exe().expect("a test");
    let deps = test.parent().expect("a directory");
    let library = deps.join("librpd_att.so");
    assert!(library.exists(), "{} is not built", library.display());
    library
}

#[test]
fn the_c_library_delivers_the_records_of_the_crate() {
    let library = Library::open(&built()).expect("a library");
    assert!(
        library
            .own_version()
            .is_some_and(|version| version.starts_with("rpd "))
    );
    let mut bytes = stream();
    let direct = all(&bytes);
    let mut through = All::default();
    let mut sink = |record: Record<'_>| through.take(record);
    library
        .decode(&mut bytes, &CodeObjects::default(), &mut sink)
        .expect("decoded");
    assert_eq!(through.gfx, 9);
    assert_eq!(through.occupancy, direct.occupancy);
    assert_eq!(through.perf, direct.perf);
    assert_eq!(through.shader_data, direct.shader_data);
    assert_eq!(through.infos, direct.infos);
    assert!(through.infos.contains(&Info::WaveIncomplete));
    for (a, b) in through.waves.iter().zip(&direct.waves) {
        assert_eq!(
            (&a.timeline, &a.instructions),
            (&b.timeline, &b.instructions)
        );
    }
    let mut sink = |_: Record<'_>| {};
    let error = library
        .decode(&mut [0; 64], &CodeObjects::default(), &mut sink)
        .expect_err("no trace");
    assert!(
        error
            .to_string()
            .ends_with("reports: Not a thread trace of GFX9 to GFX12 (status 4)"),
        "{error}"
    );
}

/// Checks thread-trace-2 and thread-trace-5.
#[test]
fn libraries_are_found_below_directories() {
    let root = tempfile::tempdir().expect("a directory");
    let (bad, good) = (root.path().join("bad"), root.path().join("good"));
    let inner = good.join("lib");
    std::fs::create_dir_all(&inner).expect("made");
    std::fs::create_dir_all(&bad).expect("made");
    let path = inner.join("librocprof-trace-decoder.so.0.1.6");
    std::fs::write(&path, "no library").expect("written");
    assert_eq!(
        find_library(&[bad.clone(), good.clone()]).expect("found"),
        path
    );
    let error = find_library(&[bad.clone(), root.path().join("none")]).expect_err("not there");
    assert_eq!(
        error.to_string(),
        format!(
            "no file whose name contains librocprof-trace-decoder.so in {}, {}",
            bad.display(),
            root.path().join("none").display()
        )
    );
    assert!(matches!(
        Library::open(&path),
        Err(PluginError::NotAvailable { .. })
    ));
    // A library that lacks the interface.
    let libc = [
        "/lib/x86_64-linux-gnu/libm.so.6",
        "/usr/lib/libm.so.6",
        "/lib64/libm.so.6",
    ]
    .into_iter()
    .map(PathBuf::from)
    .find(|path| path.exists())
    .expect("the system's libm");
    let error = Library::open(&libc).expect_err("no decoder");
    assert!(
        error
            .to_string()
            .ends_with("it lacks rocprof_trace_decoder_parse_data"),
        "{error}"
    );
}

/// Builds a library in C with the interface's first version.
fn other(directory: &std::path::Path) -> PathBuf {
    let path = directory.join("librocprof-trace-decoder.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/decode/other.c");
    let status = std::process::Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", source, "-o"])
        .arg(&path)
        .status()
        .expect("a C compiler");
    assert!(status.success());
    path
}

/// Checks thread-trace-6, thread-trace-40 and thread-trace-41.
#[test]
fn a_library_with_the_first_interface_decodes() {
    let directory = tempfile::tempdir().expect("a directory");
    let library = Library::open(&other(directory.path())).expect("a library");
    assert_eq!(library.own_version(), None);
    let object = include_bytes!("../../../rpd-gfx/testdata/kernels-O3.co");
    let mut code = CodeObjects::default();
    code.add(3, object).expect("a code object");
    let mut got = All::default();
    let mut sink = |record: Record<'_>| got.take(record);
    library
        .decode(&mut stream(), &code, &mut sink)
        .expect("decoded");
    // The record of an unknown kind is left out.
    assert_eq!(got.order, ["gfx", "wave"]);
    assert_eq!(got.gfx, 9);
    let wave = &got.waves[0];
    assert_eq!((wave.begin, wave.end), (44, 208));
    let instruction = wave.instructions[0];
    assert_eq!((instruction.time, instruction.stall), (64, 3));
    // What the library got of the instruction, after it offered too little room.
    let known = code
        .instruction(instruction.pc)
        .map_or(0, |found| found.bytes as i32);
    assert_eq!(instruction.duration, known);
    let mut sink = |_: Record<'_>| {};
    let error = library
        .decode(&mut [0; 4], &code, &mut sink)
        .expect_err("too short");
    assert!(
        error.to_string().ends_with("reports: failed (status 4)"),
        "{error}"
    );
}
