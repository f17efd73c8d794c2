/* open-ranges [kill]: ends with ROCTx ranges that were not ended, of two threads and of the process; or is killed in one. */
#include "basic.h"
#include "roctx.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

static void *work(void *unused) {
    roctxRangePushA("of a thread that has ended");
    checked_work(NULL, 2, 1);
    return unused;
}

int main(int argc, char **argv) {
    HIP(hipSetDevice(0));
    roctxRangePushA("ended");
    roctxRangePop();
    roctx_range_id_t ended = roctxRangeStartA("stopped");
    roctxRangeStop(ended);
    roctxRangePushA("outer");
    roctxRangePushA("inner");
    roctxRangeStartA("of the process");
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, NULL))
        FAIL("cannot start a thread");
    pthread_join(thread, NULL);
    checked_work(NULL, 1, 1);
    puts("ok");
    fflush(stdout);
    if (argc > 1 && !strcmp(argv[1], "kill"))
        raise(SIGKILL);
    return 0;
}
