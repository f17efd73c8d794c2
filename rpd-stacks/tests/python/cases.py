"""Tests of Python frames: `cases.py NAME` runs the function of that name. Runs on 3.8 and later; prints what it checked."""

import asyncio
import contextlib
import ctypes
import functools
import gc
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import types

import probe
from probe import capture, check, check_places, held, names, released

V = sys.version_info
HERE = os.path.dirname(os.path.abspath(__file__))
FREE_THREADED = hasattr(sys, "_is_gil_enabled") and not sys._is_gil_enabled()


class Skip(Exception):
    """The case does not exist on this interpreter."""


def nested_functions_have_rows_in_call_order():
    def f():
        return g()

    def g():
        return check()

    stack = f()
    assert names(stack)[-2:] == ["f", "g"], stack
    kinds = [row.kind for row in stack.rows]
    assert kinds[0] == "N" and kinds[-1] == "N", "start-up outside, the extension inside"
    assert names(stack)[0] == "<module>"
    if V >= (3, 11):
        first = kinds.index("P")
        count = kinds.count("P")
        assert kinds[first : first + count] == ["P"] * count, "one evaluator runs them all"


def rows_are_equal_with_and_without_the_gil():
    # `check` compares both; this test checks that only the native rows between them differ.
    def both():
        return capture(held), capture(released)

    a, b = both()
    show = lambda stack: [(row.name, row.file) for row in stack.python()]
    assert show(a) == show(b)
    check()


def a_thread_that_never_ran_python_has_native_rows_alone():
    # A thread of the C library, which calls the probe and nothing of Python.
    number = ctypes.c_size_t()
    pthread = ctypes.CDLL(None)
    if not hasattr(pthread, "pthread_create"):
        pthread = ctypes.CDLL("libpthread.so.0")
    pthread.pthread_join.argtypes = [ctypes.c_size_t, ctypes.POINTER(ctypes.c_void_p)]
    check()
    for _ in range(3):
        assert pthread.pthread_create(ctypes.byref(number), None, held.probe_capture, None) == 0
        result = ctypes.c_void_p()
        pthread.pthread_join(number, ctypes.byref(result))
        stack = probe.Stack((result.value or 0) & 0xFFFFFFFF, 0)
        assert stack.rows and not stack.python(), stack
        assert threading.active_count() == 1


def a_callback_of_map_has_a_row_inside_its_caller():
    def f():
        return list(map(lambda value: check(), [1]))[0]

    stack = f()
    assert names(stack)[-2:] == ["f", "<lambda>"], stack
    rows = stack.rows
    inner = [i for i, row in enumerate(rows) if row.kind == "P" and row.name == "<lambda>"][0]
    assert rows[inner - 1].kind == "N" and any(row.kind == "N" for row in rows[inner:])
    if V >= (3, 11):
        runs = sum(a.kind == "N" and b.kind == "P" for a, b in zip(rows, rows[1:]))
        assert runs == 2, (runs, stack)


def a_hundred_nested_callbacks_alternate_with_native_rows():
    stacks = []

    def nested(depth):
        if depth == 0:
            stacks.append(check())
            return 0
        return functools.reduce(lambda a, b: nested(depth - 1), [0, 0])

    sorted([3], key=lambda value: nested(100))
    assert names(stacks[0]).count("<lambda>") == 101
    if probe.EXACT_SYMBOLS:
        evaluators = sum(map(probe.is_evaluator, stacks[0].rows))
        assert evaluators >= 102, evaluators


def python_rows_surround_a_c_library_that_calls_back():
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)

    def compare(a, b):
        stacks.append(check())
        return 0

    stacks = []
    array = (ctypes.c_int * 3)(3, 2, 1)
    ctypes.CDLL(None).qsort(array, 3, ctypes.sizeof(ctypes.c_int), kind(compare))
    assert stacks
    for stack in stacks:
        assert names(stack)[-1] == "compare"
        modules = [os.path.basename(row.module) for row in stack.rows if row.kind == "N"]
        assert any(name.startswith("libc.") for name in modules)
    callback = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_size_t)(lambda value: check().number)
    assert held.probe_call(callback, 0) and released.probe_call(callback, 0)


