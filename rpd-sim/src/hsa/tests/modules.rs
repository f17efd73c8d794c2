//! Executables and the loader extension.

use super::*;

#[test]
fn executable_symbols_have_their_attributes() {
    init();
    let module = Module::load();
    unsafe extern "C" fn collect(_: u64, symbol: u64, data: *mut c_void) -> Status {
        // SAFETY: the test passes its vector; the name has the given length.
        unsafe {
            let mut length = 0u32;
            ok(hsa_executable_symbol_get_info(
                symbol,
                1,
                (&raw mut length).cast(),
            ));
            let mut name = vec![0u8; length as usize];
            ok(hsa_executable_symbol_get_info(
                symbol,
                2,
                name.as_mut_ptr().cast(),
            ));
            (*data.cast::<Vec<Vec<u8>>>()).push(name);
        }
        status::SUCCESS
    }
    let mut names: Vec<Vec<u8>> = Vec::new();
    let mut size = 0u32;
    // SAFETY: every place has room for its attribute.
    unsafe {
        ok(hsa_executable_iterate_symbols(
            module.executable,
            Some(collect),
            (&raw mut names).cast(),
        ));
        assert!(names.contains(&b"add_one.kd".to_vec()) && names.contains(&b"counter".to_vec()));
        ok(hsa_executable_symbol_get_info(
            module.symbol(c"add_one.kd"),
            11,
            (&raw mut size).cast(),
        ));
        assert!(size >= 8);
        let (mut symbol, agent) = (0, gpu());
        let missing = hsa_executable_get_symbol_by_name(
            module.executable,
            c"none".as_ptr(),
            &agent,
            &mut symbol,
        );
        assert_eq!(missing, status::ERROR_INVALID_SYMBOL_NAME);
        let again = hsa_executable_freeze(module.executable, std::ptr::null());
        assert_eq!(again, status::ERROR_FROZEN_EXECUTABLE);
        ok(hsa_executable_destroy(module.executable));
        assert_eq!(
            hsa_executable_destroy(module.executable),
            status::ERROR_INVALID_EXECUTABLE
        );
    }
}

#[test]
fn the_loader_extension_lists_loaded_code_objects() {
    init();
    let module = Module::load();
    let kernel = module.kernel(c"nothing.kd") as *const c_void;
    type QueryExecutable = unsafe extern "C" fn(*const c_void, *mut u64) -> Status;
    type Iterate = unsafe extern "C" fn(
        u64,
        Option<unsafe extern "C" fn(u64, u64, *mut c_void) -> Status>,
        *mut c_void,
    ) -> Status;
    type Info = unsafe extern "C" fn(u64, u32, *mut c_void) -> Status;
    unsafe extern "C" fn keep(_: u64, object: u64, data: *mut c_void) -> Status {
        // SAFETY: the test passes a handle.
        unsafe { data.cast::<u64>().write(object) };
        status::SUCCESS
    }
    let mut table = [0usize; 7];
    let (mut found, mut object, mut base, mut length) = (0, 0u64, 0u64, 0u32);
    // SAFETY: the table holds functions of these types, in this order.
    unsafe {
        ok(hsa_system_get_major_extension_table(
            0x201,
            1,
            56,
            table.as_mut_ptr().cast(),
        ));
        let query: QueryExecutable = std::mem::transmute(table[2]);
        let iterate: Iterate = std::mem::transmute(table[3]);
        let info: Info = std::mem::transmute(table[4]);
        ok(query(kernel, &mut found));
        assert_eq!(found, module.executable);
        ok(iterate(found, Some(keep), (&raw mut object).cast()));
        ok(info(object, 9, (&raw mut base).cast()));
        assert!(base <= kernel as u64);
        ok(info(object, 11, (&raw mut length).cast()));
        let mut uri = vec![0u8; length as usize];
        ok(info(object, 12, uri.as_mut_ptr().cast()));
        assert!(
            uri.starts_with(b"file:///"),
            "{}",
            String::from_utf8_lossy(&uri)
        );
    }
}
