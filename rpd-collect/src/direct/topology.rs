//! The kernel driver's description of a node, in the files of its topology.

use std::ffi::{CStr, CString};
use std::path::{Path, PathBuf};

use rocprofiler_sdk_sys::{
    HSA_HEAPTYPE, HSA_IOLINKTYPE, rocprofiler_agent_cache_t as Cache,
    rocprofiler_agent_io_link_t as Link, rocprofiler_agent_mem_bank_t as Bank,
    rocprofiler_agent_v0_t as Agent,
};

/// Directory of the nodes.
const NODES: &str = "/sys/class/kfd/kfd/topology/nodes";

/// A node of the topology. What the driver does not state is absent.
pub(super) struct TopologyNode {
    directory: PathBuf,
    properties: Vec<(String, u64)>,
}

impl TopologyNode {
    /// Reads the properties of a node; none if the driver does not have it.
    pub(super) fn read(number: u32) -> TopologyNode {
        TopologyNode::from_directory(Path::new(NODES).join(number.to_string()))
    }

    fn from_directory(directory: PathBuf) -> TopologyNode {
        let read = |name| std::fs::read_to_string(directory.join(name)).unwrap_or_default();
        let mut properties = properties(&read("properties"));
        if let Ok(id) = read("gpu_id").trim().parse() {
            properties.push(("gpu_id".to_owned(), id));
        }
        TopologyNode {
            directory,
            properties,
        }
    }

    fn property(&self, name: &str) -> Option<u64> {
        let mut properties = self.properties.iter();
        properties
            .find(|(own, _)| own == name)
            .map(|(_, value)| *value)
    }

    /// Whether the node is the GPU with these numbers. Runtimes that bring their own devices number them like the
    /// driver does.
    pub(super) fn is_gpu(&self, device_id: u32, location_id: u32) -> bool {
        self.property("device_id") == Some(device_id.into())
            && self.property("location_id") == Some(location_id.into())
    }

    /// Fills in an agent. Its arrays live as long as the process.
    pub(super) fn fill_in(&self, agent: &mut Agent) {
        agent.model_name = self.name().as_ptr();
        for (name, value) in &self.properties {
            set(agent, name, *value);
        }
        if let Some(count) = self.property("mem_banks_count") {
            let banks = self.parts("mem_banks", count, set_bank);
            (agent.mem_banks, agent.mem_banks_count) = (banks.as_ptr(), banks.len() as u32);
        }
        if let Some(count) = self.property("caches_count") {
            let caches = self.parts("caches", count, set_cache);
            (agent.caches, agent.caches_count) = (caches.as_ptr(), caches.len() as u32);
        }
        if let Some(count) = self.property("io_links_count") {
            let links = self.parts("io_links", count, set_link);
            (agent.io_links, agent.io_links_count) = (links.as_ptr(), links.len() as u32);
        }
    }

    /// The driver's name of the node, such as `aldebaran`; empty for a CPU.
    fn name(&self) -> &'static CStr {
        let name = std::fs::read_to_string(self.directory.join("name")).unwrap_or_default();
        CString::new(name.trim()).map_or(c"", |name| Box::leak(name.into_boxed_c_str()))
    }

    /// The parts of one kind, each with a file of properties in its own directory.
    fn parts<T: Default>(
        &self,
        kind: &str,
        count: u64,
        set: fn(&mut T, &str, u64),
    ) -> &'static [T] {
        let directory = self.directory.join(kind);
        let parts = (0..count).map_while(|number| {
            let file = directory.join(number.to_string()).join("properties");
            let mut part = T::default();
            for (name, value) in properties(&std::fs::read_to_string(file).ok()?) {
                set(&mut part, &name, value);
            }
            Some(part)
        });
        Vec::leak(parts.collect())
    }
}

/// The lines with a name and a number; others are left out.
fn properties(text: &str) -> Vec<(String, u64)> {
    let property = |line: &str| {
        let (name, value) = line.split_once(' ')?;
        Some((name.to_owned(), value.trim().parse().ok()?))
    };
    text.lines().filter_map(property).collect()
}

/// Defines a function that sets the field of a name: fields named like the property, and others.
macro_rules! setter {
    ($function:ident, $type:ty, $($field:ident)*; $($name:literal => $($other:ident).+ as $wrap:expr,)*) => {
        fn $function(into: &mut $type, name: &str, value: u64) {
            match name {
                $(stringify!($field) => into.$field = value as _,)*
                $($name => into.$($other).+ = $wrap(value as _),)*
                _ => {}
            }
        }
    };
}

