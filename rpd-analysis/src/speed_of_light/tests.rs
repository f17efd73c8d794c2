use super::*;
use crate::records::Gpu;

fn gpu(arch: &str, units: u32, dies: u32) -> Gpu {
    Gpu {
        arch: arch.to_owned(),
        units,
        dies,
        wave_size: 64,
        is_simulated: true,
        shader_mhz: 1700,
        memory_mhz: 1600,
        memory_bits: 4096,
        ..Gpu::default()
    }
}

fn counters(values: &[(&str, f64)]) -> Counters {
    let mut counters = Counters::default();
    for (name, value) in values {
        counters.add(name, *value);
    }
    counters
}

// answers-67
#[test]
fn limit_changes_at_60_and_80_percent_and_at_a_difference_of_10() {
    let limit = |compute: f64, memory: f64| {
        Limit::from_shares((compute, "valu"), (memory, "fabric")).to_string()
    };
    for (compute, memory, expected) in [
        (59.9, 10.0, "latency bound"),
        (60.0, 10.0, "moderately compute bound (VALU)"),
        (10.0, 79.9, "moderately memory bound (fabric)"),
        (10.0, 80.0, "near the peak of fabric"),
        (70.0, 60.0, "balanced"),
        (70.1, 60.0, "moderately compute bound (VALU)"),
    ] {
        assert_eq!(limit(compute, memory), expected, "{compute} {memory}");
    }
}

// answers-61
#[test]
fn intensity_without_bytes_is_not_known() {
    let gpu = gpu("gfx90a", 104, 1);
    let values = [("SQ_LDS_IDX_ACTIVE", 0.0), ("SQ_LDS_BANK_CONFLICT", 0.0)];
    let found = figures(&counters(&values), &Device::new(&gpu), None);
    assert_eq!(found.value("roofline", "bytes_lds"), Some(0.0));
    assert_eq!(found.value("roofline", "intensity_lds"), None);
    assert_eq!(found.value("caches", "conflicts_per_access"), None);
}

// answers-62
#[test]
fn fabric_may_pass_the_peak_of_memory() {
    let gpu = gpu("gfx942", 304, 8);
    let values = [
        ("GRBM_GUI_ACTIVE", 1_700.0),
        ("TCC_EA0_RDREQ_sum", 60_000.0),
        ("TCC_EA0_RDREQ_32B_sum", 0.0),
        ("TCC_EA0_WRREQ_sum", 10_000.0),
        ("TCC_EA0_WRREQ_64B_sum", 10_000.0),
    ];
    let found = figures(&counters(&values), &Device::new(&gpu), None);
    assert_eq!(found.value("roofline", "bytes_fabric"), Some(4_480_000.0));
    let share = found.share("fabric").expect("known");
    assert!((share - 4.48e12 / 3.2768e12).abs() < 1e-9, "{share}");
    assert!(found.is_lower_bound, "TCC_BUBBLE is not counted");
}

#[test]
fn gpu_without_description_has_values_and_no_shares() {
    let gpu = gpu("gfx1234", 104, 1);
    let values = [("GRBM_GUI_ACTIVE", 1_700.0), ("TCC_REQ_sum", 10.0)];
    let found = figures(&counters(&values), &Device::new(&gpu), None);
    assert_eq!(found.value("sol", "cycles"), Some(1_700.0));
    assert_eq!(found.value("caches", "l2_requests"), Some(10.0));
    assert_eq!(found.share("l2"), None);
    assert_eq!(found.limit(1_000, 104), None);
}
