/* refuse WHAT ERROR PROGRAM [ARGUMENTS]: runs a program to which the kernel refuses something, with this error number.
 *
 * userfaultfd   the system call
 * api, register, protect   its requests
 * scan          the request of /proc/self/pagemap for written pages */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int fail(const char *what) {
    fprintf(stderr, "refuse: %s: %s\n", what, strerror(errno));
    return 1;
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        unsigned call, request;
    } known[] = {{"userfaultfd", SYS_userfaultfd, 0},
                 {"api", SYS_ioctl, 0xc018aa3f},
                 {"register", SYS_ioctl, 0xc020aa00},
                 {"protect", SYS_ioctl, 0xc018aa06},
                 {"scan", SYS_ioctl, 0xc0606610}};
    if (argc < 4)
        return fail("WHAT ERROR PROGRAM [ARGUMENTS]");
    for (size_t i = 0; i < sizeof known / sizeof *known; ++i) {
        if (strcmp(argv[1], known[i].name))
            continue;
        const unsigned error = SECCOMP_RET_ERRNO | ((unsigned)atoi(argv[2]) & SECCOMP_RET_DATA);
        const unsigned char any = known[i].request == 0;
        struct sock_filter filter[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, known[i].call, 0, 3),
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, known[i].request, 0, any ? 0 : 1),
            BPF_STMT(BPF_RET | BPF_K, error),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
            return fail("seccomp");
        execv(argv[3], argv + 3);
        return fail(argv[3]);
    }
    errno = EINVAL;
    return fail(argv[1]);
}