setter! {
    set, Agent,
    cpu_cores_count simd_count cpu_core_id_base simd_id_base max_waves_per_simd lds_size_in_kb gds_size_in_kb
    num_gws wave_front_size num_xcc array_count simd_arrays_per_engine cu_per_simd_array simd_per_cu
    max_slots_scratch_cu gfx_target_version vendor_id device_id location_id domain drm_render_minor hive_id
    num_sdma_engines num_sdma_xgmi_engines num_sdma_queues_per_engine num_cp_queues max_engine_clk_fcompute
    max_engine_clk_ccompute gpu_id local_mem_size;
    "capability" => capability.bits as std::convert::identity,
    "fw_version" => fw_version.bits as std::convert::identity,
    "sdma_fw_version" => sdma_fw_version.bits as std::convert::identity,
}

setter! {
    set_bank, Bank, size_in_bytes width mem_clk_max;
    "heap_type" => heap_type as HSA_HEAPTYPE,
    "flags" => flags.bits as std::convert::identity,
}

setter! {
    set_cache, Cache,
    processor_id_low level size cache_line_size cache_lines_per_tag association latency;
    "type" => r#type.bits as std::convert::identity,
}

setter! {
    set_link, Link,
    version_major version_minor node_from node_to weight min_latency max_latency min_bandwidth max_bandwidth
    recommended_transfer_size;
    "type" => r#type as HSA_IOLINKTYPE,
    "flags" => flags.bits as std::convert::identity,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(directory: &Path, file: &str, text: &str) {
        let path = directory.join(file);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::fs::write(path, text).expect("a file");
    }

    #[test]
    fn topology_node_is_read_from_its_files() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = directory.path();
        write(
            at,
            "properties",
            "simd_count 440\nmem_banks_count 1\ncaches_count 3\nio_links_count 1\ncapability 7\ndevice_id 29704\n\
             location_id 768\nof_the_future 1\nno number\n",
        );
        write(at, "gpu_id", "4242\n");
        write(at, "name", "aldebaran\n");
        write(
            at,
            "mem_banks/0/properties",
            "heap_type 1\nsize_in_bytes 64\nflags 0\nwidth 4096\n",
        );
        write(
            at,
            "caches/0/properties",
            "level 1\nsize 16\ntype 9\nsibling_map 1,1\n",
        );
        write(at, "caches/1/properties", "level 2\nsize 8192\ntype 10\n");
        write(
            at,
            "io_links/0/properties",
            "type 11\nnode_from 1\nnode_to 2\nweight 15\nflags 1\n",
        );
        let node = TopologyNode::from_directory(at.to_owned());
        assert!(node.is_gpu(29704, 768) && !node.is_gpu(29704, 769));
        assert!(!TopologyNode::read(u32::MAX).is_gpu(0, 0));

        let mut agent = Agent::default();
        node.fill_in(&mut agent);
        assert_eq!(
            (agent.simd_count, agent.capability.bits, agent.gpu_id),
            (440, 7, 4242)
        );
        // The third one has no file.
        assert_eq!(
            (
                agent.mem_banks_count,
                agent.caches_count,
                agent.io_links_count
            ),
            (1, 2, 1)
        );
        // SAFETY: the arrays have the numbers of elements in the counts, and the name ends with a zero.
        let (name, bank, caches, link) = unsafe {
            (
                CStr::from_ptr(agent.model_name),
                &*agent.mem_banks,
                std::slice::from_raw_parts(agent.caches, 2),
                &*agent.io_links,
            )
        };
        assert_eq!(name, c"aldebaran");
        assert_eq!(
            (bank.heap_type, bank.size_in_bytes),
            (HSA_HEAPTYPE::FRAME_BUFFER_PUBLIC, 64)
        );
        assert_eq!(
            caches
                .iter()
                .map(|cache| (cache.size, cache.r#type.bits))
                .collect::<Vec<_>>(),
            [(16, 9), (8192, 10)]
        );
        assert_eq!(
            (link.r#type, link.node_to, link.flags.bits),
            (HSA_IOLINKTYPE::XGMI, 2, 1)
        );
    }

    #[test]
    fn topology_node_leaves_fields_alone_that_the_driver_does_not_state() {
        let mut agent = Agent {
            simd_count: 4,
            caches_count: 1,
            ..Agent::default()
        };
        TopologyNode::read(u32::MAX).fill_in(&mut agent);
        assert_eq!((agent.simd_count, agent.caches_count), (4, 1));
    }
}
