# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The binary for aarch64: its format, and its unit tests under user-mode emulation. test_kernels.py traces with it."""

import lzma
import os
import re
import shutil
import subprocess

import pytest

import background
from elffile import readelf
from tap import OUTPUT_LIMIT, limit_output, plan_fault
from tool import BUILD, ROOT, VICTIM, image

AARCH64 = os.path.join(BUILD, "aarch64")
DBSLOWER = os.path.join(AARCH64, "dbslower")
SYSROOT = os.path.join(os.environ.get("CACHE") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "dbslower"), "sysroot-aarch64")
UNIT = sorted(name[:-2] for name in os.listdir(os.path.join(ROOT, "tests", "unit")) if name.endswith(".c"))
LARGEST = 512 * 1024	# its segments are 64 KiB apart, for the largest of its pages

pytestmark = [
    pytest.mark.skipif(os.uname().machine == "aarch64", reason="this machine is one"),
    pytest.mark.skipif(not os.path.exists(SYSROOT), reason="no musl for aarch64: ci/fetch could not get its packages"),
]


def emulator():
    found = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
    if not found:
        pytest.skip("no qemu-aarch64 (package qemu-user-static)")
    return found


def emulate(program, *args, timeout=300):
    return subprocess.run([emulator(), program, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", timeout=timeout, preexec_fn=limit_output,
                          env={**os.environ, "UNIT_SHORT": "1", "TESTDATA": os.path.join(ROOT, "tests", "data")})


def test_form():
    assert "AArch64" in readelf("-h", DBSLOWER)
    segments = readelf("-l", DBSLOWER)
    assert "INTERP" not in segments and "NEEDED" not in readelf("-d", DBSLOWER)
    assert ".symtab" not in readelf("-S", DBSLOWER)
    loads = re.findall(r"LOAD .* (0x[0-9a-f]+)$", segments, re.M)
    assert loads and all(int(align, 16) >= 65536 for align in loads), f"for kernels with 64 KiB pages: {segments}"
    assert not re.search(r"\bRWE\b|\bW E\b", segments), segments
    size = os.path.getsize(DBSLOWER)
    assert size < LARGEST, f"{size} bytes, at most {LARGEST}"


def test_no_paths_of_the_builder():
    data = image(AARCH64)
    assert ROOT.encode() not in data and SYSROOT.encode() not in data


def test_same_bpf_programs():
    """They know no register: the loader reads those from the traced file's machine."""
    with open(os.path.join(AARCH64, "bpf", "statement.bpf.o"), "rb") as theirs:
        with open(os.path.join(BUILD, "bpf", "statement.bpf.o"), "rb") as ours:
            programs = theirs.read()
            assert programs == ours.read()
    with open(os.path.join(BUILD, "bpf", "statement.bpf.o.lzma"), "rb") as packed:
        embedded = packed.read()
        assert lzma.decompress(embedded) == programs
    with open(DBSLOWER, "rb") as f:
        assert embedded in f.read()


def test_lists_as_the_native_one():
    """The same probes of the same file, byte for byte."""
    file = VICTIM
    native = subprocess.run([os.path.join(BUILD, "dbslower"), "list", "-l", file, "-vv"], capture_output=True, text=True)
    assert native.returncode == 0 and "query__start" in native.stdout, native
    assert emulate(DBSLOWER, "list", "-l", file, "-vv").stdout == native.stdout


def test_says_that_it_cannot_trace_here():
    """An emulator of user space has no bpf(2)."""
    done = emulate(DBSLOWER, "-m", "0", "-d", "1")
    assert done.returncode == 1 and "bpf(2)" in done.stdout, done


def emulated(_, name):
    return emulate(os.path.join(AARCH64, "tests", "unit", name))


def background_jobs(names):
    return [(emulated, name) for name in UNIT if f"test_unit[{name}]" in names and os.path.exists(AARCH64)]


@pytest.mark.parametrize("name", UNIT)
def test_unit(name):
    done = background.result(emulated, name)
    assert len(done.stdout) < OUTPUT_LIMIT and not plan_fault(done.stdout, done.returncode), done.stdout[-4000:]
    assert not re.search(r"^not ok", done.stdout, re.M), done.stdout[-4000:]
