# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The binaries for other architectures: their format, and their unit tests under user-mode emulation. test_kernels.py traces
with them."""

import json
import os
import re
import shutil
import subprocess

import pytest

import background
import system_calls
from elffile import readelf
from tap import OUTPUT_LIMIT, limit_output, plan_fault
from tool import BUILD, CACHE, ROOT, VICTIM, image

UNIT = sorted(name[:-2] for name in os.listdir(os.path.join(ROOT, "tests", "unit")) if name.endswith(".c"))
# The unit tests whose code or outcome depends on the architecture, also by char, which is unsigned on both; make kernels
# runs all.
DEPENDENT = ["accessor", "arch", "breakdown", "element", "emit", "expression", "fingerprint", "host", "identity", "regex", "riscv",
             "sandbox", "site", "spec", "tags"]


class Architecture:
    """What differs: the machine in readelf's words, the largest page in bytes."""

    def __init__(self, name, machine, page):
        self.name, self.machine, self.page = name, machine, page
        self.build = os.path.join(BUILD, name)
        self.dbslower = os.path.join(self.build, "dbslower")
        self.sysroot = os.path.join(CACHE, f"sysroot-{name}")

    def reason(self):
        """Why it cannot be tested, or None."""
        if os.uname().machine == self.name:
            return "this machine is one"
        return None if os.path.exists(self.sysroot) else f"no musl for {self.name}: ci/fetch could not get its packages"

    def emulator(self):
        found = shutil.which(f"qemu-{self.name}-static") or shutil.which(f"qemu-{self.name}")
        if not found:
            pytest.skip(f"no qemu-{self.name} (package qemu-user-static)")
        return found

    def run(self, program, *args):
        return subprocess.run([self.emulator(), program, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", timeout=300, preexec_fn=limit_output,
                              env={**os.environ, "UNIT_SHORT": "1", "TESTDATA": os.path.join(ROOT, "tests", "data")})


ARCHITECTURES = {arch.name: arch for arch in (Architecture("aarch64", "AArch64", 65536), Architecture("riscv64", "RISC-V", 4096))}


@pytest.fixture(params=ARCHITECTURES)
def arch(request):
    found = ARCHITECTURES[request.param]
    if found.reason():
        pytest.skip(found.reason())
    return found


def test_form(arch):
    assert arch.machine in readelf("-h", arch.dbslower)
    segments = readelf("-l", arch.dbslower)
    assert "INTERP" not in segments and "NEEDED" not in readelf("-d", arch.dbslower)
    assert ".symtab" not in readelf("-S", arch.dbslower)
    loads = re.findall(r"LOAD .* (0x[0-9a-f]+)$", segments, re.M)
    assert loads and all(int(align, 16) >= arch.page for align in loads), f"for kernels with {arch.page}-byte pages: {segments}"
    assert not re.search(r"\bRWE\b|\bW E\b", segments), segments
    sizes = subprocess.run([os.path.join(ROOT, "ci", "sizes"), f"{arch.dbslower}.map"], capture_output=True, text=True)
    assert sizes.returncode == 0 and not sizes.stderr, sizes.stdout + sizes.stderr


def test_no_paths_of_the_builder(arch):
    data = image(arch.build)
    assert ROOT.encode() not in data and arch.sysroot.encode() not in data


def test_same_bpf_programs(arch):
    """They know no register: the loader reads those from the traced file's machine."""
    with open(os.path.join(arch.build, "bpf", "statement.bpf.o"), "rb") as theirs:
        with open(os.path.join(BUILD, "bpf", "statement.bpf.o"), "rb") as ours:
            programs = theirs.read()
            assert programs == ours.read()
    assert programs in image(arch.build)


def test_lists_as_the_native_one(arch):
    """The same probes of the same file, byte for byte."""
    native = subprocess.run([os.path.join(BUILD, "dbslower"), "list", "-l", VICTIM, "-vv"], capture_output=True, text=True)
    assert native.returncode == 0 and "query__start" in native.stdout, native
    assert arch.run(arch.dbslower, "list", "-l", VICTIM, "-vv").stdout == native.stdout


def test_every_system_call_has_a_name(arch):
    """As the kernel's header for both has them."""
    calls = json.loads(arch.run(arch.dbslower, "--tables").stdout)["calls"]
    assert not system_calls.lacking(calls, system_calls.named(*system_calls.GENERIC))


def test_says_that_it_cannot_trace_here(arch):
    """An emulator of user space has no bpf(2)."""
    done = arch.run(arch.dbslower, "-m", "0", "-d", "1")
    assert done.returncode == 1 and "bpf(2)" in done.stdout, done


def emulated(_, name, unit):
    return ARCHITECTURES[name].run(os.path.join(ARCHITECTURES[name].build, "tests", "unit", unit))


EMULATED = [(arch.name, unit) for arch in ARCHITECTURES.values() for unit in (UNIT if os.environ.get("KERNELS") else DEPENDENT)]


def background_jobs(names):
    return [(emulated, name, unit) for name, unit in EMULATED
            if f"test_unit[{name}-{unit}]" in names and not ARCHITECTURES[name].reason()]


@pytest.mark.parametrize("name, unit", EMULATED)
def test_unit(name, unit):
    if ARCHITECTURES[name].reason():
        pytest.skip(ARCHITECTURES[name].reason())
    done = background.result(emulated, name, unit)
    assert len(done.stdout) < OUTPUT_LIMIT and not plan_fault(done.stdout, done.returncode), done.stdout[-4000:]
    assert not re.search(r"^not ok", done.stdout, re.M), done.stdout[-4000:]
