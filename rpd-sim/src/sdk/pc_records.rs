//! PC samples as records of the ABI.

use rocprofiler_sdk_sys::{
    rocprofiler_dim3_t as Dim3, rocprofiler_pc_sampling_hw_id_v0_t as HardwareId,
    rocprofiler_pc_sampling_instruction_not_issued_reason_t as NotIssued,
    rocprofiler_pc_sampling_instruction_type_t as InstructionType,
    rocprofiler_pc_sampling_record_host_trap_v0_t as HostTrap,
    rocprofiler_pc_sampling_record_stochastic_v0_t as Stochastic,
    rocprofiler_pc_sampling_snapshot_v0_t as Snapshot, rocprofiler_pc_t as Pc,
};
use rpd_gfx::{
    device::Layout,
    isa,
    perf::{Pipe, Reason, Sample},
};

use crate::{
    gpu::observe::{Interval, Recording},
    sdk::{codeobj, pc_sampling::SampledDispatch},
};

/// Number of the micro-engine that processes compute queues, and the number of its pipes.
const MICROENGINE: u64 = 1;
const PIPES: u64 = 4;
/// Id of the address space (VMID) of a process's first queue.
const VM: u64 = 8;

/// Fields that all samples of a dispatch share.
pub(super) struct SampleBase<'a> {
    dispatch: &'a SampledDispatch,
    recording: &'a Recording,
    start: u64,
    /// Code object of the kernel, and offset of the program in it.
    base: Pc,
}

impl<'a> SampleBase<'a> {
    pub(super) fn new(
        dispatch: &'a SampledDispatch,
        recording: &'a Recording,
        time: Interval,
    ) -> Self {
        let (code_object_id, entry) = codeobj::locate(recording.entry);
        Self {
            dispatch,
            recording,
            start: time.start,
            base: Pc {
                code_object_id,
                code_object_offset: entry.wrapping_sub(recording.entry - recording.base),
            },
        }
    }

    fn pc(&self, sample: &Sample) -> Pc {
        Pc {
            code_object_offset: self
                .base
                .code_object_offset
                .wrapping_add(sample.offset.into()),
            ..self.base
        }
    }

    fn workgroup(&self, sample: &Sample) -> Dim3 {
        let [columns, rows, _] = self.recording.groups.map(u64::from);
        Dim3 {
            x: (sample.group % columns) as u32,
            y: (sample.group / columns % rows) as u32,
            z: (sample.group / columns / rows) as u32,
        }
    }

    fn hardware_id(&self, sample: &Sample) -> HardwareId {
        let layout = &self.recording.device.layout;
        let (die, engine, array, unit) = location(layout, sample.unit);
        let queue = u64::from(self.recording.hardware_queue);
        HardwareId::default()
            .with_chiplet(die)
            .with_wave_id(sample.slot.into())
            .with_simd_id(sample.simd.into())
            .with_pipe_id(queue % PIPES)
            .with_cu_or_wgp_id(unit)
            .with_shader_array_id(array)
            .with_shader_engine_id(engine)
            .with_workgroup_id(sample.group_slot.into())
            .with_vm_id(VM)
            .with_queue_id(queue / PIPES)
            .with_microengine_id(MICROENGINE)
    }

    pub(super) fn host_trap(&self, sample: &Sample) -> HostTrap {
        HostTrap {
            size: size_of::<HostTrap>() as u64,
            hw_id: self.hardware_id(sample),
            pc: self.pc(sample),
            exec_mask: sample.exec,
            timestamp: self.start + sample.time,
            dispatch_id: self.dispatch.id,
            correlation_id: self.dispatch.correlation,
            workgroup_id: self.workgroup(sample),
            wave_in_group: sample.number as u8,
            reserved0: [0; 3],
        }
    }

    pub(super) fn stochastic(&self, sample: &Sample) -> Stochastic {
        let issued = sample.stalled.is_none();
        let inst_type = if issued {
            instruction_type(sample).0
        } else {
            0
        };
        let reason = sample.stalled.map_or(NotIssued::OTHER_WAIT, not_issued);
        Stochastic {
            size: size_of::<Stochastic>() as u64,
            wave_in_group: sample.number as u8,
            hw_id: self.hardware_id(sample),
            pc: self.pc(sample),
            exec_mask: sample.exec,
            workgroup_id: self.workgroup(sample),
            wave_count: sample.waves,
            timestamp: self.start + sample.time,
            dispatch_id: self.dispatch.id,
            correlation_id: self.dispatch.correlation,
            snapshot: snapshot(sample, reason),
            ..Stochastic::default()
        }
        .with_wave_issued(issued.into())
        .with_inst_type(inst_type as u8)
    }
}

/// Die, shader engine, shader array and compute unit in it of a compute unit's number.
pub(crate) fn location(layout: &Layout, unit: usize) -> (u64, u64, u64, u64) {
    let engine = unit as u64 / u64::from(layout.units_per_engine);
    let unit = unit as u64 % u64::from(layout.units_per_engine);
    let engines_per_die = u64::from((layout.engines / layout.dies.max(1)).max(1));
    let units_per_array = u64::from(
        layout
            .units_per_engine
            .div_ceil(layout.arrays_per_engine.max(1)),
    );
    (
        engine / engines_per_die,
        engine % engines_per_die,
        unit / units_per_array,
        unit % units_per_array,
    )
}

