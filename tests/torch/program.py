"""Calls the operators of operator.cpp where PyTorch's work is done: `program.py LIBRARY DIRECTORY`. Writes DIRECTORY/PID.json for each
process, with PyTorch's view of each call; `program.py LIBRARY --cost` prints what calls and captures cost."""

import os
import sys
import threading

import torch

import rpd

LIBRARY, DIRECTORY = sys.argv[1:3]
torch.ops.load_library(LIBRARY)
call = torch.ops.rpd_test.call
FRAMES = 30


@torch.library.register_fake("rpd_test::call")
def fake_call(value):
    return torch.empty_like(value)


@torch.library.register_fake("rpd_test::call_backward")
def fake_call_backward(gradient):
    return torch.empty_like(gradient)


def dump():
    torch.ops.rpd_test.dump("%s/%d.json" % (DIRECTORY, os.getpid()))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(8, 8)
        self.second = torch.nn.Linear(8, 1)

    def forward(self, value):
        return self.second(call(torch.relu(self.first(value))))


class Function(torch.autograd.Function):
    @staticmethod
    def forward(context, value):
        return call(value)

    @staticmethod
    def backward(context, gradient):
        return call(gradient)


class Items(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        item = call(torch.full((8,), float(index)))
        dump()
        return item


def train(model, device):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.ones(4, 8, device=device)).sum().backward()
        optimizer.step()


def hooked(device):
    leaf = torch.ones(4, device=device, requires_grad=True)
    leaf.register_hook(lambda gradient: call(gradient))
    (leaf * 2).sum().backward()


def nested(depth):
    return call(torch.ones(2)) if depth == 0 else nested(depth - 1)


def one_item(key):
    call(torch.ones(2))
    yield key


def scripted(value: torch.Tensor):
    return torch.ops.rpd_test.call(value) + 1


def visit():
    devices = ["cpu"] + ["cuda"] * torch.cuda.is_available()
    nested(8)
    sorted([3, 1, 2], key=lambda key: next(one_item(key)))
    Function.apply(torch.ones(2, requires_grad=True)).sum().backward()
    rpd.script(torch.jit.script(scripted))(torch.ones(2))
    thread = threading.Thread(target=nested, args=(2,))
    thread.start()
    thread.join()
    library = torch.library.Library("rpd_test_python", "DEF")
    library.define("behind(Tensor a) -> Tensor")
    library.impl("behind", lambda value: call(value), "CompositeExplicitAutograd")
    torch.ops.rpd_test_python.behind(torch.ones(2))
    for device in devices:
        train(Model().to(device), device)
        hooked(device)
    for start in ("fork", "spawn"):
        list(torch.utils.data.DataLoader(Items(), batch_size=None, num_workers=2, multiprocessing_context=start))
    for device in devices:
        train(torch.compile(Model().to(device)), device)


def cost(depth):
    if depth:
        return cost(depth - 1)
    calls = min(torch.ops.rpd_test.cost_of_call(20000) for _ in range(10))
    gathers = min(torch.ops.rpd_test.cost_of_gather(2000) for _ in range(5))
    print("%.0f %.0f" % (calls, gathers))


def main():
    if DIRECTORY == "--cost":
        return cost(FRAMES - 3)
    from torch._inductor.codecache import PyCodeCache

    rpd.register_generated(PyCodeCache.stack_frames_for_code)
    visit()
    dump()


if __name__ == "__main__":
    main()
