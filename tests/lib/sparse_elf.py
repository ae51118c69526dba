# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs that run, with tables that are as large as a file system allows but occupy no space."""

import os
import struct

PAGE = 4096
SYMTAB, STRTAB = 2, 3
SYMBOL = 24		# bytes of an Elf64_Sym


def section(kind, offset, size, link=0, entsize=0):
    """A section header of a 64-bit little-endian file; its name is empty."""
    return struct.pack("<IIQQQQIIQQ", 0, kind, 0, 0, offset, size, link, 0, 1, entsize)


def with_symbols(program, path, count, entsize=SYMBOL):
    """Write the stripped @program to @path with a .symtab of @count zeros, all of it a hole."""
    with open(program, "rb") as f:
        data = bytearray(f.read())
    at, = struct.unpack_from("<Q", data, 0x28)
    size, number, names = struct.unpack_from("<HHH", data, 0x3a)
    assert size == 64
    headers = data[at:at + number * size]
    data += b"\0" * (-len(data) % PAGE)
    symbols = len(data) + PAGE
    strings = symbols + count * entsize
    strings += -strings % PAGE
    headers += section(SYMTAB, symbols, count * entsize, number + 1, entsize) + section(STRTAB, strings, PAGE)
    struct.pack_into("<Q", data, 0x28, len(data))
    struct.pack_into("<HHH", data, 0x3a, size, number + 2, names)
    assert len(headers) <= PAGE
    with open(path, "wb") as f:
        f.write(data + headers)
        f.truncate(strings + PAGE)
    os.chmod(path, 0o755)
