/* The part of the HIP host interface that the workloads use: hand-written declarations that are
 * ABI-equal to the real ones, so that a C compiler is all that building takes.
 * build.sh takes the names of the import library from the declarations below. */
#ifndef RPD_HIP_H
#define RPD_HIP_H

#include <stddef.h>
#include <stdint.h>

typedef int hipError_t;
enum { hipSuccess = 0, hipErrorInvalidValue = 1, hipErrorNotReady = 600 };

enum {
    hipMemcpyHostToHost = 0,
    hipMemcpyHostToDevice = 1,
    hipMemcpyDeviceToHost = 2,
    hipMemcpyDeviceToDevice = 3,
    hipMemcpyDefault = 4,
};
enum { hipStreamDefault = 0, hipStreamNonBlocking = 1 };
enum { hipHostMallocDefault = 0, hipHostMallocMapped = 2 };
enum { hipMemAttachGlobal = 1 };

typedef struct ihipStream_t *hipStream_t;
typedef struct ihipEvent_t *hipEvent_t;
typedef struct ihipModule_t *hipModule_t;
typedef struct ihipModuleSymbol_t *hipFunction_t;
typedef void (*hipHostFn_t)(void *data);

/* Sizes and positions in work-groups or work-items. */
typedef struct {
    uint32_t x, y, z;
} dim3;

/* Initialisation and devices */
hipError_t hipGetDeviceCount(int *count);
hipError_t hipSetDevice(int device);
hipError_t hipGetDevice(int *device);
hipError_t hipDeviceSynchronize(void);
hipError_t hipDeviceReset(void);
hipError_t hipDriverGetVersion(int *version);
hipError_t hipGetLastError(void);
hipError_t hipPeekAtLastError(void);
const char *hipGetErrorString(hipError_t error);
const char *hipGetErrorName(hipError_t error);

/* Memory */
hipError_t hipMalloc(void **pointer, size_t size);
hipError_t hipFree(void *pointer);
hipError_t hipHostMalloc(void **pointer, size_t size, unsigned int flags);
hipError_t hipHostFree(void *pointer);
hipError_t hipHostRegister(void *pointer, size_t size, unsigned int flags);
hipError_t hipHostUnregister(void *pointer);
hipError_t hipMallocManaged(void **pointer, size_t size, unsigned int flags);
hipError_t hipMemPrefetchAsync(const void *pointer, size_t count, int device, hipStream_t stream);
hipError_t hipMemAdvise(const void *pointer, size_t count, unsigned int advice, int device);
hipError_t hipExtMallocWithFlags(void **pointer, size_t size, unsigned int flags);
hipError_t hipMallocAsync(void **pointer, size_t size, hipStream_t stream);
hipError_t hipFreeAsync(void *pointer, hipStream_t stream);
hipError_t hipMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height);
hipError_t hipMemGetInfo(size_t *available, size_t *total);
hipError_t hipMemcpy(void *dst, const void *src, size_t size, int kind);
hipError_t hipMemcpyAsync(void *dst, const void *src, size_t size, int kind, hipStream_t stream);
hipError_t hipMemcpyAsync_spt(void *dst, const void *src, size_t size, int kind, hipStream_t stream);
hipError_t hipMemcpyWithStream(void *dst, const void *src, size_t size, int kind, hipStream_t stream);
hipError_t hipMemcpyHtoD(void *dst, void *src, size_t size);
hipError_t hipMemcpyDtoH(void *dst, void *src, size_t size);
hipError_t hipMemcpyDtoD(void *dst, void *src, size_t size);
hipError_t hipDeviceEnablePeerAccess(int peer, unsigned flags);
hipError_t hipMemcpyPeerAsync(void *destination, int to, const void *source, int from, size_t size, hipStream_t stream);
hipError_t hipMemcpyPeer(void *dst, int dst_device, const void *src, int src_device, size_t size);
hipError_t hipMemcpy2D(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, size_t height,
                       int kind);
hipError_t hipMemcpy2DAsync(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                            size_t height, int kind, hipStream_t stream);
hipError_t hipMemset(void *dst, int value, size_t size);
hipError_t hipMemsetAsync(void *dst, int value, size_t size, hipStream_t stream);
hipError_t hipMemsetD32(void *dst, int value, size_t count);
hipError_t hipMemset2D(void *dst, size_t pitch, int value, size_t width, size_t height);

