#!/bin/sh
# Rebuilds prebuilt/ from the kernel sources. Needs clang, lld and the offload bundler of LLVM 19
# or newer (names with the suffix $LLVM_SUFFIX, default -19); no part of ROCm.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/prebuilt}
suffix=${LLVM_SUFFIX--19}
clang=clang$suffix
bundler=clang-offload-bundler$suffix
targets="gfx908 gfx90a gfx942 gfx1100"

for tool in "$clang" "$bundler"; do
    command -v "$tool" >/dev/null || { echo "$tool not found: install clang and lld (LLVM 19), or set LLVM_SUFFIX" >&2; exit 3; }
done
work=$(mktemp -d "${TMPDIR:-/tmp}/rpd-kernels.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
: >"$work/host"

# code_object SOURCE TARGET VERSION OUTPUT; $debug: options for debug information, with paths from the source tree's root
# $options: others
debug=
options=
code_object() {
    # shellcheck disable=SC2086
    "$clang" $debug $options -ffile-prefix-map="$here"=tests/workloads/kernels -x hip -nogpuinc -nogpulib --cuda-device-only --no-gpu-bundle-output --offload-arch="$2" \
        -mcode-object-version="$3" -O3 -Wall -fuse-cuid=none -fdebug-compilation-dir=. -o "$4" "$here/$1.hip"
}

# bundle SOURCE OUTPUT OPTION...: a code object V5 for each target
bundle() {
    source=$1
    bundle_out=$2
    shift 2
    triples=host-x86_64-unknown-linux-gnu
    inputs="-input=$work/host"
    for target in $targets; do
        code_object "$source" "$target" 5 "$work/$source-$target.co"
        triples="$triples,hipv4-amdgcn-amd-amdhsa--$target"
        inputs="$inputs -input=$work/$source-$target.co"
    done
    # shellcheck disable=SC2086
    "$bundler" -type=o -bundle-align=4096 -targets="$triples" $inputs -output="$out/$bundle_out" "$@"
}

bundle vector_ops vector_ops.hipfb
bundle basic basic.hipfb
bundle transpose transpose.hipfb
debug=-g
bundle inside inside.hipfb
bundle errors errors.hipfb
bundle faults faults.hipfb
bundle accesses accesses.hipfb
debug=-gline-tables-only
bundle slow slow.hipfb
debug=
bundle capture capture.hipfb
bundle varying varying.hipfb
bundle grids grids.hipfb
bundle module module.hipfb
bundle module module-compressed.hipfb -compress
bundle hostcall hostcall.hipfb
options=-mprintf-kind=buffered
bundle printf_buffer printf_buffer.hipfb
options=-ffp-contract=off
bundle corpus corpus.hipfb
options=
# Images: an architecture with their instructions alone.
code_object images gfx90a 5 "$out/images-gfx90a.co"
code_object module gfx90a 4 "$out/module-v4-gfx90a.co"
