/* abort-midway, segv-midway, exit-midway [LAUNCHES]: real work, and then an end without any of the
 * ordinary clean-up: abort(), an invalid store, or _exit(3), while a range is still open. */
#include "basic.h"
#include "roctx.h"

#include <unistd.h>

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
