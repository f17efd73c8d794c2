//! What happens inside a kernel: sections made of counters and PC samples.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::answer::{Answer, Level, Section, Value, columns, key};
use crate::records::{Facts, Gpu, Records, Sampled};
use crate::speed_of_light::{
    Counters, Device, Figure, Kind, Peaks, SpeedOfLight, figures, unit_label,
};

/// Lines that are shown of a kernel.
const LINES: usize = 10;

columns! {
    /// A figure made of counters.
    MeasureRow {
        key: Key "Key" 9 "Identity of the row: `kernel`, name, processor, section and figure",
        section: Word "About" 8 "sol, roofline, caches or stalls",
        name: Word "Figure" 0 "Name of the figure",
        value: Number "Number" 8 "Value for a dispatch in the mean; null when it is not known, or the divisor is 0",
        unit: Word "Unit" 8 "Unit of value and peak; 1 is a fraction",
        text: Word "Value" 0 "The value for people",
        peak: Number "Peak number" 8 "The most that the GPU can do; null where there is no such thing or it is not known",
        peak_text: Word "Peak" 1 "The peak for people",
        share: Share "Of peak" 0 "Part of the peak, or the value itself where it is a share",
        pass: Word "Pass" 2 "Numbers of the recordings that the counters come from, in the order of the inputs",
        from: Name "From" 3 "Counters that it is made of",
    }
}

columns! {
    /// A line of code with PC samples.
    LineRow {
        key: Key "Key" 9 "Identity of the row: `line`, kernel and place",
        kernel: Name "Kernel" 2 "Name of the kernel",
        place: Word "Line" 0 "File and line, or else the address of the hottest instruction",
        samples: Count "Samples" 1 "PC samples at the line",
        share: Share "Share" 0 "Share of the kernel's samples",
        error: Share "+-" 0 "Half of the 95 % confidence interval of the share",
        reason: Word "Waits for" 1 "Most frequent reason why its waves did not issue an instruction; null where samples do not tell",
        instruction: Name "Hottest instruction" 1 "The instruction of the line with the most samples",
    }
}

/// What counters and samples say of a kernel.
#[derive(Debug, Clone, Default)]
pub struct Inside {
    /// Figures from counters; `None` when the kernel was not counted.
    pub light: Option<SpeedOfLight>,
    /// Lines with samples, the hottest first.
    pub lines: Vec<Sampled>,
}

impl Inside {
    /// Of a kernel by the number of its name. `typical` is the time of a launch of a geometry without counters.
    pub fn new(
        records: &dyn Records,
        counters: &BTreeMap<u32, Counters>,
        name: u32,
        typical: impl Fn(&crate::speed_of_light::Geometry) -> Option<f64>,
    ) -> Inside {
        let facts = records.facts();
        let light = counters.get(&name).map(|counters| {
            let device = Device::new(&facts.gpus[counters.gpu as usize]);
            figures(counters, &device, counters.time(typical))
        });
        let text = facts.name(name);
        let lines = records.sampled().iter();
        Inside {
            light,
            lines: lines.filter(|line| line.kernel == text).cloned().collect(),
        }
    }

    /// The words of the verdict about counters: what limits the kernel, the nearest units, and what waves wait for.
    pub fn verdict(&self, groups: u64, gpu: &Gpu) -> Option<(String, String)> {
        let light = self.light.as_ref()?;
        let limit = light.limit(groups, gpu.units)?;
        let shares = [Kind::Memory, Kind::Compute].map(|kind| {
            let (share, unit) = light.greatest(kind)?;
            Some(format!("{} {:.0} %", unit_label(unit), share * 100.0))
        });
        let shares: Vec<String> = shares.into_iter().flatten().collect();
        let first = format!("{limit}: {} of peak", shares.join(", "));
        let wait = |name| light.value("stalls", name);
        let mut rest = String::new();
        if let Some(waves) = wait("waves_of_active_unit") {
            rest += &format!(", {waves:.1} used on active units");
        }
        let waits = [
            (wait("waits_for_data"), "data"),
            (wait("waits_for_issue"), "issue"),
        ];
        let most = waits
            .into_iter()
            .filter_map(|(share, what)| Some((share?, what)))
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .filter(|(share, _)| *share >= 0.1);
        if let Some((share, what)) = most {
            rest += &format!("; {:.0} % of wave cycles wait for {what}", share * 100.0);
        }
        Some((first, rest))
    }

    /// The sections of the kernel with this name.
    pub fn sections(&self, facts: &Facts, name: &str, arch: &str) -> Vec<Section> {
        let mut sections = Vec::new();
        for section in ["sol", "roofline", "caches", "stalls"] {
            let figures = self.light.iter().flat_map(|light| &light.figures);
            let rows: Vec<Vec<Value>> = figures
                .filter(|figure| figure.section == section && is_recorded(figure))
                .map(|figure| measure_row(facts, figure, name, arch).cells())
                .collect();
            if !rows.is_empty() {
                sections.push(Section::new(section, MeasureRow::COLUMNS, rows));
            }
        }
        if !self.lines.is_empty() {
            let rows = line_rows(&self.lines, LINES)
                .into_iter()
                .map(LineRow::cells);
            let mut lines = Section::new("lines", LineRow::COLUMNS, rows.collect());
            lines.total = self.lines.len() as u64;
            sections.push(lines);
        }
        sections
    }

