/* other-addresses.so: a HIP runtime that reserves another address than the one it is asked for. All but that is the runtime's
 * that the library is linked to. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

typedef int reserve_function(void **address, size_t size, size_t alignment, void *wanted, unsigned long long flags);

int hipMemAddressReserve(void **address, size_t size, size_t alignment, void *wanted, unsigned long long flags) {
    const uintptr_t distance = (uintptr_t)1 << 36;
    reserve_function *real = (reserve_function *)dlsym(RTLD_NEXT, "hipMemAddressReserve");
    if (!real)
        return 1;
    return real(address, size, alignment, (void *)((uintptr_t)wanted - distance), flags);
}
