//! What an answer says in sentences: its head, what is missing, and paragraphs.

use std::fmt::Write as _;
use std::io::Write;

use anyhow::Result;
use rpd_analysis::answer::Paragraph;
use rpd_formats::table;

use super::{Shown, ShownSection, time, unit_of};
use crate::wording;

/// Lines of a paragraph on a terminal.
const LINES: usize = 3;

impl<'a> Shown<'a> {
    /// A line for each thing that is missing.
    pub(super) fn missing(&self) -> Vec<String> {
        let command = self
            .facts
            .processes
            .first()
            .map(|process| process.command.join(" "));
        let command = command.filter(|command| !command.is_empty());
        let line = |missing: &rpd_analysis::answer::Missing| {
            let mut line = format!(
                "not shown: {} ({}",
                missing.affects.join(", "),
                missing.because
            );
            if !missing.record.is_empty() {
                let program = command.as_deref().unwrap_or("PROGRAM");
                let _ = write!(
                    line,
                    "; record again with: rpd {} -- {program}",
                    missing.record
                );
            }
            line + ")"
        };
        self.answer.missing.iter().map(line).collect()
    }

    /// A line with all that is missing, if anything is.
    pub(super) fn affected(&self) -> Vec<String> {
        let mut affected: Vec<&str> = Vec::new();
        for part in self
            .answer
            .missing
            .iter()
            .flat_map(|missing| &missing.affects)
        {
            if !affected.contains(part) {
                affected.push(part);
            }
        }
        if affected.is_empty() {
            return Vec::new();
        }
        vec![format!(
            "not shown: {} (-f json says why)",
            affected.join(", ")
        )]
    }

    /// The lines above tables: what was recorded, on what, and the window.
    pub(super) fn head(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let facts = self.facts;
        // Those that count or sample were run for the sake of the others.
        let timed = facts.processes.iter().find(|process| !process.is_evidence);
        let process = timed.or(facts.processes.first()).map(|process| {
            let program = process.command.first().map_or("a program", String::as_str);
            let timed = facts
                .processes
                .iter()
                .filter(|process| !process.is_evidence);
            match timed.count() {
                0 | 1 => format!("{program}[{}]", process.pid),
                count => format!(
                    "{program}[{}] and {}",
                    process.pid,
                    wording::count(count - 1, "more process")
                ),
            }
        });
        // Lists of rules are about no recording.
        let Some(process) = process else {
            return Vec::new();
        };
        let mut first = format!("rpd {}: {process}", self.answer.command);
        if let Some(window) = self.answer.window {
            let (text, _) = time(window.length() as f64, unit_of(window.length() as f64));
            let unit = unit_of(window.length() as f64).0;
            let _ = write!(first, ", window {text} {unit} ({})", window.kind);
        }
        lines.push(first);
        let mut gpus: Vec<String> = Vec::new();
        for gpu in &facts.gpus {
            let simulated = if gpu.is_simulated { ", simulated" } else { "" };
            let text = format!("GPU {} ({}{simulated})", gpu.number, gpu.arch);
            if !gpus.contains(&text) {
                gpus.push(text);
            }
        }
        if !gpus.is_empty() {
            lines.push(gpus.join(", "));
        }
        if let Some(warning) = self
            .answer
            .warnings
            .iter()
            .find(|warning| warning.code == "simulated")
        {
            lines.push(warning.text.clone());
        }
        lines.push("recording cost unknown; compare with a run with --light".to_owned());
        lines
    }

    /// What people read of a section in place of its table; `None` where the table is shown.
    pub(super) fn paragraphs(&self, shown: &ShownSection<'a>) -> Option<&'a [Paragraph]> {
        let paragraphs = shown.section.paragraphs.as_deref();
        // Who asks for the section or for all columns gets the table.
        paragraphs.filter(|_| !self.is_wide && !self.is_chosen)
    }

    pub(super) fn write_paragraphs(
        &self,
        paragraphs: &[Paragraph],
        out: &mut dyn Write,
    ) -> Result<()> {
        for paragraph in paragraphs {
            let text = rpd_core::text::foreign::shown(&paragraph.text).into_owned();
            let indent = "  ".repeat(paragraph.indent);
            let width = self
                .width
                .unwrap_or(usize::MAX)
                .saturating_sub(indent.len());
            let mut lines = wrapped(&text, width);
            if lines.len() > LINES {
                // The last line says by its dots that the text goes on.
                lines.truncate(LINES);
                let last = lines.last_mut().expect("several lines");
                let kept: String = last.chars().take(width.saturating_sub(3)).collect();
                *last = format!("{kept}...");
            }
            for line in lines {
                writeln!(out, "{indent}{line}")?;
            }
        }
        Ok(())
    }
}

/// A line in pieces of at most some letters, broken at blanks.
pub(super) fn wrapped(line: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in line.split(' ') {
        let last = lines.last_mut().expect("at least one line");
        if !last.is_empty() && last.chars().count() + 1 + word.chars().count() > width {
            lines.push(format!("  {word}"));
        } else {
            if !last.is_empty() {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    lines
        .iter()
        .map(|line| table::shortened(line, width))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_at_blanks() {
        assert_eq!(wrapped("not shown: a b", 10), ["not shown:", "  a b"]);
    }
}
