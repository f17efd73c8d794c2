//! Messages of the simulated GPU about kernels that it stops.

use std::process::Command;

use rpd_tests::{install, workloads};

/// Runs the workload without rpd; the first error, with every address of memory that the kernel allocated or missed replaced
/// by `ADDRESS`.
fn error(arguments: &[&str]) -> String {
    let mut command = Command::new(workloads::path("faults"));
    command
        .args(arguments)
        .env("LD_LIBRARY_PATH", install::simulator_dir());
    let output = command.output().expect("the workload runs");
    assert!(!output.status.success(), "{arguments:?}");
    let text = String::from_utf8(output.stderr).expect("UTF-8");
    let lines: Vec<&str> = text.lines().take(2).collect();
    let mut words: Vec<String> = Vec::new();
    for word in lines.join("\n").split(' ') {
        let digits = word.find("0x7").map(|at| &word[at + 2..]);
        let length = digits.map_or(0, |digits| {
            digits.bytes().take_while(u8::is_ascii_hexdigit).count()
        });
        words.push(match length {
            12 => word.replace(&word[word.find("0x7").unwrap_or(0)..][..14], "ADDRESS"),
            _ => word.to_owned(),
        });
    }
    words.join(" ")
}

const STORE: &str = "_ZN6faults5storeIfEEvPT_l";
const PLACE: &str = "\n  at tests/workloads/kernels/faults.hip:8:29 (inlined in tests/workloads/kernels/faults.hip:11:5), \
    offset 0x20 of the kernel, workgroup 0, wave 0, lanes 0-63";

fn of_store(what: &str) -> String {
    format!(
        "rpd-sim: GPU node 1, queue 0: memory access fault in kernel void faults::store<float>(float*, long): {what}{PLACE}"
    )
}

#[test]
fn fault_messages_describe_the_address() {
    assert_eq!(
        error(&[STORE, "-64"]),
        of_store(
            "write of 4 bytes at ADDRESS: 256 bytes before the allocation of 67108864 bytes at ADDRESS"
        )
    );
    assert_eq!(
        error(&[STORE, "6", "null"]),
        of_store("write of 4 bytes at 0x18: a null pointer with an offset of 24 bytes")
    );
    assert_eq!(
        error(&[STORE, "6", "freed"]),
        of_store(
            "write of 4 bytes at ADDRESS: byte 24 of the allocation of 67108864 bytes at ADDRESS, which was freed"
        )
    );
    assert_eq!(
        error(&[STORE, "6", "host"]),
        of_store(
            "write of 4 bytes at ADDRESS: memory of the host that the device cannot access (hipHostMalloc and \
             hipHostRegister make such memory accessible)"
        )
    );
}

/// The error of a kernel of the namespace: heading and place.
fn of(name: &str, heading: &str, place: &str) -> String {
    format!(
        "rpd-sim: GPU node 1, queue 0: {}\n  at tests/workloads/kernels/faults.hip:{place}",
        heading.replace("KERNEL", &format!("faults::{name}"))
    )
}

#[test]
fn fault_messages_list_the_failing_lanes() {
    assert_eq!(
        error(&["_ZN6faults10some_lanesEPjl", "-64"]),
        of(
            "some_lanes(unsigned int*, long)",
            "memory access fault in kernel KERNEL: write of 4 bytes at ADDRESS: 256 bytes before the allocation of 67108864 \
             bytes at ADDRESS",
            "18:33, offset 0x30 of the kernel, workgroup 0, wave 0, lanes 0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, \
             52, 56, 60"
        )
    );
    assert_eq!(
        error(&["_ZN6faults6scalarEPKjl", "-4096"]),
        of(
            "scalar(unsigned int const*, long)",
            "memory access fault in kernel KERNEL: read of 4 bytes at ADDRESS: 16384 bytes before the allocation of 67108864 \
             bytes at ADDRESS",
            "23:9, offset 0x18 of the kernel, workgroup 0, wave 0"
        )
    );
}

#[test]
fn fault_messages_name_lds_and_scratch() {
    assert_eq!(
        error(&["_ZN6faults5localEPjl", "1000"]),
        of(
            "local(unsigned int*, long)",
            "memory access fault in kernel KERNEL: write of 4 bytes at 0x1000000000fa0: byte 4000 of LDS, of which the \
             workgroup has 512 bytes",
            "32:32, offset 0x98 of the kernel, workgroup 0, wave 0, lanes 0-63"
        )
    );
    assert_eq!(
        error(&["_ZN6faults7scratchEPjl", "100000"]),
        of(
            "scratch(unsigned int*, long)",
            "memory access fault in kernel KERNEL: write of 4 bytes at ADDRESS: byte 400000 of scratch, of which a work-item \
             has 80 bytes",
            "40:17, offset 0x174 of the kernel, workgroup 0, wave 0, lanes 0-63"
        )
    );
}

#[test]
fn a_fault_message_names_a_misaligned_atomic() {
    assert_eq!(
        error(&["_ZN6faults3oddEPjl", "0"]),
        of(
            "odd(unsigned int*, long)",
            "memory access fault in kernel KERNEL: atomic of 4 bytes at ADDRESS: byte 2 of the allocation of 67108864 bytes \
             at ADDRESS; the address of an atomic is a multiple of its size",
            "45:5, offset 0x44 of the kernel, workgroup 0, wave 0, lane 0"
        )
    );
}

#[test]
fn a_fault_message_names_a_kernel_that_ended_itself() {
    assert_eq!(
        error(&["_ZN6faults5trapsEPjl", "0"]),
        of(
            "traps(unsigned int*, long)",
            "kernel KERNEL ended itself (assert, abort or __builtin_trap)",
            "51:9, offset 0x30 of the kernel, workgroup 0, wave 0, lanes 0-63"
        )
    );
}

#[test]
fn a_fault_message_names_an_unsupported_instruction() {
    assert_eq!(
        error(&["_ZN6faults6packedEPjl", "0"]),
        of(
            "packed(unsigned int*, long)",
            "illegal instruction in kernel KERNEL: the simulator does not execute `image_load_pck`: f0080100 00000000 \
             (MIMG opcode 0x2)",
            "58:5, offset 0xc of the kernel, workgroup 0, wave 0, lanes 0-63"
        )
    );
}