/* Streams and events */
hipError_t hipStreamCreate(hipStream_t *stream);
hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned int flags);
hipError_t hipStreamCreateWithPriority(hipStream_t *stream, unsigned int flags, int priority);
hipError_t hipStreamDestroy(hipStream_t stream);
hipError_t hipStreamSynchronize(hipStream_t stream);
hipError_t hipStreamQuery(hipStream_t stream);
hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned int flags);
hipError_t hipEventQuery(hipEvent_t event);
hipError_t hipLaunchHostFunc(hipStream_t stream, hipHostFn_t function, void *data);
hipError_t hipEventCreate(hipEvent_t *event);
hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream);
hipError_t hipEventSynchronize(hipEvent_t event);
hipError_t hipEventElapsedTime(float *milliseconds, hipEvent_t start, hipEvent_t stop);
hipError_t hipEventDestroy(hipEvent_t event);

/* Memory and events that processes share */
enum { hipEventDisableTiming = 2, hipEventInterprocess = 4, hipIpcMemLazyEnablePeerAccess = 1 };
enum { hipErrorInvalidContext = 201 };
typedef struct {
    char reserved[64];
} hipIpcMemHandle_t, hipIpcEventHandle_t;
hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned int flags);
hipError_t hipIpcGetMemHandle(hipIpcMemHandle_t *handle, void *pointer);
hipError_t hipIpcOpenMemHandle(void **pointer, hipIpcMemHandle_t handle, unsigned int flags);
hipError_t hipIpcCloseMemHandle(void *pointer);
hipError_t hipIpcGetEventHandle(hipIpcEventHandle_t *handle, hipEvent_t event);
hipError_t hipIpcOpenEventHandle(hipEvent_t *event, hipIpcEventHandle_t handle);

/* Launches and modules */
hipError_t hipLaunchKernel(const void *function, dim3 grid, dim3 block, void **args, size_t shared, hipStream_t stream);
hipError_t hipModuleLoad(hipModule_t *module, const char *path);
hipError_t hipModuleLoadData(hipModule_t *module, const void *image);
hipError_t hipModuleUnload(hipModule_t module);
hipError_t hipModuleGetGlobal(void **variable, size_t *size, hipModule_t module, const char *name);
hipError_t hipMemAddressReserve(void **address, size_t size, size_t alignment, void *wanted, unsigned long long flags);
hipError_t hipMemAddressFree(void *address, size_t size);
hipError_t hipModuleGetFunction(hipFunction_t *function, hipModule_t module, const char *name);
hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                                 unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared,
                                 hipStream_t stream, void **params, void **extra);

/* Cooperative launches, whose workgroups wait for each other, also over several devices */
enum { hipErrorInvalidDevice = 101, hipErrorInvalidHandle = 400, hipErrorCooperativeLaunchTooLarge = 720 };
enum { hipCooperativeLaunchMultiDeviceNoPreSync = 1, hipCooperativeLaunchMultiDeviceNoPostSync = 2 };
typedef struct {
    void *func;
    dim3 gridDim, blockDim;
    void **args;
    size_t sharedMem;
    hipStream_t stream;
} hipLaunchParams;
typedef struct {
    hipFunction_t function;
    unsigned int gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    hipStream_t hStream;
    void **kernelParams;
} hipFunctionLaunchParams;
hipError_t hipLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block, void **args, unsigned int shared,
                                      hipStream_t stream);
hipError_t hipLaunchCooperativeKernelMultiDevice(hipLaunchParams *list, int count, unsigned int flags);
hipError_t hipModuleLaunchCooperativeKernelMultiDevice(hipFunctionLaunchParams *list, unsigned int count,
                                                       unsigned int flags);

/* What the compiler emits calls of */
void **__hipRegisterFatBinary(const void *wrapper);
void __hipRegisterFunction(void **module, const void *host_function, char *device_function, const char *device_name,
                           unsigned int thread_limit, void *tid, void *bid, dim3 *block, dim3 *grid, int *wave_size);
void __hipUnregisterFatBinary(void **module);
hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block, size_t shared, hipStream_t stream);
hipError_t __hipPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, hipStream_t *stream);

