/* device-calls print|buffer|assert|memory [DIRECTORY]: kernels that request something of the host. The kernels are looked for in
 * DIRECTORY, by default in kernels/ beside the program. */
#include "hip.h"
#include "workload.h"

#include <string.h>
#include <unistd.h>

enum { BLOCKS = 8, BLOCK = 128 };

static hipFunction_t kernel_of(const char *directory, const char *file, const char *name) {
    char path[4200];
    snprintf(path, sizeof path, "%s/%s.hipfb", directory, file);
    hipModule_t module;
    hipFunction_t function;
    HIP(hipModuleLoad(&module, path));
    HIP(hipModuleGetFunction(&function, module, name));
    return function;
}

static hipFunction_t kernel(const char *directory, const char *name) {
    return kernel_of(directory, "hostcall", name);
}

static void launch(hipFunction_t function, void **params) {
    HIP(hipModuleLaunchKernel(function, BLOCKS, 1, 1, BLOCK, 1, 1, 0, NULL, params, NULL));
}

int main(int argc, char **argv) {
    char beside[4096] = "";
    ssize_t length = readlink("/proc/self/exe", beside, sizeof beside - 16);
    if (argc < 2 || length < 0)
        FAIL("usage: %s print|buffer|assert|memory [DIRECTORY]", argv[0]);
    strcpy(strrchr(beside, '/') + 1, "kernels");
    const char *directory = argc > 2 ? argv[2] : beside;
    if (!strcmp(argv[1], "print")) {
        uint32_t lines = 3;
        void *params[] = {&lines};
        printf("before\n");
        launch(kernel(directory, "print_kernel"), params);
        HIP(hipDeviceSynchronize());
        printf("after\n");
    } else if (!strcmp(argv[1], "buffer")) {
        char *format;
        uint32_t lines = 3;
        HIP(hipHostMalloc((void **)&format, 32, 0));
        strcpy(format, "and %d with its format\n");
        void *params[] = {&lines, &format};
        hipFunction_t function = kernel_of(directory, "printf_buffer", "print_to_buffer");
        printf("before\n");
        launch(function, params);
        launch(function, params);
        HIP(hipDeviceSynchronize());
        printf("after\n");
    } else if (!strcmp(argv[1], "assert")) {
        uint32_t values[BLOCK], limit = 100, *device;
        for (uint32_t n = 0; n < BLOCK; ++n)
            values[n] = n == 77 ? 100 : n % 50;
        HIP(hipMalloc((void **)&device, sizeof values));
        HIP(hipMemcpy(device, values, sizeof values, hipMemcpyHostToDevice));
        void *params[] = {&device, &limit};
        launch(kernel(directory, "assert_kernel"), params);
        HIP(hipDeviceSynchronize());
        printf("not reached\n");
    } else if (!strcmp(argv[1], "memory")) {
        uint32_t sums[BLOCKS], bytes = 4000, *device;
        HIP(hipMalloc((void **)&device, sizeof sums));
        void *params[] = {&device, &bytes};
        launch(kernel(directory, "memory_kernel"), params);
        HIP(hipMemcpy(sums, device, sizeof sums, hipMemcpyDeviceToHost));
        for (uint32_t n = 0; n < BLOCKS; ++n) {
            if (sums[n] != 999 * 1000 / 2 + 1000 * n)
                FAIL("block %u: sum %u", n, sums[n]);
        }
        printf("ok, %u blocks had memory\n", (unsigned)BLOCKS);
    } else {
        FAIL("unknown request %s", argv[1]);
    }
    return 0;
}
