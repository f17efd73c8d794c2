/* devices: GPU n launches an empty kernel n + 1 times, launch i with i + 1 waves, one after the other. */
#include "basic.h"

int main(void) {
    int devices = 0;
    HIP(hipGetDeviceCount(&devices));
    if (devices < 1)
        FAIL("no GPU");
    for (int device = 0; device < devices; ++device) {
        HIP(hipSetDevice(device));
        for (int i = 0; i <= device; ++i) {
            LAUNCH(empty_kernel, linear((uint32_t)i + 1), linear(64), 0, NULL);
            HIP(hipDeviceSynchronize());
        }
    }
    HIP(hipGetLastError());
    printf("ok, %d devices\n", devices);
    return 0;
}
