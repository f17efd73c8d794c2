//! Compilation of programs, by running clang.

use std::collections::HashMap;
use std::ffi::{CString, OsStr, OsString};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::hip::runtime;

/// Names of compilers, in the order in which they are tried.
const COMPILERS: [&str; 7] = [
    "/opt/rocm/llvm/bin/clang",
    "clang-22",
    "clang-21",
    "clang-20",
    "clang-19",
    "clang-18",
    "clang",
];
/// Declarations that the real library has built in, for use with the headers of an installed ROCm.
const INSTALLED_HEADER: &str = include_str!("installed.h");
/// Replacement for HIP's headers on machines without them.
const DEVICE_HEADER: &str = include_str!("device.h");
/// Names under which programs include HIP's headers.
const HEADERS: [&str; 6] = [
    "hip/hip_runtime.h",
    "hip/hip_runtime_api.h",
    "hip/hip_vector_types.h",
    "hip/hip_fp16.h",
    "hip/math_functions.h",
    "hip/device_functions.h",
];
/// Name of the directory with the replacement headers.
const BUILT_IN: &str = "rpd-sim-built-in";
/// Texts in the compiler's errors that show that an installation has headers, but lacks other files for device code.
const INCOMPLETE: [&str; 2] = ["cannot find ROCm device library", "cannot find HIP runtime"];
/// Prefix of the names of variables that hold name expressions.
const LOWERED: &str = "rpd_sim_lowered_name_";

/// Source of HIP's headers and device libraries.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Hip {
    /// An installation of ROCm in this directory.
    Installed(PathBuf),
    /// The built-in `device.h`, without device libraries.
    BuiltIn,
}

impl Hip {
    /// The first of some directories that has HIP's headers; the built-in ones if none has.
    fn find(places: impl IntoIterator<Item = PathBuf>) -> Self {
        places
            .into_iter()
            .find(|place| place.join("include/hip/hip_runtime.h").is_file())
            .map_or(Self::BuiltIn, Self::Installed)
    }

    /// Directories in which ROCm is looked for: those that the environment names, of the vendor's packages, of the
    /// distribution's packages.
    fn places() -> impl Iterator<Item = PathBuf> {
        let named = ["HIP_PATH", "ROCM_PATH"].into_iter();
        named
            .filter_map(std::env::var_os)
            .map(PathBuf::from)
            .chain([PathBuf::from("/opt/rocm"), PathBuf::from("/usr")])
    }

    /// The compiler's options, for the program in a directory.
    fn options(&self, directory: &Path) -> Vec<OsString> {
        let mut options: Vec<OsString> = Vec::new();
        let header = match self {
            Self::Installed(place) => {
                options.push("-D__HIPCC_RTC__=1".into());
                // A distribution's compiler has device libraries of its own, and finds the headers itself.
                if place != Path::new("/usr") {
                    let mut path = OsString::from("--rocm-path=");
                    path.push(place);
                    options.push(path);
                    options.extend(["-isystem".into(), place.join("include").into()]);
                }
                directory.join("rpd-sim-installed.h")
            }
            Self::BuiltIn => {
                options.extend(["-nogpuinc".into(), "-nogpulib".into()]);
                options.extend(["-I".into(), directory.join(BUILT_IN).into()]);
                directory.join(BUILT_IN).join("rpd-sim-device.h")
            }
        };
        options.extend(["-include".into(), header.into()]);
        options
    }
}

/// A program's source text with its headers.
pub(super) struct Source {
    pub(super) text: CString,
    pub(super) name: CString,
    /// Headers: the name that the program includes, and the text.
    pub(super) headers: Vec<(CString, CString)>,
    pub(super) expressions: Vec<CString>,
}

/// Result of a compilation.
#[derive(Default)]
pub(super) struct Compiled {
    /// Code object; `None` if there was an error.
    pub(super) code: Option<Vec<u8>>,
    pub(super) log: CString,
    /// Lowered names by expression.
    pub(super) names: HashMap<CString, CString>,
}

