/* Prints what ROCm SMI says of the simulated GPUs, and of memory that this process uses. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    bool has_deep_sleep;
    uint32_t count;
    uint32_t current;
    uint64_t frequency[33];
} frequencies;
typedef struct {
    uint32_t id;
    uint32_t pasid;
    uint64_t memory;
    uint64_t copy_time;
    uint32_t occupancy;
} process;

int rsmi_init(uint64_t flags);
int rsmi_shut_down(void);
int rsmi_num_monitor_devices(uint32_t *count);
int rsmi_status_string(int status, const char **text);
int rsmi_dev_id_get(uint32_t gpu, uint16_t *id);
int rsmi_dev_vendor_id_get(uint32_t gpu, uint16_t *id);
int rsmi_dev_name_get(uint32_t gpu, char *name, size_t size);
int rsmi_dev_vendor_name_get(uint32_t gpu, char *name, size_t size);
int rsmi_dev_unique_id_get(uint32_t gpu, uint64_t *id);
int rsmi_dev_serial_number_get(uint32_t gpu, char *text, uint32_t size);
int rsmi_dev_pci_id_get(uint32_t gpu, uint64_t *id);
int rsmi_dev_memory_total_get(uint32_t gpu, int kind, uint64_t *bytes);
int rsmi_dev_memory_usage_get(uint32_t gpu, int kind, uint64_t *bytes);
int rsmi_dev_gpu_clk_freq_get(uint32_t gpu, int clock, frequencies *found);
int rsmi_dev_temp_metric_get(uint32_t gpu, uint32_t sensor, int metric, int64_t *value);
int rsmi_dev_busy_percent_get(uint32_t gpu, uint32_t *percent);
int rsmi_dev_firmware_version_get(uint32_t gpu, int block, uint64_t *version);
int rsmi_dev_target_graphics_version_get(uint32_t gpu, uint64_t *version);
int rsmi_topo_get_link_type(uint32_t from, uint32_t to, uint64_t *hops, int *kind);
int rsmi_topo_get_link_weight(uint32_t from, uint32_t to, uint64_t *weight);
int rsmi_compute_process_info_get(process *list, uint32_t *count);
int hipMalloc(void **memory, size_t size);
int hipFree(void *memory);

int main(void) {
    uint32_t count = 0;
    uint64_t number = 0, other = 0;
    const char *text = NULL;
    printf("before: %d", rsmi_num_monitor_devices(&count));
    rsmi_status_string(rsmi_dev_unique_id_get(0, &number), &text);
    printf(" %s\n", text);
    if (rsmi_init(0) || rsmi_num_monitor_devices(&count))
        return 1;
    printf("%u GPUs\n", count);
    for (uint32_t gpu = 0; gpu < count; ++gpu) {
        char name[64], vendor[64], few[4];
        uint16_t id, vendor_id;
        uint64_t unique, pci, total, arch;
        frequencies clock;
        memset(few, 'x', sizeof few);
        int failed = rsmi_dev_name_get(gpu, name, sizeof name) | rsmi_dev_vendor_name_get(gpu, vendor, sizeof vendor)
            | rsmi_dev_id_get(gpu, &id) | rsmi_dev_vendor_id_get(gpu, &vendor_id) | rsmi_dev_unique_id_get(gpu, &unique)
            | rsmi_dev_pci_id_get(gpu, &pci) | rsmi_dev_memory_total_get(gpu, 0, &total)
            | rsmi_dev_target_graphics_version_get(gpu, &arch);
        printf("%d %s, %s, %x:%x, %" PRIx64 ", bus %" PRIx64 ", %" PRIu64 " bytes, gfx%" PRIx64 "\n", failed, vendor, name,
               vendor_id, id, unique, pci >> 8, total, arch);
        failed = rsmi_dev_gpu_clk_freq_get(gpu, 0, &clock);
        printf("%d clock %" PRIu64, failed, clock.frequency[clock.current]);
        failed = rsmi_dev_gpu_clk_freq_get(gpu, 4, &clock);
        printf(", memory %d %" PRIu64 ", display %d\n", failed, clock.frequency[clock.current],
               rsmi_dev_gpu_clk_freq_get(gpu, 2, &clock));
        printf("short name: %d", rsmi_dev_name_get(gpu, few, sizeof few));
        printf(" %s\n", few);
        failed = rsmi_dev_firmware_version_get(gpu, 5, &number);
        printf("firmware: %d %" PRIu64 ", none: %d\n", failed, number, rsmi_dev_firmware_version_get(gpu, 0, &number));
    }
    int64_t value;
    uint32_t percent;
    char serial[16];
    printf("not supported: %d %d %d\n", rsmi_dev_temp_metric_get(0, 0, 0, &value), rsmi_dev_busy_percent_get(0, &percent),
           rsmi_dev_serial_number_get(0, serial, sizeof serial));
    printf("no such GPU: %d %d\n", rsmi_dev_unique_id_get(count, &number), rsmi_dev_busy_percent_get(count, &percent));
    printf("no place: %d\n", rsmi_dev_unique_id_get(0, NULL));
    int kind = 0;
    for (uint32_t to = 0; to < 2; ++to) {
        uint32_t end = to ? UINT32_MAX : 1;
        int failed = rsmi_topo_get_link_type(0, end, &number, &kind);
        printf("link: %d, %" PRIu64 " hops, kind %d, weight %d", failed, number, kind, rsmi_topo_get_link_weight(0, end, &other));
        printf(" %" PRIu64 "\n", other);
    }
    uint32_t processes = 0;
    printf("processes: %d", rsmi_compute_process_info_get(NULL, &processes));
    printf(" %u\n", processes);
    void *memory;
    if (hipMalloc(&memory, 5 << 20))
        return 1;
    process own;
    processes = 1;
    printf("memory: %d", rsmi_dev_memory_usage_get(0, 0, &number));
    printf(" %d\n", number >= 5 << 20);
    printf("processes: %d", rsmi_compute_process_info_get(&own, &processes));
    printf(" %u, this: %d, memory: %d\n", processes, own.id == (uint32_t)getpid(), own.memory == number);
    if (hipFree(memory) || rsmi_shut_down())
        return 1;
    printf("after: %d\n", rsmi_shut_down());
    return 0;
}
