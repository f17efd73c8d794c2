/* starts MODE ARGUMENT PROGRAM [ARGUMENTS]: runs another program in a way in which it does not get what this one has.
 * Ends with the status of that program.
 *
 *   cleared FUNCTION PROGRAM    with no variable but LD_LIBRARY_PATH, started by FUNCTION: execve, execv, execvp, execvpe,
 *                               execl, execle, execlp, fexecve, execveat, posix_spawn, posix_spawnp, vfork (and execve),
 *                               system, popen.
 *                               PROGRAM has exactly two arguments where FUNCTION takes them one by one
 *   unset VARIABLE PROGRAM      without the variable
 *   user NUMBER PROGRAM         a child with this user runs it (needs root)
 *   become NUMBER PROGRAM       this process takes this user and becomes it (needs root)
 *   namespace - PROGRAM         a child in a PID namespace of its own becomes it. Ends with 77 where the system refuses
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int fail(const char *what) {
    fprintf(stderr, "starts: %s: %s\n", what, strerror(errno));
    return 126;
}

static int wait_for(pid_t child) {
    int status;
    if (child < 0)
        return fail("no child");
    while (waitpid(child, &status, 0) != child)
        if (errno != EINTR)
            return fail("waitpid");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int cleared(const char *function, char **arguments) {
    static char path[4096];
    const char *folders = getenv("LD_LIBRARY_PATH");
    snprintf(path, sizeof path, "LD_LIBRARY_PATH=%s", folders ? folders : "");
    char *environment[] = {path, NULL};
    const char *program = arguments[0];
    pid_t child = 0;
    if (!strcmp(function, "execve"))
        execve(program, arguments, environment);
    else if (!strcmp(function, "execvpe"))
        execvpe(program, arguments, environment);
    else if (!strcmp(function, "execle"))
        execle(program, program, arguments[1], arguments[2], (char *)NULL, environment);
    else if (!strcmp(function, "fexecve"))
        fexecve(open(program, O_RDONLY | O_CLOEXEC), arguments, environment);
    else if (!strcmp(function, "execveat"))
        execveat(AT_FDCWD, program, arguments, environment, 0);
    else if (!strcmp(function, "posix_spawn")) {
        posix_spawn(&child, program, NULL, NULL, arguments, environment);
        return wait_for(child);
    } else if (!strcmp(function, "posix_spawnp")) {
        posix_spawnp(&child, program, NULL, NULL, arguments, environment);
        return wait_for(child);
    } else if (!strcmp(function, "vfork")) {
        child = vfork();
        if (child == 0) {
            execve(program, arguments, environment);
            _exit(126);
        }
        return wait_for(child);
    }
    environ = environment;
    if (!strcmp(function, "execv"))
        execv(program, arguments);
    else if (!strcmp(function, "execvp"))
        execvp(program, arguments);
    else if (!strcmp(function, "execl"))
        execl(program, program, arguments[1], arguments[2], (char *)NULL);
    else if (!strcmp(function, "execlp"))
        execlp(program, program, arguments[1], arguments[2], (char *)NULL);
    if (strcmp(function, "system") && strcmp(function, "popen"))
        return fail(function);
    char command[4096];
    clearenv();
    environ = environment;
    snprintf(command, sizeof command, "test \"$0\" = sh && '%s' '%s' '%s'; exit $?", program, arguments[1], arguments[2]);
    if (!strcmp(function, "system"))
        return WEXITSTATUS(system(command));
    FILE *output = popen(command, "r");
    for (int byte; output && (byte = getc(output)) != EOF;)
        putchar(byte);
    return output ? WEXITSTATUS(pclose(output)) : fail(function);
}

static int as_user(const char *number, char **arguments) {
    uid_t user = (uid_t)atoi(number);
    if (setgroups(0, NULL) || setgid(user) || setuid(user))
        return fail("setuid");
    execv(arguments[0], arguments);
    return fail(arguments[0]);
}

static int in_namespace(char **arguments) {
    /* Without the rights for it, they come with a user namespace. */
    if (unshare(CLONE_NEWPID) && unshare(CLONE_NEWUSER | CLONE_NEWPID))
        return 77;
    pid_t child = fork();
    if (child == 0) {
        execv(arguments[0], arguments);
        _exit(fail(arguments[0]));
    }
    return wait_for(child);
}

int main(int argc, char **argv) {
    if (argc < 4)
        return 2;
    const char *mode = argv[1], *argument = argv[2];
    char **arguments = argv + 3;
    if (!strcmp(mode, "cleared"))
        return cleared(argument, arguments);
    if (!strcmp(mode, "unset")) {
        unsetenv(argument);
        execv(arguments[0], arguments);
        return fail(arguments[0]);
    }
    if (!strcmp(mode, "user")) {
        pid_t child = fork();
        return child ? wait_for(child) : as_user(argument, arguments);
    }
    if (!strcmp(mode, "become"))
        return as_user(argument, arguments);
    if (!strcmp(mode, "namespace"))
        return in_namespace(arguments);
    fprintf(stderr, "starts: unknown mode `%s`\n", mode);
    return 2;
}
