#!/bin/sh
# Rebuilds the code objects of blit.cl, one for each device, with the distribution's clang.
set -e
cd "$(dirname "$0")"
for processor in gfx90a gfx942; do
  clang-19 -x cl -cl-std=CL2.0 -Xclang -finclude-default-header -target amdgcn-amd-amdhsa -mcpu=$processor \
    -mcode-object-version=5 -nogpulib -O2 -cl-uniform-work-group-size -fuse-ld=lld -Wall -Wno-unused-parameter blit.cl \
    -o blit-$processor.co
done
