"""Stacks at known places of PyTorch, beside `torch.utils._traceback.CapturedTraceback` of the same call and beside the
interpreter's own view: `torch_places.py`. Prints a line for each place and what captures cost; fails if a stack is wrong.

At each place the stack without its native frames must be the interpreter's, each run of Python frames must stand inside
the evaluator that runs it, and every native frame of PyTorch's traceback must be there, in the same order.
"""

import ctypes
import os
import re
import sys
import threading
import time

# Names from the loader, as the probe has them: otherwise PyTorch names functions by the symbol tables of files.
os.environ["TORCH_SYMBOLIZE_MODE"] = "dladdr"

try:
    import torch
    from torch.utils._traceback import CapturedTraceback
except ImportError as error:
    print("skipped: stacks at places of PyTorch: %s" % error)
    sys.exit(0)

import probe

EVALUATOR = "_PyEval_EvalFrameDefault"
# What PyTorch calls a function that no exported symbol covers.
UNKNOWN = "??"
NATIVE = re.compile(r'  File "(.*)", line (\d+), in (.*)')
places = []
counted = {"native": 0, "python": 0, "sources": 0}

demangler = ctypes.CDLL("libstdc++.so.6").__cxa_demangle
demangler.restype = ctypes.c_void_p
demangler.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]


def demangled(symbol):
    text = demangler(symbol.encode(), None, None, None)
    if not text:
        return symbol
    name = ctypes.string_at(text).decode()
    ctypes.CDLL(None).free(ctypes.c_void_p(text))
    return name


def without_repeats(names):
    """PyTorch folds what is repeated, so repetitions are not compared."""
    return [name for name, before in zip(names, [None] + names[:-1]) if name != before]


def outside_of_capture(names):
    """Native functions, outermost first, up to the evaluator that runs the function that captures."""
    return names[: len(names) - names[::-1].index(EVALUATOR)] if EVALUATOR in names else []


def missing_of(wanted, present):
    """Those of `wanted` that are not in `present` in the same order."""
    missing, at = [], 0
    for name in wanted:
        if name in present[at:]:
            at = present.index(name, at) + 1
        else:
            missing.append(name)
    return missing


def is_source(rows, index):
    """Whether a Python frame of PyTorch's is what the generated code that follows was made from: it repeats a real one."""
    is_before_generated = index + 1 < len(rows) and "/torchinductor_" in rows[index + 1][0]
    return is_before_generated and rows.count(rows[index]) > 1


def compared(place, stack, captured, frame):
    """What is wrong with a stack, as texts."""
    wrong = []
    expected = [(row.filename, row.lineno, row.name) for row in probe.truth(frame.f_back)]
    got = [(row.file, row.line, row.name) for row in stack.python()]
    # The innermost is the function that captures; its line is another in each of the three views.
    if got[:-1] != expected:
        wrong.append("Python frames are %s, not %s" % (got[:-1], expected))
    if stack.flags & ~probe.GAP:
        wrong.append("flags are %d" % stack.flags)
    try:
        probe.check_places(stack)
    except AssertionError as error:
        wrong.append("a place: %s" % (error,))
    native, python = [], []
    for line in captured.format():
        match = NATIVE.match(line)
        if match is None:
            continue
        path, number, name = match.groups()
        if path.endswith(".py") or path.startswith("<"):
            python.append((path, int(number), name))
        else:
            native.append(name)
    theirs = outside_of_capture(without_repeats(native))
    names = [UNKNOWN if row.symbol == "?" else demangled(row.symbol) for row in stack.rows if row.kind == "N"]
    ours = outside_of_capture(without_repeats(names))
    missing = missing_of(theirs, ours)
    if missing:
        wrong.append("PyTorch has native frames that are not there: %s" % missing)
    # It adds the sources of TorchScript and of generated code, which the interpreter does not run as frames.
    known = [row for index, row in enumerate(python) if row in expected and not is_source(python, index)]
    lost = missing_of(known, got)
    if lost:
        wrong.append("PyTorch has Python frames that are not there: %s" % lost)
    counted["sources"] += len(python) - len(known)
    counted["native"] += len(theirs)
    counted["python"] += len(known)
    return wrong


def take(place):
    flags = ctypes.c_uint32()
    number = probe.held.probe_capture(ctypes.byref(flags))
    captured = CapturedTraceback.extract(script=True, cpp=True)
    stack = probe.Stack(number, flags.value)
    wrong = compared(place, stack, captured, sys._getframe())
    places.append((place, wrong))
    return wrong