def python_rows_stay_while_native_frames_come_and_go():
    # The Python frames stay, while native frames further in come and go.
    def inner():
        depths = [0, 3, 1, 0, 7, 7, 2, 0]
        numbers = (ctypes.c_uint32 * len(depths))(*depths)
        assert library.probe_depths(numbers, len(depths)) == 0
        return depths, [probe.Stack(number, 0) for number in numbers]

    for library in (held, released):
        depths, stacks = list(map(lambda _: inner(), [1]))[0]
        is_own = lambda row: row.kind == "N" and row.symbol in ("probe_below", "probe_depths")
        others = [[repr(row) for row in stack.rows if not is_own(row)] for stack in stacks]
        for depth, stack, other in zip(depths, stacks, others):
            check_places(stack)
            assert sum(map(is_own, stack.rows)) == depth + 2, (depth, stack)
            assert other == others[0], (stack, stacks[0])
            assert (stack.number == stacks[0].number) == (depth == 0)
        assert names(stacks[0])[-2:] == ["<lambda>", "inner"], stacks[0]


def a_generator_has_a_row_inside_its_consumer():
    def gen():
        yield 1
        yield check()

    def consumer():
        for value in gen():
            pass
        return value

    assert names(consumer())[-2:] == ["consumer", "gen"]
    assert names(next(check() for _ in [0]))[-1] == "<genexpr>"


def delegating_generators_have_rows_in_call_order():
    def inner():
        yield check()

    def outer():
        yield from inner()

    def consumer():
        return list(outer())[0]

    assert names(consumer())[-3:] == ["consumer", "outer", "inner"]


def awaited_coroutines_have_rows_in_call_order():
    async def inner():
        return check()

    async def outer():
        return await inner()

    def drive(coroutine):
        try:
            coroutine.send(None)
        except StopIteration as stop:
            return stop.value

    assert names(drive(outer()))[-3:] == ["drive", "outer", "inner"]


def a_resumed_task_has_rows_of_itself_and_the_event_loop():
    async def task(name):
        await asyncio.sleep(0)
        await asyncio.sleep(0.001)
        return check()

    async def both():
        return await asyncio.gather(task(1), task(2))

    for stack in asyncio.run(both()):
        assert names(stack)[-1] == "task" and names(stack).count("task") == 1, stack
        assert "_run_once" in names(stack) and "both" not in names(stack)


def comprehensions_have_a_row_before_python_3_12():
    def f():
        return [check() for _ in [0]][0]

    expected = ["f"] if V >= (3, 12) else ["f", "<listcomp>"]
    assert names(f())[-len(expected) :] == expected
    assert names([check() for _ in {0: 0}][0])
    assert names({0: check() for _ in [0]}[0])


def class_bodies_and_imports_have_rows(tmp="rpd_stacks_imported_module"):
    stacks = []

    class Body:
        stacks.append(check())

    assert names(stacks[0])[-1] == "Body"

    with tempfile.TemporaryDirectory() as directory:
        with open(os.path.join(directory, tmp + ".py"), "w") as file:
            file.write("import probe\nstack = probe.check()\n")
        sys.path.insert(0, directory)
        stack = __import__(tmp).stack
        sys.path.remove(directory)
    assert names(stack)[-1] == "<module>"
    assert any(row.file == "<frozen importlib._bootstrap>" for row in stack.python())


def code_from_strings_has_its_name_and_line():
    stack = eval("1 and check()")
    row = [row for row in stack.python() if row.file == "<string>"][-1]
    assert (row.name, row.line) == ("<module>", 1)
    space = {"check": check}
    exec("\n\nstack = check()", space)
    assert [row.line for row in space["stack"].python() if row.file == "<string>"] == [3]


