# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The headers and notes of a file as readelf prints them, and the installed files that have USDT notes."""

import functools
import glob
import os
import re
import subprocess


FILES_MAX = 16  # files with notes; those always wanted are taken first
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
    """Return the size of the notes of @path; 0 if it is not an ELF file or has none."""
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
