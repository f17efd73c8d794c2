//! The kernels of the page.

use std::collections::BTreeMap;

use super::SHOWN;
use crate::answer::{Answer, Paragraph, Section, Value, Window, columns, key};
use crate::kernel::{self, LineRow};
use crate::records::Records;

/// Lines of code that are shown of a kernel.
const LINES: usize = 2;

columns! {
    /// A kernel that matters.
    KernelRow {
        key: Key "Key" 9 "Identity of the row: `kernel` and the name",
        name: Name "Kernel" 0 "Name",
        verdict: Name "Verdict" 0 "What there is to say of it in one sentence",
        calls: Count "Calls" 0 "Number of launches",
        sum_ns: Nanoseconds "Time" 0 "Durations added up",
        share: Share "Share" 0 "Share of the time of all kernels",
        groups: Word "Groups" 1 "Workgroups of the grid: x, y, z; of the geometry with the most time",
        items: Word "Items" 1 "Work items of a workgroup: x, y, z",
        rounds: Number "Rounds" 1 "How many times the workgroups fill the GPU",
        vgprs: Count "VGPRs" 2 "Vector registers of a work item",
        sgprs: Count "SGPRs" 3 "Scalar registers of a wave",
        lds_bytes: Bytes "LDS" 2 "LDS of a workgroup, static and dynamic",
        scratch_bytes: Bytes "Scratch" 3 "Scratch of a work item",
        occupancy: Share "Occupancy" 1 "Waves that a unit can hold over its places",
        limiter: Word "Limited by" 1 "What limits these",
        next: Name "Next step" 2 "Greatest amount of the limiting resource with which more fits",
        valu: Share "VALU" 2 "How busy the vector units are",
        mfma: Share "MFMA" 3 "How busy the matrix units are",
        lds: Share "LDS busy" 3 "How busy LDS is",
        l2: Share "L2" 3 "L2 requests over what its channels can do",
        fabric: Share "Fabric" 2 "Bytes behind L2 over the peak of memory; may pass 1 where a cache lies between",
        l1_hit: Share "L1 hit" 3 "Accesses to the vector cache that hit",
        l2_hit: Share "L2 hit" 3 "Requests to L2 that hit",
        efficiency: Share "Of roof" 2 "FLOP per second over what the roofline allows",
        waits_for_data: Share "Data" 2 "Share of wave cycles that wait for data, a barrier or a fetch",
        waits_for_issue: Share "Issue" 3 "Share of wave cycles that wait for issue",
        site: Name "Launched at" 2 "Place in the source, or else the function that launches most often",
    }
}

/// The answers about the kernels with the most time.
pub(super) struct Page {
    kernels: Vec<(String, Answer)>,
}

impl Page {
    pub(super) fn new(records: &dyn Records, window: &Window) -> Page {
        let facts = records.facts();
        let mut times: BTreeMap<u32, u64> = BTreeMap::new();
        let is_inside = |start: u64, end: u64| start < window.end && end >= window.start;
        for op in records.ops() {
            if op.is_kernel && is_inside(op.start, op.end) {
                *times.entry(op.name).or_default() += op.length();
            }
        }
        let mut times: Vec<(u32, u64)> = times.into_iter().collect();
        times.sort_by_key(|kernel| (std::cmp::Reverse(kernel.1), kernel.0));
        let given = Some((window.start, window.end));
        let kernels = times.into_iter().take(SHOWN).map(|(number, _)| {
            let name = facts.name(number);
            let about = kernel::answer(records, |known| known == name, given);
            (name.to_owned(), about)
        });
        Page {
            kernels: kernels.collect(),
        }
    }

    /// Name of the kernel with the most time.
    pub(super) fn hottest(&self) -> Option<&str> {
        self.kernels.first().map(|kernel| kernel.0.as_str())
    }

    /// The sections about kernels and their lines.
    pub(super) fn sections(&self) -> [Section; 2] {
        let mut rows = Vec::new();
        let mut lines: Vec<Vec<Value>> = Vec::new();
        let mut paragraphs = Vec::new();
        for ((name, about), number) in self.kernels.iter().zip(1..) {
            let card = Card(about);
            let hot = about.section("lines");
            lines.extend(hot.into_iter().flat_map(|hot| hot.rows.iter().cloned()));
            paragraphs.push(Paragraph::new(0, format!("{number}. {name}")));
            let texts = card.texts().into_iter();
            paragraphs.extend(texts.map(|text| Paragraph::new(1, text)));
            rows.push(card.row(name).cells());
        }
        [
            Section::new("kernels", KernelRow::COLUMNS, rows).with_paragraphs(paragraphs),
            Section::new("lines", LineRow::COLUMNS, lines).with_paragraphs(Vec::new()),
        ]
    }

    /// What is missing of any kernel.
    pub(super) fn report(&self, answer: &mut Answer) {
        for (_, about) in &self.kernels {
            for missing in &about.missing {
                let is_known = |known: &crate::answer::Missing| known.what == missing.what;
                if !answer.missing.iter().any(is_known) {
                    answer.missing.push(missing.clone());
                }
            }
            for warning in &about.warnings {
                if !answer.warnings.contains(warning) {
                    answer.warnings.push(warning.clone());
                }
            }
        }
    }
}

/// The answer about one kernel, of which the page shows parts.
struct Card<'a>(&'a Answer);