def finalizers_have_a_row_inside_their_cause():
    stacks = []

    class Tail:
        def __del__(self):
            stacks.append(check())

    def drop():
        tail = Tail()
        del tail

    drop()
    assert names(stacks[-1])[-2:] == ["drop", "__del__"], stacks

    def collect():
        loop = Tail()
        loop.self = loop
        del loop
        gc.collect()

    collect()
    assert names(stacks[-1])[-2:] == ["collect", "__del__"], stacks


def captures_leave_pending_exceptions_unchanged():
    def raising():
        try:
            raise ValueError("kept")
        except ValueError as error:
            stack = check()
            assert sys.exc_info()[1] is error and str(error) == "kept"
            return stack
        finally:
            check()

    assert names(raising())[-1] == "raising"

    class Exit:
        def __exit__(self, *unused):
            assert names(check())[-1] == "__exit__"

        def __enter__(self):
            return self

    try:
        with Exit():
            raise KeyError(3)
    except KeyError as error:
        assert error.args == (3,)
    # An exception that is pending in C stays as it is.
    api = ctypes.pythonapi
    api.PyErr_SetString.argtypes = [ctypes.py_object, ctypes.c_char_p]
    held.probe_pending.restype = ctypes.c_uint32
    setter = ctypes.cast(api.PyErr_SetString, ctypes.c_void_p).value
    held.probe_pending.argtypes = [ctypes.c_size_t, ctypes.py_object, ctypes.c_char_p]
    try:
        held.probe_pending(setter, ArithmeticError, b"pending")
        raise SystemError("nothing was pending")
    except ArithmeticError as error:
        assert str(error) == "pending"


# A binding layer: it calls Python, and turns an exception of C++ into one of Python.
BINDING = """
#include <stdexcept>
extern "C" void PyErr_SetString(void *, const char *);
extern "C" void *PyExc_ValueError;
typedef unsigned (*Capture)(unsigned *);
static unsigned taken, flags;
struct Guard {
    Capture capture;
    ~Guard() { taken = capture(&flags); }
};
__attribute__((noinline)) static void inner(void (*call)(), Capture capture) {
    Guard guard = {capture};
    call();
    throw std::runtime_error("thrown in C++");
}
extern "C" unsigned binding_taken(unsigned *of) { *of = flags; return taken; }
extern "C" int binding_call(void (*call)(), Capture capture) {
    try {
        inner(call, capture);
    } catch (const std::exception &error) {
        PyErr_SetString(PyExc_ValueError, error.what());
        return -1;
    }
    return 0;
}
"""


def a_translated_exception_leaves_later_stacks_right():
    compiler = shutil.which("c++")
    if compiler is None:
        raise Skip("no c++")
    with tempfile.TemporaryDirectory() as directory:
        source, library = os.path.join(directory, "binding.cpp"), os.path.join(directory, "binding.so")
        with open(source, "w") as file:
            file.write(BINDING)
        subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", library, source], check=True)
        binding = ctypes.PyDLL(library)
    called = []

    @ctypes.CFUNCTYPE(None)
    def callback():
        called.append(names(check()))

    def translated():
        try:
            binding.binding_call(callback, ctypes.cast(held.probe_capture, ctypes.c_void_p))
        except ValueError as error:
            return check(), str(error)

    for _ in range(3):
        stack, text = translated()
        assert text == "thrown in C++"
        assert names(stack)[-2:] == ["a_translated_exception_leaves_later_stacks_right", "translated"], stack
    assert [found[-3:] for found in called] == [["a_translated_exception_leaves_later_stacks_right", "translated", "callback"]] * 3, called
    # The stack that a destructor took while the exception unwound the function.
    flags = ctypes.c_uint32()
    number = binding.binding_taken(ctypes.byref(flags))
    during = probe.Stack(number, flags.value)
    assert during.flags == 0 and [row.name for row in during.python()][-2:] == ["a_translated_exception_leaves_later_stacks_right", "translated"], during
    # The function that throws, whose landing pad calls it, has no symbol.
    assert [row.symbol for row in during.rows[-3:]] == ["binding_call", "?", "probe_capture"], during
    probe.check_places(during)


