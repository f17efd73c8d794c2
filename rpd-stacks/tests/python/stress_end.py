"""Ends the interpreter while daemon threads capture."""

import threading
import time

import probe

probe.open_probe()


def hammer():
    while True:
        probe.released.probe_capture(None)
        probe.held.probe_capture(None)


for _ in range(8):
    threading.Thread(target=hammer, daemon=True).start()
time.sleep(0.05)
