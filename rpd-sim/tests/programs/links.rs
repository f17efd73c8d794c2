//! Links between GPUs and to the host, which every library must describe alike.

use crate::common;

/// HSA and HIP have the number 2 for PCI Express and 4 for xGMI, ROCm SMI 1 and 2.
#[test]
fn hip_hsa_and_rocm_smi_describe_the_same_links() {
    let libraries = ["-lamdhip64", "-lhsa-runtime64", "-lrocm_smi64"];
    let (directory, program) = common::build("links", "links.c", &[], &libraries);
    let said = common::run_loudly(&directory, &program, &[], &[("RPD_SIM_GPUS", "2")]);
    let expected = "hip: 0, kind 4, 1 hops, rank 4\n\
                    hsa: 0, kind 4, 1 hops, distance 15\n\
                    hsa: 0, kind 2, 1 hops, distance 20\n\
                    smi: 0, kind 2, 1 hops, weight 15\n\
                    smi: 0, kind 1, 2 hops, weight 20\n";
    assert_eq!(said, (expected.to_owned(), String::new()));
}