impl Card<'_> {
    /// A cell of the first row of a section.
    fn first(&self, section: &str, column: &str) -> Value {
        let section = self.0.section(section);
        section
            .and_then(|section| section.get(0, column))
            .cloned()
            .unwrap_or_default()
    }

    /// A cell of the row of a figure.
    fn figure(&self, section: &str, name: &str, column: &str) -> Value {
        let find = || {
            let section = self.0.section(section)?;
            let is_named =
                |row: &usize| section.get(*row, "name").and_then(Value::text) == Some(name);
            let row = (0..section.rows.len()).find(is_named)?;
            section.get(row, column).cloned()
        };
        find().unwrap_or_default()
    }

    /// A figure of the section `figures`, whose names repeat in different parts.
    fn fact(&self, name: &str) -> Value {
        self.figure("figures", name, "value")
    }

    fn row(&self, name: &str) -> KernelRow {
        let share = |name: &str| self.figure("sol", name, "share");
        let ratio = |section: &str, name: &str| self.figure(section, name, "value");
        KernelRow {
            key: key(&[&"kernel", &name]).into(),
            name: name.into(),
            verdict: self.first("figures", "text"),
            calls: self.fact("count"),
            sum_ns: self.fact("total"),
            share: self.fact("share"),
            groups: self.first("geometry", "groups"),
            items: self.first("geometry", "items"),
            rounds: self.first("geometry", "rounds"),
            vgprs: self.fact("vgprs"),
            sgprs: self.fact("sgprs"),
            lds_bytes: self.first("geometry", "lds_bytes"),
            scratch_bytes: self.fact("static_scratch"),
            occupancy: self.first("geometry", "occupancy"),
            limiter: self.first("geometry", "limiter"),
            next: self.first("geometry", "next"),
            valu: share("valu"),
            mfma: share("mfma"),
            lds: share("lds"),
            l2: share("l2"),
            fabric: share("fabric"),
            l1_hit: ratio("caches", "l1_hit"),
            l2_hit: ratio("caches", "l2_hit"),
            efficiency: ratio("roofline", "efficiency"),
            waits_for_data: ratio("stalls", "waits_for_data"),
            waits_for_issue: ratio("stalls", "waits_for_issue"),
            site: self.first("sites", "site"),
        }
    }

    /// What people read of the kernel.
    fn texts(&self) -> Vec<String> {
        let mut texts = Vec::new();
        let text = |value: Value| match value {
            Value::Text(text) => Some(text),
            Value::Integer(number) => Some(number.to_string()),
            Value::Number(_) | Value::Null => None,
        };
        texts.extend(text(self.first("figures", "text")));
        texts.push(self.needs());
        let figures = self.speeds();
        if !figures.is_empty() {
            texts.push(figures);
        }
        if let Some(site) = text(self.first("sites", "site")) {
            texts.push(format!("launched at {site}"));
        }
        let lines = self.0.section("lines");
        for row in 0..lines.map_or(0, |lines| lines.rows.len()).min(LINES) {
            let get = |column: &str| lines.and_then(|lines| lines.get(row, column));
            let percent = |column: &str| {
                get(column)
                    .and_then(Value::number)
                    .map(|share| share * 100.0)
            };
            let word = |column: &str| get(column).and_then(Value::text).unwrap_or_default();
            let error = percent("error").map_or(String::new(), |error| format!(" +-{error:.1}"));
            let reason = match word("reason") {
                "" => String::new(),
                reason => format!(" ({reason})"),
            };
            let share = percent("share").unwrap_or(0.0);
            texts.push(format!(
                "{share:.1} %{error} at {}{reason}  {}",
                word("place"),
                word("instruction")
            ));
        }
        texts
    }

    /// Geometry, resources and occupancy.
    fn needs(&self) -> String {
        let number = |value: Value| {
            value
                .number()
                .map_or("-".to_owned(), |number| number.to_string())
        };
        let word = |column: &str| {
            let value = self.first("geometry", column);
            value.text().unwrap_or("-").replace(' ', "x")
        };
        let mut text = format!(
            "{} groups of {}, {} VGPRs, {} SGPRs, LDS {} B",
            word("groups"),
            word("items"),
            number(self.fact("vgprs")),
            number(self.fact("sgprs")),
            number(self.first("geometry", "lds_bytes")),
        );
        if let Some(share) = self.first("geometry", "occupancy").number() {
            text += &format!(", occupancy {:.0} %", share * 100.0);
        }
        if let Some(next) = self.first("geometry", "next").text() {
            text += &format!(" ({next})");
        }
        text
    }

    /// Roofline, caches and what waves do.
    fn speeds(&self) -> String {
        let percent = |section: &str, name: &str, label: &str| {
            let value = self.figure(section, name, "value").number()?;
            Some(format!("{:.0} % {label}", value * 100.0))
        };
        let intensity = self
            .figure("roofline", "intensity_fabric", "value")
            .number();
        let parts = [
            intensity.map(|intensity| kernel::amount(intensity, "FLOP/B")),
            percent("roofline", "efficiency", "of the roof"),
            percent("caches", "l1_hit", "L1 hits"),
            percent("caches", "l2_hit", "L2 hits"),
            percent("stalls", "active", "waves active"),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        parts.join(", ")
    }
}
