//! The MessagePack note that describes the kernels of a code object (versions 3 to 6).

use super::Error;
use rmpv::ValueRef;
use std::collections::HashSet;

/// A kernel as the metadata describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// Mangled name of the kernel in the source.
    pub name: String,
    /// Symbol of the kernel descriptor: the mangled name and `.kd`.
    pub symbol: String,
    /// Explicit and hidden arguments, in the order of the note, which is that of offsets.
    pub args: Vec<Arg>,
    /// Size of the kernel argument block in bytes, as the note has it. See [`Kernel::kernarg_bytes`].
    pub kernarg_segment_size: u32,
    /// Alignment of the kernel argument block in bytes.
    pub kernarg_segment_align: u32,
    /// Static LDS of a workgroup in bytes.
    pub group_segment_fixed_size: u32,
    /// Scratch memory of a work-item in bytes.
    pub private_segment_fixed_size: u32,
    /// Number of lanes of a wave.
    pub wavefront_size: u32,
    /// Number of scalar registers of a wave.
    pub sgpr_count: u32,
    /// Number of vector registers of a work-item, with accumulation registers where the register file is unified.
    pub vgpr_count: u32,
    /// Number of accumulation registers of a work-item.
    pub agpr_count: u32,
    /// Number of scalar registers that the compiler spilled.
    pub sgpr_spill_count: u32,
    /// Number of vector registers that the compiler spilled.
    pub vgpr_spill_count: u32,
    /// Greatest number of work-items of a workgroup.
    pub max_flat_workgroup_size: u32,
    /// Workgroup size that the kernel requires, if any.
    pub reqd_workgroup_size: Option<[u32; 3]>,
    /// `normal`, or `init` or `fini` for kernels that run when the code object is loaded or unloaded.
    pub kind: String,
    /// Source language, such as `OpenCL C`; empty when it is not stated.
    pub language: String,
    /// Whether the scratch memory that the kernel needs is known at run time only.
    pub uses_dynamic_stack: bool,
    /// Whether the kernel requires that grids are multiples of the workgroup size.
    pub uniform_work_group_size: bool,
}

impl Kernel {
    /// Size of the kernel argument block in bytes. Old compilers state a size that is too small for the last hidden
    /// arguments.
    pub fn kernarg_bytes(&self) -> u32 {
        self.args
            .iter()
            .map(|a| a.offset.saturating_add(a.size))
            .max()
            .unwrap_or(0)
            .max(self.kernarg_segment_size)
    }

    /// The arguments in the kernel's signature.
    pub fn explicit_args(&self) -> impl Iterator<Item = &Arg> {
        self.args.iter().filter(|a| !a.kind.is_hidden())
    }

    /// The arguments that the runtime provides.
    pub fn hidden_args(&self) -> impl Iterator<Item = &Arg> {
        self.args.iter().filter(|a| a.kind.is_hidden())
    }
}

/// An argument of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arg {
    /// Offset in the kernel argument block in bytes.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
    /// Kind of the argument's value.
    pub kind: ArgKind,
    /// Name in the source; `None` when the compiler did not keep it.
    pub name: Option<String>,
    /// Type in the source; `None` when the compiler did not keep it.
    pub type_name: Option<String>,
    /// Address space of a pointer, such as `global`; `None` for other arguments.
    pub address_space: Option<String>,
}