def wrappers_and_methods_have_a_row_for_each_frame():
    def decorate(function):
        @functools.wraps(function)
        def wrapper(*arguments):
            return function(*arguments)

        return wrapper

    class Callable:
        def __call__(self, *unused):
            return check()

        def method(self):
            return self()

        @staticmethod
        @decorate
        def static():
            return check()

        @classmethod
        def of_class(cls):
            return cls.static()

        @property
        def value(self):
            return check()

        def __getattr__(self, name):
            return check()

    assert names(Callable().method())[-2:] == ["method", "__call__"]
    assert names(Callable.of_class())[-3:] == ["of_class", "wrapper", "static"]
    assert names(functools.partial(Callable().method)())[-2:] == ["method", "__call__"]
    assert names(Callable().value)[-1] == "value"
    assert names(Callable().missing)[-1] == "__getattr__"
    cached = functools.lru_cache(decorate(lambda: check()))
    assert names(cached())[-2:] == ["wrapper", "<lambda>"]
    if V >= (3, 11):
        row = [row for row in Callable().value.python() if row.name == "value"][0]
        assert row.qualname == "wrappers_and_methods_have_a_row_for_each_frame.<locals>.Callable.value"


def lines_and_columns_are_those_of_tracebacks():
    # fmt: off
    stack = (
        check
        (
        )
    )
    # fmt: on
    second = max(
        [check()],
        key=lambda stack: stack.number,
    )
    assert stack.python() and second.python()  # lines and columns were compared


def deep_recursion_has_every_frame():
    def deep(depth):
        return deep(depth - 1) if depth else check()

    sys.setrecursionlimit(100000)
    assert names(deep(900)).count("deep") == 901
    threading.stack_size(512 << 20)
    result = []
    thread = threading.Thread(target=lambda: result.append(deep(5000)))
    thread.start()
    thread.join()
    assert names(result[0]).count("deep") == 5001


def recursion_beyond_the_limit_has_a_gap():
    probe.open_probe(probe.MERGED, 64)

    def deep(depth):
        return deep(depth - 1) if depth else capture()

    stack = deep(400)
    assert stack.flags == probe.GAP, stack
    kinds = [row.kind for row in stack.rows]
    assert kinds.count("Gap") == 1 and len(kinds) == 65, (len(kinds), stack)
    assert kinds.index("Gap") == 16
    inner = [row for row in stack.rows[17:] if row.kind == "P"]
    assert [row.name for row in inner][-1] == "capture"


def frames_that_are_being_set_up_shift_no_row():
    # Finalizers run while a frame is being set up: cells are made and arguments are freed before the first instruction
    # that has a line.
    stacks = []

    class Tail:
        def __del__(self):
            stacks.append(check())

    def make(tail):
        def inner(value=None):
            cell = value

            def use():
                return cell

            return use

        return inner(tail)

    for _ in range(50):
        make([Tail(), [Tail()]])
        gc.collect()

    gc.set_threshold(1)
    try:
        for _ in range(50):
            loop = Tail()
            loop.self = loop
            del loop
            (lambda *a, b=1, **c: [a, b, c, (lambda: (a, b, c))])(1, 2, x=3)
    finally:
        gc.set_threshold(700)
    assert len(stacks) >= 100


def profile_and_trace_hooks_leave_rows_unchanged():
    def target():
        return check()

    seen = []

    def hook(frame, event, argument):
        if event == "call" and frame.f_code is target.__code__:
            sys.setprofile(None)
            seen.append(check())

    plain = target()
    sys.setprofile(hook)
    target()
    sys.setprofile(None)
    assert names(seen[0])[-2:] == ["target", "hook"], seen
    sys.settrace(lambda frame, event, argument: None)
    traced = target()
    sys.settrace(None)
    assert names(traced) == names(plain)


