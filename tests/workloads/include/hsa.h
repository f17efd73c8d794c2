/* The part of the HSA runtime interface that the workloads use: hand-written declarations, ABI-equal
 * to the real ones. build.sh takes the names of the import library from them. */
#ifndef RPD_HSA_H
#define RPD_HSA_H

#include <stddef.h>
#include <stdint.h>

typedef uint32_t hsa_status_t;
enum { HSA_STATUS_SUCCESS = 0, HSA_STATUS_INFO_BREAK = 1 };

typedef struct { uint64_t handle; } hsa_agent_t;
typedef struct { uint64_t handle; } hsa_signal_t;
typedef struct { uint64_t handle; } hsa_code_object_reader_t;
typedef struct { uint64_t handle; } hsa_executable_t;
typedef struct { uint64_t handle; } hsa_executable_symbol_t;
typedef struct { uint64_t handle; } hsa_loaded_code_object_t;
typedef struct { uint64_t handle; } hsa_amd_memory_pool_t;
typedef struct { uint64_t handle; } hsa_ext_image_t;
typedef struct { uint32_t x, y, z; } hsa_dim3_t;
typedef int64_t hsa_signal_value_t;

/* hsa_agent_info_t */
enum { HSA_AGENT_INFO_NAME = 0, HSA_AGENT_INFO_QUEUE_MAX_SIZE = 14, HSA_AGENT_INFO_DEVICE = 17 };
enum { HSA_DEVICE_TYPE_CPU = 0, HSA_DEVICE_TYPE_GPU = 1 };

/* hsa_amd_memory_pool_info_t, segments and flags */
enum {
    HSA_AMD_MEMORY_POOL_INFO_SEGMENT = 0,
    HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS = 1,
    HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED = 5,
};
enum { HSA_AMD_SEGMENT_GLOBAL = 0 };
enum {
    HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT = 1,
    HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED = 2,
    HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED = 4,
};

/* hsa_executable_symbol_info_t */
enum {
    HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE = 11,
    HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE = 13,
    HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE = 14,
    HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT = 22,
};

enum { HSA_PROFILE_FULL = 1, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT = 0 };
enum { HSA_QUEUE_TYPE_MULTI = 0, HSA_QUEUE_TYPE_COOPERATIVE = 2 };
enum { HSA_SIGNAL_CONDITION_EQ = 0, HSA_SIGNAL_CONDITION_NE = 1, HSA_SIGNAL_CONDITION_LT = 2 };
enum { HSA_WAIT_STATE_BLOCKED = 0 };

typedef struct {
    uint32_t type;
    uint32_t features;
    void *base_address;
    hsa_signal_t doorbell_signal;
    uint32_t size;
    uint32_t reserved1;
    uint64_t id;
} hsa_queue_t;

/* AQL packets: 64 bytes, the header written last. */
enum { HSA_PACKET_TYPE_KERNEL_DISPATCH = 2, HSA_PACKET_TYPE_BARRIER_AND = 3, HSA_PACKET_TYPE_BARRIER_OR = 5 };
enum { HSA_PACKET_HEADER_BARRIER = 8, HSA_PACKET_HEADER_ACQUIRE = 9, HSA_PACKET_HEADER_RELEASE = 11 };
enum { HSA_FENCE_SCOPE_SYSTEM = 2 };

typedef struct {
    uint16_t header;
    uint16_t setup;
    uint16_t workgroup_size_x, workgroup_size_y, workgroup_size_z;
    uint16_t reserved0;
    uint32_t grid_size_x, grid_size_y, grid_size_z;
    uint32_t private_segment_size;
    uint32_t group_segment_size;
    uint64_t kernel_object;
    void *kernarg_address;
    uint64_t reserved2;
    hsa_signal_t completion_signal;
} hsa_kernel_dispatch_packet_t;

typedef struct {
    uint16_t header;
    uint16_t reserved0;
    uint32_t reserved1;
    hsa_signal_t dep_signal[5];
    uint64_t reserved2;
    hsa_signal_t completion_signal;
} hsa_barrier_packet_t;

hsa_status_t hsa_init(void);
hsa_status_t hsa_shut_down(void);
hsa_status_t hsa_status_string(hsa_status_t status, const char **text);
hsa_status_t hsa_iterate_agents(hsa_status_t (*callback)(hsa_agent_t agent, void *data), void *data);
hsa_status_t hsa_agent_get_info(hsa_agent_t agent, uint32_t attribute, void *value);

hsa_status_t hsa_signal_create(hsa_signal_value_t initial, uint32_t consumer_count, const hsa_agent_t *consumers,
                               hsa_signal_t *signal);
