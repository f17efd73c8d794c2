"""The Python controls of rocmProfileData, for scripts that were written for them and run under rpd.

    from rpd.rocm_profile_data import rpdTracerControl, hipScopedMarker

Without rpd everything here does nothing. The recording belongs to the rpd command that started the program, and so do the
names of its files: those that a script sets are accepted and have no effect.
"""

import contextlib
import ctypes
import functools
import sys
import threading

from ._markers import mark, range_pop, range_push


def _function(name, arguments=0):
    """A C function of the tracer, from the global scope of the program, where rpd puts it; without rpd one that does nothing."""
    try:
        function = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError):
        return lambda *texts: None
    function.restype = None
    function.argtypes = [ctypes.c_char_p] * arguments
    return function


_start = _function("rpdstart")
_stop = _function("rpdstop")
_flush = _function("rpdflush")
_push = _function("rpd_rangePush", 3)
_pop = _function("rpd_rangePop")


def _bytes(text):
    return str(text).replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace")


def _trace(frame, event, _argument):
    """A profile function of the interpreter: a range for each call of a Python function that has no special name."""
    code = frame.f_code
    if code.co_name.startswith("__"):
        return
    if event == "call":
        _push(b"python", _bytes(code.co_name), _bytes("%s:%d" % (code.co_filename, code.co_firstlineno)))
    elif event == "return":
        _pop()


class rpdTracerControl(contextlib.ContextDecorator):
    """Starts and stops recording. As a context manager or decorator: records what is inside."""

    @classmethod
    def setFilename(cls, name, append=False):
        """Has no effect: the rpd command names the files."""

    @classmethod
    def skipCreate(cls):
        """Has no effect: the rpd command makes the files."""

    @classmethod
    def skipLoad(cls):
        """Has no effect: the rpd command loads its libraries when the program starts."""

    @classmethod
    def initializeFile(cls):
        """Has no effect: the rpd command makes the files."""

    @classmethod
    def loadLibrary(cls):
        """Has no effect: the rpd command loads its libraries when the program starts."""

    def start(self):
        """Records again. Starts and stops are counted."""
        _start()

    def stop(self):
        """Undoes one start."""
        _stop()

    def flush(self):
        """Records what the provider holds back."""
        _flush()

    def rangePush(self, domain, apiName, args):
        """Begins a range of the calling thread."""
        _push(_bytes(domain), _bytes(apiName), _bytes(args))

    def rangePop(self):
        """Ends the innermost range of the calling thread."""
        _pop()

    def setPythonTrace(self, doTrace):
        """Makes a range of each call of a Python function, in all threads from Python 3.12 on, else in this one and new ones."""
        function = _trace if doTrace else None
        everywhere = getattr(threading, "setprofile_all_threads", threading.setprofile)
        everywhere(function)
        sys.setprofile(function)

    def __enter__(self):
        self.start()

    def __exit__(self, *error):
        self.stop()
        return False


class hipScopedMarker(contextlib.ContextDecorator):
    """A range of the calling thread, as a context manager or decorator."""

    def __init__(self, text):
        self._text = text

    emitMarker = staticmethod(mark)
    pushMarker = staticmethod(range_push)
    popMarker = staticmethod(range_pop)

    def __enter__(self):
        range_push(self._text)
        return self

    def __exit__(self, *error):
        range_pop()
        return False


roctxMarker = hipScopedMarker


def rpd_mark(name=None):
    """A decorator: a range for each call of the function, with its name or another one."""

    def decorate(function):
        text = name or function.__qualname__

        @functools.wraps(function)
        def marked(*arguments, **named):
            with hipScopedMarker(text):
                return function(*arguments, **named)

        return marked

    return decorate
