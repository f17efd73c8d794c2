/* odd MODE [ARGUMENT]: programs with habits that a profiler has to live with. Every mode does 2 checked
 * launches before the odd thing (unless said otherwise) and 3 after it.
 *
 *   close-fds        closes every file descriptor above 2 and opens /dev/null in their places
 *   chdir            changes to / ; the argument is ignored
 *   chroot DIR       chroot(DIR) (needs root)
 *   drop-user        setgid and setuid to 65534 (needs root)
 *   low-nofile       a limit of as many descriptors as are open
 *   nofile-thread    the same, and a thread does the 3 launches
 *   file-size        a limit of 4096 bytes for files
 *   undumpable       prctl(PR_SET_DUMPABLE, 0)
 *   setsid           a child in a session of its own does the 3 launches
 *   daemon SECONDS   a daemon (two forks, no terminal) does the 3 launches SECONDS after the parent's end
 *   bare-exec PATH   execs PATH with an empty environment
 *   pause            the 3 launches while paused, then 4 more
 *   long-name LENGTH the 3 launches in a ROCTx range whose message has that many letters
 *   messages TEXT... the 3 launches in a ROCTx range for each text
 *   thread-exits     a thread does the 3 launches and calls exit(7)
 *   catch            catches SIGINT and SIGTERM: does the 3 launches and exits with 5
 *   ignore           ignores SIGINT and SIGTERM; the 3 launches after a third signal, SIGUSR1
 *   exit-launching   four threads launch without an end while the main thread calls exit(7), which takes a while
 *   lost-child       a forked child, which may write no files, does the 3 launches
 *   lost-user DIR    a forked child with user 65534 and root directory DIR does the 3 launches (needs root)
 *   stdin            copies standard input to standard output, no launches at all
 */
#include "basic.h"
#include "roctx.h"

#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t caught;

static void on_signal(int number) {
    caught = number;
}

static void handle(int number, void (*handler)(int)) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    sigaction(number, &action, NULL);
}

static int exits;

static void *three_launches(void *unused) {
    (void)unused;
    checked_work(NULL, 3, 3);
    puts("ok");
    fflush(stdout);
    if (exits)
        exit(exits);
    return NULL;
}

static int lingers;

static void linger(void) {
    if (lingers)
        usleep(50000);
}

/* Exit handlers run in reverse order: this one after that which unregisters the kernels. */
__attribute__((constructor(101))) static void linger_at_exit(void) {
    atexit(linger);
}

static void *launches(void *unused) {
    (void)unused;
    for (;;) {
        for (int i = 0; i < 8; ++i)
            LAUNCH(empty_kernel, linear(1), linear(64), 0, NULL);
        HIP(hipStreamSynchronize(NULL));
    }
    return NULL;
}

static void in_thread(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, three_launches, NULL))
        FAIL("no thread");
    pthread_join(thread, NULL);
}

static void must(int result, const char *what) {
    if (result)
        FAIL("%s failed", what);
}

static void close_descriptors(void) {
    int taken[1024], count = 0;
    for (int fd = 3; fd < 1024; ++fd)
        if (close(fd) == 0)
            taken[count++] = fd;
    int null = open("/dev/null", O_RDWR);
    for (int i = 0; i < count; ++i)
        if (taken[i] != null)
            dup2(null, taken[i]);
}

