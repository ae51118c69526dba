# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The ELF reader of usdt/ on installed files, compared with readelf."""

import glob
import os
import random
import re

import pytest

from elf_oracle import Oracle, files_with_notes, readelf, run
from tool import NOTEDUMP

SYMBOLS = 300


def postgres():
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"))
    if not found:
        pytest.skip("no PostgreSQL server installed")
    return found[-1]


def pytest_generate_tests(metafunc):
    if "noted" in metafunc.fixturenames:
        metafunc.parametrize("noted", files_with_notes())


@pytest.fixture(autouse=True, scope="module")
def notedump_built():
    assert os.access(NOTEDUMP, os.X_OK), f"{NOTEDUMP} is missing: run make, or set BUILD"


def dumped_sites(path):
    result = run(NOTEDUMP, path)
    assert result.returncode == 0 and result.stderr == ""
    for line in result.stdout.splitlines():
        provider, name, vaddr, offset, semaphore, args = line.split(" ", 5)
        yield provider, name, int(vaddr, 0), int(offset, 0), int(semaphore, 0), args


def dumped_symbol(path, name):
    result = run(NOTEDUMP, "--symbol", name, path)
    assert result.returncode in (0, 1) and result.stderr == ""
    if result.returncode:
        return None
    value, size = result.stdout.split()[:2]
    return int(value, 0), int(size)


def test_this_machine_has_files_with_notes():
    assert files_with_notes(), "nothing to compare with: is libstdc++6 installed?"


def test_notes(noted):
    oracle = Oracle(noted)
    expected = list(oracle.sites())
    assert expected
    assert list(dumped_sites(noted)) == expected
    assert len(expected) == len(re.findall("NT_STAPSDT", readelf("-n", noted)))


def test_sections(noted):
    oracle = Oracle(noted)
    assert ".note.stapsdt" in oracle.sections
    for name, (addr, offset, size) in oracle.sections.items():
        result = run(NOTEDUMP, "--section", name, noted)
        assert [int(x, 0) for x in result.stdout.split()] == [addr, offset, size], name


def check_symbols(path, table, names):
    for name in names:
        found = dumped_symbol(path, name)
        assert found in table.get(name, [None]), name


def test_dynamic_symbols():
    path = postgres()
    defined, imported = Oracle(path).symbols(["--dyn-syms"])
    pick = random.Random(1)
    names = pick.sample(sorted(defined), min(SYMBOLS, len(defined)))
    names += ["pgstat_report_activity", "EndCommand", "debug_query_string", "MyProcPort"]
    check_symbols(path, defined, names)
    assert all(name in defined for name in names)
    missing = pick.sample(sorted(imported - set(defined) - {""}), 20)
    missing += ["nothing_of_that_name", "EndComman", "EndCommand2"]
    static, _ = Oracle(path).symbols(["-s"])
    check_symbols(path, static, missing)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """A small program, linked in ways that differ in how symbols are found."""
    folder = tmp_path_factory.mktemp("program")
    source = folder / "program.c"
    source.write_text("static int counter;\n"
                      "__attribute__((noinline)) static int hidden(int x) { return x + counter; }\n"
                      + "".join(f"int exported_{i}(int x) {{ return hidden(x) + {i}; }}\n"
                                for i in range(200))
                      + "int main(int argc, char **argv) { (void)argv; counter = argc;"
                        " return exported_7(argc); }\n")

    def link(*flags):
        out = folder / "-".join(["program", *flags]).replace("/", "").replace(",", "")
        result = run("gcc", "-O1", "-rdynamic", "-o", str(out), str(source), *flags)
        if result.returncode:
            pytest.skip(f"gcc cannot link with {flags}")
        return str(out)

    return link


@pytest.mark.parametrize("flags", [
    ["-Wl,--hash-style=gnu"],
    ["-Wl,--hash-style=sysv"],
    ["-Wl,--hash-style=both"],
    ["-Wl,--hash-style=gnu", "-s"],
    ["-Wl,--hash-style=sysv", "-s"],
    ["-static"],
    ["-no-pie"],
    ["-fuse-ld=gold"],
    ["-fuse-ld=lld"],
], ids=" ".join)
def test_linked_symbols(program, flags):
    path = program(*flags)
    oracle = Oracle(path)
    dynamic, _ = oracle.symbols(["--dyn-syms"])
    every, _ = oracle.symbols(["-s"])
    if "-static" not in flags:
        assert "exported_7" in dynamic
    names = ["main", "hidden", "counter", "exported_", "absent"]
    names += [f"exported_{i}" for i in range(0, 201, 10)]
    check_symbols(path, {**every, **dynamic}, names)


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the nop's bytes are x86's")
def test_sites_are_nops_and_semaphores_zero(noted):
    oracle = Oracle(noted)
    with open(noted, "rb") as f:
        for _, name, _, offset, semaphore, _ in dumped_sites(noted):
            f.seek(offset)
            assert f.read(1) == b"\x90", name
            if semaphore:
                f.seek(oracle.offset(semaphore))
                assert f.read(2) == b"\0\0", name


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"#!/bin/sh\n", b"\x7fELF" + b"\xff" * 100])
def test_no_elf_file(tmp_path, content):
    path = tmp_path / "file"
    path.write_bytes(content)
    result = run(NOTEDUMP, str(path))
    assert result.returncode == 2 and result.stdout == ""
