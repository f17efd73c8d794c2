//! Memory and copies.

use super::*;

#[test]
fn asynchronous_copies_wait_for_their_dependencies_and_are_timed() {
    init();
    let bytes = 1 << 20;
    let host = allocate(0, PoolKind::SystemCoarse, bytes);
    let device = allocate(1, PoolKind::DeviceCoarse, bytes);
    let back = allocate(0, PoolKind::SystemCoarse, bytes);
    let (gate, first, second) = (new_signal(1), new_signal(1), new_signal(1));
    // SAFETY: all ranges are as long as the copies.
    unsafe {
        host.write_bytes(0x5a, bytes);
        ok(hsa_amd_memory_async_copy(
            device,
            gpu(),
            host,
            cpu(),
            bytes,
            1,
            &gate,
            first,
        ));
        ok(hsa_amd_memory_async_copy_on_engine(
            back,
            cpu(),
            device,
            gpu(),
            bytes,
            1,
            &first,
            second,
            2,
            false,
        ));
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(hsa_signal_load_relaxed(first), 1);
        let before = clock::host_ns();
        hsa_signal_subtract_screlease(gate, 1);
        wait(second);
        let back = std::slice::from_raw_parts(back.cast::<u8>(), bytes);
        assert!(back.iter().all(|&byte| byte == 0x5a));
        let (mut one, mut two) = (ProfilingTime::default(), ProfilingTime::default());
        ok(hsa_amd_profiling_get_async_copy_time(first, &mut one));
        ok(hsa_amd_profiling_get_async_copy_time(second, &mut two));
        assert!(before <= one.start + 10 && one.start <= one.end && one.end <= two.start);
        // The engine completes the signal before it is idle.
        let deadline = std::time::Instant::now() + Duration::from_secs(5);
        let mut idle = 0;
        while idle != 3 && std::time::Instant::now() < deadline {
            ok(hsa_amd_memory_copy_engine_status(gpu(), cpu(), &mut idle));
        }
        assert_eq!(idle, 3);
    }
}

#[test]
fn a_rectangle_is_copied_row_by_row() {
    init();
    let device = allocate(1, PoolKind::DeviceCoarse, 4096);
    let host = allocate(0, PoolKind::SystemFine, 4096);
    let done = new_signal(1);
    // SAFETY: all ranges are within the blocks.
    unsafe {
        for i in 0..4096 {
            host.cast::<u8>().add(i).write(i as u8);
        }
        device.write_bytes(0, 4096);
        let side = |base: *mut c_void, pitch, slice| PitchedPtr {
            base: base.cast(),
            pitch,
            slice,
        };
        let (dst, src) = (side(device, 64, 256), side(host, 32, 128));
        let (dst_at, src_at) = (Dim3 { x: 4, y: 1, z: 0 }, Dim3 { x: 0, y: 0, z: 1 });
        let range = Dim3 { x: 8, y: 2, z: 2 };
        let none = std::ptr::null();
        ok(hsa_amd_memory_async_copy_rect(
            &dst,
            &dst_at,
            &src,
            &src_at,
            &range,
            gpu(),
            1,
            0,
            none,
            done,
        ));
        wait(done);
        let result = std::slice::from_raw_parts(device.cast::<u8>(), 4096);
        for z in 0..2 {
            for y in 0..2 {
                for x in 0..8 {
                    let expected = ((z + 1) * 128 + y * 32 + x) as u8;
                    assert_eq!(result[z * 256 + (y + 1) * 64 + 4 + x], expected);
                }
            }
        }
        assert_eq!(result.iter().filter(|&&byte| byte != 0).count(), 32 - 1);
        let wide = Dim3 { x: 80, y: 2, z: 1 };
        let refused = hsa_amd_memory_async_copy_rect(
            &dst,
            &dst_at,
            &src,
            &src_at,
            &wide,
            gpu(),
            1,
            0,
            none,
            done,
        );
        assert_eq!(refused, status::ERROR_INVALID_ARGUMENT);
    }
}

