/* ranks STEPS LATE KILLED [FILE RANKS]: a rank of a parallel program, by OMPI_COMM_WORLD_RANK. Each step is a range "step" with 4
 * launches and a copy; the ranks in the list LATE, such as 5,9, have 80 launches and sleep as well. Those in the list KILLED are
 * killed in the middle. With FILE, a file of at least 8 zero bytes, all RANKS ranks wait for one another after each step, in a range
 * "MPI_Barrier". */
#include "basic.h"
#include "roctx.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static bool is_in(const char *list, long rank) {
    char text[4096];
    snprintf(text, sizeof text, "%s", list);
    for (char *word = strtok(text, ","); word; word = strtok(NULL, ","))
        if (strtol(word, NULL, 10) == rank)
            return true;
    return false;
}

static void launch(uint32_t *device) {
    LAUNCH(fill_kernel, linear(BASIC_COUNT / BASIC_BLOCK), linear(BASIC_BLOCK), 0, NULL, device, 7, BASIC_COUNT);
}

int main(int count, char **arguments) {
    if (count < 4)
        FAIL("usage: ranks STEPS LATE KILLED [FILE RANKS]");
    const char *variable = getenv("OMPI_COMM_WORLD_RANK");
    long rank = variable ? strtol(variable, NULL, 10) : 0;
    long steps = strtol(arguments[1], NULL, 10);
    bool late = is_in(arguments[2], rank), killed = is_in(arguments[3], rank);
    _Atomic uint64_t *arrived = NULL;
    uint64_t ranks = 0;
    if (count > 5) {
        int file = open(arguments[4], O_RDWR);
        arrived = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (file < 0 || arrived == MAP_FAILED)
            FAIL("%s cannot be mapped", arguments[4]);
        close(file);
        ranks = strtoull(arguments[5], NULL, 10);
    }
    static uint32_t host[BASIC_COUNT];
    uint32_t *device;
    HIP(hipMalloc((void **)&device, sizeof host));
    for (long step = 0; step < steps; ++step) {
        roctxRangePushA("step");
        for (int n = 0; n < (late ? 80 : 4); ++n)
            launch(device);
        HIP(hipMemcpy(host, device, sizeof host, hipMemcpyDeviceToHost));
        if (late)
            usleep(250000);
        roctxRangePop();
        if (killed && step == steps / 2)
            raise(SIGKILL);
        if (arrived) {
            roctxRangePushA("MPI_Barrier");
            ++*arrived;
            while (*arrived < ranks * (uint64_t)(step + 1))
                usleep(50);
            roctxRangePop();
        }
    }
    HIP(hipFree(device));
    puts("ok");
    return 0;
}