fn instruction_type(sample: &Sample) -> InstructionType {
    match (sample.pipe, sample.kind) {
        (Pipe::Valu, _) => InstructionType::VALU,
        (Pipe::Matrix, _) => InstructionType::MATRIX,
        (Pipe::Scalar, _) => InstructionType::SCALAR,
        (Pipe::Vmem, _) => InstructionType::TEX,
        (Pipe::Flat, _) => InstructionType::FLAT,
        (Pipe::Lds, _) => InstructionType::LDS,
        (Pipe::Misc, isa::Kind::Barrier) => InstructionType::BARRIER,
        (Pipe::Misc, isa::Kind::Message) => InstructionType::MESSAGE,
        (Pipe::Misc, isa::Kind::Branch) if sample.indirect => InstructionType::JUMP,
        (Pipe::Misc, isa::Kind::Branch) if sample.taken => InstructionType::BRANCH_TAKEN,
        (Pipe::Misc, isa::Kind::Branch) => InstructionType::BRANCH_NOT_TAKEN,
        (Pipe::Misc | Pipe::Internal, _) => InstructionType::OTHER,
    }
}

fn not_issued(reason: Reason) -> NotIssued {
    match reason {
        Reason::Fetch => NotIssued::NO_INSTRUCTION_AVAILABLE,
        Reason::Dependency => NotIssued::ALU_DEPENDENCY,
        Reason::Counter => NotIssued::WAITCNT,
        Reason::Internal => NotIssued::INTERNAL_INSTRUCTION,
        Reason::Barrier => NotIssued::BARRIER_WAIT,
        Reason::NotChosen => NotIssued::ARBITER_NOT_WIN,
        Reason::PipeFull => NotIssued::ARBITER_WIN_EX_STALL,
    }
}

fn snapshot(sample: &Sample, reason: NotIssued) -> Snapshot {
    let has = |mask: u8, pipe: Pipe| u32::from(mask >> pipe as u8 & 1);
    let (chosen, full) = (sample.chosen, sample.full);
    Snapshot::default()
        .with_reason_not_issued(reason.0)
        .with_arb_state_issue_valu(has(chosen, Pipe::Valu))
        .with_arb_state_issue_matrix(has(chosen, Pipe::Matrix))
        .with_arb_state_issue_lds(has(chosen, Pipe::Lds))
        .with_arb_state_issue_scalar(has(chosen, Pipe::Scalar))
        .with_arb_state_issue_vmem_tex(has(chosen, Pipe::Vmem))
        .with_arb_state_issue_flat(has(chosen, Pipe::Flat))
        .with_arb_state_issue_misc(has(chosen, Pipe::Misc))
        .with_arb_state_stall_valu(has(full, Pipe::Valu))
        .with_arb_state_stall_matrix(has(full, Pipe::Matrix))
        .with_arb_state_stall_lds(has(full, Pipe::Lds))
        .with_arb_state_stall_scalar(has(full, Pipe::Scalar))
        .with_arb_state_stall_vmem_tex(has(full, Pipe::Vmem))
        .with_arb_state_stall_flat(has(full, Pipe::Flat))
        .with_arb_state_stall_misc(has(full, Pipe::Misc))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rpd_gfx::isa::Kind;

    fn sample(pipe: Pipe, chosen: &[Pipe], full: &[Pipe]) -> Sample {
        let mask = |pipes: &[Pipe]| pipes.iter().fold(0, |mask, pipe| mask | 1 << *pipe as u8);
        Sample {
            time: 0,
            unit: 0,
            simd: 0,
            slot: 0,
            group: 0,
            group_slot: 0,
            number: 0,
            waves: 1,
            offset: 0,
            exec: 1,
            stalled: None,
            kind: Kind::Salu,
            pipe,
            taken: false,
            indirect: false,
            chosen: mask(chosen),
            full: mask(full),
        }
    }

    /// Checks sampling-1 and sampling-2.
    #[test]
    fn pc_sample_records_have_the_known_packed_words() {
        // Hardware id 0x41844713 on die 2.
        let id = HardwareId::default()
            .with_chiplet(2)
            .with_wave_id(3)
            .with_simd_id(1)
            .with_pipe_id(0)
            .with_cu_or_wgp_id(7)
            .with_shader_array_id(0)
            .with_shader_engine_id(2)
            .with_workgroup_id(4)
            .with_vm_id(8)
            .with_queue_id(1)
            .with_microengine_id(1);
        assert_eq!(id.bits, 0x0000_4480_8238_20c2);
        // Snapshots 0x00020383 (issued), 0x00020101 (another wave issues) and 0x01010301 of a gfx9.
        let valu = [Pipe::Valu];
        let issued = sample(Pipe::Valu, &valu, &[]);
        assert_eq!(snapshot(&issued, NotIssued::OTHER_WAIT).bits, 0x28);
        let waits = sample(Pipe::Internal, &valu, &[]);
        assert_eq!(snapshot(&waits, not_issued(Reason::Counter)).bits, 0x23);
        let matrix = [Pipe::Matrix];
        let refused = sample(Pipe::Matrix, &matrix, &matrix);
        let refused = snapshot(&refused, not_issued(Reason::PipeFull));
        assert_eq!(refused.bits, 0x0002_0047);
    }
}