macro_rules! kinds {
    ($($variant:ident = $text:literal, $hidden:literal;)*) => {
        /// Value kind of an argument (`.value_kind`).
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum ArgKind {
            $(#[doc = concat!("`", $text, "`")] $variant,)*
            /// A kind that rpd does not know, as the note has it.
            Other(String),
        }

        impl ArgKind {
            fn parse(text: &str) -> Self {
                match text {
                    $($text => Self::$variant,)*
                    other => Self::Other(other.to_owned()),
                }
            }

            /// Whether the runtime provides the argument.
            pub fn is_hidden(&self) -> bool {
                match self {
                    $(Self::$variant => $hidden,)*
                    Self::Other(text) => text.starts_with("hidden_"),
                }
            }
        }
    };
}

kinds! {
    ByValue = "by_value", false;
    GlobalBuffer = "global_buffer", false;
    DynamicSharedPointer = "dynamic_shared_pointer", false;
    Sampler = "sampler", false;
    Image = "image", false;
    Pipe = "pipe", false;
    Queue = "queue", false;
    HiddenGlobalOffsetX = "hidden_global_offset_x", true;
    HiddenGlobalOffsetY = "hidden_global_offset_y", true;
    HiddenGlobalOffsetZ = "hidden_global_offset_z", true;
    HiddenNone = "hidden_none", true;
    HiddenPrintfBuffer = "hidden_printf_buffer", true;
    HiddenHostcallBuffer = "hidden_hostcall_buffer", true;
    HiddenDefaultQueue = "hidden_default_queue", true;
    HiddenCompletionAction = "hidden_completion_action", true;
    HiddenMultigridSyncArg = "hidden_multigrid_sync_arg", true;
    HiddenBlockCountX = "hidden_block_count_x", true;
    HiddenBlockCountY = "hidden_block_count_y", true;
    HiddenBlockCountZ = "hidden_block_count_z", true;
    HiddenGroupSizeX = "hidden_group_size_x", true;
    HiddenGroupSizeY = "hidden_group_size_y", true;
    HiddenGroupSizeZ = "hidden_group_size_z", true;
    HiddenRemainderX = "hidden_remainder_x", true;
    HiddenRemainderY = "hidden_remainder_y", true;
    HiddenRemainderZ = "hidden_remainder_z", true;
    HiddenGridDims = "hidden_grid_dims", true;
    HiddenHeapV1 = "hidden_heap_v1", true;
    HiddenDynamicLdsSize = "hidden_dynamic_lds_size", true;
    HiddenPrivateBase = "hidden_private_base", true;
    HiddenSharedBase = "hidden_shared_base", true;
    HiddenQueuePtr = "hidden_queue_ptr", true;
}

/// Content of the metadata notes of a code object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metadata {
    /// `amdhsa.version`, such as (1, 2) for V5.
    pub version: (u32, u32),
    /// `amdhsa.target`, such as `amdgcn-amd-amdhsa--gfx90a`.
    pub target: String,
    /// The kernels of the code object.
    pub kernels: Vec<Kernel>,
    /// Formats of `printf` calls in kernels that write messages to a buffer (`amdhsa.printf`): the number in the
    /// messages, and the text.
    pub formats: Vec<(u64, Vec<u8>)>,
}

impl Metadata {
    /// Adds the content of another note. Of several kernels with the same name the first is kept, as the linker does.
    pub(super) fn merge(&mut self, more: Self) {
        let known: HashSet<String> = self.kernels.iter().map(|k| k.symbol.clone()).collect();
        let new = more.kernels.into_iter();
        self.kernels
            .extend(new.filter(|kernel| !known.contains(&kernel.symbol)));
        for format in more.formats {
            if !self.formats.contains(&format) {
                self.formats.push(format);
            }
        }
    }
}

/// Greatest depth of nesting. Real notes have much less.
const MAX_DEPTH: usize = 32;

/// Parses the content of an AMDGPU metadata note.
pub fn parse(mut note: &[u8]) -> Result<Metadata, Error> {
    let value = rmpv::decode::read_value_ref_with_max_depth(&mut note, MAX_DEPTH)
        .map_err(|e| Error::malformed("metadata note", e.to_string()))?;
    let map = Map::new(&value, "metadata note")?;
    let mut out = Metadata {
        target: map.text("amdhsa.target").unwrap_or_default().to_owned(),
        ..Metadata::default()
    };
    if let Some(ValueRef::Array(version)) = map.get("amdhsa.version") {
        let part = |i: usize| version.get(i).and_then(ValueRef::as_u64).unwrap_or(0) as u32;
        out.version = (part(0), part(1));
    }
    for kernel in map.array("amdhsa.kernels") {
        out.kernels
            .push(read_kernel(&Map::new(kernel, "kernel metadata")?)?);
    }
    let formats = map.array("amdhsa.printf").iter();
    out.formats = formats
        .filter_map(|format| match format {
            ValueRef::String(text) => read_format(text.as_bytes()),
            _ => None,
        })
        .collect();
    Ok(out)
}

/// Parses a format: `0:0:` (sizes of arguments, which HIP does not use), the number in hexadecimal, a comma and the
/// text. Formats of OpenCL have sizes and no number.
fn read_format(text: &[u8]) -> Option<(u64, Vec<u8>)> {
    let comma = text.iter().position(|byte| *byte == b',')?;
    let (head, text) = (
        std::str::from_utf8(&text[..comma]).ok()?,
        &text[comma + 1..],
    );
    let number = head.strip_prefix("0:0:")?;
    Some((u64::from_str_radix(number, 16).ok()?, text.to_vec()))
}

