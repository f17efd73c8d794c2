#!/bin/sh
# Checks of the provider `cuda` on a machine with an NVIDIA GPU, which the tests of the workspace do without.
#
# usage: check.sh DIRECTORY-OF-RPD [WORK-DIRECTORY]
#
# Needs nvcc for the programs in C++, and PyTorch for golden.py; a step whose tool is missing is left out, with a line.
set -u
bin=$(cd "$1" && pwd)
work=${2:-/tmp/rpd-cuda-check}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$work"
cd "$work" || exit 2
rpd=$bin/rpd
failed=0

say() { printf '\n=== %s\n' "$*"; }
expect() {
    if [ "$2" = "$3" ]; then echo "ok: $1: $2"; else echo "FAILED: $1: $2 instead of $3"; failed=1; fi
}
rows() { tail -n +2 "$1" 2>/dev/null | wc -l; }

if command -v nvcc >/dev/null; then
    say "programs"
    for name in plain bench kill inside; do
        nvcc -O2 -DNVTX -lineinfo -o $name "$here/$name.cu" -ldl 2>&1 | grep -v "^$" &
    done
    wait

    say "plain: calls, kernels, copies, marks"
    "$rpd" --runtime-trace -f csv json rocpd -d plain-out -o p --backend cuda -- ./plain
    expect kernels "$(rows plain-out/p_kernel_trace.csv)" 10
    expect "copies and fills" "$(rows plain-out/p_memory_copy_trace.csv)" 9
    head -3 plain-out/p_kernel_trace.csv plain-out/p_cuda_api_trace.csv plain-out/p_marker_api_trace.csv plain-out/p_agent_info.csv |
        cut -c1-400

    say "plain: all calls, and graphs as a whole"
    "$rpd" --sys-trace --cuda-api all --cuda-graph-trace graph -f csv -d graph-out -o g --backend cuda -- ./plain
    expect "kernels and graphs" "$(rows graph-out/g_kernel_trace.csv)" 8
    expect "runtime calls" "$(rows graph-out/g_cuda_api_trace.csv)" 42

    say "plain: waits, and kernels of a graph by the lines that captured them"
    "$rpd" --cuda-trace --cuda-api all --kernel-trace --stacks native -f rocpd -d stacks-out -o s --backend cuda -- ./plain
    "$rpd" query stacks-out/s_results.db "SELECT name, count(*) FROM hip_events GROUP BY 1"
    "$rpd" stacks stacks-out/s_results.db --kernels
    by_launch=$("$rpd" query -f csv stacks-out/s_results.db "SELECT count(*) FROM rocpd_kernel_dispatch k
        LEFT JOIN rpd_captured_node n ON n.graph_exec_id = k.graph_exec_id AND n.graph_node_id = k.graph_node_id
        WHERE k.graph_exec_id > 0 AND n.id IS NULL" | tail -1)
    expect "kernels of graphs without a captured call" "$by_launch" 0

    say "inside: PC samples (bare, then every 65536 cycles, then as a user without rights)"
    ./inside
    sample="--pc-sampling-beta-enabled --pc-sampling-method stochastic --pc-sampling-unit cycles"
    # shellcheck disable=SC2086
    "$rpd" $sample --pc-sampling-interval 65536 --kernel-trace -f rocpd csv -d inside-out -o i --backend cuda -- ./inside
    "$rpd" hot inside-out/i_results.db --lines 3 --instructions 2
    "$rpd" query inside-out/i_results.db "SELECT kernel, file, line, samples, issued FROM pc_lines LIMIT 8"
    top=$("$rpd" query -f csv inside-out/i_results.db "SELECT issue FROM rpd_pc_total p
        JOIN rocpd_info_kernel_symbol y ON y.id = p.kernel_id WHERE y.kernel_name LIKE '%chase%'
        GROUP BY 1 ORDER BY sum(samples) DESC LIMIT 1" | tail -1)
    expect "reason of most samples of chase" "$top" LONG_SCOREBOARD
    expect "kernels recorded beside the samples" "$(rows inside-out/i_kernel_trace.csv)" 84000
    if command -v nvdisasm >/dev/null; then
        lines=$("$rpd" query -f csv inside-out/i_results.db "SELECT count(*) > 3 FROM pc_lines WHERE line > 0" | tail -1)
        expect "more than three source lines with samples" "$lines" 1
    fi
    # shellcheck disable=SC2086
    "$rpd" $sample --pc-sampling-interval 32 -f csv -d full-out -o f --backend cuda -- ./inside 2>&1 | grep "CUDA" | cut -c1-200
    # shellcheck disable=SC2086
    (umask 0 && mkdir -p user-out && chmod 777 user-out && setpriv --reuid 65534 --clear-groups --inh-caps=-all --bounding-set=-all \
        "$rpd" $sample --pc-sampling-interval 65536 -f csv -d user-out -o u --backend cuda -- ./inside 2>&1 | grep -v "^chase" | cut -c1-300)
    grep RmProfilingAdminOnly /proc/driver/nvidia/params

    say "bench: bare, then with rpd"
    BENCH_CPU=2 ./bench bare getdev,launch,memcpy,graph,nvtx,mt 5
    BENCH_CPU=2 "$rpd" --cuda-trace --kernel-trace --memory-copy-trace --marker-trace --cuda-graph-trace node -f rocpd \
        -d bench-out -o b --backend cuda -- ./bench rpd getdev,launch,memcpy,graph,nvtx,mt 5
    ls -l bench-out

    say "a million kernels"
    time ./bench bare million 1
    time "$rpd" --kernel-trace --cuda-trace -f rocpd -d million-out -o m --backend cuda -- ./bench rpd million 1

    say "killed with SIGKILL"
    "$rpd" --kernel-trace --cuda-trace -f csv -d kill-out -o k --backend cuda -- \
        sh -c './kill state 1000 & pid=$!; sleep 2.5; kill -9 $pid; wait $pid' 2>&1 | tail -3
    python3 - "$(ls kill-out/*kernel_trace.csv | head -1)" <<'P'
import struct, sys
words = struct.unpack("4Q", open("state", "rb").read(32))
rows = sum(1 for _ in open(sys.argv[1])) - 1
print(f"launched {words[0]}, complete {words[1]}, recorded {rows}, lost {words[1] - rows}")
P
else
    echo "left out: programs in C++ (no nvcc)"
fi

if python3 -c 'import torch; torch.cuda.init()' 2>/dev/null; then
    say "golden.py beside torch.profiler"
    python3 "$here/golden.py" torch trace.json
    "$rpd" --cuda-trace --kernel-trace --memory-copy-trace --marker-trace --memory-allocation-trace --stacks merged \
        -f rocpd -d golden-out -o g --backend cuda -- python3 "$here/golden.py" rpd
    python3 "$here/compare.py" golden-out/g_results.db trace.json || failed=1
else
    echo "left out: golden.py (no PyTorch with CUDA)"
fi
exit $failed
