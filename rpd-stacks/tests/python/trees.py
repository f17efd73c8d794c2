"""Random call trees: `trees.py COUNT SEED`. Each tree calls itself in ways drawn at random and compares a stack at its end."""

import asyncio
import ctypes
import functools
import random
import sys
import threading

import probe
from probe import check

HANDLER = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_size_t)
COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
LIBC = ctypes.CDLL(None)
steps = []


def step(function):
    steps.append(function)
    return function


@step
def plain(go):
    return go()


@step
def keywords(go, *arguments, **named):
    return (lambda *a, **k: go())(*arguments, one=1, **named)


@step
def through_map(go):
    return list(map(lambda value: go(), [1]))


@step
def through_sorted(go):
    sorted([2], key=lambda value: go() or value)


@step
def through_reduce(go):
    functools.reduce(lambda a, b: go(), [1, 2])


@step
def generator(go):
    def numbers():
        yield 1
        yield go()

    for number in numbers():
        pass


@step
def delegating(go):
    def inner():
        yield go()

    def outer():
        yield from inner()

    list(outer())


@step
def thrown_into(go):
    def target():
        try:
            yield 1
        except KeyError:
            go()
        yield 2

    running = target()
    next(running)
    running.throw(KeyError("x"))


@step
def closed(go):
    def target():
        try:
            yield 1
        finally:
            go()

    running = target()
    next(running)
    running.close()


@step
def coroutine(go):
    async def inner():
        return go()

    async def outer():
        return await inner()

    try:
        outer().send(None)
    except StopIteration:
        pass


@step
def comprehension(go):
    return [{key: {go() for _ in [0]} for key in [0]} for _ in [0]]


@step
def expression(go):
    return any(go() or True for _ in [0])


@step
def evaluated(go):
    eval("go()", {"go": go})
    exec("def f():\n  return (\n   go()\n  )\nf()", {"go": go})


@step
def class_body(go):
    class Body(metaclass=type):
        value = go()


@step
def constructor(go):
    class Made:
        def __init__(self):
            go()

    Made()


@step
def magic(go):
    class Magic:
        def __getattr__(self, name):
            go()

        def __add__(self, other):
            self.missing

        def __call__(self):
            return self + self

        def __enter__(self):
            self()

        def __exit__(self, *error):
            pass

    with Magic():
        pass


@step
def finalizer(go):
    class Tail:
        def __del__(self):
            go()

    tail = Tail()
    del tail


@step
def handler(go):
    try:
        raise ValueError(1)
    except ValueError:
        go()


@step
def last(go):
    try:
        {}["missing"]
    except KeyError:
        pass
    finally:
        go()


@step
def callback(go):
    function = HANDLER(lambda value: go() or 0)
    library = random.choice((probe.held, probe.released))
    library.probe_call(function, 0)


@step
def through_qsort(go):
    done = []

    def compare(a, b):
        if not done:
            done.append(go())
        return 0

    LIBC.qsort((ctypes.c_int * 2)(2, 1), 2, 4, COMPARE(compare))


@step
def partial(go):
    functools.partial(functools.wraps(go)(lambda: go()))()


@step
def recursion(go):
    def down(depth):
        return down(depth - 1) if depth else go()

    down(random.randrange(12))


@step
def profiled(go):
    def hook(frame, event, argument):
        pass

    sys.setprofile(hook)
    try:
        go()
    finally:
        sys.setprofile(None)


@step
def string_method(go):
    class Text:
        def __str__(self):
            go()
            return ""

    "{} {}".format(Text(), 1)


@step
def thread(go):
    errors = []

    def run():
        try:
            go()
        except BaseException as error:
            errors.append(error)

    other = threading.Thread(target=run)
    other.start()
    other.join()
    if errors:
        raise errors[0]


@step
def loop(go):
    async def task():
        await asyncio.sleep(0)
        go()

    def run():
        asyncio.run(task())

    # No second loop on one thread.
    thread(run)


RARE = {thread: 0.1, loop: 0.03}


def tree(generator, depth):
    """A chain of steps that ends in a comparison."""
    choice = None
    while choice is None or generator.random() > RARE.get(choice, 1):
        choice = generator.choice(steps)
    if depth == 0:
        return lambda: check() and None
    inner = tree(generator, depth - 1)
    return lambda: choice(inner) and None


def main():
    count, seed = int(sys.argv[1]), int(sys.argv[2])
    probe.open_probe()
    generator = random.Random(seed)
    for number in range(count):
        random.seed(seed + number)
        try:
            tree(generator, generator.randrange(1, 9))()
        except AssertionError:
            print("tree %d of seed %d:" % (number, seed))
            raise
    assert probe.checks >= 2 * count, probe.checks
    print("%d trees, %d comparisons" % (count, probe.checks))


if __name__ == "__main__":
    main()
