/* inside [KERNEL [ROUNDS [BLOCKS [DEVICES]]]]: kernels whose time inside is known; see kernels/inside.hip. KERNEL is one of its
 * names, or all. ROUNDS are those of the kernel's loop, BLOCKS its workgroups; they run on the first DEVICES, one after the other. */
#include "fatbin.h"
#include "workload.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 256, CHASE = 1 << 18 };

/* Stubs; the parameters are those of the kernels. */
#define KERNEL(name, parameters, ...)                                                                                    \
    static void STUB(name) parameters { STUB_BODY(name, __VA_ARGS__); }

KERNEL(dependent_chain, (float *out, int rounds), &out, &rounds)
KERNEL(independent_chains, (float *out, int rounds), &out, &rounds)
KERNEL(bank_conflicts, (float *out, int rounds, int stride), &out, &rounds, &stride)
KERNEL(divergent_branch, (float *out, int rounds), &out, &rounds)
KERNEL(memory_stream, (float *out, const float *in, unsigned count), &out, &in, &count)
KERNEL(pointer_chase, (uint64_t *out, uint64_t *next, int rounds), &out, &next, &rounds)
KERNEL(barrier_imbalance, (float *out, int rounds, int work), &out, &rounds, &work)
KERNEL(sleeper, (unsigned *out, int rounds), &out, &rounds)
KERNEL(matrix_chain, (float *out, int rounds), &out, &rounds)
KERNEL(two_phases, (float *out, int first, int second), &out, &first, &second)
KERNEL(lane_mask, (float *out, int active, int rounds), &out, &active, &rounds)

EMBED_KERNELS("inside.hipfb") {
    REGISTER(dependent_chain, "dependent_chain");
    REGISTER(independent_chains, "independent_chains");
    REGISTER(bank_conflicts, "bank_conflicts");
    REGISTER(divergent_branch, "divergent_branch");
    REGISTER(memory_stream, "memory_stream");
    REGISTER(pointer_chase, "pointer_chase");
    REGISTER(barrier_imbalance, "barrier_imbalance");
    REGISTER(sleeper, "sleeper");
    REGISTER(matrix_chain, "matrix_chain");
    REGISTER(two_phases, "two_phases");
    REGISTER(lane_mask, "lane_mask");
}

static int rounds;
static uint32_t blocks;
static float *out;
static float *result;

static void fetch(void) {
    HIP(hipMemcpy(result, out, (size_t)blocks * BLOCK * sizeof *result, hipMemcpyDeviceToHost));
}

static void expect(const char *kernel, uint32_t at, float expected) {
    if (fabsf(result[at] - expected) > 1e-5f * fabsf(expected))
        FAIL("%s: element %u: %g instead of %g", kernel, at, result[at], expected);
}

/* `steps` multiply-adds, as phases and chains do them. */
static float chain(float value, long steps, float factor, float addend) {
    for (long i = 0; i < steps; ++i) {
        float next = fmaf(value, factor, addend);
        if (next == value)
            break;
        value = next;
    }
    return value;
}

static void run_dependent_chain(void) {
    LAUNCH(dependent_chain, linear(blocks), linear(64), 0, NULL, out, rounds);
    fetch();
    for (uint32_t i = 0; i < 64; ++i)
        expect("dependent_chain", i, chain((float)i, 32L * rounds, 0.5f, 1.0f));
}

static void run_independent_chains(void) {
    LAUNCH(independent_chains, linear(blocks), linear(BLOCK), 0, NULL, out, rounds);
    fetch();
    for (uint32_t i = 0; i < BLOCK; ++i) {
        float sum = 0;
        for (int n = 0; n < 8; ++n)
            sum += chain((float)(i + n), 8L * rounds, 0.5f, 1.0f);
        expect("independent_chains", i, sum);
    }
}

static void run_bank_conflicts(void) {
    LAUNCH(bank_conflicts, linear(blocks), linear(BLOCK), 0, NULL, out, rounds, 32);
    fetch();
    for (uint32_t t = 0; t < BLOCK; ++t) {
        float sum = 0;
        uint32_t at = t * 32 & 8191;
        for (int i = 0; i < rounds; ++i) {
            sum += (float)at;
            at ^= (uint32_t)i & 1;
        }
        expect("bank_conflicts", t, sum);
    }
}

static void run_divergent_branch(void) {
    LAUNCH(divergent_branch, linear(blocks), linear(BLOCK), 0, NULL, out, rounds);
    fetch();
    for (uint32_t t = 0; t < BLOCK; ++t)
        if (!(result[t] >= 1.0f && result[t] < 16.0f))
            FAIL("divergent_branch: element %u: %g", t, result[t]);
}

static void run_memory_stream(void) {
    uint32_t count = blocks * BLOCK * (uint32_t)rounds;
    float *from, *to, *host = malloc(count * sizeof *host);
    if (!host)
        FAIL("no memory for %u elements", count);
    for (uint32_t i = 0; i < count; ++i)
        host[i] = (float)(i & 0xffff);
    HIP(hipMalloc((void **)&from, count * sizeof *host));
    HIP(hipMalloc((void **)&to, count * sizeof *host));
    HIP(hipMemcpy(from, host, count * sizeof *host, hipMemcpyHostToDevice));
    LAUNCH(memory_stream, linear(blocks), linear(BLOCK), 0, NULL, to, from, count);
    HIP(hipMemcpy(host, to, count * sizeof *host, hipMemcpyDeviceToHost));
    for (uint32_t i = 0; i < count; ++i)
        if (host[i] != (float)(i & 0xffff) + 1.0f)
            FAIL("memory_stream: element %u: %g", i, host[i]);
    HIP(hipFree(from));
    HIP(hipFree(to));
    free(host);
}

