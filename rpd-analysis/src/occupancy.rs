//! How many waves of a kernel a GPU can hold at once, and what limits them.

/// Whether a workgroup's waves share the units of one compute unit or of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// One compute unit; the only one of GFX9.
    ComputeUnit,
    /// A workgroup processor: two compute units of RDNA.
    WorkgroupProcessor,
}

/// What a unit of a GPU has to hold waves with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit {
    /// Waves of a SIMD.
    pub slots: u32,
    /// SIMDs.
    pub simds: u32,
    /// Vector registers of a lane, and the multiple in which they are allotted.
    pub vector_registers: (u32, u32),
    /// Whether scalar registers are allotted from a limited number.
    pub has_scalar_limit: bool,
    /// Bytes of LDS, and the multiple in which they are allotted.
    pub lds: (u32, u32),
    /// Workgroups of more than one wave.
    pub barriers: u32,
    /// Compute units that the unit is made of.
    pub compute_units: u32,
}

/// What a kernel needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Needs {
    /// Vector registers of a work item, architected and accumulation ones together.
    pub vgprs: u32,
    /// Scalar registers of a wave.
    pub sgprs: u32,
    /// LDS of a workgroup, static and dynamic, in bytes.
    pub lds: u32,
    /// Work items of a workgroup.
    pub items: u32,
}

/// Waves that fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Occupancy {
    /// Waves of a workgroup.
    pub waves_of_group: u32,
    /// Workgroups of a unit.
    pub groups: u32,
    /// Waves of a unit.
    pub waves: u32,
    /// Waves over those that a unit has places for.
    pub share: f64,
    /// What limits them: `none`, `lds`, `vgpr`, `sgpr`, `barrier`, `slots` or `group size`.
    pub limiter: &'static str,
    /// Greatest amount of the limiting resource with which more fits, and how many groups or waves of a SIMD do then; `None` where
    /// no resource of the kernel limits.
    pub next: Option<(u32, u32)>,
}

/// The unit of an architecture; `None` for one that is not described.
pub fn unit(arch: &str, wave_size: u32, mode: Mode) -> Option<Unit> {
    let gfx9 = |lds| Unit {
        slots: 8,
        simds: 4,
        vector_registers: (512, 8),
        has_scalar_limit: true,
        lds,
        barriers: 16,
        compute_units: 1,
    };
    // Lanes share a register file: waves of 64 have half as many registers.
    let rdna = |registers: u32, granule: u32| {
        let halves = match wave_size {
            64 => 2,
            _ => 1,
        };
        let units = match mode {
            Mode::ComputeUnit => 1,
            Mode::WorkgroupProcessor => 2,
        };
        Unit {
            slots: 16,
            simds: 2 * units,
            vector_registers: (registers / halves, granule / halves),
            has_scalar_limit: false,
            lds: (65_536 * units, 512),
            barriers: 16 * units,
            compute_units: units,
        }
    };
    let arch = arch.split(':').next().unwrap_or_default();
    match arch {
        "gfx90a" | "gfx942" => Some(gfx9((65_536, 512))),
        "gfx950" => Some(gfx9((163_840, 1_280))),
        "gfx1100" | "gfx1101" | "gfx1151" | "gfx1200" | "gfx1201" => Some(rdna(1_536, 24)),
        "gfx1102" | "gfx1103" | "gfx1150" | "gfx1152" => Some(rdna(1_024, 16)),
        _ if arch.starts_with("gfx103") => Some(rdna(1_024, 16)),
        _ => None,
    }
}

/// Waves of a SIMD by scalar registers on GFX9, by the table of LLVM.
fn scalar_waves(sgprs: u32) -> u32 {
    match sgprs {
        0..=80 => 10,
        81..=88 => 9,
        89..=100 => 8,
        _ => 7,
    }
}

