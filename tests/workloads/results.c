/* results: calls that return something through their arguments; prints function and value of each, then the memory that
 * is freed. The last calls fail, or have nowhere to return something to. */
#include "basic.h"

int main(void) {
    int device, count;
    void *memory, *rows;
    size_t pitch;
    hipStream_t stream;
    HIP(hipGetDeviceCount(&count));
    HIP(hipSetDevice(0));
    HIP(hipGetDevice(&device));
    HIP(hipMalloc(&memory, 4096));
    HIP(hipMallocPitch(&rows, &pitch, 100, 10));
    HIP(hipStreamCreate(&stream));
    printf("hipGetDeviceCount count %d\n", count);
    printf("hipGetDevice deviceId %d\n", device);
    printf("hipMalloc ptr %p\n", memory);
    printf("hipMallocPitch ptr %p\n", rows);
    printf("hipMallocPitch pitch %zu\n", pitch);
    printf("hipStreamCreate stream %p\n", (void *)stream);
    printf("hipFree ptr %p\n", memory);
    HIP(hipFree(memory));
    HIP(hipStreamDestroy(stream));
    if (hipMalloc(&memory, (size_t)1 << 60) == hipSuccess || hipMalloc(NULL, 1) == hipSuccess)
        FAIL("there is no such memory");
    printf("failed %p\n", (void *)&memory);
    return 0;
}
