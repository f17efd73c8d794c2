/* fork-exec [MODE]: several processes, each using the GPU with another number of launches.
 *
 *   tree (default)  a child by fork without exec (2 launches) and one by fork and exec (3 launches),
 *                   both before this process uses the GPU itself (1 launch)
 *   late            the same, but this process uses the GPU first; what real HIP makes of the child
 *                   without exec is undefined, so this one is for the simulator
 *   replace [NAME]  1 launch, then exec in the same process, which makes 3, by the function called NAME (default execv)
 *   child           what the others exec: 3 launches
 */
#define _GNU_SOURCE
#include "basic.h"

#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void use_gpu(const char *who, long launches) {
    HIP(hipSetDevice(0));
    checked_work(NULL, (uint32_t)launches, launches);
    printf("%s ok\n", who);
    fflush(stdout);
}

static void expect_success(pid_t child, const char *who) {
    int status;
    if (waitpid(child, &status, 0) != child || status)
        FAIL("%s ended with wait status 0x%x", who, status);
}

/* Replaces this program with the one of `arguments`, which are two, by the function called `name`. */
static void replace(const char *name, char **arguments) {
    const char *self = "/proc/self/exe", *program = arguments[0], *mode = arguments[1];
    if (!strcmp(name, "execv"))
        execv(self, arguments);
    else if (!strcmp(name, "execvp"))
        execvp(self, arguments);
    else if (!strcmp(name, "execvpe"))
        execvpe(self, arguments, environ);
    else if (!strcmp(name, "execve"))
        execve(self, arguments, environ);
    else if (!strcmp(name, "execl"))
        execl(self, program, mode, (char *)NULL);
    else if (!strcmp(name, "execlp"))
        execlp(self, program, mode, (char *)NULL);
    else if (!strcmp(name, "execle"))
        execle(self, program, mode, (char *)NULL, environ);
    else if (!strcmp(name, "fexecve"))
        fexecve(open(self, O_RDONLY), arguments, environ);
    else if (!strcmp(name, "execveat"))
        execveat(AT_FDCWD, self, arguments, environ, 0);
    FAIL("%s failed", name);
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "tree";
    char *child_argv[] = {argv[0], (char *)"child", NULL};
    if (!strcmp(mode, "child")) {
        use_gpu("exec", 3);
        return 0;
    }
    if (!strcmp(mode, "replace")) {
        use_gpu("first image", 1);
        replace(argc > 2 ? argv[2] : "execv", child_argv);
    }
    int late = !strcmp(mode, "late");
    if (!late && strcmp(mode, "tree"))
        FAIL("unknown mode `%s`", mode);
    if (late)
        use_gpu("parent", 1);

    pid_t forked = fork();
    if (forked == 0) {
        use_gpu("fork", 2);
        return 0;
    }
    expect_success(forked, "the forked child");
    pid_t executed = fork();
    if (executed == 0) {
        execv("/proc/self/exe", child_argv);
        _exit(127);
    }
    expect_success(executed, "the executed child");
    if (!late)
        use_gpu("parent", 1);
    return 0;
}
