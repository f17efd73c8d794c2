/* allocations N: N rounds of cheap calls after N/10 to warm up; prints how many of the calls allocated memory from the
 * heap. The functions that do so are defined here, in front of those of the C library, and count by thread. */
#include "hip.h"
#include "roctx.h"
#include "workload.h"

#include <errno.h>
#include <stdlib.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static __thread unsigned long allocations;

void *malloc(size_t size) {
    allocations++;
    return __libc_malloc(size);
}
void *calloc(size_t count, size_t size) {
    allocations++;
    return __libc_calloc(count, size);
}
void *realloc(void *old, size_t size) {
    allocations++;
    return __libc_realloc(old, size);
}
void *memalign(size_t alignment, size_t size) {
    allocations++;
    return __libc_memalign(alignment, size);
}
void *aligned_alloc(size_t alignment, size_t size) {
    return memalign(alignment, size);
}
int posix_memalign(void **result, size_t alignment, size_t size) {
    *result = memalign(alignment, size);
    return *result ? 0 : ENOMEM;
}

static unsigned long calls, allocating;

/* A call, and whether it allocated. */
#define CALL(call)                                                                                                     \
    do {                                                                                                               \
        unsigned long before = allocations;                                                                            \
        (void)(call);                                                                                                  \
        calls++;                                                                                                       \
        allocating += allocations != before;                                                                           \
    } while (0)

static void rounds(long count) {
    int device;
    for (long i = 0; i < count; ++i) {
        CALL(hipGetLastError());
        CALL(hipGetDevice(&device));
        CALL(hipSetDevice(0));
        CALL(roctxRangePushA("round"));
        CALL(hipPeekAtLastError());
        CALL(roctxRangePop());
        CALL((roctxMarkA("mark"), 0));
    }
}

int main(int argc, char **argv) {
    long count = number_argument(argc, argv, 1, 10000);
    void *volatile probe = malloc(16);
    free(probe);
    if (!allocations)
        FAIL("allocations are not seen");
    rounds(count / 10);
    calls = allocating = 0;
    rounds(count);
    printf("%lu of %lu calls allocated\n", allocating, calls);
    return 0;
}
