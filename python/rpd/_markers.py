"""Markers and control, through the ROCTx library that the profiler loads into the program."""

import contextlib
import ctypes
import inspect


def _find(name, result, *arguments):
    """A function of ROCTx if the library is in the program's global scope, where profilers put it; else None."""
    try:
        function = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError):
        return None
    function.restype = result
    function.argtypes = arguments
    return function


_mark = _find("roctxMarkA", None, ctypes.c_char_p)
_push = _find("roctxRangePushA", ctypes.c_int, ctypes.c_char_p)
_pop = _find("roctxRangePop", ctypes.c_int)
_start = _find("roctxRangeStartA", ctypes.c_uint64, ctypes.c_char_p)
_stop = _find("roctxRangeStop", None, ctypes.c_uint64)
_pause = _find("roctxProfilerPause", ctypes.c_int, ctypes.c_uint64)
_resume = _find("roctxProfilerResume", ctypes.c_int, ctypes.c_uint64)


def _bytes(message):
    # C ends a text at its first NUL.
    return str(message).replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace")


def mark(message):
    """Marks a moment."""
    if _mark is not None:
        _mark(_bytes(message))


def range_push(message):
    """Begins a range of the calling thread, inside of those that it has begun."""
    if _push is not None:
        _push(_bytes(message))


def range_pop():
    """Ends the innermost range of the calling thread."""
    if _pop is not None:
        _pop()


def range_start(message):
    """Begins a range of the process. Returns its number for range_stop, which any thread may call."""
    return _start(_bytes(message)) if _start is not None else 0


def range_stop(number):
    """Ends the range with this number."""
    if _stop is not None:
        _stop(number)


class range(contextlib.ContextDecorator):
    """A range of the calling thread: `with rpd.range("load"):`, or `@rpd.range("load")` for each call of a function.

    Ranges nest by thread. A coroutine or a generator leaves its thread in the middle, so it cannot be decorated; use
    `with` around what runs without such a break.
    """

    def __init__(self, message):
        self._message = message

    def __call__(self, function):
        for is_broken in (
            inspect.iscoroutinefunction,
            inspect.isgeneratorfunction,
            inspect.isasyncgenfunction,
        ):
            if is_broken(function):
                name = getattr(function, "__qualname__", function)
                raise TypeError("rpd.range: %s may be suspended; use `with rpd.range(...)` inside of it" % name)
        return super().__call__(function)

    def __enter__(self):
        range_push(self._message)
        return self

    def __exit__(self, *error):
        range_pop()
        return False


def pause():
    """Stops recording until resume() is called. Ranges and marks that are made meanwhile are not recorded either."""
    if _pause is not None:
        _pause(0)


def resume():
    """Goes on recording; begins it with `rpd --selected-regions`."""
    if _resume is not None:
        _resume(0)
