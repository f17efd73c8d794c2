//! Modules and device variables.

use std::ffi::CString;

use rpd_capture::Call;
use rpd_spool::capture::{HandleKind, Operation, VariableItem, item};

use crate::arguments::{input, out_word};
use crate::error::ReplayError;
use crate::hip::word_of;
use crate::player::Player;

/// A device variable of a code object.
pub(crate) struct Variable {
    pub(crate) name: CString,
    /// Address and size of the variable in bytes.
    pub(crate) place: (u64, u64),
}

/// A device variable that two builds of a code object have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SharedVariable {
    /// Address of the variable in the build that was captured, and in the one that replaces it.
    pub(crate) captured: u64,
    pub(crate) replacing: u64,
    pub(crate) size: u64,
}

impl Player {
    /// Loads a module of the program: its code object for the current device.
    pub(crate) fn load(&mut self, call: &Call) -> Result<(), ReplayError> {
        let ids = call
            .items()
            .find(|item| item.kind == item::CODE)
            .map(|item| item.payload.as_chunks::<8>().0.to_vec())
            .unwrap_or_default();
        let codes = ids
            .into_iter()
            .filter_map(|id| self.code_at(u64::from_le_bytes(id), call.seq));
        let Some(code) = codes.into_iter().next_back() else {
            return Err(ReplayError::damaged(
                "the capture does not have the module's code",
            ));
        };
        // The same module that launches use, so that they share its variables.
        let module = self.module(code)?;
        if self.module_codes.insert(code) {
            self.keep_managed(code)?;
        }
        if let Some(old) = out_word(call, 0) {
            self.handles.insert((HandleKind::Module, old), module);
        }
        Ok(())
    }

    pub(crate) fn unload(&mut self, call: &Call) -> Result<(), ReplayError> {
        let raw = call.argument("module");
        let module = self.handle(HandleKind::Module, raw)?;
        self.handles.remove(&(HandleKind::Module, raw));
        let unloaded = self.modules.extract_if(|_, loaded| *loaded == module);
        let keys: Vec<(i64, i32)> = unloaded.map(|(key, _)| key).collect();
        self.functions
            .retain(|(code, device, _), _| !keys.contains(&(*code, *device)));
        self.code_places.retain(|key, _| !keys.contains(key));
        for (_, variable) in self
            .module_variables
            .extract_if(.., |(of, _)| *of == module)
        {
            self.translation.remove(variable);
        }
        self.hip.check("hipModuleUnload", &[module])
    }

    pub(crate) fn global(&mut self, call: &Call) -> Result<(), ReplayError> {
        let module = self.handle(HandleKind::Module, call.argument("hmod"))?;
        let name = input(call).and_then(|name| CString::new(name).ok());
        let Some(name) = name else {
            return Err(ReplayError::damaged(
                "the name of the variable is not in the capture",
            ));
        };
        let (address, size) = self.variable(module, &name)?;
        if let Some(old) = out_word(call, 0) {
            self.translation.insert(old, size, address);
            self.module_variables.push((module, old));
        }
        Ok(())
    }

    pub(crate) fn variable(
        &mut self,
        module: u64,
        name: &CString,
    ) -> Result<(u64, u64), ReplayError> {
        let (mut address, mut size) = (0u64, 0u64);
        let words = [
            word_of(&mut address),
            word_of(&mut size),
            module,
            name.as_ptr() as u64,
        ];
        self.hip.check("hipModuleGetGlobal", &words)?;
        Ok((address, size))
    }

    /// The device variables of a code object on a device, which is the current one afterwards.
    pub(crate) fn variables(
        &mut self,
        code: i64,
        device: i32,
    ) -> Result<Vec<Variable>, ReplayError> {
        let row = self.codes.iter().find(|row| row.id == code);
        let Some(blob) = row.map(|row| row.blob) else {
            return Ok(Vec::new());
        };
        self.set_device(device)?;
        let module = self.module(code)?;
        let mut found = Vec::new();
        for (name, _) in rpd_capture::variables(&mut self.capture, blob)? {
            let Ok(name) = CString::new(name) else {
                continue;
            };
            match self.variable(module, &name) {
                Ok(place) => found.push(Variable { name, place }),
                Err(error) => self.note(format!(
                    "the content of the variable {} cannot be read: {}",
                    name.to_string_lossy(),
                    error.message
                )),
            }
        }
        Ok(found)
    }

