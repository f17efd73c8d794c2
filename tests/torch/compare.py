"""Merged stacks of PyTorch operators that call HIP, beside PyTorch's view of the same calls: `compare.py RPD DIRECTORY`.

Builds operator.cpp, runs program.py with `RPD --stacks merged` on the simulator, and reads the databases. For each call of
each process the native frames must be those of PyTorch's unwinder, the Python frames those of its tracebacks with the
sources of generated code, in its order and with its lines, and each run of Python frames must stand directly inside the
evaluator that runs it. Prints what was compared and what captures cost; fails if a stack is wrong.
"""

import glob
import json
import os
import sqlite3
import subprocess
import sys

try:
    import torch
    from torch.utils import cpp_extension
except ImportError as error:
    print("skipped: stacks of PyTorch operators: %s" % error)
    sys.exit(0)

HERE = os.path.dirname(os.path.abspath(__file__))
RPD, DIRECTORY = sys.argv[1:3]
PACKAGE = os.path.join(HERE, "../../python")
# Calls that program.py makes at least, without a GPU.
FEWEST = 20
# The function of program.py that TorchScript runs, and what rpd.script adds to its name.
SCRIPTED, MARK = "scripted", " [TorchScript]"
LIBRARY = os.path.join(DIRECTORY, "operator.so")

FRAMES = """
    WITH RECURSIVE frame(place, node, location) AS (
        SELECT 0, parent_id, location_id FROM rpd_stack WHERE id = ?
        UNION ALL SELECT frame.place + 1, s.parent_id, s.location_id FROM frame JOIN rpd_stack s ON s.id = frame.node)
    SELECT frame.place, l.kind, coalesce(m.base, 0) + l.rel_pc, own.string, n.string, s.string, f.line, f.evidence, p.string
    FROM frame JOIN rpd_location l ON l.id = frame.location
        LEFT JOIN rpd_module m ON m.id = l.module_id
        LEFT JOIN rocpd_string p ON p.id = m.path_id
        LEFT JOIN rpd_pycode c ON c.id = l.pycode_id
        LEFT JOIN rocpd_string own ON own.id = c.name_id
        LEFT JOIN rpd_frame f ON f.location_id = l.id AND f.inline_depth >= 0
        LEFT JOIN rocpd_string n ON n.id = f.function_id
        LEFT JOIN rocpd_string s ON s.id = f.file_id
    ORDER BY frame.place, f.inline_depth
"""
CALLS = """
    SELECT CAST(a.value AS INTEGER), k.stack_id, k.flags FROM rpd_api_stack k
        JOIN rocpd_arg a ON a.event_id = k.api_id AND a.name = 'size'
"""


def build():
    paths = cpp_extension.include_paths()
    libraries = cpp_extension.library_paths()
    command = ["c++", "-std=c++17", "-O1", "-g", "-shared", "-fPIC", "-o", LIBRARY, os.path.join(HERE, "operator.cpp")]
    command += ["-D_GLIBCXX_USE_CXX11_ABI=%d" % torch._C._GLIBCXX_USE_CXX11_ABI]
    command += [word for path in paths for word in ("-isystem", path)]
    command += [word for path in libraries for word in ("-L" + path, "-Wl,-rpath," + path)]
    subprocess.run(command + ["-ltorch", "-ltorch_cpu", "-lc10", "-ldl"], check=True)


def run(options, arguments):
    environment = dict(os.environ, PYTHONPATH=PACKAGE, TORCHINDUCTOR_CACHE_DIR=os.path.join(DIRECTORY, "torchinductor_cache"))
    command = [RPD, "--hip-trace", "--backend", "sim", "-f", "rocpd", "-d", os.path.join(DIRECTORY, "out-" + options[-1])]
    command += options + ["--", sys.executable, os.path.join(HERE, "program.py"), LIBRARY] + arguments
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit("%s: status %d\n%s%s" % (" ".join(command), done.returncode, done.stdout, done.stderr[-4000:]))
    return done


def stacks_of(database):
    """Flags and frames of the calls of a process, by the size that a call allocates."""
    found = {}
    for size, stack, flags in database.execute(CALLS).fetchall():
        found[size] = (flags, database.execute(FRAMES, [stack]).fetchall())
    return found


