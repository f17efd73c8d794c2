//! Functions about hardware that no simulated GPU has. Their parameters do not matter, because none is read.

use super::{answer, gpu, status};
use crate::not_supported::not_supported;

// Of a GPU.
not_supported! {
    (index: u32) answer(gpu(index).and(Err(status::NOT_SUPPORTED)));
    rsmi_counter_available_counters_get
    rsmi_dev_activity_avg_mm_get
    rsmi_dev_activity_metric_get
    rsmi_dev_brand_get
    rsmi_dev_busy_percent_get
    rsmi_dev_clk_extremum_set
    rsmi_dev_clk_range_set
    rsmi_dev_compute_partition_get
    rsmi_dev_compute_partition_set
    rsmi_dev_counter_create
    rsmi_dev_counter_group_supported
    rsmi_dev_current_socket_power_get
    rsmi_dev_device_identifiers_get
    rsmi_dev_ecc_count_get
    rsmi_dev_ecc_enabled_get
    rsmi_dev_ecc_status_get
    rsmi_dev_energy_count_get
    rsmi_dev_fan_reset
    rsmi_dev_fan_rpms_get
    rsmi_dev_fan_speed_get
    rsmi_dev_fan_speed_max_get
    rsmi_dev_fan_speed_set
    rsmi_dev_gpu_clk_freq_set
    rsmi_dev_gpu_metrics_info_get
    rsmi_dev_gpu_reset
    rsmi_dev_mem_overdrive_level_get
    rsmi_dev_memory_busy_percent_get
    rsmi_dev_memory_partition_capabilities_get
    rsmi_dev_memory_partition_get
    rsmi_dev_memory_partition_set
    rsmi_dev_memory_reserved_pages_get
    rsmi_dev_metrics_header_info_get
    rsmi_dev_metrics_log_get
    rsmi_dev_metrics_xcd_counter_get
    rsmi_dev_od_clk_info_set
    rsmi_dev_od_volt_curve_regions_get
    rsmi_dev_od_volt_info_get
    rsmi_dev_od_volt_info_set
    rsmi_dev_overdrive_level_get
    rsmi_dev_overdrive_level_set
    rsmi_dev_overdrive_level_set_v1
    rsmi_dev_partition_id_get
    rsmi_dev_pci_bandwidth_get
    rsmi_dev_pci_bandwidth_set
    rsmi_dev_pci_replay_counter_get
    rsmi_dev_pci_throughput_get
    rsmi_dev_perf_level_get
    rsmi_dev_perf_level_set
    rsmi_dev_perf_level_set_v1
    rsmi_dev_power_ave_get
    rsmi_dev_power_cap_default_get
    rsmi_dev_power_cap_get
    rsmi_dev_power_cap_range_get
    rsmi_dev_power_cap_set
    rsmi_dev_power_get
    rsmi_dev_power_profile_presets_get
    rsmi_dev_power_profile_set
    rsmi_dev_revision_get
    rsmi_dev_serial_number_get
    rsmi_dev_sku_get
    rsmi_dev_subsystem_id_get
    rsmi_dev_subsystem_name_get
    rsmi_dev_subsystem_vendor_id_get
    rsmi_dev_supported_func_iterator_open
    rsmi_dev_temp_metric_get
    rsmi_dev_vbios_version_get
    rsmi_dev_volt_metric_get
    rsmi_dev_vram_vendor_get
    rsmi_dev_xgmi_error_reset
    rsmi_dev_xgmi_error_status
    rsmi_dev_xgmi_hive_id_get
    rsmi_dev_xgmi_physical_id_get
    rsmi_event_notification_init
    rsmi_event_notification_mask_set
    rsmi_event_notification_stop
    rsmi_minmax_bandwidth_get
    rsmi_perf_determinism_mode_set
    rsmi_utilization_count_get
}

// Of the library.
not_supported! {
    () answer(gpu(0).and(Err(status::NOT_SUPPORTED)));
    rsmi_counter_control
    rsmi_counter_read
    rsmi_dev_counter_destroy
    rsmi_dev_supported_func_iterator_close
    rsmi_dev_supported_variant_iterator_open
    rsmi_event_notification_get
    rsmi_func_iter_next
    rsmi_func_iter_value_get
    rsmi_version_str_get
}