    /// The variables of a code object that another build of it in `module` has as well.
    pub(crate) fn shared_variables(
        &mut self,
        code: i64,
        module: u64,
    ) -> Result<Vec<SharedVariable>, ReplayError> {
        let device = self.device;
        let captured = self.variables(code, device)?;
        let mut found = Vec::new();
        for Variable { name, place } in captured {
            if let Ok((replacing, size)) = self.variable(module, &name)
                && size == place.1
            {
                found.push(SharedVariable {
                    captured: place.0,
                    replacing,
                    size,
                });
            }
        }
        Ok(found)
    }

    /// Copies variables from one build to the other, in a stream.
    pub(crate) fn copy_shared_variables(
        &mut self,
        shared_variables: &[SharedVariable],
        to_replacing: bool,
        stream: u64,
    ) -> Result<(), ReplayError> {
        for variable in shared_variables {
            let (to, from) = if to_replacing {
                (variable.replacing, variable.captured)
            } else {
                (variable.captured, variable.replacing)
            };
            self.hip
                .check("hipMemcpyDtoDAsync", &[to, from, variable.size, stream])?;
        }
        Ok(())
    }

    /// Sets the device variable of a registered managed variable, if the code object has one of this name, to the memory that the
    /// capture has at `base`.
    pub(crate) fn set_managed(
        &mut self,
        code: i64,
        device: i32,
        name: &CString,
        base: u64,
    ) -> Result<(), ReplayError> {
        if self.module_codes.contains(&code) {
            return Ok(());
        }
        let Some(now) = self.translation.find(base) else {
            return Ok(());
        };
        match self.managed_pointer(code, device, name)? {
            Some((_, place)) => self.copy(place, now.to_le_bytes().as_ptr() as u64, 8),
            None => Ok(()),
        }
    }

    /// Gives the managed variables of a module of the program the memory that the runtime made for them: the code
    /// object may have been loaded before it was known to be such a module.
    fn keep_managed(&mut self, code: i64) -> Result<(), ReplayError> {
        for (name, _) in self.managed.clone() {
            if let Some((module, place)) = self.managed_pointer(code, self.device, &name)? {
                let (own, _) = self.variable(module, &name)?;
                if own != place {
                    self.copy(place, own.to_le_bytes().as_ptr() as u64, 8)?;
                }
            }
        }
        Ok(())
    }

    /// The module of a code object, and the address at which it has the address of a managed variable; `None` without a
    /// variable of this name.
    fn managed_pointer(
        &mut self,
        code: i64,
        device: i32,
        name: &CString,
    ) -> Result<Option<(u64, u64)>, ReplayError> {
        let row = self.codes.iter().find(|row| row.id == code);
        let Some(blob) = row.map(|row| row.blob) else {
            return Ok(None);
        };
        let variables = rpd_capture::variables(&mut self.capture, blob)?;
        let value = |name: &[u8]| {
            let found = variables.iter().find(|(one, _)| one.as_bytes() == name);
            found.map(|(_, value)| *value)
        };
        let Some(pointer) = value(name.as_bytes()) else {
            return Ok(None);
        };
        self.set_device(device)?;
        let module = self.module(code)?;
        let initial = CString::new([name.as_bytes(), b".managed"].concat()).ok();
        let initial = initial.and_then(|name| Some((value(name.as_bytes())?, name)));
        let place = match initial {
            // By the variable's own name HIP gives the memory that the pointer leads to.
            Some((value, name)) => {
                let (place, _) = self.variable(module, &name)?;
                place.wrapping_add(pointer).wrapping_sub(value)
            }
            None => self.variable(module, name)?.0,
        };
        Ok(Some((module, place)))
    }

