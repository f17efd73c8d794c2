//! A library for C programs: `probe(tag)` prints the stack of its caller, one line per frame, innermost first:
//! `tag kind build-id offset address path`.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::c_int;
use std::io::Write;
use std::sync::{Mutex, OnceLock};

use rpd_stacks::{
    JitObject, Location, Mode, Module, Node, Options, PythonCode, Sink, Stacks, ThreadStacks,
};

#[derive(Default)]
struct Facts {
    modules: HashMap<u32, (String, String, u64)>,
    locations: HashMap<u32, Location>,
    nodes: HashMap<u32, Node>,
}

impl Sink for Facts {
    fn module(&mut self, module: &Module<'_>) -> bool {
        let build_id = module
            .build_id
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let path = String::from_utf8_lossy(module.path).into_owned();
        self.modules
            .insert(module.id, (build_id, path, module.bias));
        true
    }

    fn code(&mut self, _: &PythonCode<'_>) -> bool {
        false
    }

    fn object(&mut self, _: &JitObject) -> bool {
        true
    }

    fn location(&mut self, location: &Location) -> bool {
        self.locations.insert(location.id, *location);
        true
    }

    fn node(&mut self, node: &Node) -> bool {
        self.nodes.insert(node.id, *node);
        true
    }
}

/// Prints the stack of its caller.
#[unsafe(no_mangle)]
pub extern "C" fn probe(tag: c_int) {
    static SHARED: OnceLock<(Stacks, Mutex<Facts>)> = OnceLock::new();
    thread_local! {
        static THREAD: RefCell<ThreadStacks> = RefCell::new(ThreadStacks::new());
    }
    let (stacks, facts) = SHARED.get_or_init(|| {
        (
            Stacks::new(Options {
                mode: Mode::Native,
                depth: 0,
            }),
            Mutex::default(),
        )
    });
    THREAD.with_borrow_mut(|thread| {
        let mut facts = facts
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        let captured = stacks.capture(thread, &mut *facts);
        let mut text = format!("{tag} flags {}\n", captured.flags);
        let mut at = captured.stack;
        while let Some(node) = facts.nodes.get(&at) {
            let location = &facts.locations[&node.location];
            let none = (String::new(), String::new(), 0);
            let (build_id, path, bias) = facts.modules.get(&location.module).unwrap_or(&none);
            text += &format!(
                "{tag} {:?} {build_id:-<2} {:x} {:x} {path}\n",
                location.kind,
                location.offset,
                location.offset.wrapping_add(*bias)
            );
            at = node.parent;
        }
        let _ = std::io::stdout().write_all(text.as_bytes());
        let _ = std::io::stdout().flush();
    });
}
