#!/bin/sh
# Rebuilds the code objects of the interpreter's tests.
set -e
cd "$(dirname "$0")"
for level in 0 1 3; do
  clang-19 -x hip --offload-arch=gfx90a --cuda-device-only -nogpuinc -nogpulib -std=c++17 -O$level \
    --no-gpu-bundle-output -mcode-object-version=5 kernels.hip -o kernels-O$level.co
done
for level in 0 3; do
  clang-19 -x hip --offload-arch=gfx942 --cuda-device-only -nogpuinc -nogpulib -std=c++17 -O$level \
    --no-gpu-bundle-output -mcode-object-version=5 kernels.hip -o gfx942-O$level.co
done
for name in litmus matrices schedule spills; do
  options=-O3
  [ $name = spills ] && options=-O0
  clang-19 -x hip --offload-arch=gfx90a --cuda-device-only -nogpuinc -nogpulib -std=c++17 $options \
    --no-gpu-bundle-output -mcode-object-version=5 $name.hip -o $name.co
done
clang-19 --target=amdgcn-amd-amdhsa -mcpu=gfx90a -mcode-object-version=5 addressing.s -o addressing.co
# What LLVM knows of an instruction.
./trig-preop.py
# A bundle of two targets, plain and compressed.
for form in plain compressed; do
  compress=
  [ $form = compressed ] && compress=--offload-compress
  clang-19 -x hip --offload-arch=gfx90a:xnack- --offload-arch=gfx906 --cuda-device-only -nogpuinc -nogpulib -std=c++17 \
    -O3 --gpu-bundle-output $compress -mcode-object-version=4 small.hip -o small-$form.hipfb
done
