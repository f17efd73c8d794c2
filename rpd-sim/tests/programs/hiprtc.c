/* Compiles kernels at run time, and runs one by its lowered name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int hiprtcCreateProgram(void **program, const char *source, const char *name, int count, const char **headers, const char **names);
int hiprtcDestroyProgram(void **program);
int hiprtcAddNameExpression(void *program, const char *expression);
int hiprtcCompileProgram(void *program, int count, const char **options);
int hiprtcGetLoweredName(void *program, const char *expression, const char **lowered);
int hiprtcGetProgramLogSize(void *program, size_t *size);
int hiprtcGetProgramLog(void *program, char *log);
int hiprtcGetCodeSize(void *program, size_t *size);
int hiprtcGetCode(void *program, char *code);
const char *hiprtcGetErrorString(int result);
int hipMalloc(void **pointer, size_t size);
int hipMemcpy(void *to, const void *from, size_t size, int kind);
int hipModuleLoadData(void **module, const void *image);
int hipModuleGetFunction(void **function, void *module, const char *name);
int hipModuleLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream, void **params, void **extra);

#define RIGHT(call) \
    do { \
        int result_ = (call); \
        if (result_) { \
            printf("%s: %d\n", #call, result_); \
            exit(1); \
        } \
    } while (0)

static const char *const SOURCE =
    "#include <hip/hip_runtime.h>\n"
    "#include \"factor.h\"\n"
    "template <class T> __global__ void scale(T *data, T term) {\n"
    "    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    data[i] = FACTOR * data[i] + term + EXTRA * (gridDim.x - 4);\n"
    "}\n";

static void print_log(void *program) {
    size_t size;
    RIGHT(hiprtcGetProgramLogSize(program, &size));
    char *log = malloc(size);
    RIGHT(hiprtcGetProgramLog(program, log));
    printf("%s", log);
    free(log);
}

int main(void) {
    void *program, *module, *function;
    const char *header = "#define FACTOR 3\n", *header_name = "factor.h", *lowered;
    RIGHT(hiprtcCreateProgram(&program, SOURCE, "scale.hip", 1, &header, &header_name));
    RIGHT(hiprtcAddNameExpression(program, "scale<float>"));
    const char *options[] = {"-DEXTRA=7", "--gpu-architecture=gfx90a:sramecc+:xnack-"};
    int result = hiprtcCompileProgram(program, 2, options);
    if (result) {
        printf("%s\n", hiprtcGetErrorString(result));
        print_log(program);
        return 0;
    }
    RIGHT(hiprtcGetLoweredName(program, "scale<float>", &lowered));
    printf("%s\n", lowered);
    printf("another name: %d\n", hiprtcGetLoweredName(program, "scale<int>", &lowered));
    size_t size;
    RIGHT(hiprtcGetCodeSize(program, &size));
    char *code = malloc(size);
    RIGHT(hiprtcGetCode(program, code));
    RIGHT(hiprtcGetLoweredName(program, "scale<float>", &lowered));
    RIGHT(hipModuleLoadData(&module, code));
    RIGHT(hipModuleGetFunction(&function, module, lowered));
    RIGHT(hiprtcDestroyProgram(&program));
    printf("destroyed twice: %d\n", hiprtcDestroyProgram(&program));

    float data[256], *device, term = 0.5f;
    for (int n = 0; n < 256; ++n)
        data[n] = (float)n;
    RIGHT(hipMalloc((void **)&device, sizeof data));
    RIGHT(hipMemcpy(device, data, sizeof data, 1));
    void *params[] = {&device, &term};
    RIGHT(hipModuleLaunchKernel(function, 4, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
    RIGHT(hipMemcpy(data, device, sizeof data, 2));
    for (int n = 0; n < 256; ++n) {
        if (data[n] != 3.0f * (float)n + 0.5f) {
            printf("%d: %f\n", n, data[n]);
            return 1;
        }
    }
    printf("right\n");

    RIGHT(hiprtcCreateProgram(&program, "__global__ void wrong() {\n    missing();\n}\n", "wrong.hip", 0, NULL, NULL));
    printf("%s\n", hiprtcGetErrorString(hiprtcCompileProgram(program, 0, NULL)));
    print_log(program);
    return 0;
}
