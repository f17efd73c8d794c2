/* A program that loads Python at run time, for itself alone: host PROBE LIBPYTHON. It prints the stack before Python is
   there, from a Python function, and after Python has ended. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint32_t (*capture)(uint32_t *);
static size_t (*text_of)(uint32_t, uint32_t, char *, size_t);
static void *(*build)(const char *, ...);

static void show(const char *when) {
    static char text[1 << 20];
    uint32_t flags = 0;
    uint32_t stack = capture(&flags);
    text_of(stack, flags, text, sizeof text);
    printf("== %s\n%s\n", when, text);
    fflush(stdout);
}

static void *call(void *self, void *arguments) {
    (void)self, (void)arguments;
    show("inside");
    return build("");
}

struct method { const char *name; void *(*function)(void *, void *); int flags; const char *doc; };
static struct method method = {"capture", call, 4 /* METH_NOARGS */, NULL};

static void *symbol(void *library, const char *name) {
    void *found = dlsym(library, name);
    if (!found) { fprintf(stderr, "no %s\n", name); exit(2); }
    return found;
}

int main(int count, char **arguments) {
    if (count < 3) return 2;
    void *probe = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (!probe) { fprintf(stderr, "%s\n", dlerror()); return 2; }
    ((void (*)(uint32_t, uint32_t))symbol(probe, "probe_open"))(2, 0);
    *(void **)&capture = symbol(probe, "probe_capture");
    *(void **)&text_of = symbol(probe, "probe_text");
    show("before it is loaded");
    void *python = dlopen(arguments[2], RTLD_NOW | RTLD_LOCAL);
    if (!python) { fprintf(stderr, "%s\n", dlerror()); return 2; }
    show("before it is initialised");
    ((void (*)(int))symbol(python, "Py_InitializeEx"))(0);
    *(void **)&build = symbol(python, "Py_BuildValue");
    void *main_module = ((void *(*)(const char *))symbol(python, "PyImport_AddModule"))("__main__");
    void *function = ((void *(*)(struct method *, void *, void *))symbol(python, "PyCFunction_NewEx"))(&method, NULL, NULL);
    ((int (*)(void *, const char *, void *))symbol(python, "PyModule_AddObject"))(main_module, "capture", function);
    int failed = ((int (*)(const char *))symbol(python, "PyRun_SimpleString"))(
        "def f():\n    return g()\ndef g():\n    capture()\nlist(map(lambda value: f(), [1]))\n");
    ((int (*)(void))symbol(python, "Py_FinalizeEx"))();
    show("after it has ended");
    return failed != 0;
}
