/* jit: calls of HIP from code that is made at run time and, as LLVM does, registered with debuggers by an ELF object in
 * memory (GDB's JIT interface). One hipGetLastError each:
 *
 *   under the names made_a and made_b   the same code, registered anew in the same place, and
 *   outside of both                     with nothing registered
 *   under the name made_c               which calls made_d: two pieces of code, registered by two objects
 */
#include "hip.h"
#include "jit.h"
#include "workload.h"

#include <sys/mman.h>

typedef void (*function)(void *argument);
typedef void (*made)(function called, void *argument);

/* push rbp; mov rbp, rsp; mov rax, rdi; mov rdi, rsi; call rax; nop; pop rbp; ret */
static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf8, 0x48,
                                     0x89, 0xf7, 0xff, 0xd0, 0x90, 0x5d, 0xc3};

static made make(void) {
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        FAIL("mmap");
    memcpy(page, code, sizeof code);
    if (mprotect(page, 4096, PROT_READ | PROT_EXEC))
        FAIL("mprotect");
    made result;
    memcpy(&result, &page, sizeof result);
    return result;
}

static volatile long after;

__attribute__((noinline, noclone)) static void innermost(void *unused) {
    (void)unused;
    (void)hipGetLastError();
    after += 1;
}

__attribute__((noinline, noclone)) static void through(void *argument) {
    made inner;
    memcpy(&inner, argument, sizeof inner);
    inner(innermost, NULL);
    after += 1;
}

int main(void) {
    static struct jit_object first, second;
    struct jit_code_entry entry = {.object = (const char *)&first, .size = sizeof first};
    struct jit_code_entry other = {.object = (const char *)&second, .size = sizeof second};
    made one = make(), two = make();
    const char *names[] = {"made_a", "made_b"};
    for (int i = 0; i < 2; ++i) {
        /* The descriptor, the entry and the object are where they were. */
        describe(&first, names[i], (const void *)one, sizeof code);
        register_entry(&entry);
        innermost(NULL);
        for (int call = 0; call < 2; ++call)
            one(innermost, NULL);
        unregister_entry(&entry);
    }
    one(innermost, NULL);
    describe(&first, "made_c", (const void *)one, sizeof code);
    describe(&second, "made_d", (const void *)two, sizeof code);
    register_entry(&entry);
    register_entry(&other);
    one(through, &two);
    return 0;
}