def wrong_with(taken, flags, rows, counted):
    wrong = []
    if flags:
        wrong.append("flags are %d" % flags)
    places = {row[0]: row for row in reversed(rows)}
    frames = [places[place] for place in sorted(places)]
    # The view of a return address is the last byte of the call.
    native = [row[2] for row in frames if row[1] in ("native", "jit")]
    theirs = [address - 1 for address in taken["native"]]
    # Two frames of PyTorch's are apart: one in its unwinder, and one in the function that calls both.
    shared = len(theirs) - 2
    if native[len(native) - shared :] != theirs[2:]:
        wrong.append("native frames are %s, not %s" % ([hex(a) for a in native], [hex(a) for a in theirs]))
    caller = [row for row in rows if row[2] == native[len(native) - shared - 1]]
    if not any("call_hip" in (row[4] or "") and row[5].endswith("operator.cpp") and row[6] for row in caller):
        wrong.append("the call is not in call_hip with a line: %s" % caller)
    counted["native"] += shared
    # Behind the row of a Python frame stand those of its sources.
    python = [(row[5], row[6], row[3] if row[7] == "python" else row[4]) for row in rows if row[1] == "python"]
    expected = [tuple(frame) for frame in taken["python"]]
    # A TorchScript function has the frame of rpd.script, which shows where it begins, and before it PyTorch's own.
    outer = [frame[2] for frame in expected[1:]] + [None]
    is_own = [frame[2] == SCRIPTED and name == SCRIPTED + MARK for frame, name in zip(expected, outer)]
    expected = [frame for frame, own in zip(expected, is_own) if not own]
    if python != expected:
        wrong.append("Python frames are %s, not %s" % (python, expected))
    counted["python"] += sum(row[7] == "python" for row in rows if row[1] == "python")
    counted["sources"] += sum(row[7] == "source" for row in rows)
    for inner, outer in zip(frames, frames[1:]):
        if inner[1] == "python" and outer[1] != "python" and "_PyEval_EvalFrame" not in (outer[4] or ""):
            wrong.append("%s stands inside %s" % (inner[3], outer[4]))
    return wrong


def compare():
    databases = {}
    for path in glob.glob(os.path.join(DIRECTORY, "out-merged", "**", "*.db"), recursive=True):
        database = sqlite3.connect(path)
        (pid,) = database.execute("SELECT pid FROM rocpd_info_process").fetchone()
        databases[pid] = database
    counted = {"calls": 0, "native": 0, "python": 0, "sources": 0}
    failed = 0
    files = sorted(glob.glob(os.path.join(DIRECTORY, "taken", "*.json")))
    for path in files:
        pid = int(os.path.basename(path)[:-5])
        ours = stacks_of(databases[pid])
        with open(path) as file:
            all_taken = json.load(file)
        for taken in all_taken:
            counted["calls"] += 1
            if taken["size"] not in ours:
                wrong = ["there is no stack"]
            else:
                wrong = wrong_with(taken, *ours[taken["size"]], counted)
            if wrong:
                failed += 1
                print("process %d, call %d: %s" % (pid, taken["size"], "\n    ".join(wrong)))
    # A program that ended early has nothing to compare.
    failed += counted["calls"] < FEWEST
    print("%d processes, " % len(files) + ", ".join("%d %s" % (count, what) for what, count in counted.items()))
    return failed


def main():
    os.makedirs(os.path.join(DIRECTORY, "taken"), exist_ok=True)
    print("PyTorch %s, Python %s" % (torch.__version__, sys.version.split()[0]), flush=True)
    build()
    done = run(["--stacks", "merged"], [os.path.join(DIRECTORY, "taken")])
    print(done.stdout + done.stderr)
    failed = compare()
    costs = {}
    for mode in ("off", "merged"):
        words = run(["--stacks", mode], ["--cost"]).stdout.split()
        costs[mode] = [float(word) for word in words[-2:]]
    print("30 Python frames: a stack costs %.0f ns; CapturedTraceback.gather %.0f ns"
        % (costs["merged"][0] - costs["off"][0], costs["off"][1]))
    sys.exit("%d stacks are wrong" % failed if failed else 0)


main()