    /// Says what is missing, and what the figures rest on.
    pub fn report(&self, facts: &Facts, gpu: &Gpu, answer: &mut Answer) {
        const AFFECTED: [&str; 4] = ["sol", "roofline", "caches", "stalls"];
        let arch = &gpu.arch;
        match (&self.light, Peaks::find(arch)) {
            (None, Some(peaks)) => answer.lacks(
                "counters",
                &AFFECTED,
                "the kernel was not counted",
                Cow::Owned(format!("--pmc auto:{}", peaks.counters().join(","))),
            ),
            (None, None) | (Some(_), None) => answer.lacks(
                "peaks",
                &AFFECTED,
                format!("the peaks of {arch} are not described"),
                "",
            ),
            (Some(light), Some(_)) => {
                let missing = missing_counters(light);
                if !missing.is_empty() {
                    answer.lacks(
                        "counters",
                        &AFFECTED,
                        "some counters are not recorded",
                        Cow::Owned(format!("--pmc auto:{}", missing.join(","))),
                    );
                }
                if light.is_lower_bound {
                    answer.warn(
                        "lower-bound",
                        Level::Note,
                        "bytes behind L2 are a lower bound on hardware: requests of 128 bytes (TCC_BUBBLE) are not counted",
                    );
                }
                let is_timed = facts.processes.iter().any(|process| process.is_evidence);
                if !gpu.is_simulated && !is_timed {
                    answer.warn(
                        "serialised",
                        Level::Note,
                        "rates refer to the time of counted dispatches, which ran alone",
                    );
                }
            }
        }
        if self.lines.is_empty() {
            answer.lacks(
                "samples",
                &["lines"],
                "the kernel has no PC samples",
                "--pc-sampling-beta-enabled --pc-sampling-method host_trap --pc-sampling-unit time --pc-sampling-interval 100",
            );
        }
    }
}

/// Whether the counters of a figure are recorded; its value may be unknown all the same, because a divisor is 0.
fn is_recorded(figure: &Figure) -> bool {
    figure.value.is_some() || figure.from.is_empty() || !figure.processes.is_empty()
}

/// Counters that figures without value lack.
fn missing_counters(light: &SpeedOfLight) -> Vec<String> {
    let mut missing = Vec::new();
    for figure in light.figures.iter().filter(|figure| figure.value.is_none()) {
        for counter in &figure.from {
            if light.lacks.contains(counter) && !missing.contains(counter) {
                missing.push(counter.clone());
            }
        }
    }
    missing
}

fn measure_row(facts: &Facts, figure: &Figure, name: &str, arch: &str) -> MeasureRow {
    let id = format!("{}.{}", figure.section, figure.name);
    let passes = figure.processes.iter();
    let passes: Vec<String> = passes
        .map(|process| facts.pass(*process).to_string())
        .collect();
    let text = |value: Option<f64>| Value::from(value.map(|value| amount(value, figure.unit)));
    MeasureRow {
        key: key(&[&"kernel", &name, &arch, &id]).into(),
        section: figure.section.into(),
        name: figure.name.as_str().into(),
        value: figure.value.into(),
        unit: match figure.unit {
            "" => Value::Null,
            unit => unit.into(),
        },
        text: text(figure.value),
        peak: figure.peak.into(),
        peak_text: text(figure.peak),
        share: figure.share.into(),
        pass: Some(passes.join("+"))
            .filter(|text| !text.is_empty())
            .into(),
        from: figure.from.join(" ").into(),
    }
}

/// The rows of the hottest lines.
pub fn line_rows(lines: &[Sampled], most: usize) -> Vec<LineRow> {
    let row = |line: &Sampled| LineRow {
        key: key(&[&"line", &line.kernel, &line.place, &line.instruction]).into(),
        kernel: line.kernel.as_str().into(),
        place: line.place.as_str().into(),
        samples: line.samples.into(),
        share: Value::ratio(line.samples, line.of_kernel),
        error: line.error.into(),
        reason: line.reasons.first().map(|reason| reason.0).into(),
        instruction: match line.instruction.as_str() {
            "" => Value::Null,
            text => text.into(),
        },
    };
    lines.iter().take(most).map(row).collect()
}

/// A value with its unit for people: four digits that count, and a prefix of thousands.
pub fn amount(value: f64, unit: &str) -> String {
    if unit == "1" {
        return format!("{:.1} %", value * 100.0);
    }
    let (mut value, mut prefix) = (value, "");
    for next in ["k", "M", "G", "T", "P"] {
        if value.abs() < 10_000.0 {
            break;
        }
        (value, prefix) = (value / 1_000.0, next);
    }
    let digits = match value.abs() {
        whole if whole == whole.trunc() => 0,
        0.0..1.0 => 5,
        1.0..10.0 => 3,
        10.0..100.0 => 2,
        _ => 1,
    };
    match unit {
        "" if prefix.is_empty() => format!("{value:.digits$}"),
        "" => format!("{value:.digits$} {prefix}"),
        unit => format!("{value:.digits$} {prefix}{unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::amount;

    #[test]
    fn amounts_have_a_prefix_from_ten_thousand_on() {
        for (value, unit, text) in [
            (3_516.0, "cycles", "3516 cycles"),
            (380_429e6, "B/s", "380.4 GB/s"),
            (0.2322, "1", "23.2 %"),
            (0.083_29, "FLOP/B", "0.08329 FLOP/B"),
            (7.195, "", "7.195"),
            (12_288.0, "", "12.29 k"),
        ] {
            assert_eq!(amount(value, unit), text);
        }
    }
}