def a_replaced_evaluator_keeps_the_order_of_rows():
    if V < (3, 9):
        raise Skip("3.9 is the first in which the evaluator can be replaced by a function")
    api = ctypes.pythonapi
    api.PyInterpreterState_Get.restype = ctypes.c_void_p
    api._PyInterpreterState_SetEvalFrameFunc.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    address = lambda function: ctypes.cast(function, ctypes.c_void_p).value
    default = address(api._PyEval_EvalFrameDefault)
    held.probe_set_evaluator.argtypes = [ctypes.c_size_t]
    held.probe_set_evaluator(default)
    interpreter = api.PyInterpreterState_Get()

    def f(depth):
        return f(depth - 1) if depth else list(map(lambda value: check(), [0]))[0]

    api._PyInterpreterState_SetEvalFrameFunc(interpreter, address(held.probe_evaluate))
    try:
        stack = f(5)
    finally:
        api._PyInterpreterState_SetEvalFrameFunc(interpreter, default)
    assert names(stack)[-7:] == ["f"] * 6 + ["<lambda>"]
    hooks = sum(row.kind == "N" and row.symbol == "probe_evaluate" for row in stack.rows)
    assert hooks == 8, (hooks, stack)
    rows = stack.rows
    inner = [i for i, row in enumerate(rows) if row.kind == "P" and row.name == "f"]
    assert all(rows[i - 1].kind == "N" for i in inner), "one activation of the evaluator for each"


