/* Workgroups that wait for each other: those of a cooperative launch, and those of launches on several devices. */
#include "device.h"

/* What the runtime says of a cooperative launch. */
struct Place {
    unsigned *between; /* the counter on which grids wait for each other */
    unsigned grid, grids;
    unsigned long items_before, items;
    unsigned within[2]; /* the counters on which workgroups of the grid do */
    unsigned groups;
};

static __device__ Place *place() {
    const char __attribute__((address_space(4))) *hidden =
        (const char __attribute__((address_space(4))) *)__builtin_amdgcn_implicitarg_ptr();
    return *(Place *const __attribute__((address_space(4))) *)(hidden + 88);
}

/* Waits until `members` have come. The low bits count those who have, the others how often all had. */
static __device__ void meet(unsigned *counter, unsigned members, unsigned low) {
    unsigned before = __hip_atomic_fetch_add(counter, 1, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_SYSTEM);
    if ((before & low) == members - 1) {
        __hip_atomic_fetch_add(counter, low + 1 - members, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_SYSTEM);
        return;
    }
    while (((__hip_atomic_load(counter, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM) ^ before) & ~low) == 0)
        __builtin_amdgcn_s_sleep(1);
}

/* Called by one work-item of each workgroup. */
static __device__ void meet_within_grid(Place *here) {
#if defined(__gfx908__) || defined(__gfx90a__)
    __builtin_amdgcn_ds_gws_barrier(here->groups - 1, 0);
#else
    meet(here->within, here->groups, 0xffff);
#endif
}

static __device__ void wait_for_all_grids(Place *here) {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "");
    __builtin_amdgcn_s_barrier();
    if (thread_x() == 0) {
        meet_within_grid(here);
        if (block_x() == 0 && here->grids > 1)
            meet(here->between, here->grids, 0xff);
        meet_within_grid(here);
    }
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "");
}

/* In each round every workgroup of every grid writes a word of `shared`, all meet, and every workgroup adds up the words of all. `shared` has
 * two words for each workgroup, used in turns, and `sums` one for each workgroup of the grid. */
EXPORTED void sum_over_grids(unsigned *shared, unsigned *sums, unsigned rounds) {
    Place *here = place();
    unsigned size = block_size_x();
    bool alone = here->grids < 2;
    unsigned all = alone ? here->groups : (unsigned)(here->items / size);
    unsigned group = (alone ? 0 : (unsigned)(here->items_before / size)) + block_x();
    unsigned sum = 0;
    for (unsigned round = 0; round < rounds; ++round) {
        unsigned *words = shared + (round & 1) * all;
        if (thread_x() == 0)
            words[group] = (round + 1) * (group + 1);
        wait_for_all_grids(here);
        for (unsigned n = 0; n < all; ++n)
            sum += words[n];
    }
    if (thread_x() == 0)
        sums[block_x()] = sum;
}
