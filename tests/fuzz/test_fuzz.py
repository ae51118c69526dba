# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The fuzz targets on all seeds and what they found before; notes of made-up files against readelf."""

import os
import random
import re
import subprocess

import pytest

import elfmaker as elf
import fuzzing
from tool import NOTEDUMP

NOTE_FILES = 200
WORDS = ["app", "query__start", "a-b.c", "x" * 60, "caf\u00e9", "_Z3foov"]
SPECS = ["", "8@%rdi", "-4@-20(%rbp) 8@$1 2f@%xmm0", "8@[x0, 8] -1@w3", "@", "4@sym+8(%rip) " * 12]


@pytest.mark.parametrize("target", fuzzing.TARGETS)
def test_replay(target, tmp_path):
    assert os.access(fuzzing.program(target), os.X_OK), f"{fuzzing.program(target)} is missing: make fuzzers"
    paths = fuzzing.write_seeds(target, str(tmp_path))
    assert len(paths) >= 2
    result = fuzzing.replay(target, paths, timeout=300)
    assert result.returncode == 0, result.stderr[-8000:]
    # That it ran each is its own word.
    assert result.stderr.count("Executed ") == len(paths)


def test_replay_is_not_deaf(tmp_path):
    """A program under the same sanitizers, with a read beyond the end."""
    source = tmp_path / "bad.c"
    source.write_text("#include <stddef.h>\n#include <stdint.h>\n"
                      "int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);\n"
                      "int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n) { return p[n] == 1 && n > 1000; }\n")
    seed = tmp_path / "seed"
    seed.write_bytes(b"x")
    subprocess.run(["clang", "-fsanitize=address,undefined,fuzzer", "-o", str(tmp_path / "bad"), str(source)],
                   check=True)
    result = subprocess.run([str(tmp_path / "bad"), str(seed)], capture_output=True, text=True, timeout=60)
    assert result.returncode and "heap-buffer-overflow" in result.stderr


def random_notes(pick):
    """A file with random notes that are well formed, where these are in it, and where its .stapsdt.base is."""
    maker = elf.ElfMaker(is64=pick.random() < 0.7, big=pick.random() < 0.3)
    text = elf.BASE + maker.offset()
    maker.add(".text", elf.PROGBITS, b"\x90" * 64, flags=6)
    data = elf.BASE + maker.offset()
    maker.add(".probes", elf.PROGBITS, b"\0" * 16, flags=3)
    base = elf.BASE + maker.offset() if pick.random() < 0.7 else 0
    if base:
        maker.add(".stapsdt.base", elf.PROGBITS, b"\0")
    # How far prelinking has moved the file since the notes were written.
    moved = pick.choice([0, 0, 0x1000, -0x1000]) if base else 0
    notes = b""
    for _ in range(pick.randrange(1, 8)):
        semaphore = pick.choice([0, data - moved, data + 2 - moved])
        notes += maker.site(text + pick.randrange(64) - moved, base - moved, semaphore, pick.choice(WORDS),
                            pick.choice(WORDS), pick.choice(SPECS).strip())
        if pick.random() < 0.2:
            notes += maker.note(b"GNU\0", pick.choice([1, 3, 5]), b"d" * pick.randrange(9))
    start = maker.offset()
    maker.add(".note.stapsdt", elf.NOTE, notes)
    return bytearray(maker.data()), range(start, start + len(notes)), base


def mutate(pick, data, notes):
    """Changes a few bytes of the notes."""
    for _ in range(pick.randrange(1, 4)):
        data[pick.choice(notes)] = pick.choice([0, 1, 2, 3, 4, 5, 8, 0x20, 0x40, 0x7f, 0x80, 0xff])


def readelf_sites(paths, bases):
    """[[(provider, name, address, semaphore, args)]] of each file, all by one readelf."""
    out = subprocess.run(["readelf", "-n", "-W", *paths], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                         env={**os.environ, "LC_ALL": "C.UTF-8"}, timeout=120).stdout
    texts = re.split(r"^File: .*\n", out.decode(errors="replace"), flags=re.M)[1:]
    assert len(texts) == len(paths)
    return [list(moved_sites(text, base)) for text, base in zip(texts, bases)]


def moved_sites(text, base):
    """Readelf's notes with the addresses where prelinking has moved them; they wrap at the class's width."""
    for provider, name, *addresses, args in re.findall(
            r"    Provider: (.*)\n    Name: (.*)\n    Location: 0x(\w+), Base: 0x(\w+), "
            r"Semaphore: 0x(\w+)\n    Arguments: ?(.*)$", text, re.M):
        vaddr, was, semaphore = (int(a, 16) for a in addresses)
        moved, limit = base - was if base else 0, 1 << 4 * len(addresses[0])
        yield provider, name, (vaddr + moved) % limit, (semaphore + moved) % limit if semaphore else 0, args


def dumped_sites(path):
    """Return the sites that the tool reads; None if a line end in a name makes the output ambiguous."""
    out = subprocess.run([NOTEDUMP, path], capture_output=True, timeout=60).stdout.decode(errors="replace")
    lines = [line.split(" ", 5) for line in out.split("\n")[:-1]]
    if not all(len(line) == 6 and line[2].startswith("0") and line[4].startswith("0") for line in lines):
        return None
    return [(provider, name, int(vaddr, 0), int(semaphore, 0), args)
            for provider, name, vaddr, _, semaphore, args in lines]


def note_files(pick, folder, change):
    paths, bases = [], []
    for i in range(NOTE_FILES):
        data, notes, base = random_notes(pick)
        change(pick, data, notes)
        paths.append(str(folder / f"{i}.elf"))
        bases.append(base)
        with open(paths[-1], "wb") as f:
            f.write(data)
    return paths, readelf_sites(paths, bases)


def test_made_up_notes(tmp_path):
    paths, wanted = note_files(random.Random(7), tmp_path, lambda *_: None)
    assert sum(map(len, wanted)) > NOTE_FILES
    for path, sites in zip(paths, wanted):
        assert dumped_sites(path) == sites, path


def test_broken_notes(tmp_path):
    """Of notes that contradict themselves we may hand out fewer, but none that readelf does not see."""
    paths, wanted = note_files(random.Random(8), tmp_path, mutate)
    seen = 0
    for path, sites in zip(paths, wanted):
        found = dumped_sites(path)
        rest = iter(sites)
        assert found is None or all(site in rest for site in found), (path, found, sites)
        seen += len(found or [])
    assert seen > NOTE_FILES
