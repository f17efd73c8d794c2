/* collectives MODE RANKS [COUNT]: RCCL between ranks, each with a GPU of its own (processes may see the same). Every result is compared with a model.
 *   one         all ranks in one thread, with ncclCommInitAll and groups
 *   threads     a thread for each rank
 *   processes   a process for each rank
 *   step        what a training step does: sums of gradients in three buckets while a kernel computes, from one thread
 *   bytes       sums, products, maxima and minima of all pairs of 8-bit floats, between two ranks of one thread
 *   graph       a sum in a graph that is launched three times
 *   abort       rank 0 waits for ranks that never come, until it is aborted
 *   lost        the last rank, a process, ends without a word
 *   errors      calls that fail, with their texts */
#define _GNU_SOURCE
#include "basic.h"
#include "rccl.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 8 };

#define RCCL(call)                                                                                                     \
    do {                                                                                                               \
        ncclResult_t result_ = (call);                                                                                 \
        if (result_ != ncclSuccess)                                                                                    \
            FAIL("%s: %s (%d): %s", #call, ncclGetErrorString(result_), result_, ncclGetLastError(NULL));              \
    } while (0)

/* A rank and its buffers, which hold `ranks * count` elements of 8 bytes. */
struct rank {
    int rank, ranks;
    ncclComm_t comm;
    hipStream_t stream;
    char *send, *receive;
    size_t bytes;
};

static size_t count = 1000;

static size_t size_of(int type) {
    static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    return sizes[type];
}

/* Numbers of 16 bits, for values that these can hold. */
static uint16_t half_of(double value) {
    int exponent;
    double fraction = frexp(fabs(value), &exponent);
    if (value == 0)
        return 0;
    return (uint16_t)((value < 0) << 15 | (exponent + 14) << 10 | ((int)(fraction * 2048) & 1023));
}
static double half_value(uint16_t bits) {
    if ((bits & 0x7fff) == 0)
        return 0;
    double value = ldexp((bits & 1023) | 1024, (bits >> 10 & 31) - 25);
    return bits >> 15 ? -value : value;
}

/* Numbers of 8 bits, as the simulated devices have them: with three bits of mantissa and an exponent of base -8, or two and -16. */
static double byte_value(int type, unsigned code) {
    int mantissa = type == ncclFp8E4M3 ? 3 : 2, base = type == ncclFp8E4M3 ? -8 : -16;
    if (code == 0x80)
        return NAN;
    int exponent = (code & 0x7f) >> mantissa;
    double fraction = ldexp(code & ((1 << mantissa) - 1), -mantissa);
    double value = exponent ? ldexp(1 + fraction, base + exponent) : ldexp(fraction, base + 1);
    return code >> 7 ? -value : value;
}

/* The number that is nearest, of two the one with an even code. */
static unsigned byte_of(int type, double value) {
    static _Thread_local double values[2][256];
    double *of_type = values[type == ncclFp8E5M2];
    if (!isfinite(value))
        return 0x80;
    if (of_type[1] == 0)
        for (unsigned code = 0; code < 256; ++code)
            of_type[code] = byte_value(type, code);
    unsigned nearest = 0;
    double least = INFINITY;
    for (unsigned code = 0; code < 256; ++code) {
        double distance = fabs(of_type[code] - value);
        if (distance < least || (distance == least && !(code & 1))) {
            nearest = code;
            least = distance;
        }
    }
    return nearest;
}

static void put(void *buffer, int type, size_t n, double value) {
    switch (type) {
    case ncclInt8: ((int8_t *)buffer)[n] = (int8_t)value; break;
    case ncclUint8: ((uint8_t *)buffer)[n] = (uint8_t)value; break;
    case ncclInt32: ((int32_t *)buffer)[n] = (int32_t)value; break;
    case ncclUint32: ((uint32_t *)buffer)[n] = (uint32_t)value; break;
    case ncclInt64: ((int64_t *)buffer)[n] = (int64_t)value; break;
    case ncclUint64: ((uint64_t *)buffer)[n] = (uint64_t)value; break;
    case ncclFloat16: ((uint16_t *)buffer)[n] = half_of(value); break;
    case ncclFloat32: ((float *)buffer)[n] = (float)value; break;
    case ncclFloat64: ((double *)buffer)[n] = value; break;
    case ncclFp8E4M3:
    case ncclFp8E5M2: ((uint8_t *)buffer)[n] = (uint8_t)byte_of(type, value); break;
    default: {
        float single = (float)value;
        memcpy((uint16_t *)buffer + n, (char *)&single + 2, 2);
    }
    }
}

static double get(const void *buffer, int type, size_t n) {
    switch (type) {
    case ncclInt8: return ((const int8_t *)buffer)[n];
    case ncclUint8: return ((const uint8_t *)buffer)[n];
    case ncclInt32: return ((const int32_t *)buffer)[n];
    case ncclUint32: return ((const uint32_t *)buffer)[n];
    case ncclInt64: return (double)((const int64_t *)buffer)[n];
    case ncclUint64: return (double)((const uint64_t *)buffer)[n];
    case ncclFloat16: return half_value(((const uint16_t *)buffer)[n]);
    case ncclFloat32: return ((const float *)buffer)[n];
    case ncclFloat64: return ((const double *)buffer)[n];
    case ncclFp8E4M3:
    case ncclFp8E5M2: return byte_value(type, ((const uint8_t *)buffer)[n]);
    default: {
        float single = 0;
        memcpy((char *)&single + 2, (const uint16_t *)buffer + n, 2);
        return single;
    }
    }
}

/* What element n of a rank is: small, so that every type can hold sums and products of it. */
static double element(int rank, size_t n) { return 1 + (double)((n * 7 + (size_t)rank * 3 + n / 11) % 3); }

static double reduced(int ranks, int type, int op, size_t n) {
    double result = element(0, n);
    for (int rank = 1; rank < ranks; ++rank) {
        double other = element(rank, n);
        result = op == ncclProd  ? result * other
                 : op == ncclMax ? fmax(result, other)
                 : op == ncclMin ? fmin(result, other)
                                 : result + other;
    }
    if (type >= ncclFp8E4M3) {
        double factor = op == ncclAvg ? byte_value(type, byte_of(type, 1.0 / ranks)) : 1;
        return byte_value(type, byte_of(type, result * factor));
    }
    if (op == ncclAvg)
        result = type < ncclFloat16 ? floor(result / ranks) : result / ranks;
    return op == ncclNumOps ? 2 * result : result;
}

static void fill(struct rank *r, int type, size_t elements) {
    char *host = malloc(r->bytes);
    for (size_t n = 0; n < elements; ++n)
        put(host, type, n, element(r->rank, n));
    HIP(hipMemcpyAsync(r->send, host, elements * size_of(type), hipMemcpyHostToDevice, r->stream));
    HIP(hipMemsetAsync(r->receive, 0xee, r->bytes, r->stream));
    HIP(hipStreamSynchronize(r->stream));
    free(host);
}

enum operation { ALL_REDUCE, REDUCE, REDUCE_SCATTER, BROADCAST, ALL_GATHER, ALL_TO_ALL, ALL_TO_ALL_V, GATHER, SCATTER, RING, OPERATIONS };
static const char *const names[] = {"all-reduce", "reduce", "reduce-scatter", "broadcast", "all-gather", "all-to-all",
                                    "all-to-all-v", "gather", "scatter", "ring"};

static void counts_of(int ranks, size_t *counts, size_t *places) {
    for (int rank = 0; rank < ranks; ++rank) {
        /* Part 1 has no elements. */
        counts[rank] = rank == 1 ? 0 : count - (size_t)rank;
        places[rank] = (size_t)rank * count;
    }
}

/* Asks for an operation. All-to-all with counts: rank r sends to p what counts[(r + p) % ranks] says. */
static void ask(struct rank *r, enum operation operation, int type, int op, int root) {
    switch (operation) {
    case ALL_REDUCE: RCCL(ncclAllReduce(r->send, r->receive, count, type, op, r->comm, r->stream)); break;
    case REDUCE: RCCL(ncclReduce(r->send, r->receive, count, type, op, root, r->comm, r->stream)); break;
    case REDUCE_SCATTER: RCCL(ncclReduceScatter(r->send, r->receive, count, type, op, r->comm, r->stream)); break;
    case BROADCAST: RCCL(ncclBroadcast(r->send, r->receive, count, type, root, r->comm, r->stream)); break;
    case ALL_GATHER: RCCL(ncclAllGather(r->send, r->receive, count, type, r->comm, r->stream)); break;
    case ALL_TO_ALL: RCCL(ncclAllToAll(r->send, r->receive, count, type, r->comm, r->stream)); break;
    case ALL_TO_ALL_V: {
        size_t base[MOST], places[MOST], counts[MOST];
        counts_of(r->ranks, base, places);
        for (int peer = 0; peer < r->ranks; ++peer)
            counts[peer] = base[(r->rank + peer) % r->ranks];
        RCCL(ncclAllToAllv(r->send, counts, places, r->receive, counts, places, type, r->comm, r->stream));
        break;
    }
    case GATHER: RCCL(ncclGather(r->send, r->receive, count, type, root, r->comm, r->stream)); break;
    case SCATTER: RCCL(ncclScatter(r->send, r->receive, count, type, root, r->comm, r->stream)); break;
    case RING:
        RCCL(ncclGroupStart());
        RCCL(ncclRecv(r->receive, count, type, (r->rank + r->ranks - 1) % r->ranks, r->comm, r->stream));
        RCCL(ncclSend(r->send, count, type, (r->rank + 1) % r->ranks, r->comm, r->stream));
        RCCL(ncclGroupEnd());
        break;
    case OPERATIONS: break;
    }
}

/* What element n of part `part` of a result is; false if there is none. */
static bool expected(const struct rank *r, enum operation operation, int type, int op, int root, int part, size_t n,
                     double *value) {
    size_t base[MOST], places[MOST];
    counts_of(r->ranks, base, places);
    const size_t at = (size_t)r->rank * count + n;
    switch (operation) {
    case ALL_REDUCE: *value = reduced(r->ranks, type, op, n); return part == 0;
    case REDUCE: *value = reduced(r->ranks, type, op, n); return part == 0 && r->rank == root;
    case REDUCE_SCATTER: *value = reduced(r->ranks, type, op, at); return part == 0;
    case BROADCAST: *value = element(root, n); return part == 0;
    case ALL_GATHER: *value = element(part, n); return true;
    case ALL_TO_ALL: *value = element(part, at); return true;
    case ALL_TO_ALL_V: *value = element(part, at); return n < base[(r->rank + part) % r->ranks];
    case GATHER: *value = element(part, n); return r->rank == root;
    case SCATTER: *value = element(root, at); return part == 0;
    case RING: *value = element((r->rank + r->ranks - 1) % r->ranks, n); return part == 0;
    default: return false;
    }
}

static void check(struct rank *r, enum operation operation, int type, int op, int root) {
    HIP(hipStreamSynchronize(r->stream));
    char *host = malloc(r->bytes);
    HIP(hipMemcpy(host, r->receive, r->bytes, hipMemcpyDeviceToHost));
    size_t all = (size_t)r->ranks * count, size = size_of(type);
    for (size_t n = 0; n < all; ++n) {
        double value;
        if (expected(r, operation, type, op, root, (int)(n / count), n % count, &value)) {
            double found = get(host, type, n);
            /* A mean of three or more is rounded. */
            double most = op == ncclAvg && type >= ncclFloat16 && type <= ncclBfloat16 ? value * 0.01 : 0;
            if (fabs(found - value) > most)
                FAIL("%s, type %d, reduction %d, rank %d: element %zu is %g instead of %g", names[operation], type, op,
                     r->rank, n, found, value);
        } else {
            for (size_t byte = 0; byte < size; ++byte)
                if ((unsigned char)host[n * size + byte] != 0xee)
                    FAIL("%s, type %d, rank %d: element %zu was overwritten", names[operation], type, r->rank, n);
        }
    }
    free(host);
}

static void prepare(struct rank *r, int rank, int ranks) {
    r->rank = rank;
    r->ranks = ranks;
    r->bytes = (size_t)ranks * count * 8;
    int devices;
    HIP(hipGetDeviceCount(&devices));
    HIP(hipSetDevice(rank % devices));
    HIP(hipStreamCreateWithFlags(&r->stream, hipStreamNonBlocking));
    HIP(hipMalloc((void **)&r->send, r->bytes));
    RCCL(ncclMemAlloc((void **)&r->receive, r->bytes));
}

static void release(struct rank *r) {
    HIP(hipFree(r->send));
    RCCL(ncclMemFree(r->receive));
    HIP(hipStreamDestroy(r->stream));
}

/* One operation of all ranks that this thread has. */
static void run(struct rank *ranks, int own, enum operation operation, int type, int op, int root) {
    size_t parts = operation == ALL_REDUCE || operation == REDUCE || operation == BROADCAST ? 1 : (size_t)ranks->ranks;
    for (int n = 0; n < own; ++n)
        fill(&ranks[n], type, parts * count);
    RCCL(ncclGroupStart());
    for (int n = 0; n < own; ++n)
        ask(&ranks[n], operation, type, op, root);
    RCCL(ncclGroupEnd());
    for (int n = 0; n < own; ++n)
        check(&ranks[n], operation, type, op, root);
}

static void run_all(struct rank *ranks, int own) {
    int last = ranks->ranks - 1;
    for (int n = 0; n < own; ++n) {
        int number, rank;
        RCCL(ncclCommCount(ranks[n].comm, &number));
        RCCL(ncclCommUserRank(ranks[n].comm, &rank));
        if (number != ranks->ranks || rank != ranks[n].rank)
            FAIL("rank %d of %d instead of %d of %d", rank, number, ranks[n].rank, ranks->ranks);
    }
    for (int type = ncclInt8; type <= ncclFp8E5M2; ++type)
        for (int op = ncclSum; op <= ncclAvg; ++op)
            run(ranks, own, ALL_REDUCE, type, op, 0);
    run(ranks, own, REDUCE, ncclFloat32, ncclSum, last);
    run(ranks, own, REDUCE_SCATTER, ncclFloat32, ncclSum, 0);
    run(ranks, own, REDUCE_SCATTER, ncclFloat16, ncclMax, 0);
    run(ranks, own, REDUCE, ncclFp8E5M2, ncclSum, last);
    run(ranks, own, REDUCE_SCATTER, ncclFp8E4M3, ncclSum, 0);
    for (enum operation operation = BROADCAST; operation < OPERATIONS; ++operation) {
        run(ranks, own, operation, ncclInt8, 0, last);
        run(ranks, own, operation, ncclFloat64, 0, 0);
    }
    /* A reduction of the program's own: twice the sum. */
    ncclRedOp_t doubled = 0;
    double two = 2;
    for (int n = 0; n < own; ++n)
        RCCL(ncclRedOpCreatePreMulSum(&doubled, &two, ncclFloat64, ncclScalarHostImmediate, ranks[n].comm));
    run(ranks, own, ALL_REDUCE, ncclFloat64, doubled, 0);
    for (int n = 0; n < own; ++n)
        RCCL(ncclRedOpDestroy(doubled, ranks[n].comm));
}

/* Two halves of the ranks, in reverse order, and the last rank in none if their number is odd. */
static void run_split(struct rank *ranks, int own) {
    int half = ranks->ranks / 2;
    struct rank halves[MOST];
    RCCL(ncclGroupStart());
    for (int n = 0; n < own; ++n) {
        int rank = ranks[n].rank, color = rank < 2 * half ? rank / half : -1;
        halves[n] = ranks[n];
        RCCL(ncclCommSplit(ranks[n].comm, color, -rank, &halves[n].comm, NULL));
    }
    RCCL(ncclGroupEnd());
    int in = 0;
    for (int n = 0; n < own; ++n) {
        if (!halves[n].comm)
            continue;
        halves[in] = halves[n];
        halves[in].ranks = half;
        halves[in].rank = half - 1 - ranks[n].rank % half;
        ++in;
    }
    if (in) {
        run(halves, in, ALL_GATHER, ncclInt32, 0, 0);
        run(halves, in, ALL_REDUCE, ncclFloat32, ncclSum, 0);
    }
    for (int n = 0; n < in; ++n)
        RCCL(ncclCommDestroy(halves[n].comm));
}

static void one(int number) {
    struct rank ranks[MOST];
    ncclComm_t comms[MOST];
    RCCL(ncclCommInitAll(comms, number, NULL));
    for (int n = 0; n < number; ++n) {
        prepare(&ranks[n], n, number);
        ranks[n].comm = comms[n];
    }
    run_all(ranks, number);
    run_split(ranks, number);
    for (int n = 0; n < number; ++n) {
        RCCL(ncclCommFinalize(comms[n]));
        RCCL(ncclCommDestroy(comms[n]));
        release(&ranks[n]);
    }
}

/* Reductions of the codes of a type with each other: element n of one rank has code n % 256, of the other n / 256. */
static void bytes(void) {
    static const char *const operations[] = {"+", "*", "maximum", "minimum"};
    struct rank ranks[2];
    ncclComm_t comms[2];
    uint8_t *host = malloc(count);
    RCCL(ncclCommInitAll(comms, 2, NULL));
    for (int rank = 0; rank < 2; ++rank) {
        prepare(&ranks[rank], rank, 2);
        for (size_t n = 0; n < count; ++n)
            host[n] = (uint8_t)(rank ? n / 256 : n % 256);
        HIP(hipMemcpy(ranks[rank].send, host, count, hipMemcpyHostToDevice));
    }
    for (int type = ncclFp8E4M3; type <= ncclFp8E5M2; ++type)
        for (int op = ncclSum; op <= ncclMin; ++op) {
            RCCL(ncclGroupStart());
            for (int n = 0; n < 2; ++n)
                RCCL(ncclAllReduce(ranks[n].send, ranks[n].receive, count, type, op, comms[n], ranks[n].stream));
            RCCL(ncclGroupEnd());
            HIP(hipStreamSynchronize(ranks[0].stream));
            HIP(hipStreamSynchronize(ranks[1].stream));
            HIP(hipMemcpy(host, ranks[1].receive, count, hipMemcpyDeviceToHost));
            for (size_t n = 0; n < count; ++n) {
                /* In single precision, which is not always exact. */
                float a = (float)byte_value(type, n % 256), b = (float)byte_value(type, (unsigned)n / 256);
                float value = op == ncclSum ? a + b : op == ncclProd ? a * b : op == ncclMax ? (a < b ? b : a) : b < a ? b : a;
                unsigned right = byte_of(type, value);
                if (host[n] != right)
                    FAIL("type %d: %g %s %g is %#x instead of %#x", type, a, operations[op], b, host[n], right);
            }
        }
    for (int n = 0; n < 2; ++n) {
        RCCL(ncclCommDestroy(comms[n]));
        release(&ranks[n]);
    }
    free(host);
}

/* What a thread or process with one rank does. */
static void alone(int rank, int number, const ncclUniqueId *id) {
    struct rank r;
    prepare(&r, rank, number);
    RCCL(ncclCommInitRank(&r.comm, number, *id, rank));
    run_all(&r, 1);
    run_split(&r, 1);
    RCCL(ncclCommDestroy(r.comm));
    release(&r);
}

static ncclUniqueId shared_id;
static int threads;

static void *in_thread(void *argument) {
    alone((int)(intptr_t)argument, threads, &shared_id);
    return NULL;
}

static void in_threads(int number) {
    pthread_t all[MOST];
    threads = number;
    RCCL(ncclGetUniqueId(&shared_id));
    for (int n = 0; n < number; ++n)
        pthread_create(&all[n], NULL, in_thread, (void *)(intptr_t)n);
    for (int n = 0; n < number; ++n)
        pthread_join(all[n], NULL);
}

/* Starts a process for each rank; rank 0 makes the id. */
static void in_processes(int number, bool lose) {
    struct {
        volatile int made;
        ncclUniqueId id;
    } *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t children[MOST];
    for (int rank = 0; rank < number; ++rank) {
        children[rank] = fork();
        if (children[rank] != 0)
            continue;
        if (rank == 0) {
            RCCL(ncclGetUniqueId(&shared->id));
            __sync_synchronize();
            shared->made = 1;
        }
        while (!shared->made)
            usleep(1000);
        __sync_synchronize();
        if (!lose) {
            alone(rank, number, &shared->id);
            exit(0);
        }
        struct rank r;
        prepare(&r, rank, number);
        RCCL(ncclCommInitRank(&r.comm, number, shared->id, rank));
        if (rank == number - 1)
            _exit(0);
        RCCL(ncclAllReduce(r.send, r.receive, count, ncclFloat32, ncclSum, r.comm, r.stream));
        ncclResult_t error = ncclSuccess;
        while (error == ncclSuccess) {
            usleep(1000);
            RCCL(ncclCommGetAsyncError(r.comm, &error));
        }
        if (rank == 0)
            printf("%s\n", ncclGetErrorString(error));
        RCCL(ncclCommAbort(r.comm));
        exit(0);
    }
    for (int rank = 0; rank < number; ++rank) {
        int status;
        waitpid(children[rank], &status, 0);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            FAIL("rank %d ended with %x", rank, status);
    }
}

static void step(int number) {
    enum { BUCKETS = 3 };
    struct rank ranks[MOST];
    ncclComm_t comms[MOST];
    hipStream_t compute[MOST];
    RCCL(ncclCommInitAll(comms, number, NULL));
    for (int n = 0; n < number; ++n) {
        prepare(&ranks[n], n, number);
        ranks[n].comm = comms[n];
        HIP(hipStreamCreateWithFlags(&compute[n], hipStreamNonBlocking));
        fill(&ranks[n], ncclFloat32, count);
    }
    for (int bucket = 0; bucket < BUCKETS; ++bucket) {
        for (int n = 0; n < number; ++n) {
            HIP(hipSetDevice(n));
            LAUNCH(empty_kernel, linear(1), linear(64), 0, compute[n]);
            hipEvent_t computed;
            HIP(hipEventCreate(&computed));
            HIP(hipEventRecord(computed, compute[n]));
            HIP(hipStreamWaitEvent(ranks[n].stream, computed, 0));
            HIP(hipEventDestroy(computed));
        }
        RCCL(ncclGroupStart());
        for (int n = 0; n < number; ++n)
            RCCL(ncclAllReduce(ranks[n].send, ranks[n].receive, count, ncclFloat32, ncclSum, comms[n], ranks[n].stream));
        RCCL(ncclGroupEnd());
    }
    for (int n = 0; n < number; ++n) {
        HIP(hipSetDevice(n));
        check(&ranks[n], ALL_REDUCE, ncclFloat32, ncclSum, 0);
        RCCL(ncclCommDestroy(comms[n]));
        HIP(hipStreamDestroy(compute[n]));
        release(&ranks[n]);
    }
}

static void graph(int number) {
    struct rank ranks[MOST];
    ncclComm_t comms[MOST];
    hipGraphExec_t graphs[MOST];
    RCCL(ncclCommInitAll(comms, number, NULL));
    for (int n = 0; n < number; ++n) {
        prepare(&ranks[n], n, number);
        ranks[n].comm = comms[n];
        fill(&ranks[n], ncclFloat32, count);
    }
    /* From here on the runtime refuses synchronous copies. */
    for (int n = 0; n < number; ++n)
        HIP(hipStreamBeginCapture(ranks[n].stream, hipStreamCaptureModeThreadLocal));
    RCCL(ncclGroupStart());
    for (int n = 0; n < number; ++n)
        ask(&ranks[n], ALL_REDUCE, ncclFloat32, ncclSum, 0);
    RCCL(ncclGroupEnd());
    for (int n = 0; n < number; ++n) {
        hipGraph_t made;
        HIP(hipStreamEndCapture(ranks[n].stream, &made));
        HIP(hipGraphInstantiate(&graphs[n], made, NULL, NULL, 0));
        HIP(hipGraphDestroy(made));
    }
    for (int round = 0; round < 3; ++round) {
        for (int n = 0; n < number; ++n) {
            HIP(hipSetDevice(n));
            HIP(hipMemsetAsync(ranks[n].receive, 0xee, ranks[n].bytes, ranks[n].stream));
            HIP(hipGraphLaunch(graphs[n], ranks[n].stream));
        }
        for (int n = 0; n < number; ++n)
            check(&ranks[n], ALL_REDUCE, ncclFloat32, ncclSum, 0);
    }
    for (int n = 0; n < number; ++n) {
        HIP(hipGraphExecDestroy(graphs[n]));
        /* Streams may be destroyed first. */
        release(&ranks[n]);
        RCCL(ncclCommDestroy(comms[n]));
    }
}

static void aborted(int number) {
    struct rank r;
    ncclComm_t comms[MOST];
    RCCL(ncclCommInitAll(comms, number, NULL));
    prepare(&r, 0, number);
    RCCL(ncclAllReduce(r.send, r.receive, count, ncclFloat32, ncclSum, comms[0], r.stream));
    usleep(20000);
    if (hipStreamQuery(r.stream) != hipErrorNotReady)
        FAIL("rank 0 did not wait for the others");
    RCCL(ncclCommAbort(comms[0]));
    HIP(hipStreamSynchronize(r.stream));
    for (int n = 1; n < number; ++n)
        RCCL(ncclCommAbort(comms[n]));
    release(&r);
}

static void show(const char *what, ncclResult_t result) {
    printf("%s: %s\n", what, ncclGetErrorString(result));
    if (result != ncclSuccess)
        printf("  %s\n", ncclGetLastError(NULL));
}

static void errors(int number) {
    ncclComm_t comms[MOST];
    ncclUniqueId id = {{0}};
    int twice[2] = {0, 0};
    show("no id", ncclCommInitRank(comms, 1, id, 0));
    RCCL(ncclGetUniqueId(&id));
    show("rank 2 of 2", ncclCommInitRank(comms, 2, id, 2));
    show("too many GPUs", ncclCommInitAll(comms, number + 1, NULL));
    show("one GPU twice", ncclCommInitAll(comms, 2, twice));
    RCCL(ncclCommInitAll(comms, number, NULL));
    struct rank r;
    prepare(&r, 0, number);
    show("no communicator", ncclAllReduce(r.send, r.receive, 1, ncclFloat32, ncclSum, NULL, r.stream));
    show("no such type", ncclAllReduce(r.send, r.receive, 1, 12, ncclSum, comms[0], r.stream));
    show("no such reduction", ncclAllReduce(r.send, r.receive, 1, ncclFloat32, 7, comms[0], r.stream));
    show("no such root", ncclBroadcast(r.send, r.receive, 1, ncclFloat32, number, comms[0], r.stream));
    show("no buffer", ncclSend(NULL, 1, ncclFloat32, 1, comms[0], r.stream));
    show("no elements", ncclAllReduce(NULL, NULL, 0, ncclFloat32, ncclSum, comms[0], r.stream));
    show("no group", ncclGroupEnd());
    RCCL(ncclGroupStart());
    (void)ncclSend(r.send, 1, ncclFloat32, -1, comms[0], r.stream);
    show("group with an error", ncclGroupEnd());
    for (int n = 0; n < number; ++n)
        RCCL(ncclCommDestroy(comms[n]));
    show("destroyed twice", ncclCommDestroy(comms[0]));
    release(&r);
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "one";
    int number = (int)number_argument(argc, argv, 2, 2);
    count = (size_t)number_argument(argc, argv, 3, (long)count);
    if (number > MOST)
        FAIL("at most %d ranks", MOST);
    if (strcmp(mode, "one") == 0)
        one(number);
    else if (strcmp(mode, "threads") == 0)
        in_threads(number);
    else if (strcmp(mode, "processes") == 0)
        in_processes(number, false);
    else if (strcmp(mode, "lost") == 0)
        in_processes(number, true);
    else if (strcmp(mode, "step") == 0)
        step(number);
    else if (strcmp(mode, "bytes") == 0)
        bytes();
    else if (strcmp(mode, "graph") == 0)
        graph(number);
    else if (strcmp(mode, "abort") == 0)
        aborted(number);
    else if (strcmp(mode, "errors") == 0)
        errors(number);
    else
        FAIL("unknown mode %s", mode);
    printf("ok\n");
    return 0;
}