hsa_status_t hsa_signal_destroy(hsa_signal_t signal);
hsa_signal_value_t hsa_signal_load_relaxed(hsa_signal_t signal);
void hsa_signal_store_relaxed(hsa_signal_t signal, hsa_signal_value_t value);
void hsa_signal_store_screlease(hsa_signal_t signal, hsa_signal_value_t value);
hsa_signal_value_t hsa_signal_wait_scacquire(hsa_signal_t signal, uint32_t condition, hsa_signal_value_t compare,
                                             uint64_t timeout, uint32_t wait_state);

hsa_status_t hsa_queue_create(hsa_agent_t agent, uint32_t size, uint32_t type,
                              void (*callback)(hsa_status_t status, hsa_queue_t *source, void *data), void *data,
                              uint32_t private_segment_size, uint32_t group_segment_size, hsa_queue_t **queue);
hsa_status_t hsa_queue_destroy(hsa_queue_t *queue);
uint64_t hsa_queue_add_write_index_screlease(const hsa_queue_t *queue, uint64_t value);
uint64_t hsa_queue_load_read_index_scacquire(const hsa_queue_t *queue);

hsa_status_t hsa_code_object_reader_create_from_memory(const void *code_object, size_t size,
                                                       hsa_code_object_reader_t *reader);
hsa_status_t hsa_code_object_reader_destroy(hsa_code_object_reader_t reader);
hsa_status_t hsa_executable_create_alt(uint32_t profile, uint32_t rounding_mode, const char *options,
                                       hsa_executable_t *executable);
hsa_status_t hsa_executable_load_agent_code_object(hsa_executable_t executable, hsa_agent_t agent,
                                                   hsa_code_object_reader_t reader, const char *options,
                                                   hsa_loaded_code_object_t *loaded);
hsa_status_t hsa_executable_freeze(hsa_executable_t executable, const char *options);
hsa_status_t hsa_executable_destroy(hsa_executable_t executable);
hsa_status_t hsa_executable_get_symbol_by_name(hsa_executable_t executable, const char *name, const hsa_agent_t *agent,
                                               hsa_executable_symbol_t *symbol);
hsa_status_t hsa_executable_symbol_get_info(hsa_executable_symbol_t symbol, uint32_t attribute, void *value);

hsa_status_t hsa_amd_agent_iterate_memory_pools(hsa_agent_t agent,
                                                hsa_status_t (*callback)(hsa_amd_memory_pool_t pool, void *data),
                                                void *data);
hsa_status_t hsa_amd_memory_pool_get_info(hsa_amd_memory_pool_t pool, uint32_t attribute, void *value);
hsa_status_t hsa_amd_memory_pool_allocate(hsa_amd_memory_pool_t pool, size_t size, uint32_t flags, void **pointer);
hsa_status_t hsa_amd_memory_pool_free(void *pointer);
hsa_status_t hsa_amd_agents_allow_access(uint32_t count, const hsa_agent_t *agents, const uint32_t *flags,
                                         const void *pointer);
hsa_status_t hsa_amd_memory_async_copy(void *dst, hsa_agent_t dst_agent, const void *src, hsa_agent_t src_agent,
                                       size_t size, uint32_t dependency_count, const hsa_signal_t *dependencies,
                                       hsa_signal_t completion);

/* Images: geometry, sizes, channel type and order. */
typedef struct {
    uint32_t geometry;
    size_t width, height, depth, array_size;
    uint32_t channel_type, channel_order;
} hsa_ext_image_descriptor_t;
typedef struct { hsa_dim3_t offset, range; } hsa_ext_image_region_t;
enum { HSA_EXT_IMAGE_GEOMETRY_2D = 1, HSA_EXT_IMAGE_CHANNEL_TYPE_UNORM_SHORT_565 = 6, HSA_EXT_IMAGE_CHANNEL_ORDER_RGB = 6 };
enum { HSA_ACCESS_PERMISSION_RW = 3, HSA_EXT_IMAGE_DATA_LAYOUT_LINEAR = 1, HSA_AMD_AGENT_INFO_CHIP_ID = 0xA000 };

hsa_status_t hsa_ext_image_create_with_layout(hsa_agent_t agent, const hsa_ext_image_descriptor_t *descriptor,
                                              const void *data, uint32_t permission, uint32_t layout, size_t row_pitch,
                                              size_t slice_pitch, hsa_ext_image_t *image);
hsa_status_t hsa_ext_image_import(hsa_agent_t agent, const void *source, size_t row_pitch, size_t slice_pitch,
                                  hsa_ext_image_t image, const hsa_ext_image_region_t *region);
hsa_status_t hsa_ext_image_destroy(hsa_agent_t agent, hsa_ext_image_t image);
hsa_status_t hsa_amd_image_create(hsa_agent_t agent, const hsa_ext_image_descriptor_t *descriptor,
                                  const uint32_t *layout, const void *data, uint32_t permission,
                                  hsa_ext_image_t *image);

#endif