#[test]
fn pointer_info_describes_allocations() {
    init();
    let block = allocate(1, PoolKind::DeviceCoarse, 10_000);
    let mut info = PointerInfo {
        size: size_of::<PointerInfo>() as u32,
        kind: 9,
        agent_base_address: 0,
        host_base_address: 0,
        size_in_bytes: 0,
        user_data: 0,
        agent_owner: 0,
        global_flags: 0,
    };
    let (mut count, mut list) = (0, std::ptr::null_mut());
    let mut data = [0u8; 256];
    let mut locked = std::ptr::null_mut();
    // SAFETY: all pointers are valid; the list is malloc's.
    unsafe {
        ok(hsa_amd_pointer_info_set_userdata(block, 77 as *mut _));
        let inside = block.cast::<u8>().add(5000).cast();
        ok(hsa_amd_pointer_info(
            inside,
            &mut info,
            Some(libc::malloc),
            &mut count,
            &mut list,
        ));
        assert_eq!(
            (info.kind, info.agent_base_address),
            (POINTER_TYPE_HSA, block as u64)
        );
        assert_eq!(
            (info.size_in_bytes, info.user_data, info.agent_owner),
            (10_000, 77, gpu())
        );
        assert!(count >= 2 && *list == cpu());
        libc::free(list.cast());
        let (place, none) = (data.as_mut_ptr().cast(), std::ptr::null_mut());
        ok(hsa_amd_pointer_info(
            place,
            &mut info,
            None,
            none,
            std::ptr::null_mut(),
        ));
        assert_eq!(info.kind, POINTER_TYPE_UNKNOWN);
        ok(hsa_amd_memory_lock(
            place,
            256,
            std::ptr::null(),
            0,
            &mut locked,
        ));
        ok(hsa_amd_pointer_info(
            place,
            &mut info,
            None,
            none,
            std::ptr::null_mut(),
        ));
        assert_eq!((info.kind, locked), (POINTER_TYPE_LOCKED, place));
        ok(hsa_amd_memory_unlock(place));
        ok(hsa_amd_memory_pool_free(block));
    }
}

#[test]
fn virtual_memory_shows_physical_memory_twice() {
    init();
    let size = 1 << 16;
    let (mut one, mut two) = (std::ptr::null_mut(), std::ptr::null_mut());
    let mut handle = 0;
    let access = [cpu(), gpu()].map(|agent| MemoryAccessDesc {
        permissions: 3,
        agent,
    });
    // SAFETY: all pointers are valid, and the mappings are accessible when used.
    unsafe {
        ok(hsa_amd_vmem_address_reserve_align(
            &mut one,
            size,
            0,
            1 << 21,
            0,
        ));
        ok(hsa_amd_vmem_address_reserve(&mut two, size, 0, 0));
        assert_eq!(one as usize % (1 << 21), 0);
        ok(hsa_amd_vmem_handle_create(
            pool(1, PoolKind::DeviceCoarse),
            size,
            0,
            0,
            &mut handle,
        ));
        for place in [one, two] {
            ok(hsa_amd_vmem_map(place, size, 0, handle, 0));
            ok(hsa_amd_vmem_set_access(place, size, access.as_ptr(), 2));
        }
        one.cast::<u32>().write(0xabcd);
        assert_eq!(two.cast::<u32>().read(), 0xabcd);
        assert_eq!(
            hsa_amd_vmem_address_free(one, size),
            status::ERROR_RESOURCE_FREE
        );
        ok(hsa_amd_vmem_handle_release(handle));
        for place in [one, two] {
            ok(hsa_amd_vmem_unmap(place, size));
            ok(hsa_amd_vmem_address_free(place, size));
        }
        assert_eq!(
            hsa_amd_vmem_handle_release(handle),
            status::ERROR_INVALID_ALLOCATION
        );
    }
}
