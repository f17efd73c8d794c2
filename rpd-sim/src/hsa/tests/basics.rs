//! Statuses, agents and signals.

use super::*;

#[test]
fn hsa_calls_refuse_null_pointers_and_bad_handles() {
    init();
    let null = std::ptr::null_mut::<c_void>();
    let mut out = 0u64;
    // SAFETY: nothing is read or written through what is passed here.
    unsafe {
        assert_eq!(
            hsa_iterate_agents(None, null),
            status::ERROR_INVALID_ARGUMENT
        );
        assert_eq!(hsa_agent_get_info(1, 0, null), status::ERROR_INVALID_AGENT);
        assert_eq!(
            hsa_agent_get_info(gpu(), 0, null),
            status::ERROR_INVALID_ARGUMENT
        );
        assert_eq!(hsa_system_get_info(2, null), status::ERROR_INVALID_ARGUMENT);
        assert_eq!(hsa_signal_destroy(0), status::ERROR_INVALID_ARGUMENT);
        assert_eq!(hsa_signal_destroy(64), status::ERROR_INVALID_SIGNAL);
        assert_eq!(hsa_signal_load_relaxed(0), 0);
        let queue = std::ptr::null_mut();
        assert_eq!(hsa_queue_destroy(queue), status::ERROR_INVALID_ARGUMENT);
        assert_eq!(hsa_queue_destroy(64 as *mut _), status::ERROR_INVALID_QUEUE);
        let none = std::ptr::null_mut();
        assert_eq!(
            hsa_queue_create(cpu(), 64, 0, None, null, 0, 0, &mut std::ptr::null_mut()),
            status::ERROR_INVALID_QUEUE_CREATION
        );
        assert_eq!(
            hsa_queue_create(gpu(), 63, 0, None, null, 0, 0, none),
            status::ERROR_INVALID_ARGUMENT
        );
        assert_eq!(
            hsa_amd_memory_pool_allocate(3, 8, 0, none.cast()),
            status::ERROR_INVALID_ARGUMENT
        );
        assert_eq!(
            hsa_memory_free(0x10 as *mut _),
            status::ERROR_INVALID_ALLOCATION
        );
        assert_eq!(
            hsa_executable_freeze(3, std::ptr::null()),
            status::ERROR_INVALID_EXECUTABLE
        );
        assert_eq!(
            hsa_executable_symbol_get_info(3, 0, (&raw mut out).cast()),
            status::ERROR_INVALID_EXECUTABLE_SYMBOL
        );
        assert_eq!(hsa_isa_get_info_alt(3, 0, null), status::ERROR_INVALID_ISA);
        assert_eq!(
            hsa_amd_memory_async_copy(null, gpu(), null, gpu(), 1, 0, std::ptr::null(), 0),
            status::ERROR_INVALID_ARGUMENT
        );
        let mut text = std::ptr::null();
        assert_eq!(
            hsa_status_string(0x7777, &mut text),
            status::ERROR_INVALID_ARGUMENT
        );
        ok(hsa_status_string(0x1001, &mut text));
        assert!(
            CStr::from_ptr(text)
                .to_bytes()
                .starts_with(b"HSA_STATUS_ERROR_INVALID_ARGUMENT")
        );
    }
}

#[test]
fn hsa_agents_have_an_instruction_set() {
    init();
    unsafe extern "C" fn collect(agent: u64, data: *mut c_void) -> Status {
        // SAFETY: the test passes its vector.
        unsafe { (*data.cast::<Vec<u64>>()).push(agent) };
        status::SUCCESS
    }
    let mut found: Vec<u64> = Vec::new();
    let (mut name, mut isa, mut length) = ([0u8; 64], 0u64, 0u32);
    // SAFETY: every place has room for its attribute.
    unsafe {
        ok(hsa_iterate_agents(Some(collect), (&raw mut found).cast()));
        assert_eq!(found[..2], [cpu(), gpu()]);
        ok(hsa_agent_get_info(gpu(), 0, name.as_mut_ptr().cast()));
        assert!(name.starts_with(b"gfx90a\0"));
        ok(hsa_agent_get_info(gpu(), 19, (&raw mut isa).cast()));
        ok(hsa_isa_get_info_alt(isa, 0, (&raw mut length).cast()));
        ok(hsa_isa_get_info_alt(isa, 1, name.as_mut_ptr().cast()));
        assert_eq!(
            &name[..length as usize],
            b"amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-\0"
        );
        let (mut other, mut fits) = (0, false);
        ok(hsa_isa_from_name(
            c"amdgcn-amd-amdhsa--gfx90a:xnack+".as_ptr(),
            &mut other,
        ));
        ok(hsa_isa_compatible(other, isa, &mut fits));
        assert!(!fits);
        ok(hsa_isa_from_name(
            c"amdgcn-amd-amdhsa--gfx90a".as_ptr(),
            &mut other,
        ));
        ok(hsa_isa_compatible(other, isa, &mut fits));
        assert!(fits);
        assert_eq!(
            hsa_isa_from_name(c"gfx900".as_ptr(), &mut other),
            status::ERROR_INVALID_ISA_NAME
        );
    }
}

#[test]
fn hsa_signals_have_atomics_in_all_orders() {
    init();
    let signal = new_signal(12);
    // SAFETY: takes no pointers.
    unsafe {
        hsa_signal_add_relaxed(signal, 4);
        hsa_signal_subtract_scacq_screl(signal, 1);
        assert_eq!(hsa_signal_load_scacquire(signal), 15);
        hsa_signal_and_screlease(signal, 6);
        hsa_signal_or_scacquire(signal, 9);
        hsa_signal_xor_relaxed(signal, 1);
        assert_eq!(hsa_signal_load_relaxed(signal), 14);
        assert_eq!(hsa_signal_exchange_scacq_screl(signal, 3), 14);
        assert_eq!(hsa_signal_cas_relaxed(signal, 4, 9), 3);
        assert_eq!(hsa_signal_cas_scacq_screl(signal, 3, 9), 3);
        assert_eq!(hsa_signal_wait_relaxed(signal, CONDITION_EQ, 1, 1000, 0), 9);
        ok(hsa_signal_destroy(signal));
        assert_eq!(hsa_signal_destroy(signal), status::ERROR_INVALID_SIGNAL);
    }
}

#[test]
fn asynchronous_signal_handlers_run_until_they_return_false() {
    init();
    static CALLS: AtomicU32 = AtomicU32::new(0);
    unsafe extern "C" fn twice(value: i64, data: *mut c_void) -> bool {
        // SAFETY: the test passes a signal's value.
        unsafe { hsa_signal_store_relaxed(data as u64, value + 100) };
        CALLS.fetch_add(1, Ordering::SeqCst) == 0
    }
    let (trigger, answer) = (new_signal(5), new_signal(0));
    // SAFETY: the handler takes a signal as its data.
    unsafe {
        ok(hsa_amd_signal_async_handler(
            trigger,
            CONDITION_LT,
            1,
            Some(twice),
            answer as *mut _,
        ));
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(CALLS.load(Ordering::SeqCst), 0);
        hsa_signal_store_screlease(trigger, -1);
        assert_eq!(
            hsa_signal_wait_scacquire(answer, CONDITION_EQ, 99, FOREVER, 0),
            99
        );
    }
    std::thread::sleep(Duration::from_millis(5));
    assert_eq!(CALLS.load(Ordering::SeqCst), 2);
}
