# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What usdt/ reads from real files, against what readelf reads from them."""

import functools
import glob
import os
import random
import re
import subprocess

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.abspath(os.environ.get("BUILD") or os.path.join(ROOT, "build"))
NOTEDUMP = os.path.join(BUILD, "tests", "notedump")

FILES_MAX = 16  # files with notes; those always wanted are taken first
SYMBOLS = 300
SCAN_BYTES_MAX = 400 << 20  # how much of /usr is looked at for notes

# Files worth testing wherever they are installed.
WANTED = [
    "/usr/lib/postgresql/*/bin/postgres",
    "/usr/sbin/mysqld",
    "/usr/sbin/mariadbd",
    "/usr/lib/*-linux-*/libstdc++.so.6",
    "/usr/bin/python3.[0-9]*[0-9]",
    "/usr/lib/jvm/*/lib/server/libjvm.so",
    "/usr/lib/*-linux-*/libpython3.*.so.1.0",
    "/usr/lib/*-linux-*/libruby*.so.*",
    "/usr/lib/*-linux-*/libvirt.so.0",
]
SEARCHED = ["/usr/bin/*", "/usr/sbin/*", "/usr/lib/*-linux-*/*.so*"]


def run(*args):
    return subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          errors="surrogateescape", env={**os.environ, "LC_ALL": "C"})


def readelf(*args):
    return run("readelf", "-W", *args).stdout


def notes_size(path):
    """How many bytes of notes @path has; 0 where it is no ELF file or has none."""
    with open(path, "rb") as f:
        data = f.read()
    if data[:4] != b"\x7fELF" or b".note.stapsdt\0" not in data:
        return 0
    sections = Oracle(path).sections
    return sections[".note.stapsdt"][2] if ".note.stapsdt" in sections else 0


@functools.lru_cache(maxsize=None)
def files_with_notes():
    """The wanted files, then small ones that the machine happens to have."""
    wanted = [os.path.realpath(p) for pattern in WANTED for p in sorted(glob.glob(pattern))]
    found = {p: notes_size(p) for p in wanted if notes_size(p)}
    others = {os.path.realpath(p) for pattern in SEARCHED for p in glob.glob(pattern)}
    scanned = 0
    for path in sorted(p for p in others - set(wanted) if os.path.isfile(p)):
        scanned += os.path.getsize(path)
        if scanned > SCAN_BYTES_MAX or len(found) >= FILES_MAX:
            break
        size = notes_size(path)
        # Of the many that have libstdc++ linked in, one will do.
        if size and size not in found.values():
            found[path] = size
    return list(found)[:FILES_MAX]


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


class Oracle:
    """The headers of a file as readelf tells them."""

    def __init__(self, path):
        self.path = path
        self.is64 = "ELF64" in readelf("-h", path)
        self.sections = {
            m[1]: (int(m[2], 16), int(m[3], 16), int(m[4], 16))
            for m in re.finditer(r"^ *\[ *\d+\] (\S+) +[A-Z]\S* +([0-9a-f]+) ([0-9a-f]+)"
                                 r" ([0-9a-f]+)", readelf("-S", path), re.M)
        }
        self.loads = [
            tuple(int(x, 16) for x in m.groups())
            for m in re.finditer(r"^ *LOAD +0x([0-9a-f]+) 0x([0-9a-f]+) 0x[0-9a-f]+ 0x([0-9a-f]+)",
                                 readelf("-l", path), re.M)
        ]

    def offset(self, vaddr):
        for offset, start, size in self.loads:
            if start <= vaddr < start + size:
                return offset + vaddr - start
        return None

    def sites(self):
        """(provider, name, vaddr, offset, semaphore, args) of each note, in the file's order."""
        notes = re.findall(r"    Provider: (.*)\n    Name: (.*)\n    Location: (0x\w+), "
                           r"Base: (0x\w+), Semaphore: (0x\w+)\n    Arguments: ?(.*)$",
                           readelf("-n", self.path), re.M)
        for provider, name, location, base, semaphore, args in notes:
            location, base, semaphore = (int(x, 16) for x in (location, base, semaphore))
            moved = 0
            if ".stapsdt.base" in self.sections:
                moved = self.sections[".stapsdt.base"][0] - base
            vaddr = location + moved
            yield (provider, name, vaddr, self.offset(vaddr),
                   semaphore + moved if semaphore else 0, args)

    def symbols(self, option):
        """name -> [(value, size)] of what a table defines, and the names that it imports."""
        defined, imported = {}, set()
        for line in readelf(*option, self.path).splitlines():
            field = line.split()
            if len(field) < 8 or not field[0][:-1].isdigit():
                continue
            name = field[7].split("@")[0]
            if field[6] == "UND":
                imported.add(name)
            elif field[3] not in ("FILE", "SECTION"):
                defined.setdefault(name, []).append((int(field[1], 16), int(field[2], 0)))
        return defined, imported


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