/// The occupancy of a kernel on a unit; `None` when a workgroup does not fit, or is of no size.
pub fn occupancy(unit: &Unit, wave_size: u32, needs: &Needs) -> Option<Occupancy> {
    if needs.items == 0 || wave_size == 0 {
        return None;
    }
    let waves = needs.items.div_ceil(wave_size);
    let places = unit.slots * unit.simds;
    let (registers, granule) = unit.vector_registers;
    let by_vector = registers / needs.vgprs.max(1).next_multiple_of(granule);
    let by_vector = by_vector.clamp(1, unit.slots);
    let by_scalar = if unit.has_scalar_limit {
        scalar_waves(needs.sgprs).min(unit.slots)
    } else {
        unit.slots
    };
    let lds = match needs.lds {
        0 => None,
        lds => Some(unit.lds.0 / lds.next_multiple_of(unit.lds.1)),
    };
    // In the order in which one of several equal limits is named. Registers that fill every place do not limit.
    let limits = [
        ("lds", lds),
        (
            "vgpr",
            (by_vector < unit.slots).then(|| by_vector * unit.simds / waves),
        ),
        (
            "sgpr",
            (by_scalar < unit.slots).then(|| by_scalar * unit.simds / waves),
        ),
        ("barrier", (waves > 1).then_some(unit.barriers)),
        ("slots", Some(places / waves)),
    ];
    let limits = limits
        .into_iter()
        .filter_map(|(name, groups)| Some((name, groups?)));
    let (limiter, groups) =
        limits.reduce(|least, other| if other.1 < least.1 { other } else { least })?;
    if groups == 0 {
        return None;
    }
    let held = groups * waves;
    let limiter = match limiter {
        _ if held == places => "none",
        "slots" if !places.is_multiple_of(waves) => "group size",
        other => other,
    };
    let down = |amount: u32, multiple: u32| amount / multiple * multiple;
    let next = match limiter {
        "vgpr" => Some((down(registers / (by_vector + 1), granule), by_vector + 1)),
        "lds" => Some((down(unit.lds.0 / (groups + 1), unit.lds.1), groups + 1)),
        "sgpr" => Some((100, by_scalar + 1)),
        _ => None,
    };
    Some(Occupancy {
        waves_of_group: waves,
        groups,
        waves: held,
        share: f64::from(held) / f64::from(places),
        limiter,
        next: next.filter(|next| next.0 > 0),
    })
}

