//! ROCm SMI: calls from C, and from Python as its Python package makes them.

use crate::common;
use rpd_tests::skips::tool_for;

#[test]
fn rocm_smi_describes_the_simulated_devices() {
    let libraries = ["-lrocm_smi64", "-lamdhip64"];
    let (directory, program) = common::build("rocm_smi", "rocm_smi.c", &[], &libraries);
    let variables = [("RPD_SIM_GPUS", "2"), ("HIP_VISIBLE_DEVICES", "0")];
    let (said, complaints) = common::run_loudly(&directory, &program, &[], &variables);
    assert_eq!(complaints, "");
    let gpu = |number: u32| {
        let bus = 3 + number;
        format!(
            "0 AMD, Virtual AMD GPU, 1002:7408, {:x}, bus {bus:x}, 68702699520 bytes, gfx90a\n\
             0 clock 1700000000, memory 0 1600000000, display 2\n\
             short name: 11 Vir\n\
             firmware: 0 78, none: 2\n",
            0x7270_6473_696d_0000_u64 + u64::from(number)
        )
    };
    let expected = format!(
        "before: 8 RSMI_STATUS_INIT_ERROR: The library is not initialized.\n\
         2 GPUs\n{}{}\
         not supported: 2 2 2\n\
         no such GPU: 1 1\n\
         no place: 1\n\
         link: 0, 1 hops, kind 2, weight 0 15\n\
         link: 0, 2 hops, kind 1, weight 0 20\n\
         processes: 0 0\n\
         memory: 0 1\n\
         processes: 0 1, this: 1, memory: 1\n\
         after: 8\n",
        gpu(0),
        gpu(1)
    );
    assert_eq!(said, expected);

    let Some(python) = tool_for("ROCm SMI from Python", "python3") else {
        return;
    };
    let script = "
from ctypes import *
smi = CDLL('librocm_smi64.so.7')
assert smi.rsmi_init(0) == 0
count, name, used = c_uint32(0), create_string_buffer(64), c_uint64(0)
assert smi.rsmi_num_monitor_devices(byref(count)) == 0
assert smi.rsmi_dev_name_get(0, name, 64) == 0
assert smi.rsmi_dev_memory_usage_get(0, 0, byref(used)) == 0
power, kind = c_uint64(0), c_uint32(0)
print(count.value, name.value.decode(), smi.rsmi_dev_power_get(0, byref(power), byref(kind)))
assert smi.rsmi_shut_down() == 0
";
    let variables = [("RPD_SIM_GPU", "gfx942")];
    let (said, complaints) = common::run_loudly(&directory, &python, &["-c", script], &variables);
    assert_eq!(
        (said.as_str(), complaints.as_str()),
        ("1 Virtual AMD GPU 2\n", "")
    );
}
