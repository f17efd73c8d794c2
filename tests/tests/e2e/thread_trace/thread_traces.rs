//! `rpd att` on trace files.

use std::path::Path;
use std::process::Output;

use rpd_tests::install;

/// A stream of an MI300 of which the records are known: one wave with a scalar read, a wait and a vector operation.
const STREAM: &str = "\
    11a01f000000000000200100001000000000820042c300524f43820042c30102\
    0800820042c304020000820042c300000000820042c304030000820042c3007f\
    0000820042c304010000820042c300000100820042c304040000820042c30000\
    0000820042c304000000820042c30e0000008f18100000008f1a7f0000008f00\
    01000000a0005300000040001d0200001a0080011d0300001d01000010001d02\
    00001a2850005600";

fn stream() -> Vec<u8> {
    (0..STREAM.len() / 2)
        .map(|at| u8::from_str_radix(&STREAM[2 * at..2 * at + 2], 16).expect("hexadecimal"))
        .collect()
}

fn rpd(directory: &Path, arguments: &[&str]) -> Output {
    std::process::Command::new(install::rpd())
        .args(arguments)
        .current_dir(directory)
        .output()
        .expect("rpd")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

/// Checks thread-trace-53.
#[test]
fn raw_trace_files_are_decoded_without_a_gpu() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path();
    std::fs::write(directory.join("17_8118_shader_engine_0_1.att"), stream()).expect("written");
    let done = rpd(directory, &["att", "decode", "."]);
    let (out, error) = (text(&done.stdout), text(&done.stderr));
    assert!(done.status.success(), "{error}");
    assert!(out.contains("Dispatch 1 on agent 8118"), "{out}");
    assert!(error.contains("no code objects"), "{error}");
    let view = "ui_output_agent_8118_dispatch_1";
    let stats = std::fs::read_to_string(directory.join(format!("stats_{view}.csv")));
    assert_eq!(
        stats.expect("a file"),
        "\"CodeObj\",\"Vaddr\",\"Instruction\",\"Hitcount\",\"Latency\",\"Stall\",\"Idle\",\"Source\"\n"
    );
    let wave = std::fs::read_to_string(directory.join(view).join("se0_sm0_sl0_wv0.json"));
    assert_eq!(
        wave.expect("a file"),
        "{\"name\":\"SE0\",\"duration\":164,\"wave\":{\"cu\":1,\"id\":0,\"simd\":0,\"slot\":0,\"begin\":44,\"end\":208,\
         \"instructions\":[[64,1,0,4,0],[68,9,104,104,0],[172,6,8,12,0]],\
         \"timeline\":[[1,20],[2,4],[3,104],[4,8],[1,28]],\"waitcnt\":[]},\"num_stitched\":0,\"num_insts\":3}"
    );
    for name in ["filenames.json", "code.json", "occupancy.json"] {
        assert!(directory.join(view).join(name).exists(), "{name}");
    }
    // Nothing unfinished stays.
    let left = std::fs::read_dir(directory).expect("a directory").count();
    assert_eq!(left, 3);
    let traced = rpd(directory, &["att", "decode", "-f", "pftrace", "--", "."]);
    assert!(traced.status.success());
    assert!(directory.join(format!("{view}.pftrace")).exists());
    // Decoding again replaces the files that are there.
    assert!(rpd(directory, &["att", "decode", "."]).status.success());
}

/// Checks thread-trace-23.
#[test]
fn att_decode_reports_faulty_trace_files() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path();
    let none = rpd(directory, &["att", "decode", "."]);
    assert_eq!(none.status.code(), Some(1));
    assert_eq!(
        text(&none.stderr),
        "rpd: att: no thread trace (*.att) in .\n"
    );

    // One file is no trace and one is cut off (thread-trace-29); the others are decoded.
    std::fs::write(directory.join("8118_shader_engine_0_1.att"), [0; 64]).expect("written");
    let cut = stream();
    std::fs::write(
        directory.join("8118_shader_engine_1_1.att"),
        &cut[..cut.len() - 1],
    )
    .expect("written");
    let done = rpd(directory, &["att", "decode", "-f", "csv", "--", "."]);
    let error = text(&done.stderr);
    assert_eq!(done.status.code(), Some(1));
    assert!(
        error.contains("rpd: cannot decode ./8118_shader_engine_0_1.att: the first 8 bytes, 00 00 00 00 00 00 00 00, are not the header of a GFX9 to GFX12 thread trace"),
        "{error}"
    );
    assert!(
        error.contains("rpd: ./8118_shader_engine_1_1.att: the trace ends inside the token at byte 166; everything before it was decoded"),
        "{error}"
    );
    assert!(!directory.join("ui_output_agent_8118_dispatch_1").exists());
}

/// Checks thread-trace-4.
#[test]
fn att_decode_uses_decoder_libraries_of_others() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path();
    std::fs::write(directory.join("8118_shader_engine_0_1.att"), stream()).expect("written");
    let library = directory.join("lib/deep/librocprof-trace-decoder.so");
    std::fs::create_dir_all(directory.join("lib/deep")).expect("made");
    std::fs::create_dir_all(directory.join("empty")).expect("made");
    let own = install::bin_dir().join("librpd_att.so");
    std::fs::copy(&own, &library).expect("the decoder library");

    let missing = rpd(
        directory,
        &["att", "decode", ".", "--att-library-path", "empty"],
    );
    assert_eq!(missing.status.code(), Some(1));
    assert_eq!(
        text(&missing.stderr),
        "rpd: att decode: --att-library-path: no file whose name contains librocprof-trace-decoder.so in empty\n"
    );
    let found = rpd(
        directory,
        &["att", "decode", ".", "--att-library-path", "empty", "lib"],
    );
    assert!(found.status.success(), "{}", text(&found.stderr));
    let wave = directory.join("ui_output_agent_8118_dispatch_1/se0_sm0_sl0_wv0.json");
    let wave = std::fs::read_to_string(wave).expect("a wave");
    assert!(
        wave.contains("[[64,1,0,4,0],[68,9,104,104,0],[172,6,8,12,0]]"),
        "{wave}"
    );
    let same = rpd(
        directory,
        &["att", "diff", ".", "--att-library-path", "lib"],
    );
    assert_eq!(same.status.code(), Some(1));
    assert!(
        text(&same.stderr).contains("comparing it with itself shows nothing"),
        "{}",
        text(&same.stderr)
    );
}
