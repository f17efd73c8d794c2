//! Every check passes on a healthy machine, and fails or warns on one that lacks what it looks at.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use clap::Parser as _;
use tempfile::TempDir;

use super::check::{Check, Finding, Status};
use super::machine::{Machine, Probes, Rocm, SelfTest, User};
use super::probes::newest;
use super::{Arguments, checks, choose, examine, forwarded, matches_glob};
use crate::exit_status::USAGE;

/// A machine in a directory, which goes with this value.
struct Fake {
    machine: Machine,
    _root: TempDir,
}

impl Fake {
    /// A machine with an AMD GPU, an NVIDIA GPU and everything that checks look for. The user is not root.
    fn healthy() -> Fake {
        let root = tempfile::tempdir().expect("a directory");
        let mut fake = Fake {
            machine: Machine {
                root: root.path().to_owned(),
                variables: Default::default(),
                user: User {
                    id: 1000,
                    name: "ada".to_owned(),
                    groups: vec![44, 109],
                },
                rocm: Rocm {
                    root: Some(PathBuf::from("/opt/rocm-7.0.0")),
                    source: "/opt".to_owned(),
                },
                output: root.path().join("home"),
                probes: Probes {
                    can_use: |_| true,
                    group: |name| {
                        let id = if name == "render" { 109 } else { 44 };
                        Some((id, vec!["ada".to_owned()]))
                    },
                    free_bytes: |_| Some(1 << 40),
                    can_create: |_| Ok(()),
                    loads: |_, _| Ok(()),
                    in_loader_cache: |_| None,
                    otf2: || Ok(()),
                    own_library: |name| Ok(PathBuf::from(name)),
                    self_test: |_| {
                        Ok(SelfTest {
                            calls: 5,
                            counters: (2, 1),
                        })
                    },
                },
            },
            _root: root,
        };
        let lib = "/opt/rocm-7.0.0/lib";
        for library in [
            "librocprofiler-sdk.so.1",
            "libamdhip64.so.7",
            "libhsa-runtime64.so.1",
            "librocprofiler-register.so.0",
            "librocprofiler-sdk-roctx.so.1",
            "librocprofiler-sdk-attach.so.1",
            "libamd_comgr.so.3",
        ] {
            fake.write(&format!("{lib}/{library}"), "");
        }
        let node = "/sys/class/kfd/kfd/topology/nodes";
        let card = "/sys/class/drm/card0/device";
        for (path, text) in [
            ("/opt/rocm-7.0.0/.info/version", "7.0.0"),
            (
                "/opt/rocm-7.0.0/share/rocprofiler-sdk/counter_defs.yaml",
                "",
            ),
            ("/dev/kfd", ""),
            ("/dev/dri/renderD128", ""),
            ("/dev/nvidiactl", ""),
            ("/dev/nvidia0", ""),
            ("/usr/local/cuda/lib64/libcupti.so.13", ""),
            ("/proc/driver/nvidia/params", "RmProfilingAdminOnly: 0\n"),
            (
                "/proc/self/status",
                "Name:\trpd\nCapEff:\t0000004000000000\n",
            ),
            (
                "/proc/self/limits",
                "Max locked memory  unlimited  unlimited  bytes\n",
            ),
            ("/proc/7/cmdline", "/usr/bin/python3\0train.py\0"),
            ("/sys/module/amdgpu/version", "6.14\n"),
            (&format!("{node}/0/properties"), "simd_count 0\n"),
            (
                &format!("{node}/1/properties"),
                "simd_count 1216\ngfx_target_version 90402\n",
            ),
            (
                &format!("{card}/power_dpm_force_performance_level"),
                "auto\n",
            ),
            (&format!("{card}/power/runtime_status"), "active\n"),
            (&format!("{card}/pp_dpm_sclk"), "0: 500Mhz\n1: 2100Mhz *\n"),
            ("/home/.keep", ""),
            ("/tmp/.keep", ""),
        ] {
            fake.write(path, text);
        }
        fake
    }

