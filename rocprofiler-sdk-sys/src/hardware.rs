//! Hardware descriptions inside the agent structs, as the kernel driver reports them.

use crate::macros::{bit_fields, c_enum, c_struct};

c_enum! {
    /// Whose memory a bank is, as the KFD reports it (`hsakmttypes.h`).
    HSA_HEAPTYPE: u32 {
        /// Memory of the host.
        SYSTEM = 0 => c"HSA_HEAPTYPE_SYSTEM",
        /// Device memory that the host can access through the PCI BAR.
        FRAME_BUFFER_PUBLIC = 1 => c"HSA_HEAPTYPE_FRAME_BUFFER_PUBLIC",
        /// Device memory that the host cannot access.
        FRAME_BUFFER_PRIVATE = 2 => c"HSA_HEAPTYPE_FRAME_BUFFER_PRIVATE",
        /// Global data share, on the chip.
        GPU_GDS = 3 => c"HSA_HEAPTYPE_GPU_GDS",
        /// Local data share of the compute units.
        GPU_LDS = 4 => c"HSA_HEAPTYPE_GPU_LDS",
        /// Scratch memory of work items.
        GPU_SCRATCH = 5 => c"HSA_HEAPTYPE_GPU_SCRATCH",
        /// Shared virtual memory of a device.
        DEVICE_SVM = 6 => c"HSA_HEAPTYPE_DEVICE_SVM",
        /// Remapped MMIO page.
        MMIO_REMAP = 7 => c"HSA_HEAPTYPE_MMIO_REMAP",
        /// One more than the highest valid value.
        NUMHEAPTYPES = 8 => c"HSA_HEAPTYPE_NUMHEAPTYPES",
        /// Makes the enum 32 bits wide.
        SIZE = 4294967295 => c"HSA_HEAPTYPE_SIZE",
    }
}

c_enum! {
    /// Bus of a link between agents, as the KFD reports it (`hsakmttypes.h`).
    HSA_IOLINKTYPE: u32 {
        /// The driver does not know the bus.
        UNDEFINED = 0 => c"HSA_IOLINKTYPE_UNDEFINED",
        /// HyperTransport, between CPUs.
        HYPERTRANSPORT = 1 => c"HSA_IOLINKTYPE_HYPERTRANSPORT",
        /// PCI Express, between CPU and GPU or between GPUs.
        PCIEXPRESS = 2 => c"HSA_IOLINKTYPE_PCIEXPRESS",
        /// AMBA, on a chip.
        AMBA = 3 => c"HSA_IOLINKTYPE_AMBA",
        /// MIPI, of mobile devices.
        MIPI = 4 => c"HSA_IOLINKTYPE_MIPI",
        /// QuickPath Interconnect 1.1, between CPUs.
        QPI_1_1 = 5 => c"HSA_IOLINK_TYPE_QPI_1_1",
        /// Not assigned.
        RESERVED1 = 6 => c"HSA_IOLINK_TYPE_RESERVED1",
        /// Not assigned.
        RESERVED2 = 7 => c"HSA_IOLINK_TYPE_RESERVED2",
        /// RapidIO.
        RAPID_IO = 8 => c"HSA_IOLINK_TYPE_RAPID_IO",
        /// InfiniBand, between hosts.
        INFINIBAND = 9 => c"HSA_IOLINK_TYPE_INFINIBAND",
        /// Not assigned.
        RESERVED3 = 10 => c"HSA_IOLINK_TYPE_RESERVED3",
        /// xGMI (Infinity Fabric) between GPUs, or between CPU and GPU.
        XGMI = 11 => c"HSA_IOLINK_TYPE_XGMI",
        /// XGOP; no driver reports it today.
        XGOP = 12 => c"HSA_IOLINK_TYPE_XGOP",
        /// Gen-Z.
        GZ = 13 => c"HSA_IOLINK_TYPE_GZ",
        /// RDMA over Ethernet.
        ETHERNET_RDMA = 14 => c"HSA_IOLINK_TYPE_ETHERNET_RDMA",
        /// RDMA over another network.
        RDMA_OTHER = 15 => c"HSA_IOLINK_TYPE_RDMA_OTHER",
        /// A bus that has no value here.
        OTHER = 16 => c"HSA_IOLINK_TYPE_OTHER",
        /// One more than the highest valid value.
        NUMIOLINKTYPES = 17 => c"HSA_IOLINKTYPE_NUMIOLINKTYPES",
        /// Makes the enum 32 bits wide.
        SIZE = 4294967295 => c"HSA_IOLINKTYPE_SIZE",
    }
}

