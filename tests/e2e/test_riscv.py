# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Machine code for riscv64, decoded by usdt/ and by objdump of binutils."""

import os
import re
import shutil
import struct
import subprocess

import pytest

from tool import BUILD

OBJDUMP = "riscv64-linux-gnu-objdump"
TOOL = os.path.join(BUILD, "tests", "lib", "riscvdump")
DEBUG = os.path.join(BUILD, "riscv64", "dbslower.debug")

pytestmark = pytest.mark.skipif(not shutil.which(OBJDUMP), reason=f"no {OBJDUMP} (package binutils-riscv64-linux-gnu)")


def disassembled(*args):
    """Yield address, instruction and comment of each line."""
    said = subprocess.run([OBJDUMP, *args], capture_output=True, text=True, check=True).stdout
    for line in said.splitlines():
        if found := re.match(r" *([0-9a-f]+):\t[0-9a-f]+ +\t([^#]*)(.*)", line):
            yield int(found[1], 16), " ".join(found[2].split()), found[3]


def moved(text):
    """The registers that an instruction copies, however it is spelled; or None."""
    found = re.match(r"(?:mv|add) (\w+),(?:zero,)?(\w+)(?:,0)?$", text)
    return found and found.groups()


def is_hint(text):
    """It writes the register zero, or shifts by 0. Compressed, it has another name."""
    return re.match(r"nop$|\w+ zero,", text) or re.match(r"(?:sll|srl|sra) (\w+),\1,0x0$", text)


def test_compressed_instructions(tmp_path):
    """Each is expanded to one that does the same; those that are reserved are not expanded."""
    expanded = [int(line, 16) for line in subprocess.run([TOOL], capture_output=True, text=True, check=True).stdout.split()]
    assert len(expanded) == 65536 and not any(expanded[3::4])
    short = [half for half in range(65536) if expanded[half]]
    (tmp_path / "short").write_bytes(b"".join(struct.pack("<HH", half, 1) for half in short))
    (tmp_path / "long").write_bytes(b"".join(struct.pack("<I", expanded[half]) for half in short))
    raw = ["-D", "-b", "binary", "-m", "riscv:rv64"]
    ours = {at: text for at, text, _ in disassembled(*raw, str(tmp_path / "long"))}
    theirs = {at: text for at, text, _ in disassembled(*raw, str(tmp_path / "short")) if not at % 4}
    assert len(ours) == len(theirs) == len(short) > 45000
    differ = [(f"{short[at // 4]:04x}", theirs[at], ours[at]) for at in ours if ours[at] != theirs[at]]
    differ = [row for row in differ if not is_hint(row[2]) and not (moved(row[1]) and moved(row[1]) == moved(row[2]))]
    assert not differ, f"{len(differ)}: {differ[:20]}"
    reserved = [half for half in range(65536) if half % 4 != 3 and not expanded[half]]
    (tmp_path / "reserved").write_bytes(b"".join(struct.pack("<HH", half, 1) for half in reserved))
    known = [(f"{reserved[at // 4]:04x}", text) for at, text, _ in disassembled(*raw, str(tmp_path / "reserved"))
             if not at % 4 and not text.startswith((".2byte", "unimp"))]
    assert known in ([], [("6101", "add sp,sp,0")]), known	# c.addi16sp of 0: reserved, but binutils prints it


@pytest.mark.skipif(not os.path.exists(DEBUG), reason="no build for riscv64")
def test_calls_and_jumps():
    """Of all functions of the program for riscv64: where instructions are, and where they go."""
    symbols = subprocess.run(["nm", "-S", DEBUG], capture_output=True, text=True, check=True).stdout
    functions = {(int(at, 16), int(at, 16) + int(size, 16)) for at, size in re.findall(r"^(\w{16}) (\w{16}) [tTwW] ", symbols, re.M)}
    assert len(functions) > 1000
    done = subprocess.run([TOOL, DEBUG], input="".join(f"{start:x} {end:x}\n" for start, end in sorted(functions)),
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-200:]
    ours = {}
    for line in done.stdout.splitlines():
        at, length, call, jump = line.split()
        ours[int(at, 16)] = int(length), int(call, 16), int(jump, 16)
    theirs, last = {}, (0, "")
    for at, text, comment in disassembled("-d", DEBUG):
        if last[0] in theirs:
            theirs[last[0]] = at - last[0], *theirs[last[0]][1:]
        name, _, operands = text.partition(" ")
        target = re.search(r"\b([0-9a-f]+) <", operands)
        theirs[at] = (0, int(target[1], 16) if target and name == "jal" and "," not in operands else 0,
                      int(target[1], 16) if target and name != "jal" and name.startswith(("j", "b")) else 0)
        far = re.match(r"# ([0-9a-f]+) ", comment)
        if name == "jalr" and far and re.match(r"auipc ra,", last[1]):
            theirs[last[0]] = at - last[0], int(far[1], 16), 0
        last = at, text
    theirs[last[0]] = ours[last[0]]		# its length is not known
    wrong = {f"{at:x}": (ours[at], theirs.get(at)) for at in ours if ours[at] != theirs.get(at)}
    assert len(ours) > 50000 and sum(1 for row in ours.values() if row[1]) > 5000
    assert not wrong, dict(list(wrong.items())[:20])


def test_jumps_for_aarch64():
    """The same where instructions have one length: only where calls and jumps go."""
    debug, objdump = os.path.join(BUILD, "aarch64", "dbslower.debug"), "aarch64-linux-gnu-objdump"
    if not os.path.exists(debug) or not shutil.which(objdump):
        pytest.skip(f"no build for aarch64, or no {objdump}")
    said = subprocess.run([objdump, "-d", "-j", ".text", debug], capture_output=True, text=True, check=True).stdout
    theirs, targets = {}, {"call": 0, "b": 0, "b.": 0, "cb": 0, "tb": 0}
    for at, name, operands in re.findall(r"^ *([0-9a-f]+):\t[0-9a-f]{8} +\t(\S+)\t?([^/\n]*)", said, re.M):
        target = re.search(r"\b([0-9a-f]+) <", operands)
        kind = "call" if name == "bl" else name if name == "b" else name[:2] if name[:2] in targets and target else None
        theirs[int(at, 16)] = (kind, int(target[1], 16)) if target and kind else (None, 0)
        targets[kind] = targets.get(kind, 0) + 1
    functions = re.findall(r"^(\w{16}) (\w{16}) [tTwW] ", subprocess.run(["nm", "-S", debug], capture_output=True, text=True,
                                                                        check=True).stdout, re.M)
    ranges = "".join(f"{int(at, 16):x} {int(at, 16) + int(size, 16):x}\n" for at, size in sorted(set(functions)))
    done = subprocess.run([TOOL, debug], input=ranges, capture_output=True, text=True, check=True)
    ours = {int(at, 16): (int(call, 16), int(jump, 16)) for at, _, call, jump in map(str.split, done.stdout.splitlines())}
    wanted = {at: (target if kind == "call" else 0, target if kind and kind != "call" else 0) for at, (kind, target) in theirs.items()}
    wrong = {f"{at:x}": (ours[at], wanted.get(at)) for at in ours if at in wanted and ours[at] != wanted[at]}
    assert len(ours) > 50000 and all(targets[kind] > 100 for kind in ("call", "b", "b.", "cb", "tb")), targets
    assert not wrong, dict(list(wrong.items())[:20])
