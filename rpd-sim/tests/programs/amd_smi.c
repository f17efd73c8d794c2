/* Prints what AMD SMI says of the simulated GPUs, and of memory that this process uses. Structs are as large as those of the library. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    char market_name[256];
    uint32_t vendor_id;
    char vendor_name[256];
    uint32_t subvendor_id;
    uint64_t device_id;
    uint32_t rev_id;
    char asic_serial[256];
    uint32_t oam_id, units;
    uint64_t target;
    uint32_t subsystem_id, reserved[21];
} asic_info;
typedef struct {
    uint32_t kind;
    char vendor[256];
    uint64_t size;
    uint32_t bits;
    uint64_t bandwidth, reserved[37];
} vram_info;
typedef struct {
    char name[256];
    uint32_t id;
    uint64_t memory, engines[8], memories[8];
    char container[256];
    uint32_t others[12];
} process_info;
typedef struct {
    uint32_t now, least, most;
    uint8_t flags[2];
    uint32_t reserved[4];
} clock_info;
typedef struct {
    uint32_t count;
    struct {
        uint32_t properties, size, level, units, instances, reserved[3];
    } caches[10];
    uint32_t reserved[15];
} cache_info;

int amdsmi_init(uint64_t flags);
int amdsmi_shut_down(void);
int amdsmi_status_code_to_string(int status, const char **text);
int amdsmi_get_socket_handles(uint32_t *count, void **list);
int amdsmi_get_socket_info(void *socket, size_t size, char *name);
int amdsmi_get_processor_handles(void *socket, uint32_t *count, void **list);
int amdsmi_get_processor_type(void *gpu, uint32_t *type);
int amdsmi_get_processor_handle_from_bdf(uint64_t address, void **gpu);
int amdsmi_get_gpu_device_bdf(void *gpu, uint64_t *address);
int amdsmi_get_gpu_device_uuid(void *gpu, uint32_t *size, char *uuid);
int amdsmi_get_gpu_asic_info(void *gpu, asic_info *info);
int amdsmi_get_gpu_vram_info(void *gpu, vram_info *info);
int amdsmi_get_gpu_vram_usage(void *gpu, uint32_t *usage);
int amdsmi_get_gpu_cache_info(void *gpu, cache_info *info);
int amdsmi_get_clock_info(void *gpu, int clock, clock_info *info);
int amdsmi_get_gpu_process_list(void *gpu, uint32_t *count, process_info *list);
int amdsmi_topo_get_link_type(void *from, void *to, uint64_t *hops, uint32_t *kind);
int amdsmi_get_power_info(void *gpu, void *info);
int amdsmi_get_cpu_socket_count(uint32_t *count);
int hipMalloc(void **memory, size_t size);

int main(void) {
    uint32_t count = 0;
    void *sockets[8], *gpus[8];
    const char *text = "";
    int status = amdsmi_get_socket_handles(&count, NULL);
    amdsmi_status_code_to_string(status, &text);
    printf("before: %d %s\n", status, text);
    amdsmi_init(2);
    status = amdsmi_get_socket_handles(&count, NULL);
    printf("%d, %u sockets\n", status, count);
    amdsmi_get_socket_handles(&count, sockets);
    for (uint32_t n = 0; n < count; ++n) {
        uint32_t one = 1, type = 0, size = 38, usage[4];
        char name[32], uuid[64];
        uint64_t address = 0;
        void *same = NULL;
        asic_info asic;
        vram_info vram;
        clock_info clock;
        cache_info caches;
        status = amdsmi_get_socket_info(sockets[n], sizeof name, name) | amdsmi_get_processor_handles(sockets[n], &one, &gpus[n]) |
                 amdsmi_get_processor_type(gpus[n], &type) | amdsmi_get_gpu_device_bdf(gpus[n], &address) |
                 amdsmi_get_processor_handle_from_bdf(address, &same) | amdsmi_get_gpu_device_uuid(gpus[n], &size, uuid) |
                 amdsmi_get_gpu_asic_info(gpus[n], &asic) | amdsmi_get_gpu_vram_info(gpus[n], &vram) |
                 amdsmi_get_gpu_vram_usage(gpus[n], usage) | amdsmi_get_clock_info(gpus[n], 0, &clock) |
                 amdsmi_get_gpu_cache_info(gpus[n], &caches);
        printf("%d socket %s, %u GPU of type %u at %" PRIx64 " (%d), %s\n", status, name, one, type, address, same == gpus[n], uuid);
        printf("%s, %s, %" PRIx64 ", %s, %u units, %" PRIx64 "\n", asic.market_name, asic.vendor_name, asic.device_id,
               asic.asic_serial, asic.units, asic.target);
        printf("%" PRIu64 " MiB, %u bits, %" PRIu64 " GB/s, %u MiB, %u MHz\n", vram.size, vram.bits, vram.bandwidth, usage[0],
               clock.now);
        for (uint32_t cache = 0; cache < caches.count; ++cache)
            printf("cache %u: %u KiB, %u, for %u\n", caches.caches[cache].level, caches.caches[cache].size,
                   caches.caches[cache].instances, caches.caches[cache].units);
    }
    uint64_t hops = 0;
    uint32_t kind = 0, processes = 0;
    status = amdsmi_topo_get_link_type(gpus[0], gpus[1], &hops, &kind);
    printf("link: %d, %" PRIu64 " hops, kind %u\n", status, hops, kind);
    printf("not supported: %d %d\n", amdsmi_get_power_info(gpus[0], NULL), amdsmi_get_cpu_socket_count(NULL));
    printf("no such GPU: %d\n", amdsmi_get_power_info(sockets[0], NULL));
    void *memory;
    hipMalloc(&memory, 1 << 20);
    status = amdsmi_get_gpu_process_list(gpus[0], &processes, NULL);
    printf("processes: %d %u\n", status, processes);
    process_info list[2];
    status = amdsmi_get_gpu_process_list(gpus[0], &processes, list);
    printf("this: %d, %s, %d, memory %d\n", status, list[0].name, list[0].id == (uint32_t)getpid(),
           list[0].memory >= 1 << 20 && list[0].memories[2] == list[0].memory);
    amdsmi_shut_down();
    printf("after: %d\n", amdsmi_get_socket_handles(&count, NULL));
    return 0;
}