c_struct! {
    /// Runtimes that are expected to see an agent. (The spelling is that of the C type.)
    #[derive(PartialEq, Eq, Hash)]
    struct rocprofiler_agent_runtime_visiblity_t {
        /// All bit fields together, bit 0 being the lowest; the methods read and replace single fields.
        pub bits: u32,
    }
}

bit_fields! {
    rocprofiler_agent_runtime_visiblity_t.bits: u32 {
        /// 1 when the HSA runtime sees the agent; no other runtime does otherwise.
        hsa with_hsa 0 1
        /// 1 when HIP sees the agent.
        hip with_hip 1 1
        /// 1 when RCCL sees the agent.
        rccl with_rccl 2 1
        /// 1 when rocDecode sees the agent.
        rocdecode with_rocdecode 3 1
    }
}

c_struct! {
    /// Capabilities of the driver and a GPU, as the KFD reports them (`hsakmttypes.h`).
    #[derive(PartialEq, Eq, Hash)]
    struct HSA_CAPABILITY {
        /// All bit fields together, bit 0 being the lowest; the methods read and replace single fields.
        pub bits: u32,
    }
}

bit_fields! {
    HSA_CAPABILITY.bits: u32 {
        /// Field `HotPluggable`: bit 0.
        hot_pluggable with_hot_pluggable 0 1
        /// Field `HSAMMUPresent`: bit 1.
        hsammu_present with_hsammu_present 1 1
        /// Field `SharedWithGraphics`: bit 2.
        shared_with_graphics with_shared_with_graphics 2 1
        /// Field `QueueSizePowerOfTwo`: bit 3.
        queue_size_power_of_two with_queue_size_power_of_two 3 1
        /// Field `QueueSize32bit`: bit 4.
        queue_size32bit with_queue_size32bit 4 1
        /// Field `QueueIdleEvent`: bit 5.
        queue_idle_event with_queue_idle_event 5 1
        /// Field `VALimit`: bit 6.
        va_limit with_va_limit 6 1
        /// Field `WatchPointsSupported`: bit 7.
        watch_points_supported with_watch_points_supported 7 1
        /// Field `WatchPointsTotalBits`: bits 8 to 11.
        watch_points_total_bits with_watch_points_total_bits 8 4
        /// Field `DoorbellType`: bits 12 to 13.
        doorbell_type with_doorbell_type 12 2
        /// Field `AQLQueueDoubleMap`: bit 14.
        aql_queue_double_map with_aql_queue_double_map 14 1
        /// Field `DebugTrapSupported`: bit 15.
        debug_trap_supported with_debug_trap_supported 15 1
        /// Field `WaveLaunchTrapOverrideSupported`: bit 16.
        wave_launch_trap_override_supported with_wave_launch_trap_override_supported 16 1
        /// Field `WaveLaunchModeSupported`: bit 17.
        wave_launch_mode_supported with_wave_launch_mode_supported 17 1
        /// Field `PreciseMemoryOperationsSupported`: bit 18.
        precise_memory_operations_supported with_precise_memory_operations_supported 18 1
        /// Field `DEPRECATED_SRAM_EDCSupport`: bit 19.
        deprecated_sram_edc_support with_deprecated_sram_edc_support 19 1
        /// Field `Mem_EDCSupport`: bit 20.
        mem_edc_support with_mem_edc_support 20 1
        /// Field `RASEventNotify`: bit 21.
        ras_event_notify with_ras_event_notify 21 1
        /// Field `ASICRevision`: bits 22 to 25.
        asic_revision with_asic_revision 22 4
        /// Field `SRAM_EDCSupport`: bit 26.
        sram_edc_support with_sram_edc_support 26 1
        /// Field `SVMAPISupported`: bit 27.
        svmapi_supported with_svmapi_supported 27 1
        /// Field `CoherentHostAccess`: bit 28.
        coherent_host_access with_coherent_host_access 28 1
        /// Field `DebugSupportedFirmware`: bit 29.
        debug_supported_firmware with_debug_supported_firmware 29 1
        /// Field `PreciseALUOperationsSupported`: bit 30.
        precise_alu_operations_supported with_precise_alu_operations_supported 30 1
        /// Field `PerQueueResetSupported`: bit 31.
        per_queue_reset_supported with_per_queue_reset_supported 31 1
    }
}