/* Device variables, mapped host memory, graphs */
typedef struct hipGraph *hipGraph_t;
typedef struct hipGraphExec *hipGraphExec_t;
typedef struct hipGraphNode *hipGraphNode_t;
typedef enum { hipStreamCaptureModeGlobal, hipStreamCaptureModeThreadLocal, hipStreamCaptureModeRelaxed } hipStreamCaptureMode;
hipError_t hipHostGetDevicePointer(void **device, void *host, unsigned int flags);
hipError_t hipMemcpyToSymbol(const void *symbol, const void *src, size_t size, size_t offset, int kind);
hipError_t hipMemcpyFromSymbol(void *dst, const void *symbol, size_t size, size_t offset, int kind);
hipError_t hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode);
hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t *graph);
hipError_t hipGraphInstantiate(hipGraphExec_t *exec, hipGraph_t graph, hipGraphNode_t *error_node, char *log, size_t size);
hipError_t hipGraphLaunch(hipGraphExec_t exec, hipStream_t stream);
hipError_t hipGraphExecDestroy(hipGraphExec_t exec);
hipError_t hipGraphDestroy(hipGraph_t graph);

/* Graphs of nodes, and copies of boxes */
typedef struct {
    void *ptr;
    size_t pitch, xsize, ysize;
} hipPitchedPtr;
typedef struct {
    size_t width, height, depth;
} hipExtent;
typedef struct {
    void *srcArray;
    size_t srcPos[3];
    hipPitchedPtr srcPtr;
    void *dstArray;
    size_t dstPos[3];
    hipPitchedPtr dstPtr;
    hipExtent extent;
    int kind;
} hipMemcpy3DParms;
typedef struct {
    dim3 blockDim;
    void **extra;
    void *func;
    dim3 gridDim;
    void **kernelParams;
    unsigned sharedMemBytes;
} hipKernelNodeParams;
typedef struct {
    hipHostFn_t fn;
    void *userData;
} hipHostNodeParams;
typedef struct {
    int allocType, handleTypes;
    int locationType, locationId;
    void *securityAttributes;
    size_t maxSize;
    unsigned char reserved[56];
    const void *accessDescs;
    size_t accessDescCount;
    size_t bytesize;
    void *dptr;
} hipMemAllocNodeParams;
hipError_t hipMemcpy3DAsync(const hipMemcpy3DParms *parameters, hipStream_t stream);
hipError_t hipGraphCreate(hipGraph_t *graph, unsigned flags);
hipError_t hipGraphAddHostNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *from, size_t count,
                               const hipHostNodeParams *parameters);
hipError_t hipGraphAddMemcpyNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *from, size_t count,
                                 const hipMemcpy3DParms *parameters);
hipError_t hipGraphExecKernelNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node, const hipKernelNodeParams *parameters);
hipError_t hipGraphAddChildGraphNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *dependencies, size_t count,
                                     hipGraph_t child);
hipError_t hipGraphExecMemcpyNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node, hipMemcpy3DParms *parameters);
hipError_t hipGraphAddMemcpyNode1D(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *from, size_t count,
                                   void *dst, const void *src, size_t size, int kind);
hipError_t hipGraphAddKernelNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *from, size_t count,
                                 const hipKernelNodeParams *parameters);
hipError_t hipGraphAddMemAllocNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *from, size_t count,
                                   hipMemAllocNodeParams *parameters);
hipError_t hipGraphAddMemFreeNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *from, size_t count,
                                  void *memory);
hipError_t hipGraphAddMemcpyNodeToSymbol(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *from, size_t count,
                                         const void *symbol, const void *src, size_t size, size_t offset, int kind);
hipError_t hipGraphAddMemcpyNodeFromSymbol(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *from,
                                           size_t count, void *dst, const void *symbol, size_t size, size_t offset,
                                           int kind);
hipError_t hipGraphExecMemcpyNodeSetParamsToSymbol(hipGraphExec_t exec, hipGraphNode_t node, const void *symbol,
                                                   const void *src, size_t size, size_t offset, int kind);