static void run_pointer_chase(void) {
    /* Each pointer in a cache line of its own, and all together in more than the caches have. */
    uint64_t *host = calloc(CHASE * 16, sizeof *host), *device, end, at = 0;
    if (!host)
        FAIL("no memory for %d pointers", CHASE);
    HIP(hipMalloc((void **)&device, CHASE * 16 * sizeof *host));
    for (uint64_t i = 0; i < CHASE; ++i)
        host[16 * i] = (uint64_t)(device + 16 * ((i * 5 + 4099) % CHASE));
    HIP(hipMemcpy(device, host, CHASE * 16 * sizeof *host, hipMemcpyHostToDevice));
    LAUNCH(pointer_chase, linear(1), linear(1), 0, NULL, (uint64_t *)out, device, rounds);
    HIP(hipMemcpy(&end, out, sizeof end, hipMemcpyDeviceToHost));
    for (int i = 0; i < rounds; ++i)
        at = (host[at / 8] - (uint64_t)device);
    if (end != at)
        FAIL("pointer_chase: ends at %lu instead of %lu", (unsigned long)end, (unsigned long)at);
    HIP(hipFree(device));
    free(host);
}

static void run_barrier_imbalance(void) {
    enum { WORK = 32 };
    LAUNCH(barrier_imbalance, linear(blocks), linear(BLOCK), 0, NULL, out, rounds, WORK);
    fetch();
    for (uint32_t t = 0; t < BLOCK; ++t)
        expect("barrier_imbalance", t, chain((float)t, (t < 64 ? 4L : 1L) * WORK * rounds, 0.5f, 1.0f));
}

static void run_sleeper(void) {
    uint32_t slept;
    LAUNCH(sleeper, linear(blocks), linear(64), 0, NULL, (unsigned *)out, rounds);
    HIP(hipMemcpy(&slept, out, sizeof slept, hipMemcpyDeviceToHost));
    if (slept != (uint32_t)rounds)
        FAIL("sleeper: %u instead of %d", slept, rounds);
}

static void run_matrix_chain(void) {
    LAUNCH(matrix_chain, linear(blocks), linear(BLOCK), 0, NULL, out, rounds);
    fetch();
    for (uint32_t t = 0; t < BLOCK; ++t)
        if (!isfinite(result[t]))
            FAIL("matrix_chain: element %u: %g", t, result[t]);
}

static void run_two_phases(void) {
    LAUNCH(two_phases, linear(blocks), linear(BLOCK), 0, NULL, out, rounds, 3 * rounds);
    fetch();
    for (uint32_t t = 0; t < BLOCK; ++t)
        expect("two_phases", t, chain(chain((float)t, 16L * rounds, 0.5f, 1.0f), 48L * rounds, 0.25f, 2.0f));
}

/* One launch for each number of active lanes. */
static void run_lane_mask(void) {
    for (int active = 1; active <= 64; ++active)
        LAUNCH(lane_mask, linear(blocks), linear(BLOCK), 0, NULL, out, active, rounds);
    fetch();
    for (uint32_t t = 0; t < BLOCK; ++t)
        expect("lane_mask", t, chain((float)t, rounds, 0.5f, 1.0f));
}

static const struct {
    const char *name;
    void (*run)(void);
} kernels[] = {
    {"dependent_chain", run_dependent_chain},   {"independent_chains", run_independent_chains},
    {"bank_conflicts", run_bank_conflicts},     {"divergent_branch", run_divergent_branch},
    {"memory_stream", run_memory_stream},       {"pointer_chase", run_pointer_chase},
    {"barrier_imbalance", run_barrier_imbalance}, {"sleeper", run_sleeper},
    {"matrix_chain", run_matrix_chain},         {"two_phases", run_two_phases},
    {"lane_mask", run_lane_mask},
};

/* Whether there is such a kernel. */
static int run(const char *wanted, int device) {
    int found = 0;
    HIP(hipSetDevice(device));
    HIP(hipMalloc((void **)&out, (size_t)blocks * BLOCK * sizeof *out));
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; ++i) {
        if (strcmp(wanted, "all") && strcmp(wanted, kernels[i].name))
            continue;
        kernels[i].run();
        HIP(hipDeviceSynchronize());
        found = 1;
    }
    HIP(hipFree(out));
    return found;
}

int main(int argc, char **argv) {
    const char *wanted = argc > 1 ? argv[1] : "all";
    rounds = (int)number_argument(argc, argv, 2, 50);
    blocks = (uint32_t)number_argument(argc, argv, 3, 8);
    int devices = (int)number_argument(argc, argv, 4, 1);
    result = malloc((size_t)blocks * BLOCK * sizeof *result);
    if (!result)
        FAIL("no memory for %u blocks", blocks);
    for (int device = 0; device < devices; ++device)
        if (!run(wanted, device))
            FAIL("there is no kernel `%s`", wanted);
    HIP(hipGetLastError());
    puts("ok");
    return 0;
}
