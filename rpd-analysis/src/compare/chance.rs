//! Whether runs of the same program differ as much as two sides do.

use super::Pair;
use super::run::Joined;

/// A change of more than this many spreads is beyond chance.
const BEYOND: f64 = 4.0;

/// The typical time on both sides.
pub(super) struct Change {
    before: f64,
    after: f64,
    /// Pooled standard deviation between runs of a side; `None` with one run on a side.
    spread: Option<f64>,
}

impl Change {
    /// `None` unless both sides have the kernel.
    pub(super) fn new(a: &Joined, b: &Joined) -> Option<Change> {
        let squares = |side: &Joined| {
            let values = &side.typicals;
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            values
                .iter()
                .map(|value| (value - mean).powi(2))
                .sum::<f64>()
        };
        let has_spread = a.typicals.len() > 1 && b.typicals.len() > 1;
        let freedom = (a.typicals.len() + b.typicals.len()).saturating_sub(2);
        Some(Change {
            before: a.typical()?,
            after: b.typical()?,
            spread: has_spread.then(|| ((squares(a) + squares(b)) / freedom as f64).sqrt()),
        })
    }

    /// Growth as a share of the time before; `None` when that is 0.
    pub(super) fn share(&self) -> Option<f64> {
        (self.before > 0.0).then(|| (self.after - self.before) / self.before)
    }

    fn spread_share(&self) -> Option<f64> {
        (self.before > 0.0).then_some(self.spread? / self.before)
    }

    /// Whether the change is more than four times the spread, which is at least that of all kernels together: the spread of one, from
    /// a few runs, may be small by chance. `None` when chance is not known.
    pub(super) fn is_beyond(&self, all: Option<f64>) -> Option<bool> {
        let spread = self.spread_share()?.max(all.unwrap_or(0.0));
        Some(self.share()?.abs() > BEYOND * spread)
    }
}

/// Root mean square of the spreads of all kernels as shares, each with the weight of its time.
pub(super) fn of_all(pairs: &[Pair]) -> Option<f64> {
    let mut sum = 0.0;
    let mut weight = 0.0;
    for pair in pairs {
        let spread = Change::new(&pair.a, &pair.b).and_then(|change| change.spread_share());
        if let Some(spread) = spread {
            let time = (pair.a.total() + pair.b.total()) as f64;
            sum += spread * spread * time;
            weight += time;
        }
    }
    (weight > 0.0).then(|| (sum / weight).sqrt())
}
