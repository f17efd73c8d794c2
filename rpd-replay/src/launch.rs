//! Launches: the kernel, its arguments, and the call.

use std::ffi::CString;
use std::sync::Arc;

use rpd_capture::Call;
use rpd_spool::capture::{HandleKind, Operation, item};

use crate::error::ReplayError;
use crate::hip::word_of;
use crate::player::{Launchable, Player, broken};

impl Player {
    /// Number of the code object that a provider's number means at a call: numbers may be given out again.
    pub(crate) fn code_at(&self, provider: u64, seq: u64) -> Option<i64> {
        let mut found = self
            .codes
            .iter()
            .rev()
            .filter(|row| row.provider_id == provider && row.load_seq <= seq);
        found.next().map(|row| row.id)
    }

    /// The code object and the name of the kernel of a call.
    fn code_and_name<'a>(&self, call: &'a Call) -> Result<(i64, &'a [u8]), ReplayError> {
        let found = call.items().find(|item| item.kind == item::KERNEL);
        let Some((item, provider)) = found.and_then(|item| Some((item, item.word()?))) else {
            return Err(ReplayError::damaged("the capture does not have its kernel"));
        };
        let name = item.payload.get(8..).unwrap_or_default();
        let code = self.code_at(provider, call.seq).ok_or_else(|| {
            ReplayError::damaged(format!("the capture lacks code object {provider}"))
        })?;
        Ok((code, name))
    }

    /// The kernel of a call.
    pub(crate) fn kernel(&mut self, call: &Call) -> Result<Launchable, ReplayError> {
        let (code, name) = self.code_and_name(call)?;
        self.launchable(code, name)
    }

    /// The function of the kernel of a call as it was captured, also where another build replaces it.
    pub(crate) fn captured_build(&mut self, call: &Call) -> Result<u64, ReplayError> {
        let (code, name) = self.code_and_name(call)?;
        let module = self.module(code)?;
        self.function_of(module, name)
    }

    fn function_of(&mut self, module: u64, name: &[u8]) -> Result<u64, ReplayError> {
        let text =
            CString::new(name).map_err(|_| ReplayError::damaged("a kernel's name has a NUL"))?;
        let mut function = 0u64;
        let words = [word_of(&mut function), module, text.as_ptr() as u64];
        self.hip.check("hipModuleGetFunction", &words)?;
        Ok(function)
    }

    /// A kernel of a code object, on the current device.
    pub(crate) fn launchable(&mut self, code: i64, name: &[u8]) -> Result<Launchable, ReplayError> {
        let key = (code, self.device, name.to_vec());
        if let Some(known) = self.functions.get(&key) {
            return Ok(known.clone());
        }
        let shown = String::from_utf8_lossy(name).into_owned();
        let (module, shared_variables) = match self.replaced(&shown, code)? {
            Some(module) => (module, self.shared_variables(code, module)?),
            None => (self.module(code)?, Vec::new()),
        };
        let function = self.function_of(module, name)?;
        let arguments: String = self
            .capture
            .database()
            .query_row(
                "SELECT args FROM kernel WHERE code = ? AND name = ?",
                (code, &shown),
                |row| row.get(0),
            )
            .map_err(broken)?;
        let found = Launchable {
            function,
            arguments: Arc::new(explicit(&arguments)),
        };
        self.functions.insert(key, found.clone());
        if !shared_variables.is_empty() {
            self.shared_variables.insert(function, shared_variables);
        }
        Ok(found)
    }

    /// The explicit argument bytes of a launch, translated.
    pub(crate) fn packed(&mut self, call: &Call, kernel: &Launchable) -> Vec<u8> {
        let mut packed = call
            .items()
            .find(|item| item.kind == item::KERNEL_ARGUMENTS)
            .map(|item| item.payload.to_vec())
            .unwrap_or_default();
        for (offset, size, certain) in kernel.arguments.iter() {
            let (offset, size) = (*offset as usize, *size as usize);
            // With the same addresses only those of variables differ, which are few.
            if !*certain && !self.options.guess {
                continue;
            }
            for at in (offset..offset + size / 8 * 8).step_by(8) {
                let Some(place) = packed.get_mut(at..at + 8) else {
                    continue;
                };
                let value = u64::from_le_bytes(place.try_into().unwrap_or_default());
                if value == 0 {
                    continue;
                }
                let image = || self.images.get(&value).map(|image| image.now);
                if let Some(now) = self.translation.find(value).or_else(image)
                    && now != value
                {
                    place.copy_from_slice(&now.to_le_bytes());
                    if *certain {
                        self.translation.certain += 1
                    } else {
                        self.translation.probable += 1
                    }
                }
            }
        }
        packed
    }

    /// The stream of a launch.
    pub(crate) fn launch_stream(
        &mut self,
        call: &Call,
        operation: &Operation,
    ) -> Result<u64, ReplayError> {
        match rpd_capture::stream_of_config(operation, &call.items) {
            Some(raw) => self.stream_of(call, raw, false),
            None => Ok(self.stream(call, operation)),
        }
    }

    pub(crate) fn launch(
        &mut self,
        call: &Call,
        operation: &'static Operation,
    ) -> Result<(), ReplayError> {
        let kernel = self.kernel(call)?;
        let packed = self.packed(call, &kernel);
        let (grid, block, shared) = rpd_capture::geometry(operation, &call.arguments, &call.items);
        let stream = self.launch_stream(call, operation)?;
        self.launch_kernel(
            call,
            operation,
            &kernel,
            &packed,
            (grid, block, shared),
            stream,
        )
    }

    /// Launches a kernel. Another build of it finds the variables as they are, and leaves them to the build that was captured.
    pub(crate) fn launch_kernel(
        &mut self,
        call: &Call,
        operation: &Operation,
        kernel: &Launchable,
        packed: &[u8],
        geometry: ([u32; 3], [u32; 3], u64),
        stream: u64,
    ) -> Result<(), ReplayError> {
        let shared_variables = self.shared_variables.get(&kernel.function).cloned();
        let shared_variables = shared_variables.unwrap_or_default();
        self.copy_shared_variables(&shared_variables, true, stream)?;
        self.add_launch(call, operation, kernel, packed, geometry, stream)?;
        self.note_captured_kernel(call, stream)?;
        self.copy_shared_variables(&shared_variables, false, stream)
    }

    fn add_launch(
        &mut self,
        call: &Call,
        operation: &Operation,
        kernel: &Launchable,
        packed: &[u8],
        (grid, block, shared): ([u32; 3], [u32; 3], u64),
        stream: u64,
    ) -> Result<(), ReplayError> {
        const POINTER: u64 = 1;
        const SIZE: u64 = 2;
        const END: u64 = 3;
        let mut size = packed.len() as u64;
        let size_at = word_of(&mut size);
        let extra = [POINTER, packed.as_ptr() as u64, SIZE, size_at, END];
        let [gx, gy, gz] = grid.map(u64::from);
        let [bx, by, bz] = block.map(u64::from);
        // First arguments of all launch functions.
        let launch = |[x, y, z]: [u64; 3]| [kernel.function, x, y, z, bx, by, bz, shared, stream];
        let events = ["startEvent", "stopEvent"].map(|name| call.argument(name));
        if rpd_capture::is_cooperative(operation, &call.items) {
            let pointers: Vec<u64> = kernel
                .arguments
                .iter()
                .map(|(offset, ..)| packed.as_ptr() as u64 + u64::from(*offset))
                .collect();
            let words = [&launch([gx, gy, gz])[..], &[pointers.as_ptr() as u64]].concat();
            return self.hip.check("hipModuleLaunchCooperativeKernel", &words);
        }
        if events != [0, 0] {
            let start = self.handle(HandleKind::Event, events[0])?;
            let stop = self.handle(HandleKind::Event, events[1])?;
            let work_items = [gx * bx, gy * by, gz * bz];
            let rest = [0, extra.as_ptr() as u64, start, stop, 0];
            let words = [&launch(work_items)[..], &rest].concat();
            return self.hip.check("hipExtModuleLaunchKernel", &words);
        }
        let words = [&launch([gx, gy, gz])[..], &[0, extra.as_ptr() as u64]].concat();
        self.hip.check("hipModuleLaunchKernel", &words)
    }
}

/// Offset, size and certainty of the explicit arguments, from the description in the database.
fn explicit(text: &str) -> Vec<(u32, u32, bool)> {
    let all: Vec<serde_json::Value> = serde_json::from_str(text).unwrap_or_default();
    let number =
        |value: &serde_json::Value| u32::try_from(value.as_u64().unwrap_or(0)).unwrap_or(0);
    all.iter()
        .filter(|one| one["hidden"].as_bool() != Some(true))
        .map(|one| {
            let certain = one["kind"].as_str() == Some("GlobalBuffer");
            (number(&one["offset"]), number(&one["size"]), certain)
        })
        .collect()
}
