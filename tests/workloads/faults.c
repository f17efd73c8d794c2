/* faults KERNEL INDEX [null|freed|host]: launches a kernel of faults.hip, which the device stops, on one block of 64. Its memory are the 64 MiB of an
 * allocation, or nothing, memory that was freed, or memory of the host that the device does not know. Ends with 0 when the runtime reports the error. */
#include "hip.h"
#include "workload.h"

#include <string.h>
#include <unistd.h>

enum { BYTES = 64 << 20 };

int main(int argc, char **argv) {
    char path[4096] = "";
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 40);
    if (argc < 3 || length < 0)
        FAIL("usage: %s KERNEL INDEX [null|freed|host]", argv[0]);
    strcpy(strrchr(path, '/') + 1, "kernels/faults.hipfb");
    const char *where = argc > 3 ? argv[3] : "";
    hipModule_t module;
    hipFunction_t kernel;
    HIP(hipModuleLoad(&module, path));
    HIP(hipModuleGetFunction(&kernel, module, argv[1]));
    long index = atol(argv[2]);
    unsigned *out;
    HIP(hipMalloc((void **)&out, BYTES));
    if (!strcmp(where, "freed"))
        HIP(hipFree(out));
    if (!strcmp(where, "null"))
        out = NULL;
    if (!strcmp(where, "host"))
        out = calloc(1, BYTES);
    void *params[] = {&out, &index};
    HIP(hipModuleLaunchKernel(kernel, 1, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
    hipError_t error = hipDeviceSynchronize();
    printf("%p %s\n", (void *)out, hipGetErrorName(error));
    return error == hipSuccess;
}
