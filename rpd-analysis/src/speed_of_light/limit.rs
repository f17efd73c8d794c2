//! What limits a kernel, by the unit that is nearest to its peak.

/// Share of a peak in percent from which on a unit is near it.
const NEAR: f64 = 80.0;
/// Share in percent below which nothing is the limit.
const LOW: f64 = 60.0;
/// Difference in percent up to which two shares are balanced.
const BALANCED: f64 = 10.0;

/// What limits a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit<'a> {
    /// The launch has fewer workgroups than the GPU has units.
    Grid,
    /// A unit works at 80 % of its peak or more.
    Near(&'a str),
    /// No unit works at 60 % of its peak.
    Latency,
    /// Compute and memory are within ten points.
    Balanced,
    /// A unit that computes, far from its peak if the greatest share is below 80 %.
    Compute(&'a str),
    /// A unit that moves data.
    Memory(&'a str),
}

impl Limit<'_> {
    /// The limit from the greatest shares of the units that compute and that move data, in percent, each with its unit.
    pub fn from_shares<'a>(compute: (f64, &'a str), memory: (f64, &'a str)) -> Limit<'a> {
        let (greatest, unit) = if compute.0 >= memory.0 {
            compute
        } else {
            memory
        };
        if greatest >= NEAR {
            Limit::Near(unit)
        } else if greatest < LOW {
            Limit::Latency
        } else if (compute.0 - memory.0).abs() <= BALANCED {
            Limit::Balanced
        } else if compute.0 > memory.0 {
            Limit::Compute(unit)
        } else {
            Limit::Memory(unit)
        }
    }
}

/// The words of a limit.
impl std::fmt::Display for Limit<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Limit::Grid => f.write_str("grid too small"),
            Limit::Near(unit) => write!(f, "near the peak of {}", unit_label(unit)),
            Limit::Latency => f.write_str("latency bound"),
            Limit::Balanced => f.write_str("balanced"),
            Limit::Compute(unit) => write!(f, "moderately compute bound ({})", unit_label(unit)),
            Limit::Memory(unit) => write!(f, "moderately memory bound ({})", unit_label(unit)),
        }
    }
}

/// What people call a unit of [`Figure::name`](super::Figure::name).
pub fn unit_label(name: &str) -> String {
    match name {
        "valu" | "mfma" | "lds" | "l1" | "l2" => name.to_uppercase(),
        "vector_memory" => "vector memory".to_owned(),
        _ => name.replace("flops_", "").replace('_', " "),
    }
}
