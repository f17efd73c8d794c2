/* grids MODE DEVICES [ROUNDS]: a kernel whose workgroups meet ROUNDS times, and add up what all have written. Every sum is checked.
 *   one       each device has a cooperative launch of its own
 *   devices   a cooperative launch over all devices, with grids of different sizes
 *   module    the same with a function of a module for each device, and without waiting before and after
 *   errors    calls that fail, with their statuses */
#include "fatbin.h"
#include "workload.h"

#include <string.h>

enum { MOST = 8, BLOCK = 64 };

/* Names the kernel. It is launched by functions that take its arguments from a list. */
static void STUB(sum_over_grids)(void) {}

EMBED_KERNELS("grids.hipfb") { REGISTER(sum_over_grids, "sum_over_grids"); }

/* A launch on a device. */
struct grid {
    hipStream_t stream;
    hipFunction_t function;
    uint32_t groups, rounds;
    uint32_t *shared, *sums;
    void *args[3];
};

static void prepare(struct grid *grid, int device, uint32_t *shared, uint32_t rounds) {
    HIP(hipSetDevice(device));
    HIP(hipStreamCreate(&grid->stream));
    grid->groups = 3 + (uint32_t)device;
    grid->rounds = rounds;
    grid->shared = shared;
    HIP(hipMalloc((void **)&grid->sums, grid->groups * sizeof *grid->sums));
    HIP(hipMemset(grid->sums, 0, grid->groups * sizeof *grid->sums));
    grid->args[0] = &grid->shared;
    grid->args[1] = &grid->sums;
    grid->args[2] = &grid->rounds;
}

/* All sums of a grid must be that of `all` workgroups. */
static void check(const struct grid *grid, uint32_t all) {
    uint32_t sums[3 + MOST];
    HIP(hipStreamSynchronize(grid->stream));
    HIP(hipMemcpy(sums, grid->sums, grid->groups * sizeof *sums, hipMemcpyDeviceToHost));
    uint32_t expected = grid->rounds * (grid->rounds + 1) / 2 * (all * (all + 1) / 2);
    for (uint32_t n = 0; n < grid->groups; ++n) {
        if (sums[n] != expected)
            FAIL("workgroup %u: %u instead of %u", n, sums[n], expected);
    }
}

static void launch_all(struct grid *grids, int devices, int by_module) {
    hipLaunchParams list[MOST];
    hipFunctionLaunchParams functions[MOST];
    memset(functions, 0, sizeof functions);
    for (int n = 0; n < devices; ++n) {
        hipLaunchParams launch = {(void *)STUB(sum_over_grids), linear(grids[n].groups), linear(BLOCK), grids[n].args, 0, grids[n].stream};
        list[n] = launch;
        hipFunctionLaunchParams *function = &functions[n];
        function->function = grids[n].function;
        function->gridDimX = grids[n].groups;
        function->blockDimX = BLOCK;
        function->gridDimY = function->gridDimZ = function->blockDimY = function->blockDimZ = 1;
        function->hStream = grids[n].stream;
        function->kernelParams = grids[n].args;
    }
    if (by_module)
        HIP(hipModuleLaunchCooperativeKernelMultiDevice(
            functions, (unsigned)devices, hipCooperativeLaunchMultiDeviceNoPreSync | hipCooperativeLaunchMultiDeviceNoPostSync));
    else
        HIP(hipLaunchCooperativeKernelMultiDevice(list, devices, 0));
}

static void errors(struct grid *grids, int devices) {
    hipLaunchParams list[MOST + 1];
    for (int n = 0; n <= MOST; ++n) {
        struct grid *grid = &grids[n < devices ? n : 0];
        hipLaunchParams launch = {(void *)STUB(sum_over_grids), linear(1), linear(BLOCK), grid->args, 0, grid->stream};
        list[n] = launch;
    }
#define SAY(what, call) printf("%s: %s\n", what, hipGetErrorName(call))
    SAY("no list", hipLaunchCooperativeKernelMultiDevice(NULL, 1, 0));
    SAY("no launches", hipLaunchCooperativeKernelMultiDevice(list, 0, 0));
    SAY("unknown flag", hipLaunchCooperativeKernelMultiDevice(list, devices, 4));
    SAY("more launches than devices", hipLaunchCooperativeKernelMultiDevice(list, devices + 1, 0));
    list[1] = list[0];
    SAY("a device twice", hipLaunchCooperativeKernelMultiDevice(list, 2, 0));
    list[1].stream = NULL;
    SAY("the null stream", hipLaunchCooperativeKernelMultiDevice(list, 2, 0));
    list[0].gridDim = linear(1 << 20);
    SAY("too large", hipLaunchCooperativeKernelMultiDevice(list, 1, 0));
}

int main(int argc, char **argv) {
    if (argc < 3)
        FAIL("usage: grids MODE DEVICES [ROUNDS]");
    const char *mode = argv[1];
    int devices = (int)number_argument(argc, argv, 2, 1), there = 0;
    uint32_t rounds = (uint32_t)number_argument(argc, argv, 3, 20), all = 0;
    HIP(hipGetDeviceCount(&there));
    if (devices > there || devices > MOST)
        FAIL("there are %d devices", there);
    uint32_t *shared;
    HIP(hipHostMalloc((void **)&shared, 4096, 0));
    struct grid grids[MOST];
    for (int n = 0; n < devices; ++n) {
        prepare(&grids[n], n, shared, rounds);
        all += grids[n].groups;
    }
    if (!strcmp(mode, "errors")) {
        errors(grids, devices);
        return 0;
    }
    if (!strcmp(mode, "one")) {
        for (int n = 0; n < devices; ++n) {
            HIP(hipSetDevice(n));
            HIP(hipLaunchCooperativeKernel((const void *)STUB(sum_over_grids), linear(grids[n].groups), linear(BLOCK), grids[n].args, 0,
                                           grids[n].stream));
            check(&grids[n], grids[n].groups);
        }
    } else {
        int by_module = !strcmp(mode, "module");
        if (!by_module && strcmp(mode, "devices"))
            FAIL("no mode `%s`", mode);
        for (int n = 0; n < devices; ++n) {
            hipModule_t module;
            HIP(hipSetDevice(n));
            HIP(hipModuleLoadData(&module, embedded_bundle));
            HIP(hipModuleGetFunction(&grids[n].function, module, "sum_over_grids"));
        }
        /* The second launch uses the counters again. */
        for (int round = 0; round < 2; ++round) {
            launch_all(grids, devices, by_module);
            for (int n = 0; n < devices; ++n)
                check(&grids[n], all);
        }
    }
    printf("ok, %d devices, %u workgroups\n", devices, all);
    return 0;
}
