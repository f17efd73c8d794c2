//! Faults: the reason for which a dispatch ended early, and the place in the kernel.

use super::exec::{Exec, PRIVATE_APERTURE, SHARED_APERTURE};
use super::image::Unsupported;
use super::inst::{FLAT_SCRATCH, Format, Inst};
use super::lane_numbers;
use super::lanes::Lanes64;

/// Reason for which a dispatch ended early.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// An instruction that the interpreter does not execute.
    #[error("{instruction} in {site}")]
    Instruction {
        /// The refused instruction.
        instruction: Refused,
        /// Location of the instruction, and the wave that executed it.
        site: Box<Site>,
    },
    /// The descriptor of an image or formatted buffer has a feature that the interpreter does not support.
    #[error("descriptor with {what}, which the simulator does not support, in {site}")]
    Descriptor {
        /// The unsupported feature.
        what: Unsupported,
        /// Location of the instruction.
        site: Box<Site>,
    },
    /// An access to memory that the kernel may not access.
    #[error("{access} of {bytes} bytes at {address:#x}{} in {site}", own(aim))]
    Memory {
        /// First address of the access; for LDS, the flat address.
        address: u64,
        /// Size of the access in bytes.
        bytes: u32,
        /// Kind of the access: load, store or atomic.
        access: Access,
        /// Memory to which the address belongs.
        aim: AddressTarget,
        /// Location of the instruction, with the lanes whose access failed.
        site: Box<Site>,
    },
    /// The kernel trapped (`s_trap`): a failed assertion, `__builtin_trap` or `abort`.
    #[error("trap {id} in {site}")]
    Trap {
        /// Trap id; 2 is `llvm.trap`.
        id: u32,
        /// Location of the instruction.
        site: Box<Site>,
    },
    /// The wave continued outside of the program.
    #[error("jump to {:#x}, outside of the code object's code, in {site}", site.pc)]
    Jump {
        /// Address at which the wave continued.
        site: Box<Site>,
    },
    /// The dispatch needs more of a resource than the device has.
    #[error("kernel `{kernel}` cannot be dispatched: {why}")]
    Launch {
        /// Name of the kernel.
        kernel: String,
        /// Name of the resource, its required amount and the amount that there is.
        why: String,
    },
    /// [`super::Control::stop`] became true.
    #[error("kernel `{kernel}` was stopped")]
    Stopped {
        /// Name of the kernel.
        kernel: String,
    },
}

/// An instruction that the interpreter does not execute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Mnemonic, if the device has the instruction.
    pub name: Option<&'static str>,
    /// The dword of the instruction and the next one.
    pub words: [u32; 2],
    /// Name of the encoding.
    pub format: &'static str,
    /// Number of the operation in the encoding.
    pub opcode: u32,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.name {
            Some(name) => write!(f, "the simulator does not execute `{name}`:")?,
            None => f.write_str("unknown instruction")?,
        }
        let [first, second] = self.words;
        let (format, opcode) = (self.format, self.opcode);
        write!(f, " {first:08x} {second:08x} ({format} opcode {opcode:#x})")
    }
}

/// A place in a kernel, and the wave that was there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// Name of the kernel, as compiled.
    pub kernel: String,
    /// Address of the instruction.
    pub pc: u64,
    /// Distance from the kernel's first instruction in bytes; negative in functions before it that it calls.
    pub offset: i64,
    /// Number of the workgroup in the dispatch.
    pub group: u64,
    /// Number of the wave in the workgroup.
    pub wave: u32,
    /// Lanes that are concerned, one bit for each; 0 for scalar instructions.
    pub lanes: u64,
}

impl Site {
    /// Offset with its sign, wave and lanes, for reports.
    pub fn describe(&self) -> String {
        let sign = if self.offset < 0 { "-" } else { "" };
        let offset = self.offset.unsigned_abs();
        let (group, wave) = (self.group, self.wave);
        let text =
            format!("offset {sign}{offset:#x} of the kernel, workgroup {group}, wave {wave}");
        match self.lanes.count_ones() {
            0 => text,
            1 => format!("{text}, lane {}", lane_numbers(self.lanes)),
            _ => format!("{text}, lanes {}", lane_numbers(self.lanes)),
        }
    }
}

impl std::fmt::Display for Site {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "kernel `{}`, {}", self.kernel, self.describe())
    }
}

/// Kind of a memory access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// A load.
    Read,
    /// A store.
    Write,
    /// An atomic read-modify-write.
    Atomic,
}

impl std::fmt::Display for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Atomic => "atomic",
        })
    }
}

/// The memory that an address belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressTarget {
    /// Memory of the device or the host.
    Global,
    /// LDS of the workgroup.
    Lds {
        /// Offset of the first byte in the LDS of the workgroup.
        byte: u64,
        /// Size of the LDS of the workgroup in bytes.
        size: u64,
    },
    /// Scratch of the work-item.
    Scratch {
        /// Offset of the first byte in the scratch memory of the work-item; may be negative.
        byte: i64,
        /// Size of the scratch memory of the work-item in bytes.
        size: u64,
    },
}

