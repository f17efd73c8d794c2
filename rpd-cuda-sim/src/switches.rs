//! Variables of the environment that choose what this library does.

use std::ffi::c_int;
use std::sync::OnceLock;

/// What the variables choose.
#[derive(Debug, Default)]
pub(crate) struct Switches {
    /// `RPD_CUDA_SIM_CUPTI`: version whose records are delivered, such as `12.4`; 13.0 otherwise.
    pub(crate) version: Option<String>,
    /// `RPD_CUDA_SIM_SUBSCRIBE`: result of `cuptiSubscribe`.
    pub(crate) subscribe: c_int,
    /// `RPD_CUDA_SIM_ENABLE`: result of `cuptiActivityEnable`.
    pub(crate) enable: c_int,
    /// `RPD_CUDA_SIM_SILENT`: `all`: tools are never called, as under nsys; `records`: no record is delivered.
    pub(crate) silent: Option<String>,
    /// `RPD_CUDA_SIM_CLOCK`: `own`: the tool's clock is refused.
    pub(crate) own_clock: bool,
    /// `RPD_CUDA_SIM_DROPPED`: records that are reported as dropped.
    pub(crate) dropped: usize,
    /// `RPD_CUDA_SIM_FIRST_ID`: id of the first call.
    pub(crate) first_id: u32,
    /// `RPD_CUDA_SIM_PC_SAMPLING`: result of `cuptiPCSamplingEnable`.
    pub(crate) pc_sampling: c_int,
    /// `RPD_CUDA_SIM_PC_BUFFER_FULL`: the buffer of the hardware is full.
    pub(crate) pc_buffer_full: bool,
    /// `RPD_CUDA_SIM_FATAL`: the library reports a fatal error at the first launch.
    pub(crate) fatal: bool,
}

/// The switches, read once.
pub(crate) fn get() -> &'static Switches {
    static SWITCHES: OnceLock<Switches> = OnceLock::new();
    SWITCHES.get_or_init(|| {
        let text = |name: &str| std::env::var(format!("RPD_CUDA_SIM_{name}")).ok();
        let number = |name: &str| text(name).and_then(|text| text.parse().ok());
        Switches {
            version: text("CUPTI"),
            subscribe: number("SUBSCRIBE").unwrap_or(0),
            enable: number("ENABLE").unwrap_or(0),
            silent: text("SILENT"),
            own_clock: text("CLOCK").is_some_and(|text| text == "own"),
            dropped: number("DROPPED")
                .and_then(|n| usize::try_from(n).ok())
                .unwrap_or(0),
            first_id: text("FIRST_ID")
                .and_then(|text| text.parse().ok())
                .unwrap_or(1),
            pc_sampling: number("PC_SAMPLING").unwrap_or(0),
            pc_buffer_full: text("PC_BUFFER_FULL").is_some(),
            fatal: text("FATAL").is_some(),
        }
    })
}
