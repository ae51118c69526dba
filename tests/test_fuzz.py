# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The fuzz targets on all seeds and what they found before; notes of made-up files against readelf."""

import os
import random
import re
import subprocess

import pytest

import elfmaker as elf
import fuzzing

NOTEDUMP = os.path.join(fuzzing.BUILD, "tests", "notedump")
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
    """A file with random notes, well formed or nearly so, as many bytes as may be."""
    maker = elf.ElfMaker(is64=pick.random() < 0.7, big=pick.random() < 0.3)
    text = elf.BASE + maker.offset()
    maker.add(".text", elf.PROGBITS, b"\x90" * 64, flags=6)
    data = elf.BASE + maker.offset()
    maker.add(".probes", elf.PROGBITS, b"\0" * 16, flags=3)
    base = elf.BASE + maker.offset()
    if pick.random() < 0.7:
        maker.add(".stapsdt.base", elf.PROGBITS, b"\0")
    notes = b""
    for _ in range(pick.randrange(1, 8)):
        # All notes of a file were linked with one base, which prelinking moves for all of them.
        semaphore = pick.choice([0, data, data + 2])
        note = maker.site(text + pick.randrange(64), base, semaphore, pick.choice(WORDS), pick.choice(WORDS),
                          pick.choice(SPECS).strip())
        notes += note
        if pick.random() < 0.2:
            notes += maker.note(b"GNU\0", pick.choice([1, 3, 5]), b"d" * pick.randrange(9))
    maker.add(".note.stapsdt", elf.NOTE, notes)
    return maker.data()


def readelf_sites(paths):
    """{path: [(provider, name, address, semaphore, args)]}, all by one readelf."""
    out = subprocess.run(["readelf", "-n", "-W", *paths], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                         env={**os.environ, "LC_ALL": "C.UTF-8"}, check=True, timeout=120).stdout
    found = {}
    for path, text in re.findall(r"^File: (.*)\n((?:(?!File: ).*\n)*)", out.decode(errors="replace"), re.M):
        found[path] = [(provider, name, int(address, 16), int(semaphore, 16), args) for
                       provider, name, address, semaphore, args in re.findall(
                           r"    Provider: (.*)\n    Name: (.*)\n    Location: 0x(\w+), Base: 0x\w+, "
                           r"Semaphore: 0x(\w+)\n    Arguments: ?(.*)$", text, re.M)]
    return found


def test_made_up_notes(tmp_path):
    pick = random.Random(7)
    paths = []
    for i in range(NOTE_FILES):
        paths.append(str(tmp_path / f"{i}.elf"))
        with open(paths[-1], "wb") as f:
            f.write(random_notes(pick))
    wanted = readelf_sites(paths)
    assert sum(map(len, wanted.values())) > NOTE_FILES
    for path in paths:
        dumped = subprocess.run([NOTEDUMP, path], capture_output=True, timeout=30)
        sites = [line.split(" ", 5) for line in dumped.stdout.decode(errors="replace").splitlines()]
        found = [(provider, name, int(vaddr, 0), int(semaphore, 0), args)
                 for provider, name, vaddr, _, semaphore, args in sites]
        assert found == wanted[path], path