/* Arrays, textures and surfaces */
typedef struct hipArray *hipArray_t;
typedef void *hipTextureObject_t, *hipSurfaceObject_t;
typedef struct {
    int x, y, z, w, f;
} hipChannelFormatDesc;
typedef struct {
    int resType;
    union {
        hipArray_t array;
        struct {
            void *devPtr;
            hipChannelFormatDesc desc;
            size_t sizeInBytes;
        } linear;
        size_t words[7];
    } res;
} hipResourceDesc;
typedef struct {
    int addressMode[3], filterMode, readMode, sRGB;
    float borderColor[4];
    int normalizedCoords;
    unsigned maxAnisotropy;
    int mipmapFilterMode;
    float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
} hipTextureDesc;
typedef struct {
    size_t srcXInBytes, srcY;
    int srcMemoryType;
    const void *srcHost;
    void *srcDevice;
    hipArray_t srcArray;
    size_t srcPitch;
    size_t dstXInBytes, dstY;
    int dstMemoryType;
    void *dstHost;
    void *dstDevice;
    hipArray_t dstArray;
    size_t dstPitch;
    size_t WidthInBytes, Height;
} hip_Memcpy2D;
enum { hipChannelFormatKindUnsigned = 1, hipChannelFormatKindFloat = 2, hipArraySurfaceLoadStore = 2 };
enum { hipResourceTypeArray = 0, hipResourceTypeLinear = 2 };
enum { hipMemoryTypeHost = 1, hipMemoryTypeDevice = 2, hipMemoryTypeArray = 10 };
hipError_t hipMallocArray(hipArray_t *array, const hipChannelFormatDesc *desc, size_t width, size_t height, unsigned flags);
hipError_t hipMalloc3DArray(hipArray_t *array, const hipChannelFormatDesc *desc, hipExtent extent, unsigned flags);
hipError_t hipFreeArray(hipArray_t array);
hipError_t hipMemcpy2DToArray(hipArray_t dst, size_t x, size_t y, const void *src, size_t pitch, size_t width, size_t height,
                              int kind);
hipError_t hipMemcpy2DFromArrayAsync(void *dst, size_t pitch, hipArray_t src, size_t x, size_t y, size_t width,
                                     size_t height, int kind, hipStream_t stream);
hipError_t hipMemcpyToArray(hipArray_t dst, size_t x, size_t y, const void *src, size_t count, int kind);
hipError_t hipMemcpyFromArray(void *dst, hipArray_t src, size_t x, size_t y, size_t count, int kind);
hipError_t hipMemcpyAtoH(void *dst, hipArray_t src, size_t offset, size_t count);
hipError_t hipMemcpyHtoA(hipArray_t dst, size_t offset, const void *src, size_t count);
hipError_t hipMemcpy3D(const hipMemcpy3DParms *parameters);
hipError_t hipMemcpyParam2D(const hip_Memcpy2D *parameters);
hipError_t hipDrvMemcpy2DUnaligned(const hip_Memcpy2D *parameters);
typedef struct {
    size_t srcXInBytes, srcY, srcZ, srcLOD;
    int srcMemoryType;
    const void *srcHost;
    void *srcDevice;
    hipArray_t srcArray;
    size_t srcPitch, srcHeight;
    size_t dstXInBytes, dstY, dstZ, dstLOD;
    int dstMemoryType;
    void *dstHost, *dstDevice;
    hipArray_t dstArray;
    size_t dstPitch, dstHeight;
    size_t WidthInBytes, Height, Depth;
} HIP_MEMCPY3D;
hipError_t hipDrvMemcpy3D(const HIP_MEMCPY3D *parameters);
hipError_t hipDrvMemcpy3DAsync(const HIP_MEMCPY3D *parameters, hipStream_t stream);
hipError_t hipCreateTextureObject(hipTextureObject_t *texture, const hipResourceDesc *resource,
                                  const hipTextureDesc *description, const void *view);
hipError_t hipDestroyTextureObject(hipTextureObject_t texture);
hipError_t hipCreateSurfaceObject(hipSurfaceObject_t *surface, const hipResourceDesc *resource);
hipError_t hipDestroySurfaceObject(hipSurfaceObject_t surface);

/* Physical memory that is mapped to reserved addresses */
typedef struct hipMemGenericAllocationHandle *hipMemGenericAllocationHandle_t;
typedef struct {
    int type, requestedHandleTypes, locationType, locationId;
    void *win32HandleMetaData;
    unsigned char flags[8];
} hipMemAllocationProp;
typedef struct {
    int locationType, locationId, flags;
} hipMemAccessDesc;
hipError_t hipMemGetAllocationGranularity(size_t *granularity, const hipMemAllocationProp *properties, int option);
hipError_t hipMemCreate(hipMemGenericAllocationHandle_t *handle, size_t size, const hipMemAllocationProp *properties,
                        unsigned long long flags);
hipError_t hipMemMap(void *address, size_t size, size_t offset, hipMemGenericAllocationHandle_t handle,
                     unsigned long long flags);
