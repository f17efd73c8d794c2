/* stacks MODE [N] [DEPTH] [DISTINCT]: calls of HIP from known functions.
 *
 *   tree N DEPTH DISTINCT  N calls of hipGetLastError, each DEPTH functions deep, by DISTINCT ways
 *   kinds                  markers, an allocation and its release, each from a function of its own
 *   fork                   hipGetLastError in the parent, in a child without exec, and in the parent again
 *   pause DEPTH            DEPTH functions deep, calls before a pause, in it and after it
 *   replace                hipGetLastError, then exec in the same process, which does `tree 3 2 2`
 *   kill N                 N calls, then SIGKILL to itself
 *   time N DEPTH           N calls from one place; prints what one costs
 */
#include "hip.h"
#include "roctx.h"
#include "workload.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* What follows a call keeps it from being the last thing that its function does, and so on the stack. */
static volatile long after;
#define FUNCTION __attribute__((noinline, noclone)) static void

FUNCTION innermost(void) {
    (void)hipGetLastError();
    after += 1;
}

FUNCTION right(int depth, uint64_t way);

FUNCTION left(int depth, uint64_t way) {
    if (depth == 0)
        innermost();
    else if (way & 1)
        right(depth - 1, way >> 1);
    else
        left(depth - 1, way >> 1);
    after += 2;
}

FUNCTION right(int depth, uint64_t way) {
    if (depth == 0)
        innermost();
    else if (way & 1)
        right(depth - 1, way >> 1);
    else
        left(depth - 1, way >> 1);
    after += 3;
}

FUNCTION make_tree(long count, int depth, unsigned distinct) {
    /* The ways differ in the innermost frames, as in programs: outer ones are common to many. */
    int bits = 0;
    while ((1u << bits) < distinct)
        bits += 1;
    int outer = depth > bits ? depth - bits : 0;
    for (long i = 0; i < count; ++i) {
        uint64_t way = (uint64_t)i % distinct;
        left(depth, outer < 64 ? way << outer : way);
    }
    after += 4;
}

FUNCTION mark(void) {
    roctxMarkA("a mark");
    after += 5;
}

FUNCTION range(void) {
    roctxRangePushA("a range");
    innermost();
    roctxRangePop();
    after += 6;
}

FUNCTION process_range(void) {
    roctx_range_id_t id = roctxRangeStartA("a process range");
    innermost();
    roctxRangeStop(id);
    after += 7;
}

__attribute__((noinline, noclone)) static void *allocate(void) {
    void *memory = NULL;
    HIP(hipMalloc(&memory, 1 << 20));
    after += 8;
    return memory;
}

FUNCTION release(void *memory) {
    HIP(hipFree(memory));
    after += 9;
}

FUNCTION in_child(void) {
    innermost();
    after += 10;
}

FUNCTION in_parent(void) {
    innermost();
    after += 11;
}

FUNCTION pausing(int depth) {
    if (depth > 0) {
        pausing(depth - 1);
    } else {
        innermost();
        roctxProfilerPause(0);
        innermost();
        roctxProfilerResume(0);
        innermost();
    }
    after += 12;
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "tree";
    long count = number_argument(argc, argv, 2, 10);
    int depth = (int)number_argument(argc, argv, 3, 3);
    unsigned distinct = (unsigned)number_argument(argc, argv, 4, 1);
    if (!strcmp(mode, "tree")) {
        make_tree(count, depth, distinct);
    } else if (!strcmp(mode, "kinds")) {
        mark();
        range();
        process_range();
        release(allocate());
    } else if (!strcmp(mode, "fork")) {
        in_parent();
        pid_t child = fork();
        if (child == 0) {
            in_child();
            return 0;
        }
        int status;
        if (waitpid(child, &status, 0) != child || status)
            FAIL("the child ended with wait status 0x%x", status);
        in_parent();
    } else if (!strcmp(mode, "pause")) {
        pausing((int)count);
    } else if (!strcmp(mode, "replace")) {
        innermost();
        char *again[] = {argv[0], (char *)"tree", (char *)"3", (char *)"2", (char *)"2", NULL};
        execv("/proc/self/exe", again);
        FAIL("exec failed");
    } else if (!strcmp(mode, "kill")) {
        make_tree(count, depth, distinct);
        kill(getpid(), SIGKILL);
    } else if (!strcmp(mode, "time")) {
        make_tree(count / 10, depth, 1);
        double start = seconds_now();
        make_tree(count, depth, 1);
        double elapsed = seconds_now() - start;
        printf("%.1f ns per call, %ld calls\n", elapsed * 1e9 / (double)count, count);
    } else {
        FAIL("unknown mode `%s`", mode);
    }
    printf("ok %ld\n", after);
    return 0;
}
