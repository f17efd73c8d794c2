/* accesses KERNEL NUMBER [ROUNDS [SIGNAL]]: launches a kernel of accesses.hip with the number, on 4 blocks of 64, and sends itself the signal behind the last
 * round. */
#include "hip.h"
#include "workload.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { BLOCKS = 4, BLOCK = 64, BYTES = BLOCKS * BLOCK * 64 * sizeof(uint32_t) };

int main(int argc, char **argv) {
    char path[4096] = "";
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 40);
    if (argc < 3 || length < 0)
        FAIL("usage: %s KERNEL NUMBER [ROUNDS [SIGNAL]]", argv[0]);
    strcpy(strrchr(path, '/') + 1, "kernels/accesses.hipfb");
    uint32_t number = (uint32_t)atoi(argv[2]);
    int rounds = argc > 3 ? atoi(argv[3]) : 1;
    hipModule_t module;
    hipFunction_t kernel;
    HIP(hipModuleLoad(&module, path));
    HIP(hipModuleGetFunction(&kernel, module, argv[1]));
    uint32_t *in, *out;
    HIP(hipMalloc((void **)&in, BYTES));
    HIP(hipMalloc((void **)&out, BYTES));
    HIP(hipMemset(in, 0, BYTES));
    HIP(hipMemset(out, 0, BYTES));
    void *params[] = {&out, &in, &number};
    for (int round = 0; round < rounds; ++round)
        HIP(hipModuleLaunchKernel(kernel, BLOCKS, 1, 1, BLOCK, 1, 1, 0, NULL, params, NULL));
    HIP(hipDeviceSynchronize());
    if (argc > 4)
        kill(getpid(), atoi(argv[4]));
    HIP(hipFree(in));
    HIP(hipFree(out));
    puts("ended");
    return 0;
}
