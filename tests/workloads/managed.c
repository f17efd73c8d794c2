/* managed MODE: managed memory whose pages move, for events of the kernel driver. Each mode checks its results. MODE:
 *
 *   prefetch   two pages that are prefetched to the device, filled by a kernel, and prefetched back
 *   faults     memory that a kernel touches first; with HSA_XNACK=1 its pages move then. The pages of a second range, which the
 *              program prefers to be in host memory, stay there
 *   forked     as prefetch, in this process and in a child */
#include "basic.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, TWO_PAGES = 2 * PAGE, LARGE = 256 * PAGE, HOST = -1, PREFER = 3 };

static uint32_t *managed(size_t bytes) {
    uint32_t *memory;
    HIP(hipMallocManaged((void **)&memory, bytes, 1));
    return memory;
}

static void fill(uint32_t *memory, uint32_t value, size_t bytes) {
    uint32_t count = (uint32_t)(bytes / sizeof *memory);
    LAUNCH(fill_kernel, linear(count / BASIC_BLOCK), linear(BASIC_BLOCK), 0, NULL, memory, value, count);
}

static void check(const uint32_t *memory, uint32_t value, size_t bytes) {
    HIP(hipStreamSynchronize(NULL));
    for (uint32_t i = 0; i < bytes / sizeof *memory; ++i)
        if (memory[i] != value + i)
            FAIL("element %u: %u instead of %u", i, memory[i], value + i);
}

static void prefetch(void) {
    uint32_t *memory = managed(TWO_PAGES);
    HIP(hipMemPrefetchAsync(memory, TWO_PAGES, 0, NULL));
    fill(memory, 5, TWO_PAGES);
    HIP(hipMemPrefetchAsync(memory, TWO_PAGES, HOST, NULL));
    check(memory, 5, TWO_PAGES);
    HIP(hipFree(memory));
}

static void faults(void) {
    uint32_t *memory = managed(LARGE), *preferred = managed(TWO_PAGES);
    HIP(hipMemAdvise(preferred, TWO_PAGES, PREFER, HOST));
    fill(memory, 7, LARGE);
    fill(preferred, 9, TWO_PAGES);
    check(memory, 7, LARGE);
    check(preferred, 9, TWO_PAGES);
    HIP(hipFree(preferred));
    HIP(hipFree(memory));
}

static void forked(void) {
    prefetch();
    pid_t child = fork();
    if (child == 0) {
        exit(0);
    }
    int status;
    if (waitpid(child, &status, 0) != child || status != 0)
        FAIL("the child ended with %d", status);
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "";
    if (strcmp(mode, "prefetch") == 0)
        prefetch();
    else if (strcmp(mode, "faults") == 0)
        faults();
    else if (strcmp(mode, "forked") == 0)
        forked();
    else
        FAIL("no such mode: %s", mode);
    return 0;
}
