# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A client of the PostgreSQL protocol: orders of messages that no client library sends."""

import os
import socket
import struct


def message(kind, *parts):
    body = b"".join(parts)
    return kind + struct.pack("!i", len(body) + 4) + body


def text(value):
    return (value if isinstance(value, bytes) else value.encode()) + b"\0"


def parse(query, name=""):
    return message(b"P", text(name), text(query), struct.pack("!h", 0))


def bind(name="", portal="", values=()):
    values = [v.encode() for v in values]
    return message(b"B", text(portal), text(name), struct.pack("!hh", 0, len(values)),
                   *(struct.pack("!i", len(v)) + v for v in values), struct.pack("!h", 0))


def execute(portal="", rows=0):
    return message(b"E", text(portal), struct.pack("!i", rows))


def simple(query):
    return message(b"Q", text(query))


SYNC = message(b"S")
FLUSH = message(b"H")
TERMINATE = message(b"X")


class Wire:
    """One connection over the cluster's unix socket."""

    def __init__(self, cluster, application_name, database="postgres"):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        self.socket.connect(os.path.join(cluster.socket_dir, f".s.PGSQL.{cluster.port}"))
        self.buffer = b""
        self.send(message(b"", struct.pack("!i", 196608), text("user"), text("postgres"), text("database"),
                          text(database), text("application_name"), text(application_name), b"\0"))
        self.until(b"Z")

    def send(self, *messages):
        self.socket.sendall(b"".join(messages))

    def one(self):
        """The next message's kind and body."""
        while len(self.buffer) < 5 or len(self.buffer) < 1 + struct.unpack("!i", self.buffer[1:5])[0]:
            got = self.socket.recv(65536)
            if not got:
                raise ConnectionError("the server closed the connection")
            self.buffer += got
        size = 1 + struct.unpack("!i", self.buffer[1:5])[0]
        kind, body, self.buffer = self.buffer[:1], self.buffer[5:size], self.buffer[size:]
        return kind, body

    def until(self, kind):
        """Reads up to a message of @kind; returns the kinds seen."""
        seen = []
        while not seen or seen[-1] != kind:
            seen.append(self.one()[0])
        return seen

    def ask(self, *messages):
        """Sends the messages and a Sync, waits until the server is ready."""
        self.send(*messages, SYNC)
        return self.until(b"Z")

    def close(self):
        self.send(TERMINATE)
        self.socket.close()
