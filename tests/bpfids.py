# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which BPF programs, maps and links the kernel has: bpf(2) by hand."""

import ctypes
import errno
import os
import platform
import struct

SYS_BPF = {"x86_64": 321, "aarch64": 280}.get(platform.machine())
PROG_GET_NEXT_ID, MAP_GET_NEXT_ID, LINK_GET_NEXT_ID = 11, 12, 31


def ids(command):
    """All ids of a kind; None where they cannot be asked for."""
    if SYS_BPF is None:
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    found, last = set(), 0
    while True:
        attr = ctypes.create_string_buffer(struct.pack("=III", last, 0, 0), 128)
        if libc.syscall(SYS_BPF, command, attr, 12) < 0:
            why = ctypes.get_errno()
            if why == errno.ENOENT:
                return found
            raise OSError(why, os.strerror(why))
        last = struct.unpack("=III", attr.raw[:12])[1]
        found.add(last)


def everything():
    """{kind: ids} of programs, maps and links."""
    kinds = {"programs": PROG_GET_NEXT_ID, "maps": MAP_GET_NEXT_ID, "links": LINK_GET_NEXT_ID}
    found = {}
    for kind, command in kinds.items():
        try:
            found[kind] = ids(command) or set()
        except OSError as why:
            if why.errno not in (errno.EINVAL,):	# older kernels have no links
                raise
    return found
