/* hsa-images: an image of packed texels (565) through HSA alone, as the runtime describes it and as another driver does.
 * A kernel loads every texel of both, and the program checks them. Needs a gfx90a. */
#include "hsa-program.h"

EMBED(".rodata", image_kernels, "images-gfx90a.co");

enum { WIDTH = 64, HEIGHT = COUNT / WIDTH, PITCH = 256 };

/* Bytes of the code object: its section headers are last. */
static size_t code_size(void) {
    uint64_t headers;
    uint16_t entry[2];
    memcpy(&headers, image_kernels + 40, sizeof headers);
    memcpy(entry, image_kernels + 58, sizeof entry);
    return headers + (size_t)entry[0] * entry[1];
}

static float channel(uint16_t texel, int low, int bits) {
    return (float)(texel >> low & ((1 << bits) - 1)) / (float)((1 << bits) - 1);
}

int main(void) {
    set_up();
    hsa_code_object_reader_t images;
    hsa_executable_t loaded;
    HSA(hsa_code_object_reader_create_from_memory(image_kernels, code_size(), &images));
    HSA(hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, NULL, &loaded));
    HSA(hsa_executable_load_agent_code_object(loaded, found.gpu, images, NULL, NULL));
    HSA(hsa_executable_freeze(loaded, NULL));
    struct kernel load = kernel_named(loaded, "load_2d.kd");

    uint16_t *texels = allocate(found.host, COUNT * sizeof *texels);
    for (uint32_t i = 0; i < COUNT; ++i)
        texels[i] = (uint16_t)(i * 40503u >> 3);
    void *memory = allocate(found.device, PITCH * HEIGHT);
    const hsa_ext_image_descriptor_t descriptor = {HSA_EXT_IMAGE_GEOMETRY_2D, WIDTH, HEIGHT, 0, 0,
                                                   HSA_EXT_IMAGE_CHANNEL_TYPE_UNORM_SHORT_565,
                                                   HSA_EXT_IMAGE_CHANNEL_ORDER_RGB};
    hsa_ext_image_t own[2];
    HSA(hsa_ext_image_create_with_layout(found.gpu, &descriptor, memory, HSA_ACCESS_PERMISSION_RW,
                                         HSA_EXT_IMAGE_DATA_LAYOUT_LINEAR, PITCH, 0, &own[0]));
    const hsa_ext_image_region_t all = {{0, 0, 0}, {WIDTH, HEIGHT, 1}};
    HSA(hsa_ext_image_import(found.gpu, texels, 0, 0, own[0], &all));
    /* Version, device, and the descriptor without an address: texels of 16 bits in rows of 256 bytes, two dimensions. */
    uint32_t device;
    HSA(hsa_agent_get_info(found.gpu, HSA_AMD_AGENT_INFO_CHIP_ID, &device));
    const uint32_t layout[10] = {
        1, 0x1002u << 16 | device, 0, 2u << 20, (WIDTH - 1) | (HEIGHT - 1) << 14, 9u << 28, (PITCH / 2 - 1) << 13,
    };
    HSA(hsa_amd_image_create(found.gpu, &descriptor, layout, memory, HSA_ACCESS_PERMISSION_RW, &own[1]));

    struct {
        uint32_t image[12], sampler[4];
    } *object = allocate(found.host, sizeof *object);
    float(*out)[4] = allocate(found.host, COUNT * sizeof *out);
    uint32_t(*at)[4] = allocate(found.host, COUNT * sizeof *at);
    for (uint32_t i = 0; i < COUNT; ++i) {
        at[i][0] = i % WIDTH;
        at[i][1] = i / WIDTH;
    }
    struct {
        void *object, *out, *at;
        uint32_t count;
        /* What kernels find after their arguments. */
        uint32_t block_count[3] __attribute__((aligned(8)));
        uint16_t block_size[3];
    } *arguments = allocate(found.kernarg, load.kernarg_size < 64 ? 64 : load.kernarg_size);
    arguments->object = object;
    arguments->out = out;
    arguments->at = at;
    arguments->count = COUNT;
    arguments->block_count[0] = COUNT / BLOCK;
    arguments->block_size[0] = BLOCK;
    hsa_queue_t *queue;
    hsa_signal_t done;
    HSA(hsa_queue_create(found.gpu, 64, HSA_QUEUE_TYPE_MULTI, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue));
    HSA(hsa_signal_create(1, 0, NULL, &done));
    for (int n = 0; n < 2; ++n) {
        memcpy(object->image, (const void *)own[n].handle, sizeof object->image);
        memset(out, 0xff, COUNT * sizeof *out);
        hsa_signal_store_relaxed(done, 1);
        dispatch(queue, &load, arguments, done);
        hsa_signal_wait_scacquire(done, HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX, HSA_WAIT_STATE_BLOCKED);
        for (uint32_t i = 0; i < COUNT; ++i) {
            uint16_t texel = texels[i];
            const float expected[4] = {channel(texel, 11, 5), channel(texel, 5, 6), channel(texel, 0, 5), 1};
            if (memcmp(out[i], expected, sizeof expected))
                FAIL("image %d, texel %u: %x is (%g, %g, %g, %g)", n, i, texel, out[i][0], out[i][1], out[i][2],
                     out[i][3]);
        }
        HSA(hsa_ext_image_destroy(found.gpu, own[n]));
    }
    HSA(hsa_queue_destroy(queue));
    HSA(hsa_signal_destroy(done));
    HSA(hsa_executable_destroy(loaded));
    HSA(hsa_shut_down());
    puts("ok");
    return 0;
}
