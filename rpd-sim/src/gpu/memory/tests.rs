//! Allocation, access and release of memory.

use super::*;

fn device_pool() -> &'static Pool {
    agents::pool_of(1, PoolKind::DeviceCoarse).expect("there is a GPU")
}

#[test]
fn memory_accounting_follows_allocations_and_refuses_too_much() {
    let memory = Memory::default();
    let pool = device_pool();
    let block = memory.allocate(pool, 5000, Use::Program, 0).expect("fits");
    assert_eq!(memory.used(1), 8192);
    assert_eq!(
        memory
            .allocate(pool, pool.bytes as usize, Use::Program, 0)
            .err(),
        Some(AllocError::Exhausted)
    );
    assert_eq!(memory.used(1), 8192);
    assert!(!memory.free(block.base, Use::Internal));
    assert!(memory.free(block.base, Use::Program));
    assert!(!memory.free(block.base, Use::Program));
    assert_eq!(memory.used(1), 0);
}

#[test]
fn memory_before_a_large_allocation_is_not_accessible() {
    let memory = Memory::default();
    let allocate = |size: usize| memory.allocate(device_pool(), size, Use::Program, 0);
    // The system maps the next one below the one before it.
    let blocks = [4 << 20, 4 << 20, 2560, 4 << 20].map(|size| allocate(size).expect("fits"));
    for block in &blocks {
        if block.size > MOST_SHARED {
            assert_eq!(memory.accessible(block.base - 4, 2), None);
            assert_eq!(memory.accessible(block.base - BEFORE, 2), None);
        }
        assert!(memory.accessible(block.base, 2).is_some());
    }
    for block in blocks {
        assert!(memory.free(block.base, Use::Program));
    }
    assert_eq!(memory.used(1), 0);
}

#[test]
fn small_allocations_have_accessible_memory_behind_them() {
    let memory = Memory::default();
    let pool = device_pool();
    let bytes = |size: usize, purpose: Use| {
        let block = memory.allocate(pool, size, purpose, 0).expect("fits");
        let range = memory.accessible(block.base, 2).expect("is accessible");
        assert!(!range.fine_grained);
        assert_eq!(memory.accessible(range.end, 2), None);
        assert_eq!(memory.accessible(range.end - 1, 2), Some(range));
        assert!(memory.free(block.base, purpose));
        assert_eq!(memory.accessible(range.end - 1, 2), None);
        range.end - range.base
    };
    assert_eq!(bytes(2560, Use::Program), 4096 + BEHIND);
    assert_eq!(bytes(MOST_SHARED + 1, Use::Program), MOST_SHARED + GRANULE);
    assert_eq!(bytes(2560, Use::Internal), 4096);
    assert_eq!(memory.used(1), 0);
}

#[test]
fn a_freed_range_stays_known_around_a_reused_part() {
    let mut maps = Maps::default();
    let freed = Freed {
        end: 100,
        base: 0,
        size: 100,
    };
    maps.freed.insert(0, freed);
    maps.reuse(40, 10);
    maps.reuse(90, 20);
    let parts: Vec<_> = maps
        .freed
        .iter()
        .map(|(&at, part)| (at, part.end))
        .collect();
    assert_eq!(parts, [(0, 40), (50, 90)]);
    assert!(
        maps.freed
            .values()
            .all(|part| (part.base, part.size) == (0, 100))
    );
    maps.reuse(0, 100);
    assert!(maps.freed.is_empty());
}

#[test]
fn memory_access_is_checked_by_range_and_agent() {
    let memory = Memory::default();
    let block = memory
        .allocate(
            agents::pool_of(0, PoolKind::SystemFine).expect("pool"),
            4096,
            Use::Program,
            0,
        )
        .expect("fits");
    assert_eq!(memory.check(block.base, 8, 2), Err(AccessError::NotAllowed));
    memory.set_access(&block, 2);
    assert!(memory.check(block.base + 4088, 8, 2).is_ok());
    assert_eq!(
        memory.check(block.base + 4089, 8, 2),
        Err(AccessError::NotPresent)
    );
    assert_eq!(memory.check(16, 1, 2), Err(AccessError::NotPresent));
    assert!(memory.free(block.base, Use::Program));
    assert_eq!(memory.check(block.base, 1, 1), Err(AccessError::NotPresent));
}

#[test]
fn locked_memory_stays_accessible_until_the_last_unlock() {
    let memory = Memory::default();
    let data = [0u8; 64];
    let base = data.as_ptr() as usize;
    memory.lock_range(base, 64, 2).expect("lock");
    memory.lock_range(base, 64, 2).expect("lock");
    assert!(memory.check(base + 8, 8, 2).is_ok());
    assert!(memory.unlock_range(base));
    assert!(memory.check(base, 64, 2).is_ok());
    assert!(memory.unlock_range(base));
    assert!(memory.check(base, 64, 2).is_err());
    assert!(!memory.unlock_range(base));
}
