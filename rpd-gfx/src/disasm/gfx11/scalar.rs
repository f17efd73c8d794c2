//! Text of the immediates of scalar instructions.

use crate::disasm::text::{counts_text, small_or_hexadecimal};

/// Names of the hardware registers that `s_getreg_b32` reads, by number.
pub(in crate::disasm) const HARDWARE_REGISTERS: [&str; 30] = [
    "",
    "MODE",
    "STATUS",
    "TRAPSTS",
    "",
    "GPR_ALLOC",
    "LDS_ALLOC",
    "IB_STS",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "SH_MEM_BASES",
    "",
    "",
    "PERF_SNAPSHOT_PC_LO",
    "PERF_SNAPSHOT_PC_HI",
    "FLAT_SCR_LO",
    "FLAT_SCR_HI",
    "",
    "HW_ID1",
    "HW_ID2",
    "",
    "",
    "PERF_SNAPSHOT_DATA",
    "",
    "SHADER_CYCLES",
];

/// Text of the counters that `s_waitcnt` waits for. Counters with the maximum are omitted, unless all have it.
pub(in crate::disasm) fn wait_counts(value: u32) -> String {
    counts_text(&[
        ("vmcnt", value >> 10 & 63, 63),
        ("expcnt", value & 7, 7),
        ("lgkmcnt", value >> 4 & 63, 63),
    ])
}

/// Text of the counters that `s_waitcnt_depctr` waits for.
pub(in crate::disasm) fn dependency_counts(value: u32) -> String {
    if value & 0x60 != 0 {
        return format!("{value:#x}");
    }
    counts_text(&[
        ("depctr_hold_cnt", value >> 7 & 1, 1),
        ("depctr_sa_sdst", value & 1, 1),
        ("depctr_va_vdst", value >> 12 & 15, 15),
        ("depctr_va_sdst", value >> 9 & 7, 7),
        ("depctr_va_ssrc", value >> 8 & 1, 1),
        ("depctr_va_vcc", value >> 1 & 1, 1),
        ("depctr_vm_vsrc", value >> 2 & 7, 7),
    ])
}

/// Text of the instructions on which `s_delay_alu` waits; `None` for an invalid value.
pub(in crate::disasm) fn delay(value: u32) -> Option<String> {
    const DEPENDENCIES: [&str; 12] = [
        "NO_DEP",
        "VALU_DEP_1",
        "VALU_DEP_2",
        "VALU_DEP_3",
        "VALU_DEP_4",
        "TRANS32_DEP_1",
        "TRANS32_DEP_2",
        "TRANS32_DEP_3",
        "FMA_ACCUM_CYCLE_1",
        "SALU_CYCLE_1",
        "SALU_CYCLE_2",
        "SALU_CYCLE_3",
    ];
    const SKIPS: [&str; 6] = ["SAME", "NEXT", "SKIP_1", "SKIP_2", "SKIP_3", "SKIP_4"];
    let mut parts = Vec::new();
    for (name, number, names) in [
        ("instid0", value & 15, &DEPENDENCIES[..]),
        ("instskip", value >> 4 & 7, &SKIPS[..]),
        ("instid1", value >> 7 & 15, &DEPENDENCIES[..]),
    ] {
        if number != 0 {
            parts.push(format!("{name}({})", names.get(number as usize)?));
        }
    }
    Some(if parts.is_empty() {
        "0".to_owned()
    } else {
        parts.join(" | ")
    })
}

/// Text of the immediate of `s_version`.
pub(in crate::disasm) fn version(value: u32) -> String {
    if value & 0x1f00 != 0 {
        return small_or_hexadecimal(value);
    }
    let mut text = match value & 0xff {
        0 => "UC_VERSION_GFX7".to_owned(),
        4 => "UC_VERSION_GFX10".to_owned(),
        6 => "UC_VERSION_GFX11".to_owned(),
        9 => "UC_VERSION_GFX12".to_owned(),
        other => other.to_string(),
    };
    for (bit, name) in [(13, "W64"), (14, "W32"), (15, "MDP")] {
        if value >> bit & 1 != 0 {
            if text.contains('|') {
                text = format!("({text})");
            }
            text.push_str(&format!("|UC_VERSION_{name}_BIT"));
        }
    }
    text
}

/// Text of the message of `s_sendmsg` and `s_sendmsg_rtn`.
pub(in crate::disasm) fn message(value: u32) -> String {
    let name = match value & 0xff {
        1 => "MSG_INTERRUPT",
        2 => "MSG_HS_TESSFACTOR",
        3 => "MSG_DEALLOC_VGPRS",
        5 => "MSG_STALL_WAVE_GEN",
        6 => "MSG_HALT_WAVES",
        9 => "MSG_GS_ALLOC_REQ",
        128 => "MSG_RTN_GET_DOORBELL",
        129 => "MSG_RTN_GET_DDID",
        130 => "MSG_RTN_GET_TMA",
        131 => "MSG_RTN_GET_REALTIME",
        132 => "MSG_RTN_SAVE_WAVE",
        133 => "MSG_RTN_GET_TBA",
        134 => "MSG_RTN_GET_TBA_TO_PC",
        _ if value > 0xff => return value.to_string(),
        _ => return format!("sendmsg({value}, 0, 0)"),
    };
    format!("sendmsg({name})")
}
