/* in-flight MS ENDING: a kernel that runs for about MS milliseconds (measured first), and what becomes of it when the
 * program ends meanwhile. Makes the file `launched` once it is on its way. ENDING:
 *
 *   sleep      sleeps, and ends with 3 if nothing ends it first
 *   catch      as sleep, with a handler for TERM that ends with 5
 *   ignore     as sleep for a tenth of a second after a TERM that it ignores
 *   default    as sleep, after it has asked and set what TERM does, which must be the default
 *   abort      abort()
 *   child      as sleep in a forked child without any work; the parent passes on how that ended
 */
#include "basic.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void on_term(int number) {
    (void)number;
    _exit(5);
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static uint32_t *data;

/* The shortest of some times: what other programs of the machine add differs. */
static double churn(uint32_t rounds) {
    double shortest = 1e9;
    for (int i = 0; i < 3; ++i) {
        double before = seconds();
        LAUNCH(churn_kernel, linear(1), linear(64), 0, NULL, data, rounds, 64u);
        HIP(hipDeviceSynchronize());
        double took = seconds() - before;
        shortest = took < shortest ? took : shortest;
    }
    return shortest;
}

static int sleeps(void) {
    sleep(30);
    return 3;
}

static void expect_default(void) {
    struct sigaction action, before;
    memset(&action, 0, sizeof action);
    if (sigaction(SIGTERM, NULL, &before) || before.sa_handler != SIG_DFL)
        FAIL("TERM has a handler");
    action.sa_handler = on_term;
    if (sigaction(SIGTERM, &action, &before) || before.sa_handler != SIG_DFL)
        FAIL("TERM had a handler");
    if (signal(SIGTERM, SIG_DFL) != on_term || signal(SIGTERM, SIG_DFL) != SIG_DFL)
        FAIL("TERM has another handler than the one that was set");
}

int main(int argc, char **argv) {
    long ms = number_argument(argc, argv, 1, 100);
    const char *ending = argc > 2 ? argv[2] : "sleep";
    HIP(hipSetDevice(0));
    HIP(hipMalloc((void **)&data, 64 * sizeof *data));
    churn(10);
    uint32_t rounds = 1000;
    double took;
    while ((took = churn(rounds)) < 0.02 && rounds < 1u << 30)
        rounds *= 2;
    rounds = (uint32_t)((double)rounds * (double)ms / 1e3 / took);
    if (!strcmp(ending, "catch"))
        signal(SIGTERM, on_term);
    else if (!strcmp(ending, "ignore"))
        signal(SIGTERM, SIG_IGN);
    else if (!strcmp(ending, "default"))
        expect_default();
    LAUNCH(churn_kernel, linear(1), linear(64), 0, NULL, data, rounds, 64u);
    if (close(open("launched", O_WRONLY | O_CREAT, 0644)))
        FAIL("cannot make a file");
    if (!strcmp(ending, "abort"))
        abort();
    if (!strcmp(ending, "ignore")) {
        raise(SIGTERM);
        usleep(100000);
        return 3;
    }
    if (!strcmp(ending, "child")) {
        pid_t child = fork();
        if (child == 0) {
            raise(SIGTERM);
            return sleeps();
        }
        int status;
        waitpid(child, &status, 0);
        HIP(hipDeviceSynchronize());
        return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
    return sleeps();
}
