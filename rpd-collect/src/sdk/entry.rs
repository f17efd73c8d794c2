//! How the provider finds, starts and ends the collector.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use rocprofiler_sdk_sys::{
    Functions, rocprofiler_callback_tracing_cb_t, rocprofiler_callback_tracing_kind_t,
    rocprofiler_client_finalize_t, rocprofiler_client_id_t, rocprofiler_context_id_t,
    rocprofiler_status_t, rocprofiler_tool_configure_result_t,
};
use rpd_spool::options::CollectorOptions;

use crate::lifecycle::signals;
use crate::recording::guard::Service;
use crate::recording::{meta, process, stacks, switch};
use crate::sdk::names::{Catalogue, KindNames};
use crate::sdk::{
    agents, api, code_object, counters, dispatch, marker, memory, rename, runtime, stream,
};

static SERVICE: Service = Service::new("registration");
static FUNCTIONS: OnceLock<Functions> = OnceLock::new();
/// What the provider gave us to end the recording ourselves; null before, and once it is ending.
static FINALIZE: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
/// Our handle there.
static CLIENT: AtomicU32 = AtomicU32::new(0);

/// The provider's functions, once it has been met.
pub(crate) fn functions() -> Option<&'static Functions> {
    FUNCTIONS.get()
}

/// Kinds of libraries that most programs do not use and of which providers of the same ABI version know some or none.
/// They come with the aggregate options, where their absence is no news; the names of all kinds are recorded for whoever
/// asks for one by name.
const OPTIONAL: [&str; 3] = ["RCCL_API", "ROCDECODE_API", "ROCJPEG_API"];

/// What the services need while they are set up.
pub(crate) struct Setup<'a> {
    /// The provider.
    pub(crate) functions: &'static Functions,
    /// What was asked for.
    pub(crate) options: &'a CollectorOptions,
    /// Names and numbers.
    pub(crate) names: Catalogue,
    /// The context of all traces.
    pub(crate) client: rocprofiler_context_id_t,
    /// The context that counts, if anything is counted.
    pub(crate) counting: Option<rocprofiler_context_id_t>,
}

impl Setup<'_> {
    /// Makes a context; notes the failure of `purpose` otherwise.
    pub(crate) fn context(&self, purpose: &str) -> Option<rocprofiler_context_id_t> {
        let mut context = rocprofiler_context_id_t::default();
        // SAFETY: `context` is valid and holds handle 0.
        let status = unsafe { (self.functions.rocprofiler_create_context)(&mut context) };
        self.succeeded(status, purpose).then_some(context)
    }

    /// Starts a context.
    pub(crate) fn start(&self, context: rocprofiler_context_id_t, purpose: &str) -> bool {
        // SAFETY: a context made by this provider.
        let status = unsafe { (self.functions.rocprofiler_start_context)(context) };
        self.succeeded(status, purpose)
    }

    /// Whether `status` is success; otherwise the user is told that `purpose` will be missing.
    pub(crate) fn succeeded(&self, status: rocprofiler_status_t, purpose: &str) -> bool {
        if status == rocprofiler_status_t::SUCCESS {
            return true;
        }
        let text = describe(self.functions, status);
        meta::note(&format!(
            "{purpose} is not recorded: the provider says: {text}"
        ));
        false
    }

    /// The callback kind `name`; notes its absence, unless it is one of [`OPTIONAL`].
    pub(crate) fn callback_kind(&self, name: &str) -> Option<&KindNames> {
        let found = self.names.callback(name);
        if found.is_none() && !OPTIONAL.contains(&name) {
            note_missing(name);
        }
        found
    }

    /// Has `callback` called for `operations` (none: all) of a kind.
    pub(crate) fn trace_callbacks(
        &self,
        context: rocprofiler_context_id_t,
        kind: &KindNames,
        operations: &[i32],
        callback: rocprofiler_callback_tracing_cb_t,
        data: *mut c_void,
    ) -> bool {
        let (pointer, count) = match operations {
            [] => (std::ptr::null(), 0),
            some => (some.as_ptr(), some.len()),
        };
        // SAFETY: the context is the provider's, the array lives through the call, and `data` for ever.
        let status = unsafe {
            (self
                .functions
                .rocprofiler_configure_callback_tracing_service)(
                context,
                rocprofiler_callback_tracing_kind_t(kind.number),
                pointer,
                count,
                callback,
                data,
            )
        };
        self.succeeded(status, &kind.name)
    }
}

