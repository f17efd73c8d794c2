//! The file format of speedscope: <https://www.speedscope.app/file-format-schema.json>. There is a profile for each kind of weight.

use std::collections::HashMap;
use std::io::{self, Write};

use serde_json::json;

use super::{Frame, Profile, Unit};

pub(super) fn write(profile: &Profile, title: &str, out: &mut dyn Write) -> io::Result<()> {
    let ordered = profile.ordered();
    let mut index: HashMap<&Frame, usize> = HashMap::new();
    let mut frames = Vec::new();
    let mut samples = Vec::new();
    for (stack, _) in &ordered {
        let mut sample = Vec::with_capacity(stack.len());
        for &frame in stack {
            // Frames are shared by index: the viewer merges equal ones.
            let number = *index.entry(frame).or_insert_with(|| {
                let mut entry = json!({ "name": frame.name });
                if !frame.file.is_empty() {
                    entry["file"] = frame.file.as_str().into();
                }
                if frame.line > 0 {
                    entry["line"] = frame.line.into();
                }
                frames.push(entry);
                frames.len() - 1
            });
            sample.push(number);
        }
        samples.push(sample);
    }
    let kinds = profile.kinds_in_use(None);
    let profiles = kinds.into_iter().map(|(kind, weight)| {
        let unit = match weight.unit {
            Unit::Count => "none",
            Unit::Nanoseconds => "nanoseconds",
            Unit::Bytes => "bytes",
        };
        let weighted = samples.iter().zip(&ordered);
        let (samples, weights): (Vec<_>, Vec<_>) = weighted
            .map(|(sample, (_, weights))| (sample, weights[kind]))
            .filter(|(_, weight)| *weight > 0)
            .unzip();
        json!({
            "type": "sampled",
            "name": weight.name,
            "unit": unit,
            "startValue": 0,
            "endValue": profile.total_of(kind),
            "samples": samples,
            "weights": weights,
        })
    });
    let profiles: Vec<serde_json::Value> = profiles.collect();
    let file = json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": "rpd",
        "name": title,
        "shared": { "frames": frames },
        "activeProfileIndex": 0,
        "profiles": profiles,
    });
    serde_json::to_writer(&mut *out, &file)?;
    out.write_all(b"\n")
}
