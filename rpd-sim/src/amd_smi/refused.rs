//! Functions for what no simulated GPU has. Their parameters do not matter beyond the handle, because none is read.

use super::{Handle, answer, gpu, initialized, status};

/// Declares functions of a GPU, by its handle.
macro_rules! of_gpu {
    ($($name:ident)*) => {$(
        #[doc = concat!("`", stringify!($name), "`, which is not supported.")]
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(handle: Handle) -> u32 {
            answer(gpu(handle).and(Err(status::NOT_SUPPORTED)))
        }
    )*};
}

/// Declares functions of the library and of host processors.
macro_rules! of_library {
    ($($name:ident)*) => {$(
        #[doc = concat!("`", stringify!($name), "`, which is not supported.")]
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() -> u32 {
            answer(initialized().and(Err(status::NOT_SUPPORTED)))
        }
    )*};
}

of_gpu! {
    amdsmi_clean_gpu_local_data
    amdsmi_get_energy_count
    amdsmi_get_gpu_accelerator_partition_profile
    amdsmi_get_gpu_accelerator_partition_profile_config
    amdsmi_get_gpu_activity
    amdsmi_get_gpu_available_counters
    amdsmi_get_gpu_bad_page_info
    amdsmi_get_gpu_bad_page_threshold
    amdsmi_get_gpu_compute_partition
    amdsmi_get_gpu_cper_entries
    amdsmi_get_gpu_ecc_count
    amdsmi_get_gpu_ecc_enabled
    amdsmi_get_gpu_ecc_status
    amdsmi_get_gpu_fan_rpms
    amdsmi_get_gpu_fan_speed
    amdsmi_get_gpu_fan_speed_max
    amdsmi_get_gpu_mem_overdrive_level
    amdsmi_get_gpu_memory_partition
    amdsmi_get_gpu_memory_partition_config
    amdsmi_get_gpu_memory_reserved_pages
    amdsmi_get_gpu_metrics_header_info
    amdsmi_get_gpu_metrics_info
    amdsmi_get_gpu_od_volt_curve_regions
    amdsmi_get_gpu_od_volt_info
    amdsmi_get_gpu_overdrive_level
    amdsmi_get_gpu_partition_metrics_info
    amdsmi_get_gpu_pci_bandwidth
    amdsmi_get_gpu_pci_replay_counter
    amdsmi_get_gpu_pci_throughput
    amdsmi_get_gpu_perf_level
    amdsmi_get_gpu_pm_metrics_info
    amdsmi_get_gpu_power_profile_presets
    amdsmi_get_gpu_process_isolation
    amdsmi_get_gpu_ras_block_features_enabled
    amdsmi_get_gpu_ras_feature_info
    amdsmi_get_gpu_reg_table_info
    amdsmi_get_gpu_revision
    amdsmi_get_gpu_subsystem_id
    amdsmi_get_gpu_subsystem_name
    amdsmi_get_gpu_total_ecc_count
    amdsmi_get_gpu_vbios_info
    amdsmi_get_gpu_virtualization_mode
    amdsmi_get_gpu_volt_metric
    amdsmi_get_gpu_vram_vendor
    amdsmi_get_gpu_xcd_counter
    amdsmi_get_gpu_xgmi_link_status
    amdsmi_get_link_metrics
    amdsmi_get_link_topology_nearest
    amdsmi_get_minmax_bandwidth_between_processors
    amdsmi_get_node_handle
    amdsmi_get_pcie_info
    amdsmi_get_power_cap_info
    amdsmi_get_power_info
    amdsmi_get_processor_info
    amdsmi_get_soc_pstate
    amdsmi_get_supported_power_cap
    amdsmi_get_temp_metric
    amdsmi_get_utilization_count
    amdsmi_get_violation_status
    amdsmi_get_xgmi_info
    amdsmi_get_xgmi_plpd
    amdsmi_gpu_counter_group_supported
    amdsmi_gpu_create_counter
    amdsmi_gpu_validate_ras_eeprom
    amdsmi_gpu_xgmi_error_status
    amdsmi_init_gpu_event_notification
    amdsmi_is_gpu_power_management_enabled
    amdsmi_reset_gpu
    amdsmi_reset_gpu_fan
    amdsmi_reset_gpu_xgmi_error
    amdsmi_set_clk_freq
    amdsmi_set_gpu_accelerator_partition_profile
    amdsmi_set_gpu_clk_limit
    amdsmi_set_gpu_clk_range
    amdsmi_set_gpu_compute_partition
    amdsmi_set_gpu_event_notification_mask
    amdsmi_set_gpu_fan_speed
    amdsmi_set_gpu_memory_partition
    amdsmi_set_gpu_memory_partition_mode
    amdsmi_set_gpu_od_clk_info
    amdsmi_set_gpu_od_volt_info
    amdsmi_set_gpu_overdrive_level
    amdsmi_set_gpu_pci_bandwidth
    amdsmi_set_gpu_perf_determinism_mode
    amdsmi_set_gpu_perf_level
    amdsmi_set_gpu_power_profile
    amdsmi_set_gpu_process_isolation
    amdsmi_set_power_cap
    amdsmi_set_soc_pstate
    amdsmi_set_xgmi_plpd
    amdsmi_stop_gpu_event_notification
}

