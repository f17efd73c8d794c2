#!/bin/sh
# Rebuilds kernels.co from kernels.cl with the distribution's clang.
set -e
cd "$(dirname "$0")"
clang-19 -x cl -cl-std=CL2.0 -Xclang -finclude-default-header -target amdgcn-amd-amdhsa -mcpu=gfx90a \
  -mcode-object-version=5 -nogpulib -O2 -cl-uniform-work-group-size -fuse-ld=lld -Wall kernels.cl -o kernels.co