/// A temporary directory, which is removed when the value is dropped.
struct Directory(PathBuf);

impl Directory {
    fn new() -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("rpd-sim-hiprtc-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    fn write(&self, name: &Path, text: &[u8]) -> io::Result<()> {
        if name.components().any(|part| part == Component::ParentDir) || name.is_absolute() {
            let text = format!(
                "{}: a header's name must be a path below a directory",
                name.display()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap_or(&self.0))?;
        fs::write(path, text)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // An error leaves files in the directory for temporary files, which is harmless.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Compiles a program for the current device.
pub(super) fn compile(source: &Source, options: &[CString]) -> Compiled {
    let compiled = target().and_then(|target| {
        // Looked up for each program: tests and programs change the environment between compilations.
        let installed = Hip::find(Hip::places());
        try_compile(source, options, target, installed)
    });
    match compiled {
        Ok(compiled) => compiled,
        Err(error) => Compiled {
            log: text(format!("rpd-sim: {error}\n").into_bytes()),
            ..Compiled::default()
        },
    }
}

/// A C string of a text, without the zeros in it.
fn text(mut bytes: Vec<u8>) -> CString {
    bytes.retain(|byte| *byte != 0);
    CString::new(bytes).unwrap_or_default()
}

fn try_compile(
    source: &Source,
    options: &[CString],
    target: &str,
    mut hip: Hip,
) -> io::Result<Compiled> {
    let directory = Directory::new()?;
    let built_in = Path::new(BUILT_IN);
    // Programs include HIP's headers by name although the compiler has all of it built in. The files are there, so that
    // the names resolve, and empty.
    for name in HEADERS {
        directory.write(&built_in.join(name), b"#pragma once\n")?;
    }
    let header = built_in.join("rpd-sim-device.h");
    directory.write(&header, DEVICE_HEADER.as_bytes())?;
    let header = Path::new("rpd-sim-installed.h");
    directory.write(header, INSTALLED_HEADER.as_bytes())?;
    // The directory itself is searched before that of the built-in headers: a program's own header takes precedence.
    for (name, header) in &source.headers {
        directory.write(
            Path::new(OsStr::from_bytes(name.to_bytes())),
            header.to_bytes(),
        )?;
    }
    let mut program = source.text.to_bytes().to_vec();
    // Each name expression becomes the address of a variable, so that the compiler itself instantiates templates and
    // chooses overloads.
    for (number, expression) in source.expressions.iter().enumerate() {
        program.extend_from_slice(b"\n__attribute__((device, used)) const void *");
        program.extend_from_slice(format!("{LOWERED}{number} = (const void *)&").as_bytes());
        program.extend_from_slice(expression.to_bytes());
        program.push(b';');
    }
    program.push(b'\n');
    // Messages name the program, not the file.
    let mut named = b"#line 1 \"".to_vec();
    named.extend_from_slice(source.name.to_bytes());
    named.extend_from_slice(b"\"\n");
    named.extend_from_slice(&program);
    directory.write(Path::new("program.hip"), &named)?;

    let mut output = run(&directory, options, target, &hip, "program.co", &[])?;
    let incomplete = |output: &Output| {
        let said = String::from_utf8_lossy(&output.stderr);
        INCOMPLETE.iter().any(|text| said.contains(text))
    };
    // An installation may have headers without the device libraries; then programs that need neither still compile.
    if hip != Hip::BuiltIn && !output.status.success() && incomplete(&output) {
        hip = Hip::BuiltIn;
        output = run(&directory, options, target, &hip, "program.co", &[])?;
    }
    // Warnings are part of the log of a successful compilation, too.
    let log = text(output.stderr);
    if !output.status.success() {
        return Ok(Compiled {
            log,
            ..Compiled::default()
        });
    }
    let code = fs::read(directory.0.join("program.co"))?;
    let mut names = HashMap::new();
    // The code object has addresses in place of names; a listing of the same program has the names.
    if !source.expressions.is_empty() {
        let more = ["-S", "-emit-llvm"];
        run(&directory, options, target, &hip, "program.ll", &more)?;
        let listing = fs::read_to_string(directory.0.join("program.ll"))?;
        for (number, expression) in source.expressions.iter().enumerate() {
            if let Some(name) = lowered(&listing, number) {
                names.insert(expression.clone(), text(name.into_bytes()));
            }
        }
    }
    let code = Some(code);
    Ok(Compiled { code, log, names })
}

/// Runs the compiler on the program in a directory.
fn run(
    directory: &Directory,
    options: &[CString],
    target: &str,
    hip: &Hip,
    result: &str,
    more: &[&str],
) -> io::Result<Output> {
    // Distributions give compilers a name with the version, and not always one without.
    for compiler in COMPILERS {
        let mut command = Command::new(compiler);
        command
            .args(["-x", "hip", "--cuda-device-only"])
            .args([
                "--no-gpu-bundle-output",
                "-mcode-object-version=5",
                "-O3",
                "-fuse-cuid=none",
            ])
            .arg("-std=c++17")
            .arg("-I")
            .arg(&directory.0)
            .args(hip.options(&directory.0))
            .arg(format!("--offload-arch={target}"));
        for option in options {
            let bytes = option.to_bytes();
            let architecture = ["--gpu-architecture", "--offload-arch", "-arch"];
            // The simulated device is the only one there is.
            if architecture
                .iter()
                .any(|name| bytes.starts_with(name.as_bytes()))
            {
                continue;
            }
            command.arg(OsStr::from_bytes(bytes));
        }
        command
            .args(more)
            .arg("-o")
            .arg(directory.0.join(result))
            .arg(directory.0.join("program.hip"))
            // The compiler is not part of what is profiled.
            .env_remove("LD_PRELOAD")
            .env_remove("LD_LIBRARY_PATH")
            .env_remove("ROCP_TOOL_LIBRARIES");
        match command.output() {
            // Only a missing program is a reason to try the next name: any other failure is the answer.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            output => return output,
        }
    }
    let missing = "hiprtc needs clang with the AMDGPU target and lld: install clang-19 and lld-19";
    eprintln!("rpd-sim: {missing}");
    Err(io::Error::new(io::ErrorKind::NotFound, missing))
}

/// Target of the current device with its features, such as `gfx90a:sramecc+:xnack-`.
fn target() -> io::Result<&'static str> {
    let device = runtime::current()
        .map_err(|code| io::Error::other(format!("there is no device: HIP error {code:?}")))?;
    Ok(&device.figures.target)
}

/// Lowered name of name expression `number`: the initial value of its variable in a listing of LLVM.
fn lowered(listing: &str, number: usize) -> Option<String> {
    let begin = format!("@{LOWERED}{number} = ");
    let line = listing.lines().find(|line| line.starts_with(&begin))?;
    let (_, name) = line[begin.len()..].split_once('@')?;
    if let Some(quoted) = name.strip_prefix('"') {
        return Some(quoted.split_once('"')?.0.to_owned());
    }
    let end = name.find(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '.' | '$'));
    Some(name[..end.unwrap_or(name.len())].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lowered_names_are_found_in_a_listing() {
        let listing = "@rpd_sim_lowered_name_0 = addrspace(1) global ptr @_Z3addIfEvPT_, align 8\n\
             @rpd_sim_lowered_name_1 = global ptr addrspacecast (ptr addrspace(4) @\"odd name\" to ptr)\n";
        assert_eq!(lowered(listing, 0).as_deref(), Some("_Z3addIfEvPT_"));
        assert_eq!(lowered(listing, 1).as_deref(), Some("odd name"));
        assert_eq!(lowered(listing, 2), None);
    }
}
