//! Offload bundles and code objects: any bytes can be loaded, and their kernels have descriptors, or they give an
//! error.

use rpd_gfx::codeobj::{self, CodeObject, Image, bundle};
use rpd_gfx::device::Device;

use super::assert_one_line;
use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "code-objects",
    run,
    seeds,
    longest: 64 << 10,
    mutations: 1500,
};

const FILES: &[&[u8]] = &[
    include_bytes!("../../../rpd-gfx/testdata/small-plain.hipfb"),
    include_bytes!("../../../rpd-gfx/testdata/small-compressed.hipfb"),
    include_bytes!("../../../rpd-gfx/testdata/kernels-O3.co"),
    include_bytes!("../../../rpd-sim/src/hsa/testdata/kernels.co"),
    include_bytes!("../../../rpd-sim/src/hip/testdata/kernels.co"),
    include_bytes!("../../../tests/workloads/kernels/prebuilt/module-v4-gfx90a.co"),
    // Inputs that made an earlier version fail.
    include_bytes!("../../regressions/code-objects/segments-everywhere"),
    include_bytes!("../../regressions/code-objects/two-variables-of-one-name"),
    include_bytes!("../../regressions/code-objects/entries-end-at-the-begin"),
];

fn device() -> codeobj::Target {
    Device::find("gfx90a").expect("a device").target()
}

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = FILES.iter().map(|file| file.to_vec()).collect();
    // The code object by itself is small, so that most changes are in bytes that are read.
    let small = bundle::pick(FILES[0], &device()).expect("a code object");
    seeds.push(small.into_owned());
    seeds
}

fn run(data: &[u8]) {
    let code = match bundle::pick(data, &device()) {
        Ok(code) => code,
        Err(error) => return assert_one_line(&error.to_string()),
    };
    let object = match CodeObject::parse(&code) {
        Ok(object) => object,
        Err(error) => return assert_one_line(&error.to_string()),
    };
    assert_eq!(object.bytes(), &*code);
    assert!(!object.target().to_string().is_empty());
    for kernel in object.kernels() {
        let arguments = kernel.explicit_args().chain(kernel.hidden_args());
        let end = arguments.map(|argument| u64::from(argument.offset) + u64::from(argument.size));
        assert!(end.max().unwrap_or(0) <= u64::from(kernel.kernarg_bytes()));
    }
    let image = match Image::load(&object, |_| Some(0)) {
        Ok(image) => image,
        Err(error) => return assert_one_line(&error.to_string()),
    };
    let end = image.base() + image.size();
    for &(start, bytes) in image.code() {
        assert!(start >= image.base() && start + bytes <= end);
    }
    for variable in object.variables() {
        if let Some(address) = image.address_of(&object, &variable.name) {
            assert!(address >= image.base() && address + variable.size <= end);
        }
    }
    for kernel in object.kernels() {
        match image.descriptor(&object, &kernel.symbol) {
            Ok((address, descriptor)) => {
                assert!(address + 64 <= end);
                assert!(descriptor.vgprs() <= 512);
            }
            Err(error) => assert_one_line(&error.to_string()),
        }
    }
}
