/* Compiles a kernel that calls a function of an installation's device library, and runs it. */
#include <stdio.h>
#include <stdlib.h>

int hiprtcCreateProgram(void **program, const char *source, const char *name, int count, const char **headers, const char **names);
int hiprtcCompileProgram(void *program, int count, const char **options);
int hiprtcGetProgramLogSize(void *program, size_t *size);
int hiprtcGetProgramLog(void *program, char *log);
int hiprtcGetCodeSize(void *program, size_t *size);
int hiprtcGetCode(void *program, char *code);
int hipMalloc(void **pointer, size_t size);
int hipMemcpy(void *to, const void *from, size_t size, int kind);
int hipModuleLoadData(void **module, const void *image);
int hipModuleGetFunction(void **function, void *module, const char *name);
int hipModuleLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream, void **params, void **extra);

int main(void) {
    const char *source = "#include <hip/hip_fp16.h>\n"
                         "extern \"C\" __global__ void run(float *out) { *out = from_library(OFFSET); }\n";
    void *program, *module, *function;
    size_t size;
    if (hiprtcCreateProgram(&program, source, "installed.hip", 0, NULL, NULL))
        return 1;
    if (hiprtcCompileProgram(program, 0, NULL)) {
        hiprtcGetProgramLogSize(program, &size);
        char *log = malloc(size);
        hiprtcGetProgramLog(program, log);
        printf("%s", log);
        return 0;
    }
    hiprtcGetCodeSize(program, &size);
    char *code = malloc(size);
    hiprtcGetCode(program, code);
    float value = 0, *device;
    void *params[] = {&device};
    if (hipModuleLoadData(&module, code) || hipModuleGetFunction(&function, module, "run"))
        return 2;
    if (hipMalloc((void **)&device, sizeof value))
        return 3;
    if (hipModuleLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL))
        return 4;
    if (hipMemcpy(&value, device, sizeof value, 2))
        return 5;
    printf("%g\n", value);
    return 0;
}
