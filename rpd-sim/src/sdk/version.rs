//! The version of the SDK whose kinds and records there are: `RPD_SIM_SDK`.

use std::sync::OnceLock;

use rocprofiler_sdk_sys::{
    rocprofiler_buffer_tracing_kind_t as BufferKind,
    rocprofiler_callback_tracing_kind_t as CallbackKind,
    rocprofiler_external_correlation_id_request_kind_t as RequestKind,
};

/// A version of the SDK.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Version {
    /// 1.0.0, of ROCm 7.0.
    V1_0,
    /// 1.3.5, of ROCm 10.0: HIP graphs, and kinds of rocSHMEM and hipFile.
    V1_3,
    /// 1.4.1, of ROCm 10.1: HIP events.
    V1_4,
}

impl Version {
    fn named(name: &str) -> Option<Version> {
        match name {
            "1.0" => Some(Version::V1_0),
            "1.3" => Some(Version::V1_3),
            "1.4" => Some(Version::V1_4),
            _ => None,
        }
    }

    /// The number that tools get: `10000*major + 100*minor + patch`.
    pub(crate) fn number(self) -> u32 {
        match self {
            Version::V1_0 => 10_000,
            Version::V1_3 => 10_305,
            Version::V1_4 => 10_401,
        }
    }

    /// Number of the first buffer kind that the version lacks.
    pub(crate) fn buffer_kinds(self) -> u32 {
        match self {
            Version::V1_0 => BufferKind::HIP_GRAPH.0,
            Version::V1_3 => BufferKind::HIP_EVENT.0,
            Version::V1_4 => BufferKind::LAST.0,
        }
    }

    /// Number of the first callback kind that the version lacks.
    pub(crate) fn callback_kinds(self) -> u32 {
        match self {
            Version::V1_0 => CallbackKind::HIP_GRAPH.0,
            Version::V1_3 => CallbackKind::HIP_EVENT.0,
            Version::V1_4 => CallbackKind::LAST.0,
        }
    }

    /// Number of the first kind of requests for external ids that the version lacks.
    pub(crate) fn request_kinds(self) -> u32 {
        match self {
            Version::V1_0 | Version::V1_3 => RequestKind::HIP_EVENT.0,
            Version::V1_4 => RequestKind::LAST.0,
        }
    }
}

/// The version of this process: the newest, unless `RPD_SIM_SDK` names another.
pub(crate) fn current() -> Version {
    static VERSION: OnceLock<Version> = OnceLock::new();
    *VERSION.get_or_init(|| {
        let asked = std::env::var_os("RPD_SIM_SDK").filter(|name| !name.is_empty());
        let Some(asked) = asked else {
            return Version::V1_4;
        };
        asked.to_str().and_then(Version::named).unwrap_or_else(|| {
            eprintln!(
                "rpd-sim: RPD_SIM_SDK={}: there is no such version, only 1.0, 1.3 and 1.4; simulating 1.4",
                asked.display()
            );
            Version::V1_4
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `sdk-newer-1`, `sdk-newer-2`
    #[test]
    fn version_has_the_kinds_of_its_release() {
        let names = |version: Version| {
            let kinds = (BufferKind::HIP_GRAPH.0..version.buffer_kinds()).map(BufferKind);
            let names = kinds.map(|kind| {
                let name = kind.c_name().expect("a name").to_string_lossy();
                name.trim_start_matches("ROCPROFILER_BUFFER_TRACING_")
                    .to_owned()
            });
            names.collect::<Vec<_>>()
        };
        assert_eq!(names(Version::V1_0), Vec::<String>::new());
        let five = [
            "HIP_GRAPH",
            "ROCSHMEM_API",
            "ROCSHMEM_API_EXT",
            "HIPFILE_API",
            "HIPFILE_API_EXT",
        ];
        assert_eq!(names(Version::V1_3), five);
        assert_eq!(names(Version::V1_4)[5..], ["HIP_EVENT"]);
        assert_eq!(Version::V1_3.buffer_kinds(), 38);
        assert_eq!(Version::V1_4.callback_kinds(), 27);
        assert_eq!(CallbackKind::HIP_EVENT.0, 25);
        assert_eq!(CallbackKind::KERNEL_REPLAY.0, 26);
    }
}
