/* Errors, arguments and the clock, the same in every workload. */
#ifndef RPD_WORKLOAD_H
#define RPD_WORKLOAD_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define FAIL(...)                                                                                                      \
    do {                                                                                                               \
        fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);                                                                \
        fprintf(stderr, __VA_ARGS__);                                                                                  \
        fputc('\n', stderr);                                                                                           \
        exit(1);                                                                                                       \
    } while (0)

/* Ends the program with status 1 unless the HIP call succeeds. */
#define HIP(call)                                                                                                      \
    do {                                                                                                               \
        hipError_t status_ = (call);                                                                                   \
        if (status_ != hipSuccess)                                                                                     \
            FAIL("%s: %s (%d)", #call, hipGetErrorString(status_), status_);                                           \
    } while (0)

/* The positive number in argument `index`, or `otherwise` where there is none. */
static inline long number_argument(int argc, char **argv, int index, long otherwise) {
    if (index >= argc)
        return otherwise;
    char *end;
    long value = strtol(argv[index], &end, 10);
    if (*end || end == argv[index] || value < 1)
        FAIL("argument %d: `%s` is no positive number", index, argv[index]);
    return value;
}

static inline double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

#endif