/// A status as text for the user.
pub(crate) fn describe(functions: &Functions, status: rocprofiler_status_t) -> String {
    // SAFETY: any status may be asked for; the answer is static text or null.
    let text =
        unsafe { crate::recording::text::text((functions.rocprofiler_get_status_string)(status)) };
    match text {
        [] => format!("status {}", status.0),
        text => String::from_utf8_lossy(text).into_owned(),
    }
}

/// Tells the user that this provider does not know `kind`.
pub(crate) fn note_missing(kind: &str) {
    meta::note(&format!(
        "{kind} is not recorded: this provider does not have it"
    ));
}

/// The provider's library, or null: the program itself is the provider, whose functions are in the global scope.
static PROVIDER: AtomicPtr<c_void> = AtomicPtr::new(libc::RTLD_DEFAULT);

/// The loaded library that `code` lies in; null when it is the program, which the loader knows by no name.
fn library_of(code: *const c_void) -> *mut c_void {
    let mut info = MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: any address may be asked for; the record is written when the answer is not zero, and its name is that of a
    // loaded object.
    unsafe {
        if libc::dladdr(code, info.as_mut_ptr()) == 0 {
            return std::ptr::null_mut();
        }
        libc::dlopen(
            info.assume_init().dli_fname,
            libc::RTLD_NOLOAD | libc::RTLD_LAZY,
        )
    }
}

/// Looks a function of the provider up in its library.
fn look_up(name: &CStr) -> *mut c_void {
    // SAFETY: the handle is open or `RTLD_DEFAULT`, and the name is text.
    unsafe { libc::dlsym(PROVIDER.load(Ordering::Acquire), name.as_ptr()) }
}

/// The provider's question who is there. Null declines.
///
/// # Safety
///
/// Called by a provider of the rocprofiler-sdk ABI: `client` is null or valid for as long as the client exists.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_configure(
    version: u32,
    _runtime_version: *const c_char,
    _priority: u32,
    client: *mut rocprofiler_client_id_t,
) -> *mut rocprofiler_tool_configure_result_t {
    /// The provider copies it; its type holds a raw pointer, which is null here.
    struct Result(rocprofiler_tool_configure_result_t);
    // SAFETY: the value is never written, and its pointer is null.
    unsafe impl Sync for Result {}
    static RESULT: Result = Result(rocprofiler_tool_configure_result_t {
        size: size_of::<rocprofiler_tool_configure_result_t>(),
        initialize: Some(initialize),
        finalize: Some(finalize),
        tool_data: std::ptr::null_mut(),
    });
    let accepted = SERVICE.run(|| {
        process::install();
        let Some(process) = process::current() else {
            return false;
        };
        process.set_provider_version(version);
        if version / 10_000 != 1 {
            meta::note(&format!(
                "nothing is recorded: this provider has version {}.{}, rpd needs 1.x",
                version / 10_000,
                version / 100 % 100
            ));
            return false;
        }
        if !client.is_null() {
            // SAFETY: the caller's struct, which it wants us to name ourselves in.
            let client = unsafe { &mut *client };
            client.name = c"rpd".as_ptr();
            CLIENT.store(client.handle, Ordering::Relaxed);
        }
        true
    });
    if accepted == Some(true) {
        (&raw const RESULT.0).cast_mut()
    } else {
        std::ptr::null_mut()
    }
}

unsafe extern "C" fn initialize(
    finalize: rocprofiler_client_finalize_t,
    _data: *mut c_void,
) -> c_int {
    let finalize = finalize.map_or(std::ptr::null_mut(), |function| function as *mut c_void);
    FINALIZE.store(finalize, Ordering::Release);
    // The provider's functions are taken from where this one is: another SDK may be in the process, or this one out of the
    // global scope.
    PROVIDER.store(library_of(finalize), Ordering::Release);
    match SERVICE.run(set_up) {
        Some(true) => 0,
        _ => -1,
    }
}

