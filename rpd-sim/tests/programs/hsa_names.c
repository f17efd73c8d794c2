/* Prints those of its arguments that are no functions of the HSA library, and what older names do wrong. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

typedef struct { uint64_t handle; } signal_t;
extern uint32_t hsa_init(void);
extern uint32_t hsa_signal_create(int64_t, uint32_t, const void *, signal_t *);
extern int64_t hsa_signal_load_acquire(signal_t);
extern void hsa_signal_store_release(signal_t, int64_t);
extern void hsa_signal_subtract_acq_rel(signal_t, int64_t);
extern void hsa_signal_or_release(signal_t, int64_t);
extern int64_t hsa_signal_exchange_acquire(signal_t, int64_t);
extern int64_t hsa_signal_cas_acq_rel(signal_t, int64_t, int64_t);
extern int64_t hsa_signal_wait_acquire(signal_t, uint32_t, int64_t, uint64_t, uint32_t);
extern uint32_t hsa_ven_amd_pcs_flush(uint64_t);

static void expect(int64_t found, int64_t expected, const char *what) {
    if (found != expected)
        printf("%s: %ld instead of %ld\n", what, (long)found, (long)expected);
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; ++i)
        if (!dlsym(RTLD_DEFAULT, argv[i]))
            printf("%s\n", argv[i]);
    signal_t signal;
    expect(hsa_init(), 0, "hsa_init");
    expect(hsa_signal_create(5, 0, NULL, &signal), 0, "hsa_signal_create");
    hsa_signal_store_release(signal, 12);
    hsa_signal_subtract_acq_rel(signal, 4);
    hsa_signal_or_release(signal, 1);
    expect(hsa_signal_load_acquire(signal), 9, "load");
    expect(hsa_signal_exchange_acquire(signal, 3), 9, "exchange");
    expect(hsa_signal_cas_acq_rel(signal, 3, 4), 3, "compare and swap");
    expect(hsa_signal_wait_acquire(signal, 0, 4, 0, 0), 4, "wait");
    expect(hsa_ven_amd_pcs_flush(0), 0x1000, "a call without implementation");
    return 0;
}