/// How many times the workgroups of a launch fill a GPU; `None` when that is not known.
pub fn rounds(unit: &Unit, occupancy: &Occupancy, groups: u64, compute_units: u32) -> Option<f64> {
    let units = compute_units / unit.compute_units;
    let at_once = u64::from(occupancy.groups) * u64::from(units);
    (at_once > 0).then(|| groups as f64 / at_once as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A worked example: GPU, wave size and mode; registers, LDS and items; waves of a group, groups, waves, percent, limiter.
    type Example = (
        (&'static str, u32, Mode),
        [u32; 4],
        [u32; 3],
        f64,
        &'static str,
    );

    use Mode::{ComputeUnit as Cu, WorkgroupProcessor as Wgp};

    const EXAMPLES: [Example; 22] = [
        (
            ("gfx90a", 64, Cu),
            [16, 16, 0, 64],
            [1, 32, 32],
            100.0,
            "none",
        ),
        (
            ("gfx90a", 64, Cu),
            [64, 32, 0, 256],
            [4, 8, 32],
            100.0,
            "none",
        ),
        (
            ("gfx90a", 64, Cu),
            [65, 32, 0, 256],
            [4, 7, 28],
            87.5,
            "vgpr",
        ),
        (
            ("gfx90a", 64, Cu),
            [128, 48, 0, 256],
            [4, 4, 16],
            50.0,
            "vgpr",
        ),
        (
            ("gfx90a", 64, Cu),
            [256, 64, 0, 256],
            [4, 2, 8],
            25.0,
            "vgpr",
        ),
        (
            ("gfx90a", 64, Cu),
            [512, 64, 0, 64],
            [1, 4, 4],
            12.5,
            "vgpr",
        ),
        (
            ("gfx90a", 64, Cu),
            [132, 102, 0, 512],
            [8, 1, 8],
            25.0,
            "vgpr",
        ),
        (
            ("gfx90a", 64, Cu),
            [8, 16, 32_768, 256],
            [4, 2, 8],
            25.0,
            "lds",
        ),
        (
            ("gfx90a", 64, Cu),
            [24, 16, 10_000, 256],
            [4, 6, 24],
            75.0,
            "lds",
        ),
        (
            ("gfx90a", 64, Cu),
            [24, 112, 0, 64],
            [1, 28, 28],
            87.5,
            "sgpr",
        ),
        (
            ("gfx90a", 64, Cu),
            [24, 16, 0, 192],
            [3, 10, 30],
            93.75,
            "group size",
        ),
        (
            ("gfx90a", 64, Cu),
            [32, 16, 0, 1_024],
            [16, 2, 32],
            100.0,
            "none",
        ),
        (
            ("gfx942", 64, Cu),
            [96, 64, 65_536, 256],
            [4, 1, 4],
            12.5,
            "lds",
        ),
        (
            ("gfx942", 64, Cu),
            [168, 80, 32_768, 512],
            [8, 1, 8],
            25.0,
            "vgpr",
        ),
        (
            ("gfx950", 64, Cu),
            [128, 64, 65_536, 256],
            [4, 2, 8],
            25.0,
            "lds",
        ),
        (
            ("gfx950", 64, Cu),
            [128, 64, 13_653, 64],
            [1, 11, 11],
            34.375,
            "lds",
        ),
        (
            ("gfx1100", 32, Wgp),
            [96, 0, 0, 256],
            [8, 8, 64],
            100.0,
            "none",
        ),
        (
            ("gfx1100", 32, Wgp),
            [97, 0, 0, 256],
            [8, 6, 48],
            75.0,
            "vgpr",
        ),
        (
            ("gfx1100", 32, Cu),
            [96, 0, 32_768, 256],
            [8, 2, 16],
            50.0,
            "lds",
        ),
        (
            ("gfx1100", 64, Wgp),
            [128, 0, 0, 256],
            [4, 5, 20],
            31.25,
            "vgpr",
        ),
        (
            ("gfx1102", 32, Wgp),
            [96, 0, 0, 256],
            [8, 5, 40],
            62.5,
            "vgpr",
        ),
        (
            ("gfx1201", 32, Wgp),
            [24, 0, 4_096, 128],
            [4, 16, 64],
            100.0,
            "none",
        ),
    ];

    // answers-58
    #[test]
    fn occupancy_is_that_of_the_worked_examples() {
        for (number, ((arch, wave, mode), needs, counts, percent, limiter)) in
            EXAMPLES.iter().enumerate()
        {
            let [vgprs, sgprs, lds, items] = *needs;
            let unit = unit(arch, *wave, *mode).expect("described");
            let needs = Needs {
                vgprs,
                sgprs,
                lds,
                items,
            };
            let found = occupancy(&unit, *wave, &needs).expect("fits");
            let number = number + 1;
            assert_eq!(
                [found.waves_of_group, found.groups, found.waves],
                *counts,
                "{number}"
            );
            assert_eq!(
                (found.share * 100.0, found.limiter),
                (*percent, *limiter),
                "{number}"
            );
        }
    }

    #[test]
    fn next_step_is_the_greatest_amount_with_which_more_fits() {
        let unit = unit("gfx90a", 64, Mode::ComputeUnit).expect("described");
        let next = |needs: Needs| occupancy(&unit, 64, &needs).expect("fits").next;
        let items = 256;
        assert_eq!(
            next(Needs {
                vgprs: 72,
                items,
                ..Needs::default()
            }),
            Some((64, 8))
        );
        assert_eq!(
            next(Needs {
                vgprs: 24,
                lds: 10_000,
                items,
                ..Needs::default()
            }),
            Some((9_216, 7))
        );
        assert_eq!(
            next(Needs {
                vgprs: 24,
                items,
                ..Needs::default()
            }),
            None
        );
    }

    // answers-64
    #[test]
    fn architecture_without_a_description_has_no_occupancy() {
        assert_eq!(unit("gfx1250", 32, Mode::ComputeUnit), None);
        assert!(unit("gfx90a:sramecc+:xnack-", 64, Mode::ComputeUnit).is_some());
    }

    // answers-60
    #[test]
    fn workgroup_that_does_not_fit_has_no_occupancy() {
        let unit = unit("gfx90a", 64, Mode::ComputeUnit).expect("described");
        for needs in [
            Needs {
                lds: 65_537,
                items: 64,
                ..Needs::default()
            },
            Needs {
                items: 0,
                ..Needs::default()
            },
        ] {
            assert_eq!(occupancy(&unit, 64, &needs), None);
        }
    }
}
