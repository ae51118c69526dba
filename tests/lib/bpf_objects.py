# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The BPF programs, maps and links of a process, by its descriptors, and of the kernel, by bpf(2).

Other programs on the machine have BPF objects, too: a test compares those of its own tool alone.
"""

import ctypes
import errno
import glob
import os
import platform
import re
import struct

SYS_BPF = {"x86_64": 321, "aarch64": 280}.get(platform.machine())
PROG_GET_NEXT_ID, MAP_GET_NEXT_ID, LINK_GET_NEXT_ID = 11, 12, 31
MAP_LOOKUP_ELEM, PROG_GET_FD_BY_ID, MAP_GET_FD_BY_ID, OBJ_GET_INFO_BY_FD = 1, 13, 14, 15


def call(command, attr):
    """Return the result of bpf(2), and @attr as the kernel leaves it."""
    libc = ctypes.CDLL(None, use_errno=True)
    room = ctypes.create_string_buffer(attr, 128)
    done = libc.syscall(SYS_BPF, command, room, len(attr))
    if done < 0:
        why = ctypes.get_errno()
        raise OSError(why, os.strerror(why))
    return done, room.raw[:len(attr)]


def ids(command):
    """Return all ids of a kind; None if the number of bpf(2) is not known."""
    if SYS_BPF is None:
        return None
    found, last = set(), 0
    while True:
        try:
            _, attr = call(command, struct.pack("=III", last, 0, 0))
        except OSError as why:
            if why.errno == errno.ENOENT:
                return found
            raise
        last = struct.unpack("=III", attr)[1]
        found.add(last)


def objects(pid):
    """Return {kind: ids} of the programs, maps and links that a process has descriptors of; of a link, its program too."""
    found = {"programs": set(), "maps": set(), "links": set()}
    for path in glob.glob(f"/proc/{pid}/fdinfo/*"):
        try:
            with open(path, encoding="ascii", errors="replace") as f:
                text = f.read()
        except OSError:
            continue		# closed meanwhile
        for kind, name in (("programs", "prog_id"), ("maps", "map_id"), ("links", "link_id")):
            number = re.search(rf"^{name}:\s*(\d+)", text, re.M)
            if number:		# a link's has both its own and its program's
                found[kind].add(int(number[1]))
    return found


def everything():
    """Return {kind: ids} of the programs, maps and links of the kernel."""
    kinds = {"programs": PROG_GET_NEXT_ID, "maps": MAP_GET_NEXT_ID, "links": LINK_GET_NEXT_ID}
    found = {}
    for kind, command in kinds.items():
        try:
            found[kind] = ids(command) or set()
        except OSError as why:
            if why.errno not in (errno.EINVAL,):	# older kernels have no links
                raise
    return found


def map_fd(number):
    """Return a map's descriptor, (type, size of a key, size of a value, number of entries), name."""
    info = ctypes.create_string_buffer(88)
    fd, _ = call(MAP_GET_FD_BY_ID, struct.pack("=III", number, 0, 0))
    call(OBJ_GET_INFO_BY_FD, struct.pack("=IIQ", fd, len(info), ctypes.addressof(info)))
    kind, _, key, value, entries, _ = struct.unpack_from("=6I", info.raw)
    return fd, (kind, key, value, entries), info.raw[24:40].rstrip(b"\0").decode()


def array_values(numbers, name):
    """Return the values of the array of that name among the maps @numbers."""
    found = []
    for number in numbers:
        fd, (_, _, size, entries), called = map_fd(number)
        if called == name:
            value = ctypes.create_string_buffer(size)
            for i in range(entries):
                key = ctypes.c_uint32(i)
                call(MAP_LOOKUP_ELEM, struct.pack("=IIQQQ", fd, 0, ctypes.addressof(key), ctypes.addressof(value), 0))
                found.append(value.raw)
        os.close(fd)
    return found


def verified(number):
    """Return (name, instructions that the verifier followed) of a program; from Linux 5.16."""
    info = ctypes.create_string_buffer(232)
    fd, _ = call(PROG_GET_FD_BY_ID, struct.pack("=III", number, 0, 0))
    call(OBJ_GET_INFO_BY_FD, struct.pack("=IIQ", fd, len(info), ctypes.addressof(info)))
    os.close(fd)
    return info.raw[64:80].rstrip(b"\0").decode(), struct.unpack_from("=I", info.raw, 216)[0]