def perf_trampolines_leave_python_rows_right():
    if V < (3, 12):
        raise Skip("3.12 has the first perf trampolines")
    if not os.environ.get("RPD_PERF_TRAMPOLINES_ARE_ON"):
        environment = dict(os.environ, RPD_PERF_TRAMPOLINES_ARE_ON="1")
        result = subprocess.run(
            [sys.executable, "-X", "perf", __file__, "perf_trampolines_leave_python_rows_right"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        text = result.stdout.decode()
        if "perf" in text and "not available" in text:
            raise Skip("built without perf trampolines")
        assert result.returncode == 0, text
        return
    if not sys.is_stack_trampoline_active():
        raise Skip("perf trampolines are not active")

    def f(n):
        return f(n - 1) if n else capture()

    stack = f(10)
    assert names(stack).count("f") == 11 and stack.flags & ~64 == 0, stack
    # A stub is a copy of code of the interpreter, and its frame is one of the interpreter's, which reports leave out.
    assert not any(row.kind == "Jit" for row in stack.rows), stack
    rows = stack.rows
    address = lambda name: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
    start, end = address("_Py_trampoline_func_start"), address("_Py_trampoline_func_end")
    # The file is mapped from its first byte on, and the loader's offsets count from there.
    with open("/proc/self/maps") as maps:
        ranges = [line.split() for line in maps]
    path = [r[-1] for r in ranges if int(r[0].split("-")[0], 16) <= start < int(r[0].split("-")[1], 16)][0]
    base = min(int(r[0].split("-")[0], 16) for r in ranges if r[-1] == path)
    is_stub = lambda row: row.kind == "N" and start <= int(row.offset, 16) + base < end
    stubs = [row for row in rows if is_stub(row)]
    assert len(stubs) >= 11, stack
    assert {os.path.realpath(row.module) for row in stubs} == {os.path.realpath(path)}, stack
    for before, row in zip(rows, rows[1:]):
        assert row.kind != "P" or before.kind in "NP", stack


def a_thread_that_hogs_the_gil_delays_no_capture():
    stop = threading.Event()

    def spin():
        value = 0
        while not stop.is_set():
            for value in range(1000):
                value += 1

    threads = [threading.Thread(target=spin) for _ in range(2)]
    for thread in threads:
        thread.start()
    check()
    begin = time.perf_counter()
    median = released.probe_bench(20000)
    took = time.perf_counter() - begin
    stop.set()
    for thread in threads:
        thread.join()
    # A capture that waited for the GIL would take its switch interval, 5 ms.
    assert median < 100000, median
    assert took < 20, took


def code_at_a_used_address_has_its_own_name_and_lines():
    # The allocator often gives a new code object the address of the last one, and its parts those of the last one's parts.
    seen, repeated = set(), 0
    for round in range(400):
        lines = "\n" * (round % 7)
        text = "def f%d():\n%s    return check()\nstack = f%d()\n" % (round % 3, lines, round % 3)
        space = {"check": check}
        code = compile(text, "file %d" % (round % 5), "exec")
        exec(code, space)
        row = [row for row in space["stack"].python() if row.file.startswith("file")]
        assert [r.name for r in row] == ["<module>", "f%d" % (round % 3)], (round, row)
        assert row[1].line == 2 + round % 7 and row[1].file == "file %d" % (round % 5)
        address = id(space["f%d" % (round % 3)].__code__)
        repeated += address in seen
        seen.add(address)
        del space, code, row
    print("code objects at an address that another had before:", repeated)
    assert repeated > 0 or FREE_THREADED

    # Only the middle of the line table differs.
    for round in range(100):
        gap = ["\n", "\n\n"] if round % 2 else ["\n\n", "\n"]
        text = "def f():\n x = 1%sy = 2%sreturn check()\nstack = f()\n" % tuple(part + " " for part in gap)
        space = {"check": check}
        exec(compile(text, "same", "exec"), space)


def a_function_redefined_while_it_runs_keeps_its_row():
    space = {"check": check}
    exec(
        "def first():\n first.__code__ = second.__code__\n return check()\ndef second():\n return check()\n",
        space,
    )
    assert names(space["first"]())[-1] == "first"
    assert names(space["first"]())[-1] == "second"


def names_that_are_not_ascii_are_exact():
    space = {"check": check}
    for name in ("größe", "имя", "名前", "𝔛𝔶", "a𝔛é名"):
        exec(compile("def %s():\n    return check()\nstack = %s()" % (name, name), "datei-%s.py" % name, "exec"), space)
        row = space["stack"].python()[-2]
        assert row.file == "datei-%s.py" % name, row.file
        import unicodedata

        assert row.name == unicodedata.normalize("NFKC", name), row.name
    surrogate = "caf\udce9.py"
    exec(compile("stack = check_it()", surrogate, "exec"), {"check_it": capture})


def captures_survive_the_end_of_the_interpreter():
    # Daemon threads capture while the interpreter ends; the exit status is whether it could.
    text = """
import sys, threading
sys.path.insert(0, %r)
import probe, ctypes
probe.open_probe()
probe.check()
flags = ctypes.c_uint32()
def hammer():
    while True:
        probe.released.probe_capture(ctypes.byref(flags))
for _ in range(4):
    threading.Thread(target=hammer, daemon=True).start()
class Late:
    def __del__(self):
        if probe.held is not None: probe.held.probe_capture(None)
late = Late()
import time; time.sleep(0.02)
""" % HERE
    clean = [probe.shut_down(text) for _ in range(10)].count(True)
    assert clean > 3, "%d of 10 ended without a signal" % clean


class SubInterpreters:
    """Sub-interpreters, which call the library by address: extension modules need not support them."""

    INSIDE = """
import ctypes, os, sys
sys.path.insert(0, %r)
import probe
""" % HERE

    def __init__(self):
        for name in ("_interpreters", "_xxsubinterpreters"):
            with contextlib.suppress(ImportError):
                self.module = __import__(name)
                return
        raise Skip("no sub-interpreters")

    def create(self):
        config = ("legacy",) if self.module.__name__ == "_interpreters" else ()
        named = {"isolated": False} if (3, 9) <= V < (3, 13) else {}
        return self.module.create(*config, **named)

    def run(self, number, text):
        error = self.module.run_string(number, self.INSIDE + text)
        assert error is None, error

    def rows(self, number, text):
        """Runs a text that has a stack in `stack` when it ends. Returns its flags and its rows as (kind, name)."""
        read, write = os.pipe()
        text += """
if stack.python():
    probe.check_places(stack)
os.write(%d, repr((stack.flags, [(r.kind, getattr(r, "name", "")) for r in stack.rows])).encode())
"""
        try:
            self.run(number, text % write)
            return eval(os.read(read, 1 << 20).decode())
        finally:
            os.close(read)
            os.close(write)

    def destroy(self, number):
        with contextlib.suppress(Exception):
            self.module.destroy(number)


def outer_names():
    """Names of the frames of the caller and further out, outermost first."""
    return [frame.name for frame in probe.truth(sys._getframe().f_back)]


INSIDE = ["<module>", "inside", "capture"]


def a_sub_interpreter_has_its_rows_inside_those_of_the_outer_one_or_none():
    interpreters = SubInterpreters()
    check()
    number = interpreters.create()
    text = """
def inside():
    return probe.capture(%s)
stack = inside()
"""
    for library in ("probe.held", "probe.released"):
        flags, rows = interpreters.rows(number, text % library)
        python = [name for kind, name in rows if kind == "P"]
        if V >= (3, 12):
            assert flags == 0 and python == outer_names() + ["rows", "run"] + INSIDE, (flags, python)
            between = [kind for kind, _ in rows[: -rows[::-1].index(("P", "<module>"))]]
            assert between[-2:] == ["N", "P"], "the native frames that run the inner one stand between"
        else:
            assert flags == probe.UNREADABLE and not python, (flags, python)
    interpreters.destroy(number)
    check()


def sub_interpreters_of_sub_interpreters_have_rows_in_call_order():
    if V < (3, 12):
        raise Skip("frames of sub-interpreters are read from 3.12 on")
    interpreters = SubInterpreters()
    outer, inner = interpreters.create(), interpreters.create()
    text = """
import %s as interpreters
def middle():
    error = interpreters.run_string(%d, inner)
    assert error is None, error
inner = %r
middle()
stack = probe.capture(probe.held)
"""
    read, write = os.pipe()
    innermost = SubInterpreters.INSIDE + """
def inside():
    return probe.capture(probe.released)
stack = inside()
probe.check_places(stack)
os.write(%d, repr((stack.flags, [r.name for r in stack.python()])).encode())
""" % write
    interpreters.rows(outer, text % (interpreters.module.__name__, inner, innermost))
    flags, python = eval(os.read(read, 1 << 20).decode())
    want = outer_names() + ["rows", "run", "<module>", "middle"] + INSIDE
    assert flags == 0 and python == want, (flags, python, want)
    for number in (inner, outer):
        interpreters.destroy(number)
    check()


def an_interpreter_of_another_thread_adds_no_rows():
    if V < (3, 12):
        raise Skip("frames of sub-interpreters are read from 3.12 on")
    interpreters = SubInterpreters()
    to_inside, to_outside = os.pipe(), os.pipe()
    text = """
def waits():
    os.write(%d, b"here")
    os.read(%d, 1)
waits()
""" % (to_outside[1], to_inside[0])
    errors = []

    def work():
        try:
            # CPython 3.12 waits for ever for the end of an interpreter that another thread has run.
            number = interpreters.create()
            interpreters.run(number, text)
            interpreters.destroy(number)
        except Exception as error:
            errors.append(error)
            os.write(to_outside[1], b"fail")

    thread = threading.Thread(target=work)
    thread.start()
    assert os.read(to_outside[0], 4) == b"here", errors
    for _ in range(10):
        check()
    os.write(to_inside[1], b"x")
    thread.join()
    assert not errors, errors
    check()


def interpreters_that_come_and_go_leave_rows_of_other_threads_right():
    if V < (3, 12):
        raise Skip("frames of sub-interpreters are read from 3.12 on")
    interpreters = SubInterpreters()
    stop = threading.Event()

    def come_and_go():
        while not stop.is_set():
            number = interpreters.create()
            interpreters.run(number, "pass")
            interpreters.destroy(number)

    thread = threading.Thread(target=come_and_go)
    thread.start()
    try:
        for _ in range(50):
            check()
            released.probe_bench(20)
    finally:
        stop.set()
        thread.join()


def a_greenlet_has_its_own_rows():
    try:
        from greenlet import greenlet
    except ImportError:
        raise Skip("greenlet is not installed")
    stacks = []

    def green():
        stacks.append(plain_check())
        other.switch()
        stacks.append(plain_check())

    def second():
        stacks.append(plain_check())
        main.switch()

    def plain_check():
        stack = capture()
        probe.compare(stack, probe.truth(sys._getframe().f_back), inner=2)
        return stack

    import greenlet as module

    main = module.getcurrent()
    one, other = greenlet(green), greenlet(second)
    one.switch()
    one.switch()
    stacks.append(plain_check())
    for stack in stacks:
        assert stack.flags == 0, stack
    assert [names(stack)[-2] for stack in stacks][:3] == ["green", "second", "green"]
    assert names(stacks[0])[0] == "green", "only the current greenlet"


def child_of_fork():
    """Checks the stacks in the child of a fork; exits with 0 if they are right."""
    held.probe_forked()
    stack = check()
    ok = stack.number != 0 and names(stack)[-1] == "child_of_fork"
    os._exit(0 if ok else 1)


def worker_of_pool(value):
    held.probe_open(probe.MERGED, 0)
    return names(check())[-1] == "worker_of_pool"


def forked_and_spawned_children_have_right_stacks():
    check()
    stop = threading.Event()
    thread = threading.Thread(target=lambda: [released.probe_bench(1000) for _ in iter(stop.is_set, True)])
    thread.start()
    for _ in range(20):
        pid = os.fork()
        if pid == 0:
            child_of_fork()
        status = os.waitpid(pid, 0)[1]
        assert status == 0, status
    stop.set()
    thread.join()
    check()
    import multiprocessing

    for method in ("spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            assert pool.map(worker_of_pool, [1, 2]) == [True, True]


def an_unknown_version_is_read_by_its_own_functions():
    known = V < (3, 15)
    if known:
        assert probe.interpreter() == "Some(None)", probe.interpreter()
        check()
        assert "Read" in probe.interpreter(), probe.interpreter()
        raise Skip("the structures of this version are known")

    def f():
        return capture(held), capture(released)

    with_gil, without = f()
    assert "Unknown" in probe.interpreter(), probe.interpreter()
    got = [(row.name, row.line is not None) for row in with_gil.python()]
    assert [name for name, _ in got][-2:] == ["f", "capture"] and all(line for _, line in got), with_gil
    assert with_gil.flags == probe.UNPLACED
    assert not without.python() and without.flags == probe.UNREADABLE
    rows = with_gil.python()[:-2]
    want = [(f.filename, f.lineno, f.name) for f in probe.truth(sys._getframe())]
    assert [(r.file, r.name) for r in rows] == [(f, n) for f, _, n in want]


def captures_of_many_threads_change_no_reference_count():
    def f():
        return check()

    code = f.__code__
    # Free-threaded builds make code objects immortal when the first thread starts.
    warm = threading.Thread(target=f)
    warm.start()
    warm.join()
    del warm
    gc.collect()
    before = sys.getrefcount(code), sys.getrefcount(code.co_name), sys.getrefcount(f)
    results = []

    def work():
        for _ in range(200):
            f()
        results.append(True)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 8
    for _ in range(1000):
        held.probe_capture(None)
        released.probe_capture(None)
    # What `check` keeps are cycles of frames.
    del threads, thread
    gc.collect()
    after = sys.getrefcount(code), sys.getrefcount(code.co_name), sys.getrefcount(f)
    assert before == after, (before, after)


def main():
    name = sys.argv[1]
    library = os.environ.get("RPD_CASE_PYTHON")
    if library:
        with open("/proc/self/maps") as maps:
            assert library in maps.read(), "another interpreter than " + library
    if name != "recursion_beyond_the_limit_has_a_gap":
        probe.open_probe()
    try:
        globals()[name]()
    except Skip as reason:
        print("skipped: %s on %d.%d: %s" % (name, V[0], V[1], reason))
        return
    print("%s: %d comparisons" % (name, probe.checks))


if __name__ == "__main__":
    main()
