# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Open a file in headless Chromium, and read its screenshots."""

import collections
import importlib.util
import json
import os
import shutil
import struct
import zlib

import pytest

SIZE = (1400, 900)


def need_browser():
    for package, there in (("chromium", shutil.which("chromium")), ("chromium-driver", shutil.which("chromedriver")),
                           ("python3-selenium", importlib.util.find_spec("selenium"))):
        if not there:
            pytest.skip(f"{package} is not installed")


def start_browser(folder):
    """A browser without access to any host; quit() ends it."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                     "--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND",
                     f"--user-data-dir={folder}", f"--window-size={SIZE[0]},{SIZE[1]}"):
        options.add_argument(argument)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)


def console(browser):
    """The messages of the console since the last call: errors of scripts, violations of the policy."""
    return [entry["message"] for entry in browser.get_log("browser")]


def requests(browser):
    """The addresses requested since the last call."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [message["params"]["request"]["url"] for message in messages
            if message["method"] == "Network.requestWillBeSent"]


def unfilter(kind, row, before, size):
    """A row of a PNG (RFC 2083, 6)."""
    for i, value in enumerate(row):
        left, up = row[i - size] if i >= size else 0, before[i]
        corner = before[i - size] if i >= size else 0
        if kind == 4:
            guess = left + up - corner
            best = min((abs(guess - left), 0, left), (abs(guess - up), 1, up), (abs(guess - corner), 2, corner))[2]
        else:
            best = (0, left, up, (left + up) // 2)[kind]
        row[i] = (value + best) & 255
    return row


def colors(png):
    """{(red, green, blue): number of pixels} of a PNG of 8 bits a channel."""
    at, data, found = 8, b"", collections.Counter()
    while at < len(png):
        length, kind = struct.unpack_from(">I4s", png, at)
        body = png[at + 8:at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, form = struct.unpack_from(">IIBB", body)
            assert depth == 8 and form in (2, 6)
        data += body if kind == b"IDAT" else b""
        at += 12 + length
    size = 3 if form == 2 else 4
    rows, stride = zlib.decompress(data), width * size + 1
    before = bytearray(width * size)
    for y in range(height):
        row = bytearray(rows[y * stride + 1:(y + 1) * stride])
        before = unfilter(rows[y * stride], row, before, size) if rows[y * stride] else row
        found.update(zip(before[0::size], before[1::size], before[2::size]))
    return found
