"""The functions of the profiler's library, which is in the process but not in its global scope."""

import ctypes
import os

_LIBRARY = "librpd_collect.so"


def _path():
    try:
        with open("/proc/self/maps", errors="surrogateescape") as maps:
            for line in maps:
                path = line.rstrip("\n").split(None, 5)[-1]
                if path.rsplit("/", 1)[-1] == _LIBRARY:
                    return path
    except OSError:
        pass
    return None


def functions():
    """The library, or None if the program is not recorded."""
    path = _path()
    if path is None:
        return None
    try:
        # Only what is loaded already: this never loads the library.
        library = ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
        library.rpd_python_wait.restype = ctypes.c_int
        library.rpd_python_wait.argtypes = (ctypes.c_int,)
        library.rpd_python_file.restype = ctypes.c_size_t
        library.rpd_python_file.argtypes = (ctypes.c_char_p, ctypes.c_size_t)
        library.rpd_python_source.restype = ctypes.c_int
        library.rpd_python_source.argtypes = (
            ctypes.c_char_p,
            ctypes.c_uint32,
            ctypes.c_uint32,
            ctypes.c_char_p,
            ctypes.c_size_t,
        )
    except (AttributeError, OSError):
        return None
    return library