def nested(depth, place):
    if depth == 0:
        take(place)
    else:
        nested(depth - 1, place)


class Items(torch.utils.data.Dataset):
    """Each item is what is wrong with the stack of the worker that makes it."""

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return take("worker %d" % index)


class Function(torch.autograd.Function):
    @staticmethod
    def forward(context, value):
        take("custom function, forward")
        return value.clone()

    @staticmethod
    def backward(context, gradient):
        take("custom function, backward")
        return gradient


def hook(place):
    def called(gradient):
        take(place)
        return gradient

    return called


def backward_on(device, place):
    leaf = torch.ones(4, device=device, requires_grad=True)
    result = (leaf * 2).sum()
    leaf.register_hook(hook(place))
    result.backward()


def one_item():
    take("generator under sorted")
    yield 1


@torch.jit.ignore
def from_script(value: torch.Tensor) -> torch.Tensor:
    take("Python called from TorchScript")
    return value


def visit():
    nested(8, "nested functions")
    backward_on("cpu", "hook, backward on this thread")
    if torch.cuda.is_available():
        backward_on("cuda", "hook, backward on the device's thread")
    Function.apply(torch.ones(2, requires_grad=True)).sum().backward()
    sorted([3, 1, 2], key=lambda key: (next(one_item()), key)[1])

    inner = torch.jit.script(scripted_inner)
    inner(torch.ones(2))

    thread = threading.Thread(target=nested, args=(2, "another thread"))
    thread.start()
    thread.join()

    library = torch.library.Library("rpd_places", "DEF")
    library.define("taken(Tensor a) -> Tensor")
    take_and_clone = lambda value: (take("operator in Python"), value.clone())[1]
    library.impl("taken", take_and_clone, "CompositeExplicitAutograd")
    torch.ops.rpd_places.taken(torch.ones(2))

    for start in ("fork", "spawn"):
        loader = torch.utils.data.DataLoader(
            Items(), batch_size=None, num_workers=2, multiprocessing_context=start
        )
        for number, wrong in enumerate(loader):
            places.append(("item %d of a worker, %s" % (number, start), wrong))
    visit_compiled()


def scripted_inner(value: torch.Tensor):
    return from_script(value) + 1


def visit_compiled():
    @torch.library.custom_op("rpd_places::compiled", mutates_args=())
    def taken(value: torch.Tensor) -> torch.Tensor:
        take("custom operator under torch.compile")
        return value.clone()

    taken.register_fake(torch.empty_like)
    function = torch.compile(lambda value: torch.ops.rpd_places.compiled(value * 2 + 1).relu())
    try:
        function(torch.ones(8))
        function(torch.ones(8))
    except Exception as error:  # it needs a C++ compiler
        print("skipped: torch.compile: %s" % str(error).split("\n")[0])


def cost():
    """Nanoseconds of a capture by each, 30 Python frames deep, without and with texts."""

    def deep(depth):
        if depth:
            return deep(depth - 1)
        rounds = 2000
        begin = time.perf_counter_ns()
        for _ in range(rounds):
            CapturedTraceback.extract(script=True, cpp=True)
        theirs = (time.perf_counter_ns() - begin) / rounds
        return probe.held.probe_bench(100000), theirs

    ours, theirs = deep(27)
    print("capture, 30 Python frames: %.0f ns; CapturedTraceback.extract: %.0f ns" % (ours, theirs))


# Here, because workers that are spawned run this file up to its end and not `main`.
probe.open_probe()
os.register_at_fork(after_in_child=probe.held.probe_forked)


def main():
    # In the first capture of a process every fact is new.
    probe.held.probe_capture(None)
    print("PyTorch %s, Python %s" % (torch.__version__, sys.version.split()[0]))
    visit()
    failed = 0
    for place, wrong in places:
        print("%-40s %s" % (place, "; ".join(wrong) if wrong else "as the interpreter and PyTorch see it"))
        failed += bool(wrong)
    print("frames of PyTorch's tracebacks: %(native)d native, %(python)d Python; sources: %(sources)d" % counted)
    cost()
    sys.exit("%d of %d stacks are wrong" % (failed, len(places)) if failed else 0)


if __name__ == "__main__":
    main()
