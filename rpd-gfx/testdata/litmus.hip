// Litmus tests of the memory model; build.sh compiles them to litmus.co. Each lane of the 64 runs the test on a place
// of its own; workgroup 0 is one side, workgroup 1 the other.
#include "device.h"

#define RELAXED __ATOMIC_RELAXED
#define AGENT __HIP_MEMORY_SCOPE_AGENT

// Waits until all workgroups are here; without sleeping, so that no thread that waits takes the other workgroup, too.
__device__ static void meet(u32 *arrived, u32 groups) {
  if (lane_x() == 0) {
    __hip_atomic_fetch_add(arrived, 1, RELAXED, AGENT);
    while (__hip_atomic_load(arrived, RELAXED, AGENT) < groups) {}
  }
  sync();
}

// Workgroup 0 stores values of equal parts; workgroup 1 counts the values that it sees with different parts.
#define TEAR(name, type, make, whole)                                        \
  KERNEL tear_##name(volatile type *place, u32 *arrived, u32 *bad, u32 rounds) { \
    u32 lane = lane_x();                                                     \
    meet(arrived, 2);                                                        \
    if (group_x() == 0) {                                                    \
      for (u32 r = 0; r < rounds; r++) place[lane] = make;                   \
    } else {                                                                 \
      u32 torn = 0;                                                          \
      for (u32 r = 0; r < rounds; r++) {                                     \
        type v = place[lane];                                                \
        torn += !(whole);                                                    \
      }                                                                      \
      bad[lane] = torn;                                                      \
    }                                                                        \
  }

typedef u32 uint2 __attribute__((ext_vector_type(2)));

TEAR(u16, u16, (u16)((r & 0xff) * 0x101), (v >> 8) == (v & 0xff))
TEAR(u32, u32, (r & 0xffff) * 0x10001, (v >> 16) == (v & 0xffff))
TEAR(u64, u64, (u64)r << 32 | r, (v >> 32) == (v & 0xffffffff))
TEAR(uint2, uint2, ((uint2){r, r}), v.x == v.y)
TEAR(uint4, uint4, ((uint4){r, r, r, r}), v.x == v.y && v.y == v.z && v.z == v.w)

// Message passing: what was stored before the flag is there for whoever sees the flag.
#define PASS(name, scope)                                                              \
  KERNEL pass_##name(u32 *data, u32 *flag, u32 *arrived, u32 *bad, u32 rounds) {       \
    u32 lane = lane_x(), wrong = 0;                                                    \
    meet(arrived, 2);                                                                  \
    if (group_x() == 0) {                                                              \
      for (u32 r = 1; r <= rounds; r++) {                                              \
        __hip_atomic_store(data + 32 * lane, r, RELAXED, scope);                       \
        __hip_atomic_store(flag + lane, r, __ATOMIC_RELEASE, scope);                   \
      }                                                                                \
    } else {                                                                           \
      for (u32 r = 1; r <= rounds; r++) {                                              \
        u32 seen = __hip_atomic_load(flag + lane, __ATOMIC_ACQUIRE, scope);            \
        wrong += __hip_atomic_load(data + 32 * lane, RELAXED, scope) < seen;           \
      }                                                                                \
      bad[lane] = wrong;                                                               \
    }                                                                                  \
  }

PASS(agent, __HIP_MEMORY_SCOPE_AGENT)
PASS(system, __HIP_MEMORY_SCOPE_SYSTEM)

// Store buffering: with sequential consistency at least one side sees the store of the other. x and y have a place
// for each lane and round; each side stores what it saw.
#define BUFFER(name, store_then_load)                                                          \
  KERNEL buffer_##name(u32 *x, u32 *y, u32 *seen, u32 *progress, u32 *arrived, u32 rounds) {   \
    u32 lane = lane_x(), side = group_x();                                                     \
    u32 *mine = side ? y : x, *other = side ? x : y;                                           \
    meet(arrived, 2);                                                                          \
    for (u32 r = 0; r < rounds; r++) {                                                         \
      u32 at = 64 * r + lane, value;                                                           \
      if (r % 16 == 0) {                                                                       \
        __hip_atomic_store(progress + side, r, RELAXED, AGENT);                                \
        while (__hip_atomic_load(progress + (side ^ 1), RELAXED, AGENT) < r)                   \
          __builtin_amdgcn_s_sleep(1);                                                         \
      }                                                                                        \
      store_then_load;                                                                         \
      seen[2 * at + side] = value;                                                             \
    }                                                                                          \
  }

BUFFER(fence, {
  __hip_atomic_store(mine + at, 1, RELAXED, AGENT);
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
  value = __hip_atomic_load(other + at, RELAXED, AGENT);
})
BUFFER(system, {
  __hip_atomic_store(mine + at, 1, RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "");
  value = __hip_atomic_load(other + at, RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
})
BUFFER(access, {
  __hip_atomic_store(mine + at, 1, __ATOMIC_SEQ_CST, AGENT);
  value = __hip_atomic_load(other + at, __ATOMIC_SEQ_CST, AGENT);
})

// Single-pass scan with decoupled look-back: each workgroup publishes its sum, then its inclusive prefix, each packed
// with a flag into one store. State 0: nothing, 1: sum, 2: prefix.
#define SCAN(name, type, make, state_of, value_of)                                  \
  KERNEL scan_##name(u32 *out, const u32 *in, volatile type *status) {              \
    u32 group = group_x(), lane = lane_x();                                         \
    u32 at = 64 * group + lane, sum = in[at];                                       \
    for (u32 d = 1; d < 64; d <<= 1) {                                              \
      u32 from = __builtin_amdgcn_ds_bpermute((int)(4 * (lane - d)), (int)sum);     \
      if (lane >= d) sum += from;                                                   \
    }                                                                               \
    u32 total = (u32)__builtin_amdgcn_readlane((int)sum, 63), before = 0;           \
    if (lane == 0 && group != 0) {                                                  \
      u32 state = 1, value = total;                                                 \
      status[group] = make;                                                         \
      for (u32 g = group - 1;; g--) {                                               \
        type s = status[g];                                                         \
        while ((state_of) == 0) s = status[g];                                      \
        before += value_of;                                                         \
        if ((state_of) == 2) break;                                                 \
      }                                                                             \
    }                                                                               \
    if (lane == 0) {                                                                \
      u32 state = 2, value = before + total;                                        \
      status[group] = make;                                                         \
    }                                                                               \
    before = (u32)__builtin_amdgcn_readfirstlane((int)before);                      \
    out[at] = before + sum;                                                         \
  }

SCAN(u64, u64, ((u64)value << 32 | state), (u32)s, (u32)(s >> 32))
SCAN(uint2, uint2, ((uint2){state, value}), s.x, s.y)
SCAN(uint4, uint4, ((uint4){state, ~value, 0, value}), s.x, (s.y == ~s.w ? s.w : 0xdead))
