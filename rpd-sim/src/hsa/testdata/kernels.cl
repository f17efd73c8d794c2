// Kernels of the tests in ../tests. Built with:
//   clang-19 -x cl -cl-std=CL2.0 -target amdgcn-amd-amdhsa -mcpu=gfx90a -O2 -nogpulib \
//     -Xclang -finclude-default-header kernels.cl -o kernels.co

kernel void nothing(void) {}

kernel void add_one(global int *data) {
  uint i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
  data[i] += 1;
}

kernel void store_to(ulong address) { *(global int *)address = 1; }

kernel void unknown_instruction(void) { __asm__ volatile(".long 0xffffffff"); }

kernel void wait_for(global int *flag) {
  while (__opencl_atomic_load((global atomic_int *)flag, memory_order_relaxed,
                              memory_scope_all_svm_devices) == 0) {
  }
}

__attribute__((visibility("protected"))) global int counter = 7;

kernel void count(void) { counter += 1; }
