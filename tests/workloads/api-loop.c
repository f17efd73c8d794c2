/* api-loop N [FILE]: the cheapest call of the HIP API, N times after a warm-up of N/10; prints what
 * one costs. Writes the time at which main() ends (seconds since 1970) into FILE. */
#include "hip.h"
#include "workload.h"

int main(int argc, char **argv) {
    long count = number_argument(argc, argv, 1, 1000000);
    int devices;
    HIP(hipGetDeviceCount(&devices));
    for (long i = 0; i < count / 10; ++i)
        (void)hipGetLastError();
    double start = seconds_now();
    for (long i = 0; i < count; ++i)
        (void)hipGetLastError();
    double elapsed = seconds_now() - start;
    printf("%.1f ns per call, %ld calls\n", elapsed * 1e9 / (double)count, count);
    if (argc > 2) {
        FILE *file = fopen(argv[2], "w");
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        if (!file || fprintf(file, "%lld.%09ld\n", (long long)now.tv_sec, now.tv_nsec) < 0 || fclose(file))
            FAIL("cannot write %s", argv[2]);
    }
    return 0;
}
