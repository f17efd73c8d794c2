/* module-load [DIRECTORY]: loads the module bundle in every form (path and memory; plain and
 * compressed bundle; a bare code object V4), and launches its kernels in both argument forms. The
 * files are looked for in DIRECTORY, by default in kernels/ beside the program. */
#include "hip.h"
#include "workload.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 1000, BLOCK = 64, BLOCKS = (COUNT + BLOCK - 1) / BLOCK, NO_CODE_FOR_THIS_GPU = 209 };

/* hipModuleLaunchKernel's `extra` list */
#define LAUNCH_PARAM_BUFFER_POINTER ((void *)1)
#define LAUNCH_PARAM_BUFFER_SIZE ((void *)2)
#define LAUNCH_PARAM_END ((void *)3)

struct mixed {
    char tag;
    double weight;
    short bias;
};

static void *contents(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file)
        FAIL("cannot open %s", path);
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    void *bytes = aligned_alloc(4096, ((size_t)size + 4095) / 4096 * 4096);
    if (!bytes || fread(bytes, 1, (size_t)size, file) != (size_t)size)
        FAIL("cannot read %s", path);
    fclose(file);
    return bytes;
}

/* Runs the three kernels of a module and checks what they computed. */
static void use(hipModule_t module) {
    static const uint32_t weights[8] = {3, 1, 4, 1, 5, 9, 2, 6};
    static uint32_t host[COUNT];
    hipFunction_t scale, weigh, mix;
    HIP(hipModuleGetFunction(&scale, module, "scale_kernel"));
    HIP(hipModuleGetFunction(&weigh, module, "weigh_kernel"));
    HIP(hipModuleGetFunction(&mix, module, "mixed_kernel"));
    uint32_t *in, *out;
    HIP(hipMalloc((void **)&in, sizeof host));
    HIP(hipMalloc((void **)&out, sizeof host));
    for (uint32_t i = 0; i < COUNT; ++i)
        host[i] = i * i;
    HIP(hipMemcpy(in, host, sizeof host, hipMemcpyHostToDevice));

    uint32_t factor = 5, count = COUNT, block = BLOCK;
    void *params[] = {&out, &in, &factor, &count, &block};
    HIP(hipModuleLaunchKernel(scale, BLOCKS, 1, 1, BLOCK, 1, 1, 0, NULL, params, NULL));
    struct {
        uint32_t *data;
        uint32_t count, block;
    } packed = {out, COUNT, BLOCK};
    size_t size = sizeof packed;
    void *extra[] = {LAUNCH_PARAM_BUFFER_POINTER, &packed, LAUNCH_PARAM_BUFFER_SIZE, &size, LAUNCH_PARAM_END};
    HIP(hipModuleLaunchKernel(weigh, BLOCKS, 1, 1, BLOCK, 1, 1, 0, NULL, NULL, extra));
    HIP(hipMemcpy(host, out, sizeof host, hipMemcpyDeviceToHost));
    for (uint32_t i = 0; i < COUNT; ++i) {
        if (host[i] != i * i * factor + weights[i % 8])
            FAIL("element %u: %u instead of %u", i, host[i], i * i * factor + weights[i % 8]);
    }

    char small = 7;
    struct mixed mixed = {3, 2.5, -1};
    short step = 4;
    unsigned long long wide = 9ull << 32 | 1;
    void *mixed_params[] = {&small, &out, &mixed, &step, &wide};
    HIP(hipModuleLaunchKernel(mix, 1, 1, 1, BLOCK, 1, 1, 0, NULL, mixed_params, NULL));
    HIP(hipMemcpy(host, out, BLOCK * sizeof *host, hipMemcpyDeviceToHost));
    for (uint32_t i = 0; i < BLOCK; ++i) {
        if (host[i] != 7 + 3 + 5 - 1 + 4 * i + 9)
            FAIL("mixed arguments: element %u: %u instead of %u", i, host[i], 23 + 4 * i);
    }
    HIP(hipFree(in));
    HIP(hipFree(out));
}

int main(int argc, char **argv) {
    char directory[4096];
    if (argc > 1) {
        snprintf(directory, sizeof directory, "%s", argv[1]);
    } else {
        ssize_t length = readlink("/proc/self/exe", directory, sizeof directory - 16);
        if (length <= 0)
            FAIL("cannot find the program's own path");
        directory[length] = 0;
        strcpy(strrchr(directory, '/') + 1, "kernels");
    }
    HIP(hipSetDevice(0));

    static const char *const files[] = {"module.hipfb", "module-compressed.hipfb", "module-v4-gfx90a.co"};
    int loaded = 0;
    for (int i = 0; i < 3; ++i) {
        char path[4200];
        snprintf(path, sizeof path, "%s/%s", directory, files[i]);
        void *image = contents(path);
        for (int from_memory = 0; from_memory < 2; ++from_memory) {
            hipModule_t module;
            hipError_t status = from_memory ? hipModuleLoadData(&module, image) : hipModuleLoad(&module, path);
            if (i == 2 && status == NO_CODE_FOR_THIS_GPU) {
                (void)hipGetLastError();
                continue;
            }
            if (status != hipSuccess)
                FAIL("%s from %s: %s (%d)", files[i], from_memory ? "memory" : "its path", hipGetErrorString(status),
                     status);
            use(module);
            HIP(hipModuleUnload(module));
            loaded++;
        }
        free(image);
    }
    HIP(hipGetLastError());
    printf("ok, %d modules\n", loaded);
    return 0;
}
