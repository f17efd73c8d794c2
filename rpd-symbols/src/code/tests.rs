//! Against the output of LLVM's symbolizer for a code object with inlined and called functions.

use std::collections::HashMap;
use std::path::Path;

use rpd_core::ids::{AgentHandle, CodeObjectId, CorrelationId, DispatchId, Nanoseconds};
use rpd_core::session::Session;
use rpd_core::session::code::CodeImage;
use rpd_core::session::{CodeObject as LoadedObject, KernelSymbol, SampleRow};
use rpd_gfx::codeobj::{Target, bundle};

use super::{DebugInfo, look_up_code};

/// The code object of `inside.hip` for gfx90a.
fn inside() -> Vec<u8> {
    let path = "../tests/workloads/kernels/prebuilt/inside.hipfb";
    let bytes = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect("readable");
    let target = Target::parse("gfx90a").expect("a target");
    bundle::pick(&bytes, &target)
        .expect("in the bundle")
        .into_owned()
}

/// `llvm-symbolizer --inlines --functions=linkage --relativenames` of every dword of code, where it changes.
const LINES: &str = include_str!("../../testdata/inside-gfx90a-lines.txt");

#[test]
fn code_places_are_those_of_llvm_symbolizer() {
    let bytes = inside();
    let object = DebugInfo::parse(&bytes).expect("an ELF file");
    assert!(object.has_lines() && object.problem().is_none());
    let (mut compared, mut without_line) = (0, 0);
    // What was said last of code of the same function, in the same calls.
    let mut last_of: HashMap<(&str, &str), &str> = HashMap::new();
    let mut expected = LINES.lines().peekable();
    while let Some(line) = expected.next() {
        let (address, texts) = line.split_once(' ').expect("two fields");
        let hexadecimal = |text: &str| u64::from_str_radix(text, 16).expect("a number");
        let first = hexadecimal(address);
        let behind = expected
            .peek()
            .and_then(|next| next.split_once(' '))
            .map_or(first + 4, |next| hexadecimal(next.0));
        if texts.contains("??") {
            last_of.clear();
            continue;
        }
        // Where LLVM has line 0, the line before it in the function counts.
        let (own, callers) = texts.split_once(" | ").unwrap_or((texts, ""));
        let (function, place) = own.rsplit_once(' ').expect("two fields");
        let texts = if place.contains(":0:") {
            without_line += 1;
            last_of.get(&(function, callers)).copied().unwrap_or(texts)
        } else {
            last_of.insert((function, callers), texts);
            texts
        };
        for address in (first..behind).step_by(4) {
            let places: Vec<String> = object
                .places(address)
                .iter()
                .map(|place| {
                    let function = place.function.as_deref().unwrap_or("??");
                    format!("{function} {}:{}:{}", place.file, place.line, place.column)
                })
                .collect();
            assert_eq!(places.join(" | "), texts, "{address:#x}");
            compared += 1;
        }
    }
    assert!(
        compared > 600 && without_line > 10,
        "{compared}, {without_line}"
    );
}

#[test]
fn code_functions_are_found_by_address() {
    let bytes = inside();
    let object = DebugInfo::parse(&bytes).expect("an ELF file");
    let name = |address| {
        object
            .function_at(address)
            .map(|function| function.name.as_str())
    };
    assert_eq!(name(0x2f00), Some("dependent_chain"));
    assert_eq!(name(0x2f00 + 347), Some("dependent_chain"));
    assert_eq!(name(0x2f00 + 348), None);
    // A function that a kernel calls.
    assert_eq!(name(0x3e1c), Some("_ZL9phase_onefi"));
    assert_eq!(name(0), None);
    assert_eq!(object.code_at(0x2f00, 8).len(), 8);
    assert!(object.code_at(1, 8).is_empty());
}

#[test]
fn parse_refuses_bytes_that_are_no_code_object() {
    assert!(DebugInfo::parse(b"").is_err());
    assert!(DebugInfo::parse(b"\x7fELF and then nothing").is_err());
    let mut bytes = inside();
    // Damage anywhere must not panic; every second length, since files are cut off in the middle.
    for end in (0..bytes.len()).step_by(bytes.len() / 40) {
        if let Ok(object) = DebugInfo::parse(&bytes[..end]) {
            object.places(0x2f00);
        }
    }
    for place in (0..bytes.len()).step_by(97) {
        bytes[place] ^= 0x5a;
    }
    if let Ok(object) = DebugInfo::parse(&bytes) {
        for address in (0x2f00..0x4000).step_by(4) {
            object.places(address);
        }
    }
}

