/* errors KERNEL [freed]: launches a kernel of errors.hip on 4 blocks; with "freed" its input was freed before. The results are not looked at. */
#include "hip.h"
#include "workload.h"

#include <string.h>
#include <unistd.h>

enum { BLOCKS = 4, BLOCK = 128, COUNT = BLOCKS * BLOCK };

int main(int argc, char **argv) {
    char path[4096] = "";
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 40);
    if (argc < 2 || length < 0)
        FAIL("usage: %s KERNEL [freed]", argv[0]);
    strcpy(strrchr(path, '/') + 1, "kernels/errors.hipfb");
    hipModule_t module;
    hipFunction_t kernel;
    HIP(hipModuleLoad(&module, path));
    HIP(hipModuleGetFunction(&kernel, module, argv[1]));
    uint32_t host[COUNT], *in, *out;
    for (uint32_t n = 0; n < COUNT; ++n)
        host[n] = n;
    HIP(hipMalloc((void **)&in, sizeof host));
    HIP(hipMalloc((void **)&out, sizeof host));
    HIP(hipMemcpy(in, host, sizeof host, hipMemcpyHostToDevice));
    /* Of the output only the first half is defined. */
    HIP(hipMemset(out, 0, sizeof host / 2));
    if (argc > 2)
        HIP(hipFree(in));
    void *params[] = {&out, &in};
    HIP(hipModuleLaunchKernel(kernel, BLOCKS, 1, 1, BLOCK, 1, 1, 0, NULL, params, NULL));
    HIP(hipDeviceSynchronize());
    HIP(hipFree(out));
    puts("ended");
    return 0;
}