impl AddressTarget {
    /// Describes an address in LDS or scratch memory for reports; `None` for global memory.
    pub fn describe(self) -> Option<String> {
        Some(match self {
            Self::Global => return None,
            Self::Lds { byte, size } => {
                format!("byte {byte} of LDS, of which the workgroup has {size} bytes")
            }
            Self::Scratch { byte, size } => {
                format!("byte {byte} of scratch, of which a work-item has {size} bytes")
            }
        })
    }
}

fn own(aim: &AddressTarget) -> String {
    aim.describe()
        .map_or_else(String::new, |text| format!(" ({text})"))
}

impl Exec<'_> {
    /// Stops the wave with a fault.
    #[cold]
    pub(super) fn fail(&mut self, fault: Fault) {
        self.w.state = super::exec::WaveState::Faulted;
        self.fault.get_or_insert(fault);
    }

    /// The place of the instruction at `pc`, with some lanes of the wave.
    pub(super) fn site(&self, pc: u64, lanes: u64) -> Box<Site> {
        Box::new(Site {
            kernel: self.d.kernel.to_owned(),
            pc,
            offset: pc.wrapping_sub(self.entry) as i64,
            group: self.group,
            wave: self.wave,
            lanes,
        })
    }

    /// Address of the instruction that is being executed.
    pub(super) fn address_of(&self, inst: &Inst) -> u64 {
        self.w.pc.wrapping_sub(u64::from(inst.words) * 4)
    }

    /// Stops the wave at an access of the lanes of `mask`, at least one of which is not allowed.
    #[cold]
    pub(super) fn memory_fault(
        &mut self,
        inst: &Inst,
        addresses: &Lanes64,
        mask: u64,
        bytes: u32,
        access: Access,
    ) {
        let write = access != Access::Read;
        let mut lanes = 0_u64;
        for (lane, &address) in addresses.iter().enumerate() {
            let aligned = access != Access::Atomic || address.is_multiple_of(bytes.into());
            if mask >> lane & 1 != 0 && !(aligned && self.mem.allows(address, bytes.into(), write))
            {
                lanes |= 1 << lane;
            }
        }
        let lane = lanes.trailing_zeros() as usize & 63;
        let aim = self.aim(inst, addresses[lane], lane);
        let address = match aim {
            AddressTarget::Lds { byte, .. } => u64::from(SHARED_APERTURE) << 32 | byte,
            _ => addresses[lane],
        };
        let fault = Fault::Memory {
            address,
            bytes,
            access,
            aim,
            site: self.site(self.address_of(inst), lanes),
        };
        self.fail(fault);
    }

    /// Stops the wave at an instruction whose descriptor is not supported.
    #[cold]
    pub(super) fn descriptor_fault(&mut self, inst: &Inst, what: Unsupported) {
        let site = self.site(self.address_of(inst), self.exec());
        self.fail(Fault::Descriptor { what, site });
    }

    /// Stops the wave at a scalar load that is not allowed.
    #[cold]
    pub(super) fn scalar_fault(&mut self, inst: &Inst, address: u64, bytes: u32) {
        let fault = Fault::Memory {
            address,
            bytes,
            access: Access::Read,
            aim: AddressTarget::Global,
            site: self.site(self.address_of(inst), 0),
        };
        self.fail(fault);
    }

    /// Memory to which the address of a lane belongs.
    fn aim(&self, inst: &Inst, address: u64, lane: usize) -> AddressTarget {
        let scratch = match inst.format {
            Format::Scratch => true,
            // A buffer descriptor with swizzling is that of scratch memory.
            Format::Mubuf => self.s32(inst.sdst + 1, 0) >> 31 != 0,
            // The flat address of an access that begins in LDS was translated to a host address.
            Format::Flat => match self.vgpr(inst.src[0] + 1)[lane] {
                SHARED_APERTURE => {
                    let low = i64::from(self.vgpr(inst.src[0])[lane]);
                    return AddressTarget::Lds {
                        byte: low.wrapping_add(inst.offset()) as u64 & 0xffff_ffff,
                        size: self.lds.len() as u64,
                    };
                }
                high => high == PRIVATE_APERTURE,
            },
            _ => false,
        };
        if !scratch {
            return AddressTarget::Global;
        }
        // Scratch memory is swizzled: the dwords of the lanes are consecutive.
        let distance = address.wrapping_sub(self.pair(FLAT_SCRATCH)) as i64;
        let own = self.d.descriptor.private_segment_size;
        AddressTarget::Scratch {
            byte: (distance >> 8) * 4 + (distance & 3),
            size: self.d.private_segment_size.max(own).into(),
        }
    }
}

/// Handler of unknown instructions. Decoded code is recognised as unknown by this address.
#[cold]
#[inline(never)]
pub(super) fn unknown_instruction(x: &mut Exec<'_>, inst: &Inst) {
    let pc = x.address_of(inst);
    let [first, second, _] = x.d.program.words(pc);
    let instruction = Refused {
        name: inst.refused(x.d.device.name),
        words: [first, second],
        format: inst.format.name(),
        opcode: u32::from(inst.opcode),
    };
    let site = x.site(pc, x.exec());
    x.fail(Fault::Instruction { instruction, site });
}