hipError_t hipMemSetAccess(void *address, size_t size, const hipMemAccessDesc *access, size_t count);
hipError_t hipMemUnmap(void *address, size_t size);
hipError_t hipMemRetainAllocationHandle(hipMemGenericAllocationHandle_t *handle, void *address);
hipError_t hipMemRelease(hipMemGenericAllocationHandle_t handle);

/* Nodes of any type, nodes of the driver's functions, and operations on memory in streams and graphs */
typedef struct hipCtx *hipCtx_t;
typedef struct {
    void *dst;
    unsigned elementSize;
    size_t height, pitch;
    unsigned value;
    size_t width;
} hipMemsetParams;
typedef struct {
    int type, reserved[3];
    union {
        long long words[29];
        hipKernelNodeParams kernel;
        struct {
            int flags, reserved[3];
            hipMemcpy3DParms copyParams;
        } memcpy;
        hipMemsetParams memset;
        hipHostNodeParams host;
        hipGraph_t graph;
        hipEvent_t event;
        hipMemAllocNodeParams alloc;
        void *free;
    };
    long long reserved2;
} hipGraphNodeParams;
enum {
    hipGraphNodeTypeKernel = 0,
    hipGraphNodeTypeMemcpy = 1,
    hipGraphNodeTypeMemset = 2,
    hipGraphNodeTypeHost = 3,
    hipGraphNodeTypeGraph = 4,
    hipGraphNodeTypeEmpty = 5,
    hipGraphNodeTypeWaitEvent = 6,
    hipGraphNodeTypeEventRecord = 7,
    hipGraphNodeTypeMemAlloc = 10,
    hipGraphNodeTypeMemFree = 11,
};
typedef union {
    int operation;
    struct {
        int operation;
        void *address;
        uint64_t value;
        unsigned flags;
        void *alias;
    } value;
    uint64_t pad[6];
} hipStreamBatchMemOpParams;
typedef struct {
    hipCtx_t ctx;
    unsigned count;
    hipStreamBatchMemOpParams *paramArray;
    unsigned flags;
} hipBatchMemOpNodeParams;
enum { hipStreamMemOpWaitValue32 = 1, hipStreamMemOpWriteValue32 = 2, hipStreamMemOpWriteValue64 = 5 };
hipError_t hipCtxGetCurrent(hipCtx_t *context);
hipError_t hipGraphAddNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *from, size_t count,
                           hipGraphNodeParams *parameters);
hipError_t hipGraphAddMemsetNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *from, size_t count,
                                 const hipMemsetParams *parameters);
hipError_t hipGraphNodeSetParams(hipGraphNode_t node, hipGraphNodeParams *parameters);
hipError_t hipGraphExecNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node, hipGraphNodeParams *parameters);
hipError_t hipDrvGraphAddMemcpyNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *from, size_t count,
                                    const HIP_MEMCPY3D *parameters, hipCtx_t context);
hipError_t hipDrvGraphAddMemsetNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *from, size_t count,
                                    const hipMemsetParams *parameters, hipCtx_t context);
hipError_t hipDrvGraphAddMemFreeNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *from, size_t count,
                                     void *memory);
hipError_t hipDrvGraphMemcpyNodeSetParams(hipGraphNode_t node, const HIP_MEMCPY3D *parameters);
hipError_t hipDrvGraphMemcpyNodeGetParams(hipGraphNode_t node, HIP_MEMCPY3D *parameters);
hipError_t hipDrvGraphExecMemcpyNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node, const HIP_MEMCPY3D *parameters,
                                              hipCtx_t context);
hipError_t hipDrvGraphExecMemsetNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node, const hipMemsetParams *parameters,
                                              hipCtx_t context);
hipError_t hipStreamWaitValue32(hipStream_t stream, void *address, uint32_t value, unsigned flags, uint32_t mask);
hipError_t hipStreamWriteValue32(hipStream_t stream, void *address, uint32_t value, unsigned flags);
hipError_t hipStreamBatchMemOp(hipStream_t stream, unsigned count, hipStreamBatchMemOpParams *list, unsigned flags);
hipError_t hipGraphAddBatchMemOpNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *from, size_t count,
                                     const hipBatchMemOpNodeParams *parameters);
