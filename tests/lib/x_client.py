# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A client of MySQL's X Protocol: messages of protobuf fields, as far as queries need them."""

import socket
import struct

AUTHENTICATE, EXECUTE = 4, 12	# Mysqlx.ClientMessages
ERROR, AUTHENTICATED, DONE = 1, 4, 17	# Mysqlx.ServerMessages


def field(number, value):
    """One of fewer than 128 bytes."""
    return bytes([number << 3 | 2, len(value)]) + value


class XClient:
    """One session over the server's unix socket, where a password, here none, may be sent as it is."""

    def __init__(self, path, user):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")
        assert self.ask(AUTHENTICATE, field(1, b"PLAIN") + field(2, f"\0{user}\0".encode()), AUTHENTICATED) is None

    def ask(self, kind, body, end):
        """Send a message and read up to its end. Return the error's number, or None."""
        self.socket.sendall(struct.pack("<IB", len(body) + 1, kind) + body)
        while True:
            size, kind = struct.unpack("<IB", self.file.read(5))
            body = self.file.read(size - 1)
            if kind == ERROR:
                return self.code(body)
            if kind == end:
                return None

    @staticmethod
    def code(body):
        """Field 2 of Mysqlx.Error, which follows its severity."""
        number, shift, at = 0, 0, body.index(b"\x10") + 1
        while True:
            number |= (body[at] & 127) << shift
            if body[at] < 128:
                return number
            shift, at = shift + 7, at + 1

    def query(self, text):
        return self.ask(EXECUTE, field(1, text.encode()), DONE)

    def close(self):
        self.file.close()
        self.socket.close()
