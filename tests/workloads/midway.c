/* abort-midway, segv-midway, segv-thread, exit-midway [LAUNCHES]: real work, and then an end without any of the
 * ordinary clean-up: abort(), an invalid store (in another thread), or _exit(3), while a range is still open. */
#include "basic.h"
#include "roctx.h"

#include <pthread.h>
#include <unistd.h>

static inline void *store(void *at) {
    *(volatile int *)at = 1;
    return NULL;
}

/* An invalid store in a thread that does nothing else. */
static inline void store_in_thread(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, store, (void *)8) == 0)
        pthread_join(thread, NULL);
}

int main(int argc, char **argv) {
    long launches = number_argument(argc, argv, 1, 20);
    HIP(hipSetDevice(0));
    roctxRangePushA("unfinished");
    hipStream_t stream;
    HIP(hipStreamCreate(&stream));
    checked_work(stream, 1, launches);
    roctxMarkA("the end is near");
    puts("ending");
    fflush(stdout);
    ENDING;
    return 0;
}
