/* The kernel of collective and point-to-point operations. Rebuild the code objects with ./build.sh.
 *
 * Ranks exchange data through a segment of host memory that all of them have mapped. `segment.rs` makes it and `work.rs` the
 * arguments of the kernel; both describe the same layout as the structures here. A launch has one workgroup. */

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;
typedef u32 block __attribute__((ext_vector_type(4)));

enum { MAX_RANKS = 64, MAX_WORKS = 84, THREADS = 256 };
/* Bytes that a rank contributes to a step of a collective operation. */
enum { STEP_BYTES = 256 << 10 };
/* Bytes and number of the messages that a sender can be ahead of a receiver. */
enum { MESSAGE_BYTES = 64 << 10, MESSAGES = 4 };

/* What an operation does, in `Work::flags`. */
enum : u32 {
    SEND = 1,        /* sends to rank `root` */
    RECEIVE = 2,     /* receives from it; operations that do neither are collective */
    FROM_ROOT = 4,   /* only the root contributes */
    TO_ROOT = 8,     /* only the root has a result */
    PARTS = 16,      /* contributions have a part of `count` elements for each rank */
    REDUCES = 32,    /* the result is the reduction of the contributions, not all of them in order of ranks */
    DEVICE_SCALAR = 64, /* `scalar` is an address */
};

enum Reduction : u8 { SUM, PROD, MAX, MIN, PRE_MUL_SUM, SUM_POST_DIV };

struct Work {
    u32 flags;
    u32 root;
    u8 type;      /* ncclDataType_t */
    u8 reduction;
    u16 size;     /* bytes of an element */
    u32 unused;
    u64 send, receive, count;
    u64 scalar;   /* the factor of PRE_MUL_SUM, in the type of the elements */
};

template <u64 bytes>
struct ncclDevKernelArgsStorage {
    u64 segment;
    u32 rank, ranks, works, unused;
    Work work[MAX_WORKS];
    u8 rest[bytes - 24 - MAX_WORKS * sizeof(Work)];
};

/* A counter on a cache line of its own. */
struct Counter {
    u64 value;
    u64 unused[7];
};

/* The segment, behind what the hosts alone use; then come the contributions of each rank, for two steps, and the messages of each
 * sender to each receiver. */
struct Segment {
    Counter aborted[MAX_RANKS];   /* set by the host of a rank to end its kernel */
    Counter published[MAX_RANKS]; /* steps whose contribution a rank has written */
    struct { Counter sent, received; } messages[MAX_RANKS][MAX_RANKS]; /* by sender and receiver */
};

typedef ncclDevKernelArgsStorage<4096> Arguments;

static __device__ inline u32 thread() { return __builtin_amdgcn_workitem_id_x(); }
static __device__ inline u64 load(const Counter &counter) {
    return __hip_atomic_load(&counter.value, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM);
}
static __device__ inline void store(Counter &counter, u64 value) {
    __hip_atomic_store(&counter.value, value, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
}
static __device__ inline void barrier() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "");
}

template <typename T>
static __device__ inline void copy_as(u64 to, u64 from, u64 bytes) {
    for (u64 n = thread(); n < bytes / sizeof(T); n += THREADS)
        ((T *)to)[n] = ((const T *)from)[n];
}
static __device__ void copy(u64 to, u64 from, u64 bytes) {
    u64 all = to | from | bytes;
    if (all % 16 == 0)
        copy_as<block>(to, from, bytes);
    else if (all % 4 == 0)
        copy_as<u32>(to, from, bytes);
    else
        copy_as<u8>(to, from, bytes);
}

/* Types of 8 and 16 bits are reduced in single precision and rounded once. */
struct Bfloat16 {
    u16 bits;
    __device__ operator float() const { return __builtin_bit_cast(float, (u32)bits << 16); }
    __device__ Bfloat16(float value) {
        u32 wide = __builtin_bit_cast(u32, value);
        bool is_nan = (wide & 0x7fffffff) > 0x7f800000;
        bits = is_nan ? (u16)(wide >> 16 | 0x40) : (u16)((wide + 0x7fff + (wide >> 16 & 1)) >> 16);
    }
};
/* Floats of 8 bits as these devices have them: no infinities, one zero, and the code of its negative is not a number. Numbers that are too
 * large become the largest, infinities not a number. */
