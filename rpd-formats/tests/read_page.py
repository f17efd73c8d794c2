"""Opens a page in headless Chromium through chromedriver and checks it by clicking and reading.

Arguments: page, scratch directory, number of records, number of dispatches, directory for pictures or nothing.
"""

import base64
import json
import os
import subprocess
import sys
import time
import urllib.request

page, scratch, records, dispatches, pictures = sys.argv[1:6]
records, dispatches = int(records), int(dispatches)

driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
try:
    for line in driver.stdout:
        if "started successfully on port" in line:
            port = int(line.rsplit(" ", 1)[1].strip().rstrip("."))
            break
    else:
        raise SystemExit("chromedriver did not start")

    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def call(method, path, body=None):
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, {"Content-Type": "application/json"},
                                         method=method)
        with opener.open(request, timeout=120) as answer:
            return json.load(answer)["value"]

    arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
                 "--disable-background-networking", "--disable-component-update", "--disable-sync",
                 "--hide-scrollbars", "--window-size=1200,900", f"--user-data-dir={scratch}/profile"]
    session = call("POST", "/session", {"capabilities": {"alwaysMatch": {
        "goog:chromeOptions": {"args": arguments}, "goog:loggingPrefs": {"browser": "ALL"}}}})["sessionId"]
    here = f"/session/{session}"

    def run(script, *arguments):
        return call("POST", here + "/execute/sync", {"script": script, "args": list(arguments)})

    def click(selector):
        element = call("POST", here + "/element", {"using": "css selector", "value": selector})
        call("POST", f"{here}/element/{next(iter(element.values()))}/click", {})

    def type_into(selector, text):
        element = call("POST", here + "/element", {"using": "css selector", "value": selector})
        call("POST", f"{here}/element/{next(iter(element.values()))}/value", {"text": text})

    def column(table, index):
        return run("return [...document.querySelectorAll(`#${arguments[0]} tbody tr`)]"
                   ".map(row => row.cells[arguments[1]].textContent)", table, index)

    def picture(name):
        if pictures:
            with open(os.path.join(pictures, f"{name}-{records}.png"), "wb") as file:
                file.write(base64.b64decode(call("GET", here + "/screenshot")))

    begin = time.monotonic()
    call("POST", here + "/url", {"url": "file://" + page})
    loaded = time.monotonic() - begin

    # What is there.
    assert run("return document.title") == "rpd: app <one>"
    assert run("return document.getElementById('program').textContent") == "app <one>"
    cards = run("return document.getElementById('cards').innerText")
    # Thirty dispatches were counted, too.
    assert f"{records + 30:,}\nrecords" in cards and f"{dispatches:,}\nkernel dispatches" in cards, cards
    assert "3 records could not be stored." in run("return document.getElementById('notes').innerText")
    assert run("return document.images.length") == 0
    titles = run("return [...document.querySelectorAll('#tables h2')].map(head => head.textContent)")
    assert titles == ["Kernels", "Counters", "Calls", "Markers", "Copies", "Gaps"], titles
    counted = dict(zip(column("counters", 1), column("counters", 4)))
    assert counted == {"SQ_WAVES": "1,024", "Ratio": "0.25"}, counted
    assert column("markers", 0)[0].startswith("</script><img src=x onerror=alert(1)> \"quoted\""), column("markers", 0)
    assert len(column("kernels", 0)) == 12

    def counts():
        return [int(text.replace(",", "")) for text in column("kernels", 2)]

    assert sum(counts()) == dispatches
    assert column("copies", 3) == [f"{(records + 6) // 10:,}"]

    # Sorting by click: numbers descending first, then ascending; names the other way round.
    assert run("return document.querySelector('#kernels th:nth-child(4)').getAttribute('aria-sort')") == "descending"
    click("#kernels th:nth-child(3) button")
    assert counts() == sorted(counts(), reverse=True)
    click("#kernels th:nth-child(3) button")
    assert counts() == sorted(counts()) and counts()[0] < counts()[-1]
    click("#kernels th:nth-child(1) button")
    assert column("kernels", 0)[0] == "kernel_1"
    assert run("return document.querySelector('#kernels th:nth-child(1)').getAttribute('aria-sort')") == "ascending"

    # Searching.
    type_into("#kernels input", "KERNEL_12")
    assert column("kernels", 0) == ["kernel_12"]

    # The timeline is drawn, and zooming changes it.
    def ink():
        return run("const c = document.getElementById('canvas'), d = c.getContext('2d')"
                   ".getImageData(0, 0, c.width, c.height).data; let h = 0, n = 0;"
                   "for (let i = 0; i < d.length; i += 4) { h = (h * 31 + d[i] + 7 * d[i + 1] + 13 * d[i + 2]) | 0;"
                   "if (Math.max(d[i], d[i + 1], d[i + 2]) - Math.min(d[i], d[i + 1], d[i + 2]) > 60) n += 1; }"
                   "return [h, n]")

    first = ink()
    assert first[1] > 2000, first
    click("#in")
    click("#right")
    begin = time.monotonic()
    click("#in")
    assert ink()[0] != first[0]
    drawn = time.monotonic() - begin
    click("#all")
    assert ink() == first
    tip = run("""const canvas = document.getElementById('canvas'), box = canvas.getBoundingClientRect();
        for (let y = 36; y < box.height; y += 4) for (let x = 2; x < box.width; x += 3) {
            canvas.dispatchEvent(new PointerEvent('pointermove', {clientX: box.left + x, clientY: box.top + y}));
            const tip = document.getElementById('tip');
            if (!tip.hidden) return tip.textContent;
        }
        return '';""")
    assert tip.startswith("kernel_") and " at " in tip, tip
    picture("light")

    # Dark, on a phone, and on paper.
    def emulate(command, parameters):
        call("POST", here + "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def background():
        return run("return getComputedStyle(document.body).backgroundColor")

    light = background()
    emulate("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]})
    assert background() != light
    picture("dark")
    emulate("Emulation.setEmulatedMedia", {"media": "print", "features": []})
    assert run("return getComputedStyle(document.querySelector('#kernels input')).display") == "none"
    emulate("Emulation.setEmulatedMedia", {"media": "", "features": []})
    emulate("Emulation.setDeviceMetricsOverride", {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True})
    assert run("return document.documentElement.scrollWidth") <= 390
    picture("phone")

    log = [entry for entry in call("POST", here + "/se/log", {"type": "browser"}) if entry["level"] == "SEVERE"]
    assert not log, log
    assert loaded < 10 and drawn < 3, (loaded, drawn)
    print(f"{records} records: {os.path.getsize(page)} bytes, loaded in {loaded:.2f} s, zoomed in {drawn:.2f} s")
    call("DELETE", here)
finally:
    driver.kill()