/// A session with samples at these offsets of the code object, which was loaded at 0x7000_0000_0000.
fn sampled(bytes: Vec<u8>, offsets: &[u64]) -> Session {
    let mut session = Session::default();
    session.strings.intern("");
    let object = CodeObjectId(3);
    session.code_objects.push(LoadedObject {
        id: object,
        agent: AgentHandle(7),
        uri: String::new(),
        load_base: 0x7000_0000_0000,
        load_size: 0x8000,
        load_delta: 0x7000_0000_0000,
        storage_type: 2,
        memory_base: 0,
        memory_size: 0,
        size: 0,
    });
    session.code.images.push(CodeImage {
        content: [1, 2],
        bytes: std::sync::Arc::new(bytes.into()),
    });
    session.code.image_of.insert(object, 0);
    for (index, offset) in offsets.iter().enumerate() {
        let samples = &mut session.samples;
        let time = Nanoseconds(index as u64 * 1_000_000);
        samples.push(SampleRow {
            start: time,
            end: time,
            object,
            offset: *offset,
            exec: u64::MAX,
            dispatch: DispatchId(1),
            correlation: CorrelationId(1),
            region: 0,
            hardware: 0,
            workgroup: [0; 3],
            wave: 0,
            flags: 0,
            class: 0,
            waves: 0,
            snapshot: 0,
            memory: 0,
        });
    }
    session
}

#[test]
fn look_up_code_disassembles_whole_functions_with_samples() {
    let mut session = sampled(inside(), &[0x2f18, 0x2f18, 0x3e20]);
    look_up_code(&mut session, false);
    let code = &session.code;
    assert!(code.problems.is_empty(), "{:?}", code.problems);
    let text = |offset| {
        let found = code.find(CodeObjectId(3), offset).expect("an instruction");
        session
            .strings
            .get(code.instructions[found].text)
            .to_owned()
    };
    assert!(text(0x2f18).starts_with("v_fma"), "{}", text(0x2f18));
    let first = code.find(CodeObjectId(3), 0x2f00).expect("the first");
    assert_eq!(
        code.comment(&session.strings, &code.instructions[first]),
        "tests/workloads/kernels/inside.hip:8 -> tests/workloads/kernels/device.h:14"
    );
    // Two functions, and nothing of the others.
    let functions: std::collections::BTreeSet<&str> = code
        .instructions
        .iter()
        .map(|instruction| session.strings.get(instruction.function))
        .collect();
    assert_eq!(
        functions.into_iter().collect::<Vec<_>>(),
        ["_ZL9phase_onefi", "dependent_chain"]
    );
    let of_first = code
        .instructions
        .iter()
        .filter(|instruction| instruction.offset < 0x3000 + 0x5c);
    assert_eq!(
        of_first.map(|instruction| instruction.length).sum::<u32>(),
        348
    );
}

#[test]
fn look_up_code_keeps_samples_outside_functions_and_bytes() {
    // In the gap after a function, and far after the code.
    let mut session = sampled(inside(), &[0x2f00 + 348, 0x90_0000]);
    look_up_code(&mut session, false);
    assert_eq!(session.code.instructions.len(), 2);
    let mut session = sampled(b"no code object".to_vec(), &[0x100]);
    look_up_code(&mut session, false);
    assert!(session.code.instructions.is_empty());
    assert!(
        session.code.problems[0].starts_with("code object 3: "),
        "{:?}",
        session.code.problems
    );
    let mut session = sampled(inside(), &[0x2f00]);
    session.code.image_of.clear();
    look_up_code(&mut session, false);
    assert_eq!(session.code.problems.len(), 1);
}

#[test]
fn totals_find_the_kernel_by_its_function() {
    let mut session = sampled(inside(), &[0x2f18, 0x2f18, 0x2f20]);
    session.kernel_symbols.push(KernelSymbol {
        id: rpd_core::ids::KernelId(9),
        code_object: CodeObjectId(3),
        name: "dependent_chain.kd".to_owned(),
        kernel_object: 0,
        kernarg_size: 0,
        kernarg_align: 0,
        group_size: 0,
        private_size: 0,
        sgpr_count: 0,
        arch_vgpr_count: 0,
        accum_vgpr_count: 0,
        entry_offset: 0,
        kernel_address: 0,
        size: 0,
    });
    look_up_code(&mut session, false);
    let totals = rpd_core::session::totals::InstructionTotals::from_session(&session);
    let kernels: Vec<u64> = totals.places.keys().map(|place| place.kernel.0).collect();
    assert_eq!(kernels, [9, 9]);
    let mut builder = rpd_core::session::hot::HotBuilder::default();
    builder.add(&session, &totals, Default::default(), |_| true);
    let hot = builder.finish();
    assert_eq!((hot.tally.samples, hot.kernels.len()), (3, 1));
    let line = &hot.kernels[0].lines[0];
    assert_eq!((line.tally.samples, line.chain[0].line), (3, 12));
    assert_eq!(line.instructions[0].tally.samples, 2);
    assert_eq!(line.tally.mean_lanes(), Some(64.0));
}