/// Configures and starts everything. False when the provider cannot be used.
fn set_up() -> bool {
    let Some(process) = process::current() else {
        return false;
    };
    // SAFETY: what is found under these names in a process that called `initialize` is the provider's, which stays
    // loaded until the process ends.
    let functions = match unsafe { Functions::load(look_up) } {
        Ok(functions) => FUNCTIONS.get_or_init(|| functions),
        Err(missing) => {
            meta::note(&format!("nothing is recorded: {missing}"));
            return false;
        }
    };
    let mut setup = Setup {
        functions,
        options: &process.options,
        names: Catalogue::query(functions),
        client: rocprofiler_context_id_t::default(),
        counting: None,
    };
    setup.names.record();
    agents::record(functions);
    let Some(client) = setup.context("anything") else {
        return false;
    };
    setup.client = client;
    // Before anything that could ask for counters, or have a kernel registered.
    counters::define(&setup);
    setup.counting = counters::configure(&setup);
    // First of all contexts and never stopped: what is loaded while nobody listens is never told again.
    code_object::configure(&setup);
    let announced = runtime::configure(&setup);

    let traces = setup.options.traces;
    stacks::prepare(setup.options);
    stacks::note_useless_globs(&setup.options.stacks, setup.names.operations());
    api::configure(&setup);
    if traces.marker {
        marker::configure(&setup);
    }
    let anything = traces.any() || setup.options.counters.any();
    if anything {
        marker::configure_control(&setup);
    }
    if setup.options.kernel_rename {
        rename::configure(&setup);
    }
    if traces.kernel {
        dispatch::configure(&setup);
    }
    memory::configure(&setup);
    stream::configure(&setup);
    if anything {
        switch::begin(&setup);
        counters::begin(&setup, announced);
    }
    if !announced {
        signals::prepare();
    }
    true
}

/// Has the provider end our recording, once; without one, the process is over for us at once.
fn end() {
    signals::withdraw();
    let function = FINALIZE.swap(std::ptr::null_mut(), Ordering::AcqRel);
    // SAFETY: null becomes `None`; otherwise it is what the provider gave to `initialize`.
    let function =
        unsafe { std::mem::transmute::<*mut c_void, rocprofiler_client_finalize_t>(function) };
    if let Some(function) = function
        && !crate::sdk::forked_end::is_here()
    {
        let client = rocprofiler_client_id_t {
            size: size_of::<rocprofiler_client_id_t>(),
            name: c"rpd".as_ptr(),
            handle: CLIENT.load(Ordering::Relaxed),
        };
        // SAFETY: the id is the one this provider configured us with. It calls `finalize` in turn.
        unsafe { function(client) };
    }
    SERVICE.run(|| {
        if let Some(process) = process::existing() {
            meta::end(process);
        }
    });
}

/// For `librpd_register.so`: the target's `main` has returned, so recording ends.
#[unsafe(no_mangle)]
pub extern "C" fn rpd_collect_end() {
    SERVICE.run(end);
}

/// For `librpd_register.so`: has the user told at the end of the run why nothing is recorded, unless a provider has
/// configured the collector.
///
/// # Safety
///
/// `text` is NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpd_collect_note(text: *const c_char) {
    SERVICE.run(|| {
        // SAFETY: by the contract of this function.
        let text = unsafe { CStr::from_ptr(text) };
        if functions().is_none() {
            meta::note(&text.to_string_lossy());
        }
    });
}

unsafe extern "C" fn finalize(_data: *mut c_void) {
    static ENDING: Service = Service::new("finalisation");
    crate::recording::guard::over();
    signals::withdraw();
    // The provider ends by itself.
    FINALIZE.store(std::ptr::null_mut(), Ordering::Release);
    ENDING.run(|| {
        if let Some(process) = process::existing() {
            meta::end(process);
        }
    });
}
