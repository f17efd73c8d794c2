"""The library that captures stacks, and the comparison with the interpreter's own view. Runs on 3.8 and later."""

import ctypes
import os
import signal
import subprocess
import sys
import traceback

LIBRARY = os.environ["RPD_STACKS_PROBE"]
NATIVE, PYTHON, MERGED = 0, 1, 2
TRUNCATED, FOREIGN, GAP, UNPLACED, LOST, UNREADABLE = 1, 2, 4, 8, 16, 32

released = ctypes.CDLL(LIBRARY)  # calls release the GIL
held = ctypes.PyDLL(LIBRARY)  # calls keep it
for library in (released, held):
    library.probe_capture.restype = ctypes.c_uint32
    library.probe_text.argtypes = [ctypes.c_uint32, ctypes.c_uint32, ctypes.c_char_p, ctypes.c_size_t]
    library.probe_text.restype = ctypes.c_size_t
    library.probe_bench.restype = ctypes.c_double
    library.probe_interpreter.restype = ctypes.c_size_t

CAPTURES = (("GIL released", released.probe_capture), ("GIL held", held.probe_capture))
checks = 0


def shut_down(text):
    """Runs a program whose daemon threads outlive its interpreter; false where CPython itself ended it by a signal.

    Before 3.12 a daemon thread that asks for the GIL after the interpreter's end reads what that end has freed
    (`take_gil`), with the probe or without: the read faults, or the assertion of a debug build fails."""
    child = [sys.executable, "-c", text]
    result = subprocess.run(child, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
    status, output = result.returncode, result.stdout.decode()
    assertion = status == -signal.SIGABRT and "is_tstate_valid" in output
    by_itself = sys.version_info < (3, 12) and (assertion or status == -signal.SIGSEGV and not output)
    assert status == 0 or by_itself, (status, output[-2000:])
    return status == 0


def open_probe(mode=MERGED, depth=0):
    held.probe_open(mode, depth)


class Row:
    """A frame. `kind` is P, N, or the kind of a marker."""

    def __init__(self, line):
        fields = line.split("\t")
        self.kind = fields[0]
        if self.kind == "P":
            number = lambda text: None if text == "-" else int(text)
            self.file, self.name, self.qualname = fields[1], fields[6], fields[7]
            self.line, self.end_line, self.column, self.end_column = map(number, fields[2:6])
        elif self.kind == "N":
            self.offset, self.symbol, self.module = fields[1:4]

    def __repr__(self):
        if self.kind == "P":
            return "%s at %s:%s" % (self.name, self.file, self.line)
        if self.kind == "N":
            return "0x%s %s in %s" % (self.offset, self.symbol, os.path.basename(self.module))
        return self.kind


class Stack:
    """A captured stack: its flags and its rows, outermost first."""

    def __init__(self, number, flags):
        room = held.probe_text(number, flags, None, 0) + 1
        text = ctypes.create_string_buffer(room)
        held.probe_text(number, flags, text, room)
        lines = text.value.decode("utf-8").split("\n")
        self.number = number
        self.flags = int(lines[0])
        self.rows = [Row(line) for line in lines[1:] if line]

    def python(self):
        return [row for row in self.rows if row.kind == "P"]

    def __repr__(self):
        return "flags %d\n  %s" % (self.flags, "\n  ".join(map(repr, self.rows)))


def truth(frame):
    """The stack from `frame` outwards as `traceback.extract_stack` has it, without reading source files."""
    summary = traceback.StackSummary.extract(traceback.walk_stack(frame), lookup_lines=False)
    summary.reverse()
    return summary


def is_evaluator(row):
    return row.kind == "N" and row.symbol == "_PyEval_EvalFrameDefault"


EXACT_SYMBOLS = None


def check_places(stack):
    """Each run of Python frames stands directly inside an activation of the evaluator, and no activation is without."""
    global EXACT_SYMBOLS
    if EXACT_SYMBOLS is None:
        # An evaluator that its compiler split into parts has no symbol on each of them.
        EXACT_SYMBOLS = any(map(is_evaluator, stack.rows))
    before = None
    for row, after in zip(stack.rows, stack.rows[1:] + [None]):
        if row.kind == "P" and (before is None or before.kind != "P"):
            assert before is not None and before.kind == "N", ("nothing runs", row, stack)
            assert not EXACT_SYMBOLS or before.symbol in ("_PyEval_EvalFrameDefault", "?"), (before, stack)
        if is_evaluator(row):
            assert after is not None and after.kind == "P", ("runs nothing", row, stack)
        before = row


def compare(stack, expected, inner=1):
    """Python rows without the `inner` innermost against the interpreter's frames, which lack the innermost."""
    got = [(row.file, row.line, row.name) for row in stack.python()[:-inner]]
    want = [(frame.filename, frame.lineno, frame.name) for frame in expected]
    assert got == want, "\n got %s\nwant %s\n%s" % (got, want, stack)


def check():
    """Captures here, with and without the GIL, and compares with the interpreter. Returns the last stack."""
    global checks
    frame = sys._getframe()
    for name, capture in CAPTURES:
        flags = ctypes.c_uint32()
        number = capture(ctypes.byref(flags))
        stack = Stack(number, flags.value)
        assert stack.flags == 0, (name, stack)
        compare(stack, truth(frame.f_back))
        check_places(stack)
        if sys.version_info >= (3, 11):
            check_details(stack, frame)
        checks += 1
    return stack


def check_details(stack, frame):
    """Qualified names and columns, for the frames further out than `frame`."""
    rows = stack.python()[:-1]
    frame = frame.f_back
    while frame is not None:
        row, code = rows.pop(), frame.f_code
        assert row.qualname == code.co_qualname, (row.qualname, code.co_qualname)
        positions = next(
            (p for i, p in enumerate(code.co_positions()) if 2 * i == frame.f_lasti), (None,) * 4
        )
        got = (row.line, row.end_line, row.column, row.end_column)
        assert got == positions, (row, got, positions)
        frame = frame.f_back
    assert not rows


def capture(native=held):
    """A stack, not compared."""
    flags = ctypes.c_uint32()
    number = native.probe_capture(ctypes.byref(flags))
    return Stack(number, flags.value)


def interpreter():
    text = ctypes.create_string_buffer(200)
    held.probe_interpreter(text, 200)
    return text.value.decode()


def names(stack):
    """Names of the Python rows without the helper that captured."""
    return [row.name for row in stack.python() if row.file != __file__]
