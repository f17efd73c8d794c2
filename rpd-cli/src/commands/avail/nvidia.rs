//! NVIDIA's devices, as the driver lists them: no library of CUDA is loaded for it.

use std::path::Path;

use rpd_core::text::foreign;
use serde_json::json;

use super::Common;

/// Directory of the driver with a directory for each device, by its address on the bus.
const DEVICES: &str = "/proc/driver/nvidia/gpus";

/// A device of NVIDIA's.
#[derive(Debug, PartialEq, Eq)]
struct Device {
    model: String,
    uuid: String,
    bus: String,
}

impl Device {
    /// The device that the driver describes with a text; lines of a name, a colon and a value.
    fn parse(text: &str) -> Device {
        let value = |name: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once(':'));
            let found = lines.find(|(known, _)| known.trim() == name);
            found.map_or_else(String::new, |(_, value)| {
                foreign::shown(value.trim()).into_owned()
            })
        };
        Device {
            model: value("Model"),
            uuid: value("GPU UUID"),
            bus: value("Bus Location"),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "files of the kernel")]
fn devices(directory: &Path) -> Vec<Device> {
    let mut places: Vec<_> = std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("information"))
        .collect();
    places.sort();
    let texts = places
        .iter()
        .filter_map(|path| std::fs::read_to_string(path).ok());
    texts.map(|text| Device::parse(&text)).collect()
}

/// The listing of NVIDIA's devices; `None` where a run would not be for these.
pub(super) fn listing(common: &Common) -> Option<String> {
    let alone = || !Path::new("/dev/kfd").exists() && Path::new("/dev/nvidiactl").exists();
    if common.backend != "cuda" && !(common.backend == "auto" && alone()) {
        return None;
    }
    let devices = devices(Path::new(DEVICES));
    if common.json {
        let list: Vec<_> = devices
            .iter()
            .map(|device| json!({"model": device.model, "uuid": device.uuid, "bus": device.bus}))
            .collect();
        return Some(format!("{:#}\n", json!({"nvidia_gpus": list})));
    }
    let mut text = String::new();
    for (number, Device { model, uuid, bus }) in devices.iter().enumerate() {
        text += &format!("GPU {number}: {model} ({uuid}, at {bus})\n");
    }
    if devices.is_empty() {
        text += &format!("No GPU: {DEVICES} lists none\n");
    }
    text += "rpd collects no counters of NVIDIA GPUs; ncu --query-metrics lists what that tool collects\n";
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_is_parsed_from_the_text_of_the_driver() {
        let text = "Model: \t\t NVIDIA H200\nIRQ:   \t\t 48\nGPU UUID: \t GPU-ccfead2d\nBus Type: \t PCIe\nBus Location: \t 0000:00:05.0\n";
        let device = Device::parse(text);
        assert_eq!(device.model, "NVIDIA H200");
        assert_eq!(
            (&*device.uuid, &*device.bus),
            ("GPU-ccfead2d", "0000:00:05.0")
        );
        assert_eq!(Device::parse("").model, "");
    }
}
