/* many-threads [THREADS] [LAUNCHES]: threads that come and go, 16 at a time, each with a name, a
 * stream, a range, LAUNCHES checked launches and 10 cheap calls for each of them. */
#include "basic.h"
#include "roctx.h"

#include <pthread.h>

static long launches;

static void *work(void *argument) {
    uint32_t index = (uint32_t)(uintptr_t)argument;
    char name[32];
    snprintf(name, sizeof name, "thread %u", index);
    roctxNameOsThread(name);
    roctxRangePushA(name);
    hipStream_t stream;
    HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    for (long i = 0; i < 10 * launches; ++i) {
        int device;
        HIP(hipGetDevice(&device));
    }
    checked_work(stream, index * 1000, launches);
    HIP(hipStreamDestroy(stream));
    roctxRangePop();
    return NULL;
}

int main(int argc, char **argv) {
    enum { AT_ONCE = 16 };
    long threads = number_argument(argc, argv, 1, 64);
    launches = number_argument(argc, argv, 2, 10);
    HIP(hipSetDevice(0));
    for (long first = 0; first < threads; first += AT_ONCE) {
        pthread_t running[AT_ONCE];
        int count = 0;
        for (; count < AT_ONCE && first + count < threads; ++count) {
            if (pthread_create(&running[count], NULL, work, (void *)(uintptr_t)(first + count)))
                FAIL("cannot start thread %ld", first + count);
        }
        for (int i = 0; i < count; ++i)
            pthread_join(running[i], NULL);
    }
    puts("ok");
    return 0;
}
