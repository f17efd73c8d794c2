/* spin [PROGRESS]: a cheap HIP call over and over, in bursts of 16 about every millisecond, and a
 * launch after every 64 bursts, until killed. The optional file holds three 64-bit numbers: finished
 * calls of hipGetDevice, finished launches, and the process id. It is a shared mapping, so that it
 * tells what had happened before a SIGKILL. */
#include "basic.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv) {
    static uint64_t private_counts[3];
    volatile uint64_t *counts = private_counts;
    if (argc > 1) {
        int file = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0644);
        if (file < 0 || ftruncate(file, sizeof private_counts))
            FAIL("cannot create %s", argv[1]);
        void *shared = mmap(NULL, sizeof private_counts, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (shared == MAP_FAILED)
            FAIL("cannot map %s", argv[1]);
        counts = shared;
    }
    counts[2] = (uint64_t)getpid();
    HIP(hipSetDevice(0));
    checked_work(NULL, 1, 1);
    puts("spinning");
    fflush(stdout);
    struct timespec pause = {0, 1000000};
    for (uint64_t burst = 1;; ++burst) {
        for (int i = 0; i < 16; ++i) {
            int device;
            HIP(hipGetDevice(&device));
            counts[0]++;
        }
        if (burst % 64 == 0) {
            LAUNCH(empty_kernel, linear(1), linear(64), 0, NULL);
            HIP(hipDeviceSynchronize());
            counts[1]++;
        }
        nanosleep(&pause, NULL);
    }
}
