//! AMD SMI: calls from C, and from Python as its Python package makes them.

use crate::common;
use rpd_tests::skips::tool_for;

#[test]
fn amd_smi_describes_the_simulated_devices() {
    let libraries = ["-lamd_smi", "-lamdhip64"];
    let (directory, program) = common::build("amd_smi", "amd_smi.c", &[], &libraries);
    let variables = [("RPD_SIM_GPUS", "2"), ("HIP_VISIBLE_DEVICES", "0")];
    let (said, complaints) = common::run_loudly(&directory, &program, &[], &variables);
    assert_eq!(complaints, "");
    let gpu = |number: u32| {
        let bus = 3 + number;
        format!(
            "0 socket 0000:{bus:02x}:00, 1 GPU of type 1 at {:x} (1), 72ff7408-0000-1000-8070-6473696d{:04x}\n\
             Virtual AMD GPU, AMD, 7408, 0x{:016X}, 104 units, 90a\n\
             65520 MiB, 4096 bits, 1638 GB/s, 65520 MiB, 1700 MHz\n\
             cache 1: 16 KiB, 104, for 1\n\
             cache 2: 8192 KiB, 1, for 104\n",
            bus << 8,
            number,
            0x7270_6473_696d_0000_u64 + u64::from(number)
        )
    };
    let expected = format!(
        "before: 32 AMDSMI_STATUS_NOT_INIT: The library is not initialized.\n\
         0, 2 sockets\n{}{}\
         link: 0, 1 hops, kind 2\n\
         not supported: 2 2\n\
         no such GPU: 1\n\
         processes: 0 1\n\
         this: 0, probe, 1, memory 1\n\
         after: 32\n",
        gpu(0),
        gpu(1)
    );
    assert_eq!(said, expected);

    let Some(python) = tool_for("AMD SMI from Python", "python3") else {
        return;
    };
    let script = "
from ctypes import *
smi = CDLL('libamd_smi.so.26')
assert smi.amdsmi_init(c_uint64(2)) == 0
class Version(Structure):
    _fields_ = [('major', c_uint32), ('minor', c_uint32), ('release', c_uint32), ('build', c_char_p)]
version = Version()
assert smi.amdsmi_get_lib_version(byref(version)) == 0
print(version.major, version.build.decode(), smi.amdsmi_get_gpu_metrics_info(None, None))
assert smi.amdsmi_shut_down() == 0
";
    let said = common::run_loudly(&directory, &python, &["-c", script], &[]);
    assert_eq!(said, ("26 rpd-sim 1\n".to_owned(), String::new()));
}