hipError_t hipGraphBatchMemOpNodeSetParams(hipGraphNode_t node, hipBatchMemOpNodeParams *parameters);
hipError_t hipGraphExecBatchMemOpNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                               const hipBatchMemOpNodeParams *parameters);
hipError_t hipStreamBeginCaptureToGraph(hipStream_t stream, hipGraph_t graph, const hipGraphNode_t *from,
                                        const void *edges, size_t count, hipStreamCaptureMode mode);
hipError_t hipStreamGetCaptureInfo_v2(hipStream_t stream, int *status, unsigned long long *id, hipGraph_t *graph,
                                      const hipGraphNode_t **nodes, size_t *count);
hipError_t hipStreamUpdateCaptureDependencies(hipStream_t stream, hipGraphNode_t *nodes, size_t count, unsigned flags);
hipError_t hipGraphGetEdges(hipGraph_t graph, hipGraphNode_t *from, hipGraphNode_t *to, size_t *count);
hipError_t hipGraphNodeGetDependencies(hipGraphNode_t node, hipGraphNode_t *nodes, size_t *count);

/* Launches with a configuration, and launches in parts */
typedef struct {
    unsigned id;
    char pad[4];
    union {
        char bytes[64];
        int cooperative;
    } value;
} hipLaunchAttribute;
enum { hipLaunchAttributeCooperative = 2 };
typedef struct {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    hipStream_t stream;
    hipLaunchAttribute *attrs;
    unsigned numAttrs;
} hipLaunchConfig_t;
typedef struct {
    unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    hipStream_t hStream;
    hipLaunchAttribute *attrs;
    unsigned numAttrs;
} HIP_LAUNCH_CONFIG;
hipError_t hipLaunchKernelExC(const hipLaunchConfig_t *config, const void *function, void **args);
hipError_t hipDrvLaunchKernelEx(const HIP_LAUNCH_CONFIG *config, hipFunction_t function, void **params, void **extra);
hipError_t hipGetFuncBySymbol(hipFunction_t *function, const void *symbol);
hipError_t hipConfigureCall(dim3 grid, dim3 block, size_t shared, hipStream_t stream);
hipError_t hipSetupArgument(const void *argument, size_t size, size_t offset);
hipError_t hipLaunchByPtr(const void *function);

/* Texture references */
typedef struct {
    int normalized, readMode, filterMode, addressMode[3];
    hipChannelFormatDesc channelDesc;
    int sRGB;
    unsigned maxAnisotropy;
    int mipmapFilterMode;
    float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
    hipTextureObject_t textureObject;
    int numChannels, format;
} textureReference;
typedef struct {
    size_t Width, Height;
    unsigned Format, NumChannels;
} HIP_ARRAY_DESCRIPTOR;
enum { HIP_AD_FORMAT_FLOAT = 0x20, HIP_TRSA_OVERRIDE_FORMAT = 1 };
hipError_t hipModuleGetTexRef(textureReference **reference, hipModule_t module, const char *name);
hipError_t hipTexRefSetFormat(textureReference *reference, int format, int channels);
hipError_t hipTexRefSetAddressMode(textureReference *reference, int dimension, int mode);
hipError_t hipTexRefGetAddressMode(int *mode, textureReference *reference, int dimension);
hipError_t hipTexRefSetAddress(size_t *offset, textureReference *reference, void *pointer, size_t size);
hipError_t hipTexRefSetAddress2D(textureReference *reference, const HIP_ARRAY_DESCRIPTOR *descriptor, void *pointer,
                                 size_t pitch);
hipError_t hipTexRefSetArray(textureReference *reference, hipArray_t array, unsigned flags);
hipError_t hipBindTexture(size_t *offset, const textureReference *reference, const void *pointer,
                          const hipChannelFormatDesc *channels, size_t size);
hipError_t hipBindTexture2D(size_t *offset, const textureReference *reference, const void *pointer,
                            const hipChannelFormatDesc *channels, size_t width, size_t height, size_t pitch);
hipError_t hipBindTextureToArray(const textureReference *reference, hipArray_t array, const hipChannelFormatDesc *channels);
hipError_t hipUnbindTexture(const textureReference *reference);
void __hipRegisterTexture(void **modules, void *reference, char *host, char *device, int dimensions, int normalised,
                          int external);

void __hipRegisterManagedVar(void **modules, void **pointer, void *initial, const char *name, size_t size, unsigned align);
void __hipRegisterVar(void **modules, void *variable, char *host, char *device, int external, size_t size, int constant,
                      int global);

#endif
