# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Answer the calls of bpf(2) of a command by seccomp user notification: what it loads, and what it is told."""

import array
import ctypes
import errno
import fcntl
import os
import platform
import select
import socket
import struct
import subprocess
import threading

SYS_BPF, SYS_SECCOMP = {"x86_64": (321, 317), "aarch64": (280, 277)}.get(platform.machine(), (None, None))
PROG_LOAD, RAW_TRACEPOINT_OPEN, LINK_CREATE = 5, 17, 28
NOTIFICATION, RESPONSE = 80, 24	# sizes in bytes of struct seccomp_notif and seccomp_notif_resp
RECV, SEND = 0xc0502100, 0xc0182101
GO_ON = 1		# SECCOMP_USER_NOTIF_FLAG_CONTINUE
JUMPS = (0x05, 0x06)	# classes of BPF instructions
CALL = 0x85
KPROBE = 2		# BPF_PROG_TYPE_KPROBE


def filter_code():
    """Report bpf(2), allow the rest."""
    rows = [(0x20, 0, 0, 0), (0x15, 0, 1, SYS_BPF), (0x06, 0, 0, 0x7fc00000), (0x06, 0, 0, 0x7fff0000)]
    return b"".join(struct.pack("=HBBI", *row) for row in rows)


class Program:
    """
    A program that was passed to bpf(2): its name, its number of instructions, the numbers of the helpers that it calls,
    whether one of its instructions jumps back, and whether it must state the version of a kernel before 5.0, but does not.
    """

    def __init__(self, memory, attr):
        count, = struct.unpack("=I", attr[4:8])
        address, = struct.unpack("=Q", attr[8:16])
        self.name = attr[48:64].split(b"\0")[0].decode()
        self.count = count
        kind, version = struct.unpack("=I", attr[:4])[0], struct.unpack("=I", attr[40:44])[0]
        self.unversioned = kind == KPROBE and not version
        insns = os.pread(memory, 8 * count, address)
        rows = list(struct.iter_unpack("=BBhi", insns))
        self.helpers = {number for code, registers, _, number in rows if code == CALL and not registers >> 4}
        self.jumps_back = any(code & 7 in JUMPS and code & 0xf0 not in (0x80, 0x90) and off < 0 for code, _, off, _ in rows)


class Answered:
    """
    Run a command to its end. answer(PROGRAM) returns 0, or the error with which the kernel is to refuse it. Afterwards: .done,
    .programs in their order, and .others, the commands of bpf(2) that attach.
    """

    def __init__(self, command, answer, timeout=60):
        self.programs, self.others, self.answer = [], [], answer
        here, there = socket.socketpair()
        code = ctypes.create_string_buffer(filter_code())
        program = ctypes.create_string_buffer(struct.pack("@HP", 4, ctypes.addressof(code)))
        libc = ctypes.CDLL(None, use_errno=True)

        def install():
            libc.prctl(38, 1, 0, 0, 0)	# no new privileges
            listener = libc.syscall(SYS_SECCOMP, 1, 8, ctypes.c_void_p(ctypes.addressof(program)))	# a filter, with a listener
            if listener < 0:
                os._exit(99)
            there.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [listener]))])
            os.close(listener)
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   preexec_fn=install)
        there.close()
        _, control, _, _ = here.recvmsg(1, 64)
        here.close()
        self.listener, = array.array("i", control[0][2]) if control else (None,)
        supervisor = threading.Thread(target=self.supervise)
        supervisor.start()
        try:
            out, err = process.communicate(timeout=timeout)
        finally:
            process.kill()
            supervisor.join()
            os.close(self.listener)
        self.done = subprocess.CompletedProcess(command, process.returncode, out, err)

    def supervise(self):
        poll = select.poll()
        poll.register(self.listener, select.POLLIN)
        while not any(events & select.POLLHUP for _, events in poll.poll()):
            notification = bytearray(NOTIFICATION)
            try:
                fcntl.ioctl(self.listener, RECV, notification)
                error = self.decide(notification)
                cookie = notification[:8]
                fcntl.ioctl(self.listener, SEND, bytes(cookie) + struct.pack("=qiI", 0, -error, 0 if error else GO_ON))
            except OSError as why:		# it was killed meanwhile
                if why.errno not in (errno.ENOENT, errno.EINTR, errno.ESRCH):
                    raise

    def decide(self, notification):
        pid, = struct.unpack("=I", notification[8:12])
        command, address, size = struct.unpack("=QQQ", notification[32:56])
        if command in (RAW_TRACEPOINT_OPEN, LINK_CREATE):
            self.others.append(command)
        if command != PROG_LOAD:
            return 0
        memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        try:
            program = Program(memory, os.pread(memory, size, address).ljust(128, b"\0"))
        finally:
            os.close(memory)
        self.programs.append(program)
        return self.answer(program)