template <u32 mantissa, u32 bias>
struct Float8 {
    static constexpr u32 dropped = 23 - mantissa;
    static constexpr u32 exponent_offset = (127 - bias) << mantissa;
    u8 bits;
    __device__ operator float() const {
        if (bits == 0x80)
            return __builtin_nanf("");
        const u32 size = bits & 0x7f;
        const float value = size >> mantissa ? __builtin_bit_cast(float, (size + exponent_offset) << dropped)
                                             : (float)size * step();
        return bits >> 7 ? -value : value;
    }
    __device__ Float8(float value) {
        const u32 wide = __builtin_bit_cast(u32, value) & 0x7fffffff;
        u32 size;
        if (wide >= 0x7f800000) {
            bits = 0x80;
            return;
        }
        if (wide < (127 - bias + 1) << 23)
            size = (u32)__builtin_rintf(__builtin_bit_cast(float, wide) / step());
        else
            size = ((wide + (1u << (dropped - 1)) - 1 + (wide >> dropped & 1)) >> dropped) - exponent_offset;
        size = size < 0x7f ? size : 0x7f;
        bits = (u8)(size | (size && __builtin_bit_cast(u32, value) >> 31 ? 0x80 : 0));
    }

private:
    /* The difference of the smallest numbers. */
    static __device__ float step() { return __builtin_bit_cast(float, (127 + 1 - bias - mantissa) << 23); }
};
typedef Float8<3, 8> Float8e4m3;
typedef Float8<2, 16> Float8e5m2;

template <typename T> struct Sum { typedef T type; };
template <u32 mantissa, u32 bias> struct Sum<Float8<mantissa, bias>> { typedef float type; };
template <> struct Sum<_Float16> { typedef float type; };
template <> struct Sum<Bfloat16> { typedef float type; };

template <Reduction reduction, typename T, typename S>
static __device__ inline S combined(S a, S b) {
    switch (reduction) {
    case PROD: return a * b;
    case MAX: return a < b ? b : a;
    case MIN: return b < a ? b : a;
    default: return a + b;
    }
}

/* Reduces the contributions in order of ranks, so that every rank has the same result. */
template <Reduction reduction, typename T>
static __device__ void reduce_by(u64 to, u64 from, u64 stride, u32 ranks, u64 count, T factor) {
    typedef typename Sum<T>::type S;
    for (u64 n = thread(); n < count; n += THREADS) {
        auto element = [&](u32 rank) {
            S value = ((const T *)(from + rank * stride))[n];
            return reduction == PRE_MUL_SUM ? (S)(value * (S)factor) : value;
        };
        S sum = element(0);
        for (u32 rank = 1; rank < ranks; ++rank)
            sum = combined<reduction, T, S>(sum, element(rank));
        if constexpr (reduction == SUM_POST_DIV)
            sum /= (S)ranks;
        ((T *)to)[n] = (T)sum;
    }
}

template <typename T, bool is_integer>
static __device__ void reduce_type(const Work &work, u64 to, u64 from, u64 stride, u32 ranks, u64 count) {
    const T factor = *(const T *)(work.flags & DEVICE_SCALAR ? work.scalar : (u64)&work.scalar);
    switch (work.reduction) {
    case SUM: return reduce_by<SUM, T>(to, from, stride, ranks, count, factor);
    case PROD: return reduce_by<PROD, T>(to, from, stride, ranks, count, factor);
    case MAX: return reduce_by<MAX, T>(to, from, stride, ranks, count, factor);
    case MIN: return reduce_by<MIN, T>(to, from, stride, ranks, count, factor);
    case PRE_MUL_SUM: return reduce_by<PRE_MUL_SUM, T>(to, from, stride, ranks, count, factor);
    case SUM_POST_DIV:
        if constexpr (is_integer)
            return reduce_by<SUM_POST_DIV, T>(to, from, stride, ranks, count, factor);
    }
}

static __device__ void reduce(const Work &work, u64 to, u64 from, u64 stride, u32 ranks, u64 count) {
    switch (work.type) {
    case 0: return reduce_type<signed char, true>(work, to, from, stride, ranks, count);
    case 1: return reduce_type<u8, true>(work, to, from, stride, ranks, count);
    case 2: return reduce_type<int, true>(work, to, from, stride, ranks, count);
    case 3: return reduce_type<u32, true>(work, to, from, stride, ranks, count);
    case 4: return reduce_type<long, true>(work, to, from, stride, ranks, count);
    case 5: return reduce_type<u64, true>(work, to, from, stride, ranks, count);
    case 6: return reduce_type<_Float16, false>(work, to, from, stride, ranks, count);
    case 7: return reduce_type<float, false>(work, to, from, stride, ranks, count);
    case 8: return reduce_type<double, false>(work, to, from, stride, ranks, count);
    case 9: return reduce_type<Bfloat16, false>(work, to, from, stride, ranks, count);
    case 10: return reduce_type<Float8e4m3, false>(work, to, from, stride, ranks, count);
    case 11: return reduce_type<Float8e5m2, false>(work, to, from, stride, ranks, count);
    }
}

/* Publishes this rank's contribution to a step and waits for those of all others; whether they came. A rank that waits for a step has
 * read all contributions to the one before, so that those two steps back can be overwritten. */
static __device__ bool meet(Segment &segment, const Arguments &a, u64 step, u32 &go_on) {
    barrier();
    if (thread() == 0) {
        store(segment.published[a.rank], step);
        bool alive = true;
        for (u32 rank = 0; rank < a.ranks && alive; ++rank)
            while (load(segment.published[rank]) < step) {
                if (load(segment.aborted[a.rank])) {
                    alive = false;
                    break;
                }
                __builtin_amdgcn_s_sleep(8);
            }
        go_on = alive;
    }
    barrier();
    return go_on;
}

