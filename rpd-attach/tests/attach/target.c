/* A program that is prepared for attaching, and the libraries in it, as far as an attacher can tell. One part for each
   -DPART_*; the functions have the names and types of ROCm's. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef PART_TOOL
void *rocprofiler_configure(void) { return 0; }
#endif

#ifdef PART_SDK
int rocprofiler_set_api_table(void) { return 0; }
int rocprofiler_attach(void) { return 0; }
int rocprofiler_detach(void) { return 0; }
#endif

#ifdef PART_HIP
int hipInit(unsigned flags) { return (int)flags; }
#endif

#ifdef PART_REGISTER
/* Behaves as version 0.6.0: what is missing ends the process. */
static char first_tool[4096];

static void log_line(const char *text) {
    FILE *log = fopen(getenv("TEST_LOG"), "a");
    fprintf(log, "%s\n", text);
    fclose(log);
}

int rocprofiler_register_attach(const char *block, const char *tool) {
    uint32_t count;
    memcpy(&count, block, 4);
    const char *at = block + 4;
    char line[8192];
    for (uint32_t pair = 0; pair < count; pair++) {
        const char *name = at;
        const char *value = name + strlen(name) + 1;
        at = value + strlen(value) + 1;
        setenv(name, value, 1);
    }
    const char *sdk = getenv("ROCPROFILER_REGISTER_LIBRARY");
    if (!dlopen(sdk ? sdk : "librocprofiler-sdk.so", RTLD_LAZY | RTLD_GLOBAL) || !dlopen(tool, RTLD_LAZY))
        abort();
    if (first_tool[0] && strcmp(first_tool, tool)) return 8;
    strcpy(first_tool, tool);
    snprintf(line, sizeof line, "attach %s %s", strrchr(tool, '/') + 1, getenv("ROCP_TEST") ? getenv("ROCP_TEST") : "-");
    log_line(line);
    /* Clobber what a function may. */
    __asm__ volatile("pxor %%xmm0, %%xmm0; pxor %%xmm7, %%xmm7; pxor %%xmm15, %%xmm15" ::: "xmm0", "xmm7", "xmm15");
    const char *wait = getenv("ROCP_TEST_WAIT_MS");
    struct timespec time = {0, (wait ? atol(wait) : 1) * 1000000L};
    nanosleep(&time, 0);
    log_line("attached");
    return getenv("ROCP_TEST_CODE") ? atoi(getenv("ROCP_TEST_CODE")) : 0;
}

int rocprofiler_register_detach(void) {
    log_line("detached");
    return 0;
}
#endif

#ifdef PART_ATTACH
/* Changes of registers that the listener did not make. */
int rocp_test_changes;
static uint32_t asleep;

int rocprofiler_attach_set_api_table(void) { return 0; }

/* Sleeps with known values in registers, and looks at them when it is woken. A system call keeps all but rax, rcx, r11. */
static long sleep_and_look(void) {
    uint64_t before[4] = {0x1111111111111111, 0x2222222222222222, 0x3333333333333333, 0x4444444444444444};
    uint64_t after[8] = {0};
    struct timespec time = {0, 20000000};
    register uint64_t r10 __asm__("r10") = (uint64_t)&time;
    long result;
    __asm__ volatile(
        "movdqu (%[before]), %%xmm0\n movdqu 16(%[before]), %%xmm7\n movdqu (%[before]), %%xmm15\n"
        "mov $0x5555, %%r12\n mov $0x6666, %%r13\n mov $0x7777, %%r8\n mov $0x8888, %%r9\n"
        "syscall\n"
        "movdqu %%xmm0, (%[after])\n movdqu %%xmm7, 16(%[after])\n"
        "movdqu %%xmm15, %%xmm1\n movq %%xmm1, 32(%[after])\n"
        "add %%r12, %%r13\n add %%r13, %%r8\n add %%r8, %%r9\n mov %%r9, 40(%[after])\n"
        : "=a"(result), "+r"(r10)
        : "a"(SYS_futex), "D"(&asleep), "S"(FUTEX_WAIT_PRIVATE), "d"(0), [before] "r"(before), [after] "r"(after)
        : "rcx", "r8", "r9", "r11", "r12", "r13", "xmm0", "xmm1", "xmm7", "xmm15", "memory");
    if (memcmp(before, after, 32) || after[4] != before[0] || after[5] != 0x5555 + 0x6666 + 0x7777 + 0x8888)
        rocp_test_changes++;
    return result;
}

/* Posted when the listener has its name. */
static sem_t named;

static void *listen(void *unused) {
    (void)unused;
    prctl(PR_SET_NAME, "rocp-bg-attach");
    sem_post(&named);
    for (;;) {
        sigset_t blocked;
        sleep_and_look();
        pthread_sigmask(SIG_SETMASK, 0, &blocked);
        if (!sigismember(&blocked, SIGUSR1)) rocp_test_changes++;
    }
    return 0;
}

__attribute__((constructor)) static void start(void) {
    if (!getenv("ROCP_TOOL_ATTACH")) return;
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    sem_init(&named, 0, 0);
    pthread_create(&thread, 0, listen, 0);
    while (sem_wait(&named)) {}
    pthread_sigmask(SIG_SETMASK, &before, 0);
}
#endif

#ifdef PART_PROGRAM
extern int rocp_test_changes __attribute__((weak));
static volatile sig_atomic_t signals;
static volatile int stop;

static void count(int number) {
    (void)number;
    signals++;
}

static void *work(void *unused) {
    (void)unused;
    while (!stop) free(malloc(100));
    return 0;
}

/* Runs until its input ends; prints signals, and changes of registers. With an argument: starts that program. */
int main(int argc, char **argv) {
    if (argc > 1) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            execv(argv[1], argv + 1);
            _exit(127);
        }
        printf("started %d\n", child);
        fflush(stdout);
        waitpid(child, &status, 0);
        return WEXITSTATUS(status);
    }
    struct sigaction action = {.sa_handler = count, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, 0);
    pthread_t threads[2];
    for (int n = 0; n < 2; n++) pthread_create(&threads[n], 0, work, 0);
    puts("ready");
    fflush(stdout);
    char byte;
    while (read(0, &byte, 1) > 0) {}
    stop = 1;
    for (int n = 0; n < 2; n++) pthread_join(threads[n], 0);
    printf("signals %d changes %d\n", (int)signals, &rocp_test_changes ? rocp_test_changes : 0);
    return 7;
}
#endif
