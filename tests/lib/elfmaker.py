# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Write small ELF files of either class and byte order, also malformed ones."""

import struct

EM_X86_64, EM_AARCH64, EM_BPF = 62, 183, 247
ET_REL, ET_DYN = 1, 3
PROGBITS, SYMTAB, STRTAB, NOTE, NOBITS, REL, DYNSYM, GNU_HASH = 1, 2, 3, 7, 8, 9, 11, 0x6ffffff6
GNU_EH_FRAME = 0x6474e550
NOTYPE, OBJECT, FUNC, SECTION, TLS = 0, 1, 2, 3, 6
BASE = 0x400000    # where everything is loaded, the file's first byte there


class ElfMaker:
    """Sections are added in the file's order; data() is the whole file."""

    def __init__(self, is64=True, big=False, machine=EM_X86_64, kind=ET_DYN):
        self.is64, self.big, self.machine, self.kind = is64, big, machine, kind
        self.sections = [("", 0, 0, 0, b"", 0, 0, 0)]    # name, type, flags, address, data, link, info, entry size
        self.at = 64 + 3 * 56 if is64 else 52 + 3 * 32

    def pack(self, form, *values):
        """As struct.pack; W is a word of the file's class."""
        return struct.pack((">" if self.big else "<") + form.replace("W", "Q" if self.is64 else "I"), *values)

    @property
    def word(self):
        return 8 if self.is64 else 4

    def offset(self):
        """Return the file offset of the next section's data, which is at BASE + that in memory."""
        return (self.at + 7) & ~7

    def add(self, name, kind, data, flags=2, link=0, info=0, entsize=0, addr=None):
        """The number of the section."""
        self.at = self.offset()
        self.sections.append((name, kind, flags, BASE + self.at if addr is None else addr, data, link, info, entsize))
        self.at += len(data)
        return len(self.sections) - 1

    def note(self, owner, kind, desc):
        return (self.pack("III", len(owner), len(desc), kind) + owner + b"\0" * (-len(owner) % 4) +
                desc + b"\0" * (-len(desc) % 4))

    def site(self, vaddr, base, semaphore, provider, name, args):
        desc = self.pack("WWW", vaddr, base, semaphore) + b"".join(s.encode() + b"\0" for s in (provider, name, args))
        return self.note(b"stapsdt\0", 3, desc)

    def symbol(self, name, value, size, kind, shndx, bind=1):
        if self.is64:
            return self.pack("IBBHQQ", name, bind << 4 | kind, 0, shndx, value, size)
        return self.pack("IIIBBH", name, value, size, bind << 4 | kind, 0, shndx)

    def symbols(self, table, strings, symbols, hashed=False):
        """Adds a table of (name, value, size, type, section), its strings, and with @hashed a .gnu.hash."""
        symbols = sorted(symbols, key=lambda s: gnu_hash(s[0]) % 3) if hashed else symbols
        text, data = b"\0", self.symbol(0, 0, 0, 0, 0, 0)
        for name, value, size, kind, shndx in symbols:
            data += self.symbol(len(text), value, size, kind, shndx)
            text += name.encode() + b"\0"
        link = self.add(strings, STRTAB, text)
        number = self.add(table, DYNSYM if table == ".dynsym" else SYMTAB, data, link=link,
                          entsize=24 if self.is64 else 16)
        if hashed:
            self.add(".gnu.hash", GNU_HASH, self.hash_table([s[0] for s in symbols]), link=number)
        return number

    def hash_table(self, names):
        buckets = 3
        words = []
        first = [0] * buckets
        for i, name in enumerate(names):
            here = gnu_hash(name) % buckets
            first[here] = first[here] or i + 1
            last = i + 1 == len(names) or gnu_hash(names[i + 1]) % buckets != here
            words.append(gnu_hash(name) & ~1 | last)
        return (self.pack("IIII", buckets, 1, 1, 6) + self.pack("W", 2 ** (8 * self.word) - 1) +
                self.pack(f"{buckets}I", *first) + self.pack(f"{len(words)}I", *words))

    def section_header(self, name, section, offset):
        _, kind, flags, addr, data, link, info, entsize = section
        return self.pack("IIWWWWIIWW", name, kind, flags, addr, offset, len(data), link, info, 1, entsize)

    def segment(self, flags, size, kind=1, at=0):
        if self.is64:
            return self.pack("IIQQQQQQ", kind, flags, at, BASE + at, BASE + at, size, size, 4096)
        return self.pack("IIIIIIII", kind, at, BASE + at, BASE + at, size, size, flags, 4096)

    def data(self):
        names = b"".join(s[0].encode() + b"\0" for s in self.sections) + b".shstrtab\0"
        self.add(".shstrtab", STRTAB, names)
        shoff, name, headers = self.offset(), 0, bytearray()
        body = bytearray()
        start = 64 + 3 * 56 if self.is64 else 52 + 3 * 32
        for section in self.sections:
            at = section[3] - BASE if section[1] else 0
            if section[1]:
                where = (start + len(body) + 7) & ~7
                body += b"\0" * (where - start - len(body)) + section[4]
                at = where
            headers += self.section_header(name, section, at)
            name += len(section[0]) + 1
        body += b"\0" * (shoff - start - len(body))
        ident = b"\x7fELF" + bytes([2 if self.is64 else 1, 2 if self.big else 1, 1]) + b"\0" * 9
        size = shoff + len(headers)
        header = ident + self.pack("HHIWWWIHHHHHH", self.kind, self.machine, 1, 0, 64 if self.is64 else 52, shoff, 0,
                                   64 if self.is64 else 52, 56 if self.is64 else 32, 3, 64 if self.is64 else 40,
                                   len(self.sections), len(self.sections) - 1)
        frames = next((s for s in self.sections if s[0] == ".eh_frame_hdr"), None)
        segments = self.segment(5, size) + self.segment(6, size) + (
            self.segment(4, len(frames[4]), GNU_EH_FRAME, frames[3] - BASE) if frames else self.segment(4, size))
        return bytes(header + segments + body + headers)


def gnu_hash(name):
    value = 5381
    for c in name.encode():
        value = (value * 33 + c) & 0xffffffff
    return value
