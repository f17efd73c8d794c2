/* streams: one launch each on the null stream, on hipStreamLegacy, on a stream that was created, and twice on
 * hipStreamPerThread of two threads; then a copy by a function whose null stream is the thread's own. The grids have 1, 2, 3,
 * 4, 4, 5 and 5 workgroups. */
#include "basic.h"

#include <pthread.h>

static void launch(hipStream_t stream, uint32_t groups) {
    LAUNCH(empty_kernel, linear(groups), linear(64), 0, stream);
    HIP(hipStreamSynchronize(stream));
}

static void *work(void *groups) {
    hipStream_t own = (hipStream_t)2;
    launch(own, (uint32_t)(uintptr_t)groups);
    launch(own, (uint32_t)(uintptr_t)groups);
    return NULL;
}

int main(void) {
    hipStream_t made;
    HIP(hipSetDevice(0));
    HIP(hipStreamCreateWithFlags(&made, hipStreamNonBlocking));
    launch(NULL, 1);
    launch((hipStream_t)1, 2);
    launch(made, 3);
    work((void *)4);
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, (void *)5))
        FAIL("cannot start a thread");
    pthread_join(thread, NULL);
    uint32_t *device, host[16] = {7};
    HIP(hipMalloc((void **)&device, sizeof host));
    HIP(hipMemcpyAsync_spt(device, host, sizeof host, hipMemcpyHostToDevice, NULL));
    HIP(hipStreamSynchronize((hipStream_t)2));
    HIP(hipFree(device));
    puts("ok");
    return 0;
}