static __device__ bool collective(Segment &segment, const Arguments &a, const Work &work, u32 &go_on) {
    const u64 contributions = (u64)&segment + sizeof(Segment);
    const u32 parts = work.flags & PARTS ? a.ranks : 1;
    const u64 part_bytes = STEP_BYTES / parts / 16 * 16;
    const u64 most = part_bytes / work.size;
    const bool gives = !(work.flags & FROM_ROOT) || a.rank == work.root;
    const bool takes = !(work.flags & TO_ROOT) || a.rank == work.root;
    u64 step = load(segment.published[a.rank]);
    for (u64 done = 0; done < work.count; done += most) {
        ++step;
        const u64 count = work.count - done < most ? work.count - done : most;
        const u64 bytes = count * work.size;
        const u64 slots = contributions + step % 2 * STEP_BYTES;
        const u64 stride = 2 * STEP_BYTES;
        if (gives)
            for (u32 part = 0; part < parts; ++part)
                copy(slots + a.rank * stride + part * part_bytes, work.send + (part * work.count + done) * work.size, bytes);
        if (!meet(segment, a, step, go_on))
            return false;
        if (!takes)
            continue;
        const u64 mine = slots + (work.flags & PARTS ? a.rank * part_bytes : 0);
        const u64 result = work.receive + done * work.size;
        if (work.flags & REDUCES)
            reduce(work, result, mine, stride, a.ranks, count);
        else if (work.flags & FROM_ROOT)
            copy(result, mine + work.root * stride, bytes);
        else
            for (u32 rank = 0; rank < a.ranks; ++rank)
                copy(result + rank * work.count * work.size, mine + rank * stride, bytes);
    }
    return true;
}

/* Carries out sends and receives side by side; those with the same peer in the same direction one after the other. */
static __device__ bool exchange(Segment &segment, const Arguments &a, u32 first, u32 last, u64 *done, u32 &ready) {
    const u64 messages = (u64)&segment + sizeof(Segment) + a.ranks * 2ul * STEP_BYTES;
    for (u32 n = thread(); n < MAX_WORKS; n += THREADS)
        done[n] = 0;
    barrier();
    for (u32 left = last - first; left != 0;) {
        bool moved = false;
        for (u32 n = first; n < last; ++n) {
            const Work &work = a.work[n];
            const u64 size = work.count * work.size;
            bool behind = done[n] == size;
            for (u32 before = first; before < n; ++before)
                behind |= a.work[before].root == work.root && a.work[before].flags == work.flags
                    && done[before] != a.work[before].count * a.work[before].size;
            if (behind)
                continue;
            const bool sends = work.flags & SEND;
            const u32 sender = sends ? a.rank : work.root, receiver = sends ? work.root : a.rank;
            auto &counters = segment.messages[sender][receiver];
            if (thread() == 0) {
                u64 sent = load(counters.sent), received = load(counters.received);
                ready = load(segment.aborted[a.rank]) ? 2 : sends ? sent - received < MESSAGES : sent != received;
            }
            barrier();
            const u32 now = ready;
            const u64 number = load(sends ? counters.sent : counters.received);
            barrier();
            if (now == 2)
                return false;
            if (now == 0)
                continue;
            const u64 bytes = size - done[n] < MESSAGE_BYTES ? size - done[n] : MESSAGE_BYTES;
            const u64 message = messages + ((sender * (u64)a.ranks + receiver) * MESSAGES + number % MESSAGES) * MESSAGE_BYTES;
            if (sends)
                copy(message, work.send + done[n], bytes);
            else
                copy(work.receive + done[n], message, bytes);
            barrier();
            if (thread() == 0) {
                store(sends ? counters.sent : counters.received, number + 1);
                done[n] += bytes;
            }
            barrier();
            moved = true;
            left -= done[n] == size;
        }
        if (!moved)
            __builtin_amdgcn_s_sleep(8);
    }
    return true;
}

__global__ __attribute__((amdgpu_flat_work_group_size(THREADS, THREADS))) void ncclDevKernel_Generic_1(Arguments) {
    /* The parameter itself would be copied to scratch memory. */
    const Arguments &a = *(const Arguments *)__builtin_amdgcn_kernarg_segment_ptr();
    __shared__ u64 done[MAX_WORKS];
    __shared__ u32 word;
    Segment &segment = *(Segment *)a.segment;
    for (u32 n = 0; n < a.works;) {
        u32 end = n;
        while (end < a.works && a.work[end].flags & (SEND | RECEIVE))
            ++end;
        if (end != n) {
            if (!exchange(segment, a, n, end, done, word))
                return;
            n = end;
        } else if (!collective(segment, a, a.work[n++], word)) {
            return;
        }
    }
}
