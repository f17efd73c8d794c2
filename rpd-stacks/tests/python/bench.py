"""Cost of merged stacks with 30 Python frames: a line `NAME: NUMBER ns` for frames of one function and of many."""

import sys

import probe

probe.open_probe()
probe.released.probe_capture(None)

FUNCTION = """
def function_{0}(depth):
    callers = {{0: measure}}
    function = callers.get(depth, functions[depth - 1])
    return function(depth - 1)
"""


def measure(_):
    return probe.released.probe_bench(400000)


def recursive(depth):
    return recursive(depth - 1) if depth else measure(depth)


functions = []
for number in range(27):
    exec(compile(FUNCTION.format(number), __file__, "exec"))
    functions.append(globals()["function_%d" % number])

version = "%d.%d" % sys.version_info[:2]
print("merged stack, 30 Python frames, CPython %s: %.0f ns" % (version, recursive(27)))
print("merged stack, 30 Python functions, CPython %s: %.0f ns" % (version, functions[-1](26)))
