# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Make a system call of a child process fail, by a seccomp filter."""

import ctypes
import os
import struct


def deny(*rules):
    """
    For preexec_fn: system calls fail from here on (a seccomp filter). deny(NUMBER, ERROR), or several rules
    (NUMBER, ERROR) or (NUMBER, ERROR, FIRST ARGUMENT).
    """
    code = []
    for syscall, error, *first in [rules] if isinstance(rules[0], int) else rules:
        fail = (0x06, 0, 0, 0x00050000 | error)
        code += [(0x20, 0, 0, 0)]					# load the number
        if first:
            code += [(0x15, 0, 3, syscall), (0x20, 0, 0, 16),		# if it is this one, load the argument
                     (0x15, 0, 1, first[0]), fail]			# if it is that one, fail
        else:
            code += [(0x15, 0, 1, syscall), fail]
    code += [(0x06, 0, 0, 0x7fff0000)]					# else allow
    packed = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *one) for one in code))
    program = struct.pack("@HP", len(code), ctypes.addressof(packed))
    buffer = ctypes.create_string_buffer(program)
    libc = ctypes.CDLL(None, use_errno=True)

    def apply():
        libc.prctl(38, 1, 0, 0, 0)	# no new privileges
        if libc.prctl(22, 2, ctypes.c_void_p(ctypes.addressof(buffer))):
            os._exit(99)
    apply.keep = packed
    return apply
