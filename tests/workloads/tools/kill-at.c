/* kill-at.so: ends a process by SIGKILL right before a change that it makes to a directory.
 *
 *   KILL_AT=N         before the Nth change: a file made, renamed or removed, a directory made or removed
 *   KILL_AFTER=TEXT   changes count from the first on whose path has TEXT in it
 *   KILL_NAME=NAME    only in processes whose program has this name
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static long limit = -1;
static long count;
static int counting;

__attribute__((constructor)) static void begin(void) {
    const char *at = getenv("KILL_AT"), *name = getenv("KILL_NAME");
    if (at && name && !strcmp(program_invocation_short_name, name))
        limit = atol(at);
    counting = getenv("KILL_AFTER") == NULL;
}

static void change(const char *path) {
    if (limit < 0)
        return;
    if (!counting)
        counting = strstr(path, getenv("KILL_AFTER")) != NULL;
    if (counting && __atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST) == limit)
        kill(getpid(), SIGKILL);
}

#define NEXT(name) __typeof__(name) *next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

int unlink(const char *path) {
    NEXT(unlink);
    change(path);
    return next(path);
}

int unlinkat(int folder, const char *path, int flags) {
    NEXT(unlinkat);
    change(path);
    return next(folder, path, flags);
}

int rmdir(const char *path) {
    NEXT(rmdir);
    change(path);
    return next(path);
}

int rename(const char *from, const char *to) {
    NEXT(rename);
    change(from);
    return next(from, to);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    NEXT(renameat);
    change(from);
    return next(from_folder, from, to_folder, to);
}

int mkdirat(int folder, const char *path, mode_t mode) {
    NEXT(mkdirat);
    change(path);
    return next(folder, path, mode);
}

/* Only those that make a file are changes. */
#define OPEN(name, FOLDER, ...)                                                                                        \
    int name(FOLDER const char *path, int flags, ...) {                                                               \
        NEXT(name);                                                                                                    \
        mode_t mode = 0;                                                                                               \
        if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) {                                                   \
            va_list rest;                                                                                              \
            va_start(rest, flags);                                                                                     \
            mode = va_arg(rest, mode_t);                                                                               \
            va_end(rest);                                                                                              \
        }                                                                                                              \
        if (flags & O_CREAT)                                                                                           \
            change(path);                                                                                              \
        return next(__VA_ARGS__ path, flags, mode);                                                                    \
    }
#define COMMA ,
OPEN(open, , )
OPEN(open64, , )
OPEN(openat, int folder COMMA, folder COMMA)
OPEN(openat64, int folder COMMA, folder COMMA)
