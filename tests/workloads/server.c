/* server FILE [THREADS]: threads that repeat one unit of checked work each until standard input ends. FILE holds the
   number of units so far, as eight bytes; standard output gets it at the end. */
#include "basic.h"
#include "roctx.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

static _Atomic uint64_t *units;
static atomic_bool ends;

static void *serve(void *argument) {
    uint32_t seed = (uint32_t)(uintptr_t)argument * 100000;
    hipStream_t stream;
    HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    while (!ends) {
        roctxRangePushA("unit");
        checked_work(stream, ++seed, 1);
        roctxRangePop();
        atomic_fetch_add(units, 1);
    }
    HIP(hipStreamDestroy(stream));
    return NULL;
}

int main(int argc, char **argv) {
    enum { MOST = 64 };
    if (argc < 2)
        return 2;
    long count = number_argument(argc, argv, 2, 8);
    int file = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || ftruncate(file, sizeof *units) || count > MOST)
        return 2;
    units = mmap(NULL, sizeof *units, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (units == MAP_FAILED)
        return 2;
    HIP(hipSetDevice(0));
    pthread_t threads[MOST];
    for (long i = 0; i < count; ++i) {
        if (pthread_create(&threads[i], NULL, serve, (void *)(uintptr_t)i))
            FAIL("cannot start thread %ld", i);
    }
    char byte;
    while (read(0, &byte, 1) > 0) {
    }
    ends = 1;
    for (long i = 0; i < count; ++i)
        pthread_join(threads[i], NULL);
    printf("%llu units\n", (unsigned long long)*units);
    return 0;
}