of_library! {
    amdsmi_cpu_apb_disable
    amdsmi_cpu_apb_enable
    amdsmi_first_online_core_on_cpu_socket
    amdsmi_get_afids_from_cper
    amdsmi_get_cpu_affinity_with_scope
    amdsmi_get_cpu_cclk_limit
    amdsmi_get_cpu_core_boostlimit
    amdsmi_get_cpu_core_current_freq_limit
    amdsmi_get_cpu_core_energy
    amdsmi_get_cpu_cores_per_socket
    amdsmi_get_cpu_current_io_bandwidth
    amdsmi_get_cpu_current_xgmi_bw
    amdsmi_get_cpu_ddr_bw
    amdsmi_get_cpu_dimm_power_consumption
    amdsmi_get_cpu_dimm_temp_range_and_refresh_rate
    amdsmi_get_cpu_dimm_thermal_sensor
    amdsmi_get_cpu_family
    amdsmi_get_cpu_fclk_mclk
    amdsmi_get_cpu_handles
    amdsmi_get_cpu_hsmp_driver_version
    amdsmi_get_cpu_hsmp_proto_ver
    amdsmi_get_cpu_model
    amdsmi_get_cpu_model_name
    amdsmi_get_cpu_prochot_status
    amdsmi_get_cpu_pwr_svi_telemetry_all_rails
    amdsmi_get_cpu_smu_fw_version
    amdsmi_get_cpu_socket_c0_residency
    amdsmi_get_cpu_socket_count
    amdsmi_get_cpu_socket_current_active_freq_limit
    amdsmi_get_cpu_socket_energy
    amdsmi_get_cpu_socket_freq_range
    amdsmi_get_cpu_socket_lclk_dpm_level
    amdsmi_get_cpu_socket_power
    amdsmi_get_cpu_socket_power_cap
    amdsmi_get_cpu_socket_power_cap_max
    amdsmi_get_cpu_socket_temperature
    amdsmi_get_cpucore_handles
    amdsmi_get_esmi_err_msg
    amdsmi_get_gpu_event_notification
    amdsmi_get_hsmp_metrics_table
    amdsmi_get_hsmp_metrics_table_version
    amdsmi_get_npm_info
    amdsmi_get_processor_count_from_handles
    amdsmi_get_threads_per_core
    amdsmi_gpu_control_counter
    amdsmi_gpu_destroy_counter
    amdsmi_gpu_driver_reload
    amdsmi_gpu_read_counter
    amdsmi_set_cpu_core_boostlimit
    amdsmi_set_cpu_df_pstate_range
    amdsmi_set_cpu_gmi3_link_width_range
    amdsmi_set_cpu_pcie_link_rate
    amdsmi_set_cpu_pwr_efficiency_mode
    amdsmi_set_cpu_socket_boostlimit
    amdsmi_set_cpu_socket_lclk_dpm_level
    amdsmi_set_cpu_socket_power_cap
    amdsmi_set_cpu_xgmi_width
}
