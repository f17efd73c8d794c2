"""What generated Python files were made from.

A thread waits until the profiler meets a Python file for the first time, asks the program's function about each of its
lines, and passes the answers on. The traced call does not wait for it.
"""

import atexit
import ctypes
import functools
import linecache
import os
import struct
import sysconfig
import threading
import warnings

from . import _collector

# Longest path that is taken, in bytes.
_PATH = 1 << 16
# Largest number of lines of a file that are looked up.
_LINES = 1 << 16
# Milliseconds until a file without known sources is looked up again: it may not be complete while it is imported.
_AGAIN = 1000

_lock = threading.Lock()
_watch = None


def register_generated(function):
    """Reports the sources of lines of generated Python files.

    `function(filename, line)` returns the frames of the source that this line was made from, innermost first, each a tuple
    (filename, line, name) or a dictionary with these keys; None or an empty list if it knows none. PyTorch's Inductor has such
    a function:

        from torch._inductor.codecache import PyCodeCache
        rpd.register_generated(PyCodeCache.stack_frames_for_code)

    It is called on a thread of its own when a stack first has code of a file, and at the end of the program, never in a
    traced call. Several functions may be registered; the first that knows a line counts. Files of the standard library and
    of installed packages are not asked about. Returns `function`.
    """
    global _watch
    with _lock:
        if _watch is None:
            library = _collector.functions()
            # Without stacks with Python frames there is nothing to look up.
            if library is None or library.rpd_python_wait(0) < 0:
                return function
            _watch = _Watch(library)
        _watch.add(_without_cache(function))
    return function


def _without_cache(function):
    """The function below a cache that would keep "not known yet" for good."""
    if not hasattr(function, "cache_clear") and not hasattr(getattr(function, "__func__", None), "cache_clear"):
        return function
    below = getattr(function, "__wrapped__", None)
    if below is None:
        return function
    owner = getattr(function, "__self__", None)
    return below if owner is None else functools.partial(below, owner)


class _Watch:
    def __init__(self, library):
        self._library = library
        self._functions = []
        # Files that nothing was known of, and files that are done.
        self._open = {}
        self._done = set()
        self._work = threading.RLock()
        paths = sysconfig.get_paths()
        kinds = ("stdlib", "platstdlib", "purelib", "platlib")
        self._installed = tuple({os.path.join(paths[kind], "") for kind in kinds if paths.get(kind)})
        atexit.register(self._finish)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)
        self._start()

    def add(self, function):
        with self._work:
            self._functions.append(function)

    def _start(self):
        threading.Thread(target=self._run, name="rpd.register_generated", daemon=True).start()

    def _forked(self):
        # The lock may have been held by a thread that the child does not have; files are reported again.
        self._work = threading.RLock()
        self._open = {}
        self._done = set()
        self._start()

    def _run(self):
        while True:
            found = self._library.rpd_python_wait(_AGAIN if any(self._open.values()) else -1)
            if found < 0:
                return
            # Taken under the lock: at the end of the program another thread takes what is left.
            with self._work:
                if found:
                    self._ask_new()
                else:
                    for file in [file for file, again in self._open.items() if again]:
                        self._open[file] = False
                        self._ask(file)

    def _ask_new(self):
        buffer = ctypes.create_string_buffer(_PATH)
        while True:
            length = self._library.rpd_python_file(buffer, _PATH)
            if length == 0:
                return
            self._ask(os.fsdecode(buffer.raw[:length]))

    def _finish(self):
        """Looks up the remaining files, while the program's modules still exist."""
        with self._work:
            self._ask_new()
            for file in list(self._open):
                self._ask(file)

    def _ask(self, file):
        if file in self._done or file.startswith(self._installed) or file.startswith("<frozen "):
            return
        linecache.checkcache(file)
        count = min(len(linecache.getlines(file)), _LINES)
        known = False
        first, frames = 1, b""
        for line in range(1, count + 2):
            found = self._frames(file, line) if line <= count else b""
            if found != frames:
                known |= self._tell(file, first, line - 1, frames)
                first, frames = line, found
        if known:
            self._done.add(file)
            self._open.pop(file, None)
        else:
            self._open.setdefault(file, True)

    def _tell(self, file, first, last, frames):
        if not frames:
            return False
        self._library.rpd_python_source(os.fsencode(file), first, last, frames, len(frames))
        return True

    def _frames(self, file, line):
        """What a line was made from, as the profiler stores it."""
        for function in list(self._functions):
            try:
                frames = function(file, line)
                if frames:
                    return b"".join(_packed(frame) for frame in frames)
            except Exception as error:
                # The program goes on as it would without the profiler.
                self._functions.remove(function)
                warnings.warn(
                    "rpd.register_generated: %r failed for %s:%d and is not called again: %r"
                    % (function, file, line, error),
                    RuntimeWarning,
                    stacklevel=1,
                )
        return b""


def _packed(frame):
    if isinstance(frame, dict):
        file, line, name = frame["filename"], frame["line"], frame["name"]
    else:
        file, line, name = frame
    file, name = (str(text).encode("utf-8", "replace") for text in (file, name))
    return struct.pack("<III", int(line), len(name), len(file)) + name + file
