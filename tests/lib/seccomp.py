# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Make a system call of a child process fail, by a seccomp filter."""

import ctypes
import os
import struct


def deny(syscall, error):
    """For preexec_fn: the system call fails with the error from here on (a seccomp filter)."""
    code = [(0x20, 0, 0, 0),			# load the number
            (0x15, 0, 1, syscall),		# is it this one?
            (0x06, 0, 0, 0x00050000 | error),	# then fail
            (0x06, 0, 0, 0x7fff0000)]		# else allow
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