c_struct! {
    /// Firmware of the compute engine and its target.
    #[derive(PartialEq, Eq, Hash)]
    struct HSA_ENGINE_ID {
        /// All bit fields together, bit 0 being the lowest; the methods read and replace single fields.
        pub bits: u32,
    }
}

bit_fields! {
    HSA_ENGINE_ID.bits: u32 {
        /// Field `uCode`: bits 0 to 9.
        u_code with_u_code 0 10
        /// Field `Major`: bits 10 to 15.
        major with_major 10 6
        /// Field `Minor`: bits 16 to 23.
        minor with_minor 16 8
        /// Field `Stepping`: bits 24 to 31.
        stepping with_stepping 24 8
    }
}

c_struct! {
    /// Firmware of the copy engines.
    #[derive(PartialEq, Eq, Hash)]
    struct HSA_ENGINE_VERSION {
        /// All bit fields together, bit 0 being the lowest; the methods read and replace single fields.
        pub bits: u32,
    }
}

bit_fields! {
    HSA_ENGINE_VERSION.bits: u32 {
        /// Field `uCodeSDMA`: bits 0 to 9.
        u_code_sdma with_u_code_sdma 0 10
        /// Field `uCodeRes`: bits 10 to 19.
        u_code_res with_u_code_res 10 10
    }
}

c_struct! {
    /// Content of a cache, and the units that use it.
    #[derive(PartialEq, Eq, Hash)]
    struct HsaCacheType {
        /// All bit fields together, bit 0 being the lowest; the methods read and replace single fields.
        pub bits: u32,
    }
}

bit_fields! {
    HsaCacheType.bits: u32 {
        /// Field `Data`: bit 0.
        data with_data 0 1
        /// Field `Instruction`: bit 1.
        instruction with_instruction 1 1
        /// Field `CPU`: bit 2.
        cpu with_cpu 2 1
        /// Field `HSACU`: bit 3.
        hsacu with_hsacu 3 1
    }
}

c_struct! {
    /// Whether a memory bank can be plugged at run time, and whether it keeps its content.
    #[derive(PartialEq, Eq, Hash)]
    struct HSA_MEMORYPROPERTY {
        /// All bit fields together, bit 0 being the lowest; the methods read and replace single fields.
        pub bits: u32,
    }
}

bit_fields! {
    HSA_MEMORYPROPERTY.bits: u32 {
        /// Field `HotPluggable`: bit 0.
        hot_pluggable with_hot_pluggable 0 1
        /// Field `NonVolatile`: bit 1.
        non_volatile with_non_volatile 1 1
    }
}

c_struct! {
    /// Properties that a link lacks: coherence, atomics, peer-to-peer access.
    #[derive(PartialEq, Eq, Hash)]
    struct HSA_LINKPROPERTY {
        /// All bit fields together, bit 0 being the lowest; the methods read and replace single fields.
        pub bits: u32,
    }
}

bit_fields! {
    HSA_LINKPROPERTY.bits: u32 {
        /// Field `Override`: bit 0.
        overrides with_overrides 0 1
        /// Field `NonCoherent`: bit 1.
        non_coherent with_non_coherent 1 1
        /// Field `NoAtomics32bit`: bit 2.
        no_atomics32bit with_no_atomics32bit 2 1
        /// Field `NoAtomics64bit`: bit 3.
        no_atomics64bit with_no_atomics64bit 3 1
        /// Field `NoPeerToPeerDMA`: bit 4.
        no_peer_to_peer_dma with_no_peer_to_peer_dma 4 1
    }
}