fn read_kernel(map: &Map<'_>) -> Result<Kernel, Error> {
    // Without these two the kernel could not be found or named; everything else has a meaningful default.
    let required = |key: &str| {
        map.text(key)
            .map(str::to_owned)
            .ok_or_else(|| Error::malformed("kernel metadata", format!("`{key}` is missing")))
    };
    let name = required(".name")?;
    let symbol = required(".symbol")?;
    let mut args = Vec::new();
    for arg in map.array(".args") {
        let arg = Map::new(arg, "argument metadata")?;
        // Arguments without place or size could not be passed.
        let need = |key: &str| {
            arg.number(key).ok_or_else(|| {
                Error::malformed(
                    "argument metadata",
                    format!("`{key}` is missing in kernel `{name}`"),
                )
            })
        };
        args.push(Arg {
            offset: need(".offset")?,
            size: need(".size")?,
            // Compilers add kinds, and an unknown one is passed like a value.
            kind: ArgKind::parse(arg.text(".value_kind").unwrap_or_default()),
            name: arg.text(".name").map(str::to_owned),
            type_name: arg.text(".type_name").map(str::to_owned),
            address_space: arg.text(".address_space").map(str::to_owned),
        });
    }
    let number = |key: &str| map.number(key).unwrap_or(0);
    // Compilers have written flags as numbers, too.
    let flag = |key: &str| match map.get(key) {
        Some(ValueRef::Boolean(b)) => *b,
        Some(v) => v.as_u64().unwrap_or(0) != 0,
        None => false,
    };
    // Present only if the kernel requires a size; a list of another length has no meaning.
    let sizes = map.array(".reqd_workgroup_size");
    Ok(Kernel {
        kernarg_segment_size: number(".kernarg_segment_size"),
        // 0 is no alignment.
        kernarg_segment_align: number(".kernarg_segment_align").max(1),
        group_segment_fixed_size: number(".group_segment_fixed_size"),
        private_segment_fixed_size: number(".private_segment_fixed_size"),
        wavefront_size: number(".wavefront_size"),
        sgpr_count: number(".sgpr_count"),
        vgpr_count: number(".vgpr_count"),
        agpr_count: number(".agpr_count"),
        sgpr_spill_count: number(".sgpr_spill_count"),
        vgpr_spill_count: number(".vgpr_spill_count"),
        max_flat_workgroup_size: number(".max_flat_workgroup_size"),
        reqd_workgroup_size: match sizes {
            [x, y, z] => {
                let size = |v: &ValueRef<'_>| v.as_u64().unwrap_or(0) as u32;
                Some([size(x), size(y), size(z)])
            }
            _ => None,
        },
        kind: map.text(".kind").unwrap_or("normal").to_owned(),
        language: map.text(".language").unwrap_or_default().to_owned(),
        uses_dynamic_stack: flag(".uses_dynamic_stack"),
        uniform_work_group_size: flag(".uniform_work_group_size"),
        name,
        symbol,
        args,
    })
}

/// A MessagePack map with texts as keys.
struct Map<'a>(&'a [(ValueRef<'a>, ValueRef<'a>)]);

impl<'a> Map<'a> {
    fn new(value: &'a ValueRef<'a>, what: &'static str) -> Result<Self, Error> {
        match value {
            ValueRef::Map(entries) => Ok(Self(entries)),
            _ => Err(Error::malformed(what, "it is not a MessagePack map")),
        }
    }

    fn get(&self, key: &str) -> Option<&'a ValueRef<'a>> {
        self.0
            .iter()
            .find(|(k, _)| matches!(k, ValueRef::String(s) if s.as_str() == Some(key)))
            .map(|(_, v)| v)
    }

    fn text(&self, key: &str) -> Option<&'a str> {
        match self.get(key) {
            Some(ValueRef::String(s)) => s.into_str(),
            _ => None,
        }
    }

    fn number(&self, key: &str) -> Option<u32> {
        u32::try_from(self.get(key)?.as_u64()?).ok()
    }

    fn array(&self, key: &str) -> &'a [ValueRef<'a>] {
        match self.get(key) {
            Some(ValueRef::Array(values)) => values,
            _ => &[],
        }
    }
}