static void daemon_after(const char *seconds) {
    pid_t child = fork();
    if (child == 0) {
        setsid();
        if (fork())
            _exit(0);
        int null = open("/dev/null", O_RDWR);
        for (int fd = 0; fd < 3; ++fd)
            dup2(null, fd);
        checked_work(NULL, 2, 1);
        usleep((useconds_t)(atof(seconds) * 1e6));
        checked_work(NULL, 3, 3);
        exit(0);
    }
    waitpid(child, NULL, 0);
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "";
    const char *argument = argc > 2 ? argv[2] : "";
    if (!strcmp(mode, "stdin")) {
        int c;
        while ((c = getchar()) != EOF)
            putchar(c);
        fputs("end of input\n", stderr);
        return 0;
    }
    HIP(hipSetDevice(0));
    checked_work(NULL, 1, 2);
    if (!strcmp(mode, "close-fds")) {
        close_descriptors();
    } else if (!strcmp(mode, "chdir")) {
        must(chdir("/"), "chdir");
    } else if (!strcmp(mode, "chroot")) {
        must(chroot(argument) || chdir("/"), "chroot");
    } else if (!strcmp(mode, "drop-user")) {
        must(setgroups(0, NULL) || setgid(65534) || setuid(65534), "setuid");
    } else if (!strcmp(mode, "low-nofile") || !strcmp(mode, "nofile-thread")) {
        int next = open("/dev/null", O_RDONLY);
        close(next);
        struct rlimit limit = {(rlim_t)next, (rlim_t)next};
        must(setrlimit(RLIMIT_NOFILE, &limit), "setrlimit");
        if (!strcmp(mode, "nofile-thread")) {
            /* Its recording needs a new file. */
            in_thread();
            return 0;
        }
    } else if (!strcmp(mode, "file-size")) {
        struct rlimit limit = {4096, 4096};
        must(setrlimit(RLIMIT_FSIZE, &limit), "setrlimit");
        /* A thread of its own, so that the recording needs a new file. */
        in_thread();
        return 0;
    } else if (!strcmp(mode, "undumpable")) {
        must(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), "prctl");
    } else if (!strcmp(mode, "setsid")) {
        pid_t child = fork();
        if (child == 0) {
            setsid();
            three_launches(NULL);
            return 0;
        }
        int status;
        must(waitpid(child, &status, 0) != child || status, "the child");
        return 0;
    } else if (!strcmp(mode, "exit-launching")) {
        pthread_t thread;
        for (int i = 0; i < 4; ++i)
            must(pthread_create(&thread, NULL, launches, NULL), "a thread");
        usleep(50000);
        puts("ok");
        lingers = 1;
        exit(7);
    } else if (!strcmp(mode, "lost-child") || !strcmp(mode, "lost-user")) {
        pid_t child = fork();
        if (child == 0) {
            struct rlimit none = {0, 0};
            if (*argument)
                must(chroot(argument) || chdir("/") || setgroups(0, NULL) || setgid(65534) || setuid(65534), "setuid");
            else
                must(setrlimit(RLIMIT_FSIZE, &none), "setrlimit");
            checked_work(NULL, 3, 3);
            return 0;
        }
        int status;
        must(waitpid(child, &status, 0) != child || status, "the child");
        puts("ok");
        return 0;
    } else if (!strcmp(mode, "daemon")) {
        daemon_after(argument);
        puts("ok");
        return 0;
    } else if (!strcmp(mode, "bare-exec")) {
        char *arguments[] = {(char *)argument, NULL}, *environment[] = {NULL};
        execve(argument, arguments, environment);
        FAIL("exec failed");
    } else if (!strcmp(mode, "pause")) {
        roctx_thread_id_t thread = 0;
        roctxMarkA("before");
        roctxProfilerPause(thread);
        roctxMarkA("paused");
        checked_work(NULL, 3, 3);
        roctxProfilerResume(thread);
        roctxMarkA("after");
        checked_work(NULL, 4, 4);
        puts("ok");
        return 0;
    } else if (!strcmp(mode, "long-name")) {
        /* A range whose message has as many letters as the argument says. */
        size_t length = strtoul(argument, NULL, 10);
        char *name = malloc(length + 1);
        memset(name, 'x', length);
        name[length] = 0;
        roctxRangePushA(name);
        checked_work(NULL, 3, 3);
        roctxRangePop();
        free(name);
        puts("ok");
        return 0;
    } else if (!strcmp(mode, "messages")) {
        for (int i = 2; i < argc; ++i) {
            roctxRangePushA(argv[i]);
            checked_work(NULL, 3, 3);
            roctxRangePop();
        }
        puts("ok");
        return 0;
    } else if (!strcmp(mode, "thread-exits")) {
        exits = 7;
        in_thread();
    } else if (!strcmp(mode, "catch")) {
        handle(SIGINT, on_signal);
        handle(SIGTERM, on_signal);
        puts("ready");
        fflush(stdout);
        while (!caught)
            usleep(1000);
        three_launches(NULL);
        printf("caught %d\n", (int)caught);
        return 5;
    } else if (!strcmp(mode, "ignore")) {
        handle(SIGINT, SIG_IGN);
        handle(SIGTERM, SIG_IGN);
        handle(SIGUSR1, on_signal);
        puts("ready");
        fflush(stdout);
        while (!caught)
            usleep(1000);
    } else {
        FAIL("unknown mode `%s`", mode);
    }
    three_launches(NULL);
    return 0;
}