    fn write(&mut self, path: &str, text: &str) {
        let path = self.machine.path(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(path, text).expect("written");
    }

    fn remove(&mut self, path: &str) {
        let path = self.machine.path(path);
        if path.is_dir() {
            fs::remove_dir_all(path).expect("removed");
        } else {
            fs::remove_file(path).expect("removed");
        }
    }

    fn set(&mut self, name: &str, value: &str) {
        self.machine.variables.insert(name.into(), value.into());
    }

    fn finding(&self, id: &str) -> Finding {
        let check = checks::all().find(|check| check.id == id);
        (check.expect("a check of this id").run)(&self.machine)
    }
}

/// What spoils a machine for a check, and how the check ends then.
type Spoiled = (&'static str, Status, fn(&mut Fake));

const LIB: &str = "/opt/rocm-7.0.0/lib";

/// A machine for every check that can end otherwise than with success.
const SPOILED: &[Spoiled] = &[
    ("rpd.libraries", Status::Fail, |fake| {
        fake.machine.probes.own_library = |name| Err(format!("{name} is not installed with rpd"));
    }),
    ("rpd.simulator", Status::Fail, |fake| {
        fake.machine.probes.self_test = |_| Ok(SelfTest::default());
    }),
    ("install.rocm-root", Status::Fail, |fake| {
        fake.remove("/opt")
    }),
    ("install.sdk-library", Status::Fail, |fake| {
        fake.remove(&format!("{LIB}/librocprofiler-sdk.so.1"));
    }),
    ("install.hip-runtime", Status::Fail, |fake| {
        fake.remove(&format!("{LIB}/libamdhip64.so.7"));
    }),
    ("install.registration-library", Status::Fail, |fake| {
        fake.remove(&format!("{LIB}/librocprofiler-register.so.0"));
    }),
    ("install.roctx-library", Status::Warn, |fake| {
        fake.remove(&format!("{LIB}/librocprofiler-sdk-roctx.so.1"));
    }),
    ("install.attach-library", Status::Warn, |fake| {
        fake.remove(&format!("{LIB}/librocprofiler-sdk-attach.so.1"));
    }),
    ("install.comgr-library", Status::Warn, |fake| {
        fake.remove(&format!("{LIB}/libamd_comgr.so.3"));
    }),
    ("install.metrics-path", Status::Warn, |fake| {
        fake.set("ROCPROFILER_METRICS_PATH", "/nowhere");
    }),
    ("install.no-mixed-rocm", Status::Warn, |fake| {
        fake.set("LD_LIBRARY_PATH", "/usr/lib:/opt/rocm-6.4.1/lib");
    }),
    ("install.otf2-library", Status::Warn, |fake| {
        fake.machine.probes.otf2 = || Err("no libotf2".to_owned());
    }),
    ("driver.kfd-device", Status::Fail, |fake| {
        fake.remove("/dev/kfd");
        fake.remove("/dev/nvidiactl");
    }),
    ("driver.kfd-readable", Status::Fail, |fake| {
        fake.machine.probes.can_use = |_| false;
    }),
    ("driver.dri-devices", Status::Warn, |fake| {
        fake.remove("/dev/dri")
    }),
    ("driver.render-group", Status::Warn, |fake| {
        fake.machine.user.groups = vec![44];
    }),
    ("driver.video-group", Status::Warn, |fake| {
        fake.machine.probes.group = |_| None;
    }),
    ("driver.amdgpu-module", Status::Fail, |fake| {
        fake.remove("/sys/module/amdgpu");
    }),
    ("driver.gpu-topology", Status::Fail, |fake| {
        fake.remove("/sys/class/kfd/kfd/topology/nodes/1");
    }),
    ("driver.power-state", Status::Warn, |fake| {
        fake.write(
            "/sys/class/drm/card0/device/power/runtime_status",
            "suspended",
        );
    }),
    ("runtime.libraries-load", Status::Fail, |fake| {
        fake.machine.probes.loads = |_, _| Err("libelf.so.1: cannot open".to_owned());
    }),
    ("counters.no-profiler-lock", Status::Warn, |fake| {
        fake.write("/proc/9/cmdline", "python3\0/opt/rocm/bin/rocprofv3\0-s\0");
    }),
    ("smoke.recording", Status::Fail, |fake| {
        fake.machine.probes.self_test =
            |_| Err("hipMalloc returned hipErrorOutOfMemory".to_owned());
    }),
    ("smoke.counters", Status::Warn, |fake| {
        fake.machine.probes.self_test = |_| {
            Ok(SelfTest {
                calls: 0,
                counters: (2, 0),
            })
        };
    }),
    ("cuda.devices", Status::Fail, |fake| {
        fake.remove("/dev/nvidia0")
    }),
    ("cuda.cupti-library", Status::Warn, |fake| {
        fake.remove("/usr/local/cuda")
    }),
    ("cuda.counter-rights", Status::Warn, |fake| {
        fake.write("/proc/driver/nvidia/params", "RmProfilingAdminOnly: 1\n");
    }),
    ("cuda.injection", Status::Warn, |fake| {
        fake.set("CUDA_INJECTION64_PATH", "/opt/nsys/libToolsInjection64.so");
    }),
    ("environ.run-as-user", Status::Warn, |fake| {
        fake.machine.user.id = 0;
        fake.set("SUDO_USER", "ada");
    }),
    ("environ.ld-preload-conflict", Status::Fail, |fake| {
        fake.set("LD_PRELOAD", "/opt/rocm/lib/libroctracer64.so.4");
    }),
    ("environ.hsa-tools-lib", Status::Warn, |fake| {
        fake.set("HSA_TOOLS_LIB", "libother.so");
    }),
    ("environ.rocp-tool-libraries", Status::Warn, |fake| {
        fake.set("ROCP_TOOL_LIBRARIES", "/nowhere/libtool.so");
    }),
    ("environ.gpu-visibility", Status::Warn, |fake| {
        fake.set("ROCR_VISIBLE_DEVICES", "");
    }),
    ("environ.ptrace-scope", Status::Warn, |fake| {
        fake.write("/proc/sys/kernel/yama/ptrace_scope", "1");
    }),
    ("environ.kernel-lockdown", Status::Warn, |fake| {
        fake.write(
            "/sys/kernel/security/lockdown",
            "none [integrity] confidentiality",
        );
    }),
    ("container.device-passthrough", Status::Warn, |fake| {
        fake.write("/.dockerenv", "");
        fake.remove("/dev");
    }),
    ("container.limits", Status::Warn, |fake| {
        fake.write("/sys/fs/cgroup/memory.max", "104857600");
    }),
    ("system.numa", Status::Warn, |fake| {
        for node in ["node0", "node1"] {
            fake.write(&format!("/sys/devices/system/node/{node}/cpulist"), "0");
        }
        fake.write("/proc/sys/kernel/numa_balancing", "1");
    }),
    ("system.locked-memory", Status::Warn, |fake| {
        fake.write(
            "/proc/self/limits",
            "Max locked memory  65536  65536  bytes\n",
        );
    }),
    ("filesystem.output-dir-writable", Status::Fail, |fake| {
        fake.machine.probes.can_create = |_| Err("Read-only file system".to_owned());
    }),
    ("filesystem.output-disk-space", Status::Fail, |fake| {
        fake.machine.probes.free_bytes = |_| Some(1 << 20);
    }),
    ("filesystem.tmp-writable", Status::Warn, |fake| {
        fake.machine.probes.can_create = |_| Err("Permission denied".to_owned());
    }),
];

/// Checks that only tell a fact.
const NEVER_FAIL: [&str; 5] = [
    "install.decoder-library",
    "driver.clocks",
    "counters.cap-perfmon",
    "cuda.driver",
    "container.detected",
];

#[test]
fn every_check_passes_on_a_healthy_machine() {
    let fake = Fake::healthy();
    for check in checks::all() {
        let finding = (check.run)(&fake.machine);
        assert_eq!(finding.status, Status::Pass, "{}: {finding:?}", check.id);
        assert!(finding.remedy.is_empty(), "{}", check.id);
    }
}

#[test]
fn every_check_finds_what_it_looks_for() {
    for (id, status, spoil) in SPOILED {
        let mut fake = Fake::healthy();
        spoil(&mut fake);
        let finding = fake.finding(id);
        assert_eq!(finding.status, *status, "{id}: {finding:?}");
        assert!(!finding.remedy.is_empty(), "{id} has no remedy");
        assert!(!finding.detail.contains('\n'), "{id}: {finding:?}");
    }
    for check in checks::all() {
        let is_tested = SPOILED.iter().any(|(id, ..)| *id == check.id);
        assert!(
            is_tested || NEVER_FAIL.contains(&check.id),
            "{} has no machine on which it fails",
            check.id
        );
    }
}

#[test]
fn missing_device_fails_and_what_depends_on_it_is_skipped() {
    let mut fake = Fake::healthy();
    fake.remove("/dev/kfd");
    fake.remove("/dev/nvidiactl");
    let all: Vec<&Check> = checks::all().collect();
    let outcomes = examine(&all, &fake.machine);
    let status = |id: &str| {
        let outcome = outcomes.iter().find(|outcome| outcome.check.id == id);
        outcome.expect("run").finding.status
    };
    assert_eq!(status("driver.kfd-device"), Status::Fail);
    for id in [
        "driver.kfd-readable",
        "driver.gpu-topology",
        "driver.clocks",
        "smoke.counters",
    ] {
        assert_eq!(status(id), Status::Skip, "{id}");
    }
}

#[test]
fn machine_with_an_nvidia_gpu_lacks_no_amd_driver() {
    let mut fake = Fake::healthy();
    fake.remove("/dev/kfd");
    fake.remove("/opt");
    fake.machine.rocm.root = None;
    assert_eq!(fake.finding("driver.kfd-device").status, Status::Skip);
    assert_eq!(fake.finding("install.rocm-root").status, Status::Skip);
}

#[test]
fn group_of_a_new_member_asks_for_a_new_session() {
    let mut fake = Fake::healthy();
    fake.machine.user.groups.clear();
    let finding = fake.finding("driver.render-group");
    assert!(finding.remedy.contains("new session"), "{finding:?}");
    assert!(!finding.remedy.contains("usermod"), "{finding:?}");
}

#[test]
fn empty_list_of_visible_gpus_hides_every_gpu() {
    let mut fake = Fake::healthy();
    fake.set("ROCR_VISIBLE_DEVICES", "");
    let empty = fake.finding("environ.gpu-visibility").detail;
    fake.set("ROCR_VISIBLE_DEVICES", "0");
    let one = fake.finding("environ.gpu-visibility").detail;
    assert!(empty.contains("hides every GPU"), "{empty}");
    assert!(!one.contains("hides every GPU"), "{one}");
}

#[test]
fn library_of_another_version_is_named() {
    let mut fake = Fake::healthy();
    fake.remove(&format!("{LIB}/librocprofiler-sdk.so.1"));
    fake.write(&format!("{LIB}/librocprofiler-sdk.so.2"), "");
    let finding = fake.finding("install.sdk-library");
    assert!(
        finding.detail.contains("only librocprofiler-sdk.so.2"),
        "{finding:?}"
    );
}

#[test]
fn link_to_the_inspected_installation_is_no_other_one() {
    let mut fake = Fake::healthy();
    symlink("rocm-7.0.0", fake.machine.below(Path::new("/opt/rocm"))).expect("linked");
    fake.set("ROCM_PATH", "/opt/rocm");
    assert_eq!(fake.finding("install.no-mixed-rocm").status, Status::Pass);
}

fn given(words: &[&str]) -> Arguments {
    Arguments::try_parse_from([&["rpd doctor"], words].concat()).expect("parsed")
}

fn chosen(words: &[&str]) -> Vec<&'static str> {
    let all: Vec<&Check> = checks::all().collect();
    let chosen = choose(&all, &given(words)).expect("chosen");
    chosen.iter().map(|check| check.id).collect()
}

#[test]
fn only_selects_checks_with_their_prerequisites() {
    assert_eq!(
        chosen(&["--only", "driver.gpu-topology"]),
        ["driver.kfd-device", "driver.gpu-topology"]
    );
    assert_eq!(
        chosen(&["--only", "cuda", "--skip", "*.c*"]),
        ["cuda.driver", "cuda.devices", "cuda.injection"]
    );
    assert!(!chosen(&[]).contains(&"smoke.recording"));
    assert!(chosen(&["--run-smoke-test"]).contains(&"smoke.recording"));
    let all: Vec<&Check> = checks::all().collect();
    let failure = choose(&all, &given(&["--only", "nosuch"]))
        .err()
        .expect("refused");
    assert_eq!(failure.status, USAGE);
    assert!(failure.message.contains("nosuch"), "{}", failure.message);
}

#[test]
fn checks_stand_after_those_they_depend_on() {
    let ids: Vec<&str> = checks::all().map(|check| check.id).collect();
    for (place, check) in checks::all().enumerate() {
        for id in check.depends {
            assert!(ids[..place].contains(id), "{} needs {id}", check.id);
        }
        assert_eq!(
            ids.iter().filter(|id| **id == check.id).count(),
            1,
            "{}",
            check.id
        );
    }
}

#[test]
fn option_before_the_program_stands_for_the_sub_command() {
    let words = |words: &[&str]| -> Vec<OsString> { words.iter().map(OsString::from).collect() };
    assert_eq!(
        forwarded(&words(&["--doctor", "--format", "json"])),
        Some(words(&["--format", "json"]))
    );
    assert_eq!(forwarded(&words(&["-s", "--", "app", "--doctor"])), None);
}

#[test]
fn pattern_matches_with_any_letters_for_an_asterisk() {
    for (pattern, text, matches) in [
        ("driver", "driver", true),
        ("driver", "driver.kfd", false),
        ("driver.*", "driver.kfd", true),
        ("*kfd*", "driver.kfd-device", true),
        ("*x", "driver", false),
        ("", "", true),
    ] {
        assert_eq!(matches_glob(pattern, text), matches, "{pattern} {text}");
    }
}

#[test]
fn newest_installation_is_that_of_the_highest_version() {
    let names = ["rocm-10.0.0", "rocm-7.0.2", "rocm-7.1.0", "rocm-old"];
    assert_eq!(
        newest(names.map(str::to_owned).to_vec()).as_deref(),
        Some("rocm-10.0.0")
    );
    assert_eq!(newest(vec!["rocm".to_owned()]).as_deref(), Some("rocm"));
    assert_eq!(newest(Vec::new()), None);
}
