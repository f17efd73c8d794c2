/* What programs without HIP need: agents, memory pools, a loaded code object, packets. */
#ifndef RPD_HSA_PROGRAM_H
#define RPD_HSA_PROGRAM_H

#include "hsa.h"
#include "workload.h"

#include <string.h>

#include "fatbin.h"

EMBED(".rodata", module_bundle, "module.hipfb");

#define HSA(call)                                                                                                      \
    do {                                                                                                               \
        hsa_status_t status_ = (call);                                                                                 \
        if (status_ != HSA_STATUS_SUCCESS) {                                                                           \
            const char *text_ = NULL;                                                                                  \
            hsa_status_string(status_, &text_);                                                                        \
            FAIL("%s: %s (0x%x)", #call, text_ ? text_ : "?", status_);                                                \
        }                                                                                                              \
    } while (0)

enum { COUNT = 4096, BLOCK = 64 };
static const size_t BYTES = COUNT * sizeof(uint32_t);

static struct {
    hsa_agent_t cpu, gpu;
    hsa_amd_memory_pool_t host, kernarg, device;
} found;

static hsa_status_t take_agent(hsa_agent_t agent, void *data) {
    (void)data;
    uint32_t type;
    HSA(hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type));
    if (type == HSA_DEVICE_TYPE_CPU && !found.cpu.handle)
        found.cpu = agent;
    if (type == HSA_DEVICE_TYPE_GPU && !found.gpu.handle)
        found.gpu = agent;
    return HSA_STATUS_SUCCESS;
}

static hsa_status_t take_pool(hsa_amd_memory_pool_t pool, void *of_gpu) {
    uint32_t segment, flags;
    uint8_t allocatable; /* a C++ bool */
    HSA(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment));
    if (segment != HSA_AMD_SEGMENT_GLOBAL)
        return HSA_STATUS_SUCCESS;
    HSA(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &flags));
    HSA(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED, &allocatable));
    if (!allocatable)
        return HSA_STATUS_SUCCESS;
    if (of_gpu) {
        if (flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED && !found.device.handle)
            found.device = pool;
    } else {
        if (flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT && !found.kernarg.handle)
            found.kernarg = pool;
        if (flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED && !found.host.handle)
            found.host = pool;
    }
    return HSA_STATUS_SUCCESS;
}

/* The code object for `gpu` in an uncompressed offload bundle. */
static const void *code_object_for(const char *gpu, size_t *size) {
    const unsigned char *at = module_bundle + 24;
    uint64_t entries;
    memcpy(&entries, at, 8);
    at += 8;
    for (; entries; --entries) {
        uint64_t field[3]; /* offset, size, length of the name */
        memcpy(field, at, sizeof field);
        at += sizeof field;
        size_t length = strlen(gpu);
        if (field[2] >= length && !memcmp(at + field[2] - length, gpu, length)) {
            *size = field[1];
            return module_bundle + field[0];
        }
        at += field[2];
    }
    FAIL("no code object for %s", gpu);
}

static void *allocate(hsa_amd_memory_pool_t pool, size_t size) {
    void *pointer;
    HSA(hsa_amd_memory_pool_allocate(pool, size, 0, &pointer));
    HSA(hsa_amd_agents_allow_access(1, &found.gpu, NULL, pointer));
    return pointer;
}

static void copy(void *dst, hsa_agent_t to, const void *src, hsa_agent_t from, hsa_signal_t done) {
    hsa_signal_store_relaxed(done, 1);
    HSA(hsa_amd_memory_async_copy(dst, to, src, from, BYTES, 0, NULL, done));
    hsa_signal_wait_scacquire(done, HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX, HSA_WAIT_STATE_BLOCKED);
}

static uint16_t header(int type) {
    return (uint16_t)(type | 1 << HSA_PACKET_HEADER_BARRIER | HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_ACQUIRE |
                      HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_RELEASE);
}

static void *reserve(hsa_queue_t *queue, uint64_t *index) {
    *index = hsa_queue_add_write_index_screlease(queue, 1);
    while (*index - hsa_queue_load_read_index_scacquire(queue) >= queue->size)
        ;
    return (char *)queue->base_address + 64 * (*index % queue->size);
}

/* Makes the packet visible with its header, then rings. */
static void submit(hsa_queue_t *queue, uint64_t index, void *packet, uint16_t packet_header, uint16_t setup) {
    __atomic_store_n((uint32_t *)packet, (uint32_t)setup << 16 | packet_header, __ATOMIC_RELEASE);
    hsa_signal_store_screlease(queue->doorbell_signal, (hsa_signal_value_t)index);
}

struct kernel {
    uint64_t object;
    uint32_t kernarg_size, group_size, private_size;
};

static struct kernel kernel_named(hsa_executable_t executable, const char *name) {
    struct kernel k;
    hsa_executable_symbol_t symbol;
    HSA(hsa_executable_get_symbol_by_name(executable, name, &found.gpu, &symbol));
    HSA(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &k.object));
    HSA(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE,
                                       &k.kernarg_size));
    HSA(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE, &k.group_size));
    HSA(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE,
                                       &k.private_size));
    return k;
}

static void dispatch(hsa_queue_t *queue, const struct kernel *k, void *kernarg, hsa_signal_t done) {
    uint64_t index;
    hsa_kernel_dispatch_packet_t *packet = reserve(queue, &index);
    memset((char *)packet + 4, 0, sizeof *packet - 4);
    packet->workgroup_size_x = BLOCK;
    packet->workgroup_size_y = packet->workgroup_size_z = 1;
    packet->grid_size_x = COUNT;
    packet->grid_size_y = packet->grid_size_z = 1;
    packet->private_segment_size = k->private_size;
    packet->group_segment_size = k->group_size;
    packet->kernel_object = k->object;
    packet->kernarg_address = kernarg;
    packet->completion_signal = done;
    submit(queue, index, packet, header(HSA_PACKET_TYPE_KERNEL_DISPATCH), 1);
}

static hsa_code_object_reader_t reader;
static hsa_executable_t executable;

/* Initialises the runtime, finds what is needed, and loads the kernels. */
static void set_up(void) {
    HSA(hsa_init());
    HSA(hsa_iterate_agents(take_agent, NULL));
    if (!found.gpu.handle || !found.cpu.handle)
        FAIL("no GPU or no CPU agent");
    HSA(hsa_amd_agent_iterate_memory_pools(found.cpu, take_pool, NULL));
    HSA(hsa_amd_agent_iterate_memory_pools(found.gpu, take_pool, &found));
    if (!found.host.handle || !found.kernarg.handle || !found.device.handle)
        FAIL("a memory pool is missing");
    char name[64] = "";
    HSA(hsa_agent_get_info(found.gpu, HSA_AGENT_INFO_NAME, name));

    size_t size = 0;
    const void *image = code_object_for(name, &size);
    HSA(hsa_code_object_reader_create_from_memory(image, size, &reader));
    HSA(hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, NULL, &executable));
    HSA(hsa_executable_load_agent_code_object(executable, found.gpu, reader, NULL, NULL));
    HSA(hsa_executable_freeze(executable, NULL));
}

#endif
