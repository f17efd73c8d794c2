"""Captures from 8 threads while a thread hogs the GIL, garbage is collected, processes are forked, and at the end the
interpreter is shut down under daemon threads that go on: `stress.py SECONDS`."""

import ctypes
import gc
import os
import sys
import threading
import time

import probe

SECONDS = float(sys.argv[1])
HERE = os.path.dirname(os.path.abspath(__file__))
SHUTDOWN = "import sys; sys.path.insert(0, %r); import stress_end" % HERE


def work(stop, counts, index):
    generator = (probe.check() for _ in iter(int, 1))
    while not stop.is_set():
        next(generator)
        sorted([1], key=lambda value: probe.check().number)
        space = {"check": probe.check}
        exec(compile("def f%d():\n return check()\nf%d()" % (index, index), "<f%d>" % index, "exec"), space)
        for capture in (probe.held.probe_capture, probe.released.probe_capture):
            for _ in range(100):
                capture(None)
        counts[index] += 1


def hog(stop):
    while not stop.is_set():
        sum(range(10000))


def collect(stop):
    while not stop.is_set():
        loop = []
        loop.append(loop)
        gc.collect()
        time.sleep(0.01)


def fork_until(end, stop):
    forks = 0
    while time.monotonic() < end and not stop.is_set():
        time.sleep(0.2)
        pid = os.fork()
        if pid == 0:
            probe.held.probe_forked()
            os._exit(0 if probe.capture().number else 1)
        status = os.waitpid(pid, 0)[1]
        assert status == 0, status
        forks += 1
        if forks % 10 == 0:
            probe.shut_down(SHUTDOWN)
    return forks


def main():
    probe.open_probe()
    sys.setswitchinterval(1e-4)
    stop, counts, errors = threading.Event(), [0] * 8, []

    def guarded(function, *arguments):
        def run():
            try:
                function(*arguments)
            except BaseException as error:
                errors.append(error)
                stop.set()

        return threading.Thread(target=run)

    threads = [guarded(work, stop, counts, index) for index in range(8)]
    threads += [guarded(hog, stop), guarded(collect, stop)]
    for thread in threads:
        thread.start()
    try:
        forks = fork_until(time.monotonic() + SECONDS, stop)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    if errors:
        raise errors[0]
    assert all(counts), counts
    print("%d rounds, %d forks" % (sum(counts), forks))


if __name__ == "__main__":
    main()