    /// Sets the device variables that an excerpt begins with.
    pub(crate) fn set_variables(&mut self, call: &Call) -> Result<(), ReplayError> {
        if call.items().any(|item| item.kind == item::VARIABLE) {
            self.find_code(call)?;
        }
        for item in call.items().filter(|item| item.kind == item::VARIABLE) {
            let parsed = item
                .variable()
                .and_then(|(head, name)| Some((head, CString::new(name).ok()?)));
            let Some((head, name)) = parsed else {
                return Err(ReplayError::damaged("the content of a variable is cut"));
            };
            // Those of managed variables are addresses, which are set where their memory is made.
            if self.managed.iter().any(|(known, _)| *known == name) {
                continue;
            }
            let mut bytes = self.capture.bytes(head.data)?;
            if self.options.guess {
                self.translate_images(&mut bytes);
            }
            self.translate_code(&mut bytes);
            if !self.same && self.options.deep {
                self.translation.probable += self.translation.translate_words(&mut bytes);
            }
            let (now, size) = self.place_of_variable(&head, name.to_bytes())?;
            if bytes.len() as u64 != size {
                return Err(ReplayError::damaged(format!(
                    "the variable {} has {size} bytes, and its content {}",
                    name.to_string_lossy(),
                    bytes.len()
                )));
            }
            self.copy(now, bytes.as_ptr() as u64, size)?;
        }
        if call.device == self.device {
            Ok(())
        } else {
            self.set_device(call.device)
        }
    }

    /// Address and size of the variable of an item, whose device is the current one afterwards.
    pub(crate) fn place_of_variable(
        &mut self,
        head: &VariableItem,
        name: &[u8],
    ) -> Result<(u64, u64), ReplayError> {
        let name = CString::new(name)
            .map_err(|_| ReplayError::damaged("the name of a variable has a NUL"))?;
        let device = i32::try_from(head.device).unwrap_or(-1);
        self.set_device(device)?;
        let module = self.module(head.code)?;
        self.variable(module, &name)
    }

    /// Address and size of the device variable of a call.
    pub(crate) fn symbol(&mut self, call: &Call) -> Result<(u64, u64), ReplayError> {
        let name = call.items().find(|item| item.kind == item::SYMBOL);
        let name = name.and_then(|item| CString::new(item.payload).ok());
        let Some(name) = name else {
            return Err(ReplayError::damaged(
                "the name of the variable is not in the capture",
            ));
        };
        if let Some((_, base)) = self.managed.iter().find(|(known, _)| *known == name)
            && let Some((_, size, now)) = self.translation.memory(*base)
        {
            return Ok((now, size));
        }
        let module = self.module_of_symbol(call, &name)?;
        self.variable(module, &name)
    }

    /// The module with the variable of a call.
    pub(crate) fn module_of_symbol(
        &mut self,
        call: &Call,
        name: &CString,
    ) -> Result<u64, ReplayError> {
        let provider = call.items().find(|item| item.kind == item::SYMBOL_CODE);
        let provider = provider.and_then(|item| item.word());
        if let Some(code) = provider.and_then(|provider| self.code_at(provider, call.seq)) {
            return self.module(code);
        }
        // The first code object with this name: those of the program are loaded before modules.
        let codes: Vec<(i64, i64)> = self.codes.iter().map(|row| (row.id, row.blob)).collect();
        for (code, blob) in codes {
            let names = rpd_capture::variables(&mut self.capture, blob)?;
            if names
                .iter()
                .any(|(known, _)| known.as_bytes() == name.as_bytes())
            {
                return self.module(code);
            }
        }
        Err(ReplayError::damaged(format!(
            "no code object of the capture has the variable {}",
            name.to_string_lossy()
        )))
    }

    pub(crate) fn copy_symbol(
        &mut self,
        call: &Call,
        operation: &'static Operation,
    ) -> Result<(), ReplayError> {
        let (variable, _) = self.symbol(call)?;
        let variable = variable.wrapping_add(call.argument("offset"));
        let to = operation.name().contains("ToSymbol");
        let other = call.argument(if to { "src" } else { "dst" });
        let other = self.address(call, other)?;
        let (size, kind) = (call.argument("sizeBytes"), call.argument("kind"));
        let (destination, source) = if to {
            (variable, other)
        } else {
            (other, variable)
        };
        if operation.name().contains("Async") {
            let stream = self.stream(call, operation);
            return self
                .hip
                .check("hipMemcpyAsync", &[destination, source, size, kind, stream]);
        }
        self.hip
            .check("hipMemcpy", &[destination, source, size, kind])
    }
}
