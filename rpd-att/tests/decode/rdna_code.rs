//! A stream of GFX11 on a real code object.

use rpd_att::{CodeObjects, Pc};
use rpd_gfx::codeobj::bundle::{Target, pick};
use rpd_gfx::disasm::Category;

use crate::collect::all_with;
use crate::encoder::{BASE, Rdna};

const BUNDLE: &[u8] = include_bytes!("../../../tests/workloads/kernels/prebuilt/vector_ops.hipfb");

#[test]
fn gfx11_code_has_the_addresses_and_texts_of_its_instructions() {
    let target = Target::parse("gfx1100").expect("a target");
    let object = pick(BUNDLE, &target).expect("code for gfx1100");
    let mut code = CodeObjects::default();
    code.add(3, &object).expect("a code object");
    assert_eq!(code.unreadable().count(), 0);
    let at = |address| Pc {
        address,
        code_object: 3,
    };
    let entry = (0..0x10000u64)
        .step_by(256)
        .find(|&address| (code.function(at(address))).is_some_and(|f| f.address == address))
        .expect("a kernel");

    // A wave that executes the kernel up to its first branch.
    let mut stream = Rdna::new(3);
    stream
        .start_words()
        .code_object(3, BASE, 0x10000)
        .kernel(BASE + entry);
    let (slot, mut time, mut address) = (2, 3, entry);
    stream.wave_start(time, 1, 0, slot);
    let mut expected = Vec::new();
    loop {
        let instruction = code.instruction(at(address)).expect("an instruction");
        time += 8;
        match instruction.category {
            Category::Salu => drop(stream.inst(time, slot, 0)),
            Category::Smem => drop(stream.inst(time, slot, 1)),
            Category::Valu => drop(stream.valu(time, slot)),
            Category::Vmem => drop(stream.inst(time, slot, 47)),
            Category::Wait | Category::Internal => drop(stream.immediate(time, slot)),
            // No token.
            Category::Hint => {
                address += u64::from(instruction.bytes);
                continue;
            }
            Category::Branch => break,
            other => panic!("{other:?}: {}", instruction.text),
        }
        expected.push((address, instruction.text));
        address += u64::from(instruction.bytes);
    }
    stream.wave_end(time, 1, 0, slot);
    assert!(expected.len() > 5, "{expected:?}");
    assert!(
        (expected.iter()).any(|(_, text)| text.starts_with("s_load_b")),
        "{expected:?}"
    );

    let got = all_with(&stream.bytes(), &mut &code);
    // The wave ends with a message that it has no line for.
    let found: Vec<_> = (got.waves[0].instructions.iter())
        .filter(|instruction| instruction.pc.is_known())
        .map(|instruction| {
            let text = code.instruction(instruction.pc).map(|found| found.text);
            (instruction.pc.address, text.unwrap_or_default())
        })
        .collect();
    assert_eq!(found, expected);
}
