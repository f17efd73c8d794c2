/* steps FILE: carries out the words on standard input one after the other, and appends a byte to FILE after each:
   launch (a kernel, and waits for it), start, stop, flush, mark, push and pop (the C functions of RPD's tracer). */
#include "basic.h"

#include <dlfcn.h>
#include <string.h>

/* A function in the global scope; without it the program does as if it did nothing. */
static void call(const char *name) {
    void (*function)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, name);
    if (function)
        function();
}

static void call_with_texts(const char *name, const char *first, const char *second, const char *third) {
    void (*function)(const char *, const char *, const char *) =
        (void (*)(const char *, const char *, const char *))dlsym(RTLD_DEFAULT, name);
    if (function)
        function(first, second, third);
}

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    FILE *done = fopen(argv[1], "w");
    if (!done)
        return 2;
    hipStream_t stream;
    HIP(hipSetDevice(0));
    HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    char word[16];
    while (scanf("%15s", word) == 1) {
        if (!strcmp(word, "launch")) {
            LAUNCH(empty_kernel, linear(1), linear(64), 0, stream);
            HIP(hipStreamSynchronize(stream));
        } else if (!strcmp(word, "start")) {
            call("rpdstart");
        } else if (!strcmp(word, "stop")) {
            call("rpdstop");
        } else if (!strcmp(word, "flush")) {
            call("rpdflush");
        } else if (!strcmp(word, "mark")) {
            call_with_texts("rpd_mark", "python", "epoch", "train.py:3");
        } else if (!strcmp(word, "push")) {
            call_with_texts("rpd_rangePush", "", "step", NULL);
        } else if (!strcmp(word, "pop")) {
            call("rpd_rangePop");
        } else {
            return 2;
        }
        fputc('.', done);
        fflush(done);
    }
    HIP(hipStreamDestroy(stream));
    return 0;
}
