/* exec-timer N PROGRAM [ARGUMENT ...]: starts the program N times, one after the other, and prints
 * what the fastest and the median run took from start to reaping, and when the last was reaped. */
#define _GNU_SOURCE
#include "workload.h"

#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    if (argc < 3)
        FAIL("usage: exec-timer N PROGRAM [ARGUMENT ...]");
    long runs = number_argument(argc, argv, 1, 1);
    double *took = calloc((size_t)runs, sizeof *took);
    struct timespec reaped = {0, 0};
    for (long i = 0; i < runs; ++i) {
        double start = seconds_now();
        pid_t child;
        int status;
        if (posix_spawnp(&child, argv[2], NULL, NULL, argv + 2, environ))
            FAIL("cannot start %s", argv[2]);
        if (waitpid(child, &status, 0) != child || status)
            FAIL("%s ended with wait status 0x%x", argv[2], status);
        took[i] = seconds_now() - start;
        clock_gettime(CLOCK_REALTIME, &reaped);
    }
    qsort(took, (size_t)runs, sizeof *took, ascending);
    fprintf(stderr, "exec-timer: fastest %.6f s, median %.6f s, reaped at %lld.%09ld\n", took[0], took[runs / 2],
            (long long)reaped.tv_sec, reaped.tv_nsec);
    free(took);
    return 0;
}
