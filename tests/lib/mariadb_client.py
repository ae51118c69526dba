# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A client of the MySQL protocol: text and prepared statements, and packets that no client library sends."""

import socket
import struct

PROTOCOL_41 = 0x200
CONNECT_WITH_DB = 0x8
TRANSACTIONS = 0x2000
SECURE = 0x8000
MULTI_STATEMENTS = 0x10000
MULTI_RESULTS = 0x20000
PS_MULTI_RESULTS = 0x40000
PLUGIN_AUTH = 0x80000
CONNECT_ATTRS = 0x100000
LOCAL_FILES = 0x80
BULK = 1 << 34			# MariaDB's own, in the upper half
MYSQL_CLIENT = 1		# without this the server is MariaDB and so are the upper flags

MORE_RESULTS = 0x8

QUIT, INIT_DB, QUERY, FIELD_LIST, STATISTICS, PING = 1, 2, 3, 4, 9, 14
CHANGE_USER, PREPARE, EXECUTE, LONG_DATA, CLOSE, RESET, FETCH = 17, 22, 23, 24, 25, 26, 28
RESET_CONNECTION, BULK_EXECUTE = 31, 250

TYPE_LONGLONG, TYPE_STRING, TYPE_NULL = 8, 254, 6


class ServerError(Exception):
    """An ERR packet. number: the server's errno; state: its SQLSTATE."""

    def __init__(self, packet):
        self.number = struct.unpack_from("<H", packet, 1)[0]
        self.state = packet[4:9].decode()
        super().__init__(f"{self.number}: {packet[9:].decode(errors='replace')}")


class Result:
    """rows: of a text result tuples of bytes, else the raw packets; count: rows affected."""

    def __init__(self, rows=None, count=0):
        self.rows, self.count = rows, count


def raw(text):
    return text if isinstance(text, bytes) else text.encode()


def lenenc(packet, at):
    """A length-encoded integer (None for NULL) and the position after it."""
    first = packet[at]
    if first < 0xfb:
        return first, at + 1
    if first == 0xfb:
        return None, at + 1
    size = {0xfc: 2, 0xfd: 3, 0xfe: 8}[first]
    return int.from_bytes(packet[at + 1:at + 1 + size], "little"), at + 1 + size


def with_length(value):
    if len(value) < 0xfb:
        return bytes([len(value)]) + value
    if len(value) < 0x10000:
        return b"\xfc" + struct.pack("<H", len(value)) + value
    return b"\xfd" + struct.pack("<I", len(value))[:3] + value


def text_row(packet):
    values, at = [], 0
    while at < len(packet):
        size, at = lenenc(packet, at)
        values.append(None if size is None else packet[at:at + size])
        at += size or 0
    return tuple(values)


def connection_attributes(pairs):
    """Of a dictionary, or as raw bytes; with their length before them."""
    return with_length(pairs if isinstance(pairs, bytes) else
                       b"".join(with_length(raw(text)) for pair in pairs.items() for text in pair))


class Client:
    """One connection. @where is a socket's path or (host, port); the user has no password. attributes: of the connection."""

    def __init__(self, where, user="root", database="", flags=MULTI_STATEMENTS, attributes=None):
        self.attributes = b"" if attributes is None else connection_attributes(attributes)
        self.socket = socket.socket(socket.AF_UNIX if isinstance(where, str) else socket.AF_INET)
        self.socket.settimeout(120)
        self.buffer = b""
        try:
            self.socket.connect(where)
            self.shake_hands(raw(user), raw(database), flags)
        except BaseException:
            self.socket.close()
            raise

    def shake_hands(self, user, database, flags):
        greeting = self.packet()
        if greeting[:1] == b"\xff":
            raise ServerError(greeting)
        version, _, rest = greeting[1:].partition(b"\0")
        self.version = version.decode()
        self.id = struct.unpack_from("<I", rest)[0]
        flags |= PROTOCOL_41 | TRANSACTIONS | SECURE | MULTI_RESULTS | PS_MULTI_RESULTS | PLUGIN_AUTH
        flags |= CONNECT_WITH_DB if database else 0
        flags |= BULK | (CONNECT_ATTRS if self.attributes else 0)
        body = struct.pack("<IIB19xI", flags & 0xffffffff & ~MYSQL_CLIENT, 1 << 24, 45, flags >> 32)
        body += user + b"\0" + b"\0" + (database + b"\0" if database else b"") + b"mysql_native_password\0" + self.attributes
        self.send_packet(body, 1)
        self.login()

    def login(self):
        while True:
            packet = self.packet()
            if packet[:1] == b"\0":
                return
            if packet[:1] != b"\xfe":
                raise ServerError(packet)
            self.send_packet(b"", self.sequence + 1)	# another method: no password there either

    # packets

    def send_packet(self, body, sequence=0):
        out = []
        while True:
            part, body = body[:0xffffff], body[0xffffff:]
            out.append(struct.pack("<I", len(part))[:3] + bytes([sequence & 0xff]) + part)
            sequence += 1
            if len(part) < 0xffffff:
                break
        self.socket.sendall(b"".join(out))

    def need(self, size):
        while len(self.buffer) < size:
            got = self.socket.recv(1 << 16)
            if not got:
                raise ConnectionError("the server closed the connection")
            self.buffer += got
        part, self.buffer = self.buffer[:size], self.buffer[size:]
        return part

    def packet(self):
        body = b""
        while True:
            head = self.need(4)
            size = int.from_bytes(head[:3], "little")
            self.sequence = head[3]
            body += self.need(size)
            if size < 0xffffff:
                return body

    def send(self, command, body=b""):
        """Sends a command and does not wait."""
        self.send_packet(bytes([command]) + body)

    # results

    def result(self, decode=text_row):
        """One result, and whether more follow."""
        packet = self.packet()
        if packet[:1] == b"\xff":
            raise ServerError(packet)
        if packet[:1] == b"\0":
            count, at = lenenc(packet, 1)
            _, at = lenenc(packet, at)
            return Result(None, count), struct.unpack_from("<H", packet, at)[0] & MORE_RESULTS
        if packet[:1] == b"\xfb":
            self.send_packet(b"", self.sequence + 1)	# LOAD DATA LOCAL: an empty file
            return self.result(decode)
        columns, _ = lenenc(packet, 0)
        for _ in range(columns + 1):
            end = self.packet()
        if struct.unpack_from("<H", end, 3)[0] & 0x40:
            return Result([]), 0	# a cursor is open: no rows yet
        rows = []
        while True:
            packet = self.packet()
            if packet[:1] == b"\xff":
                raise ServerError(packet)
            if packet[:1] == b"\xfe" and len(packet) < 9:
                return Result(rows), struct.unpack_from("<H", packet, 3)[0] & MORE_RESULTS
            rows.append(decode(packet))

    def results(self, decode=text_row):
        found, more = [], True
        while more:
            one, more = self.result(decode)
            found.append(one)
        return found

    # commands

    def query(self, text):
        """All results of a text, which may hold several statements."""
        self.send(QUERY, raw(text))
        return self.results()

    def rows(self, text):
        return self.query(text)[0].rows

    def failing(self, text):
        """The errno of a text that must fail."""
        try:
            self.query(text)
        except ServerError as error:
            return error.number
        raise AssertionError(f"did not fail: {text[:100]!r}")

    def simple(self, command, body=b""):
        """A command with one OK, EOF or text for an answer."""
        self.send(command, body)
        packet = self.packet()
        if packet[:1] == b"\xff":
            raise ServerError(packet)
        return packet

    def ping(self):
        self.simple(PING)

    def use(self, database):
        self.simple(INIT_DB, raw(database))

    def change_user(self, user, database="", plugin="mysql_native_password", attributes=None):
        self.send(CHANGE_USER, raw(user) + b"\0\0" + raw(database) + b"\0" + struct.pack("<H", 45)
                  + raw(plugin) + b"\0" + (b"" if attributes is None else connection_attributes(attributes)))
        self.login()

    def prepare(self, text):
        """A prepared statement; numbers and texts can be bound to it."""
        packet = self.simple(PREPARE, raw(text))
        number, columns, parameters = struct.unpack_from("<xIHH", packet)
        for count in (parameters, columns):
            for _ in range(count + 1 if count else 0):
                self.packet()
        return Prepared(self, number, parameters)

    def close(self):
        try:
            self.send(QUIT)
            self.socket.shutdown(socket.SHUT_WR)
            while self.socket.recv(1 << 16):
                pass		# its end tells that the server has seen ours
        except OSError:
            pass
        self.socket.close()

    def drop(self):
        """Goes away without a word."""
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.close()


class Prepared:
    def __init__(self, client, number, parameters):
        self.client, self.number, self.parameters = client, number, parameters

    def head(self, flags=0):
        return struct.pack("<IBI", self.number, flags, 1)

    def send(self, *values, cursor=False):
        body = self.head(1 if cursor else 0)
        if values:
            nulls = sum(1 << n for n, value in enumerate(values) if value is None)
            body += nulls.to_bytes((len(values) + 7) // 8, "little") + b"\1"
            body += b"".join(kind(value) for value in values)
            body += b"".join(encoded(value) for value in values if value is not None)
        self.client.send(EXECUTE, body)

    def execute(self, *values, cursor=False):
        """Executes it; returns its results, of which the rows are raw."""
        self.send(*values, cursor=cursor)
        return self.client.results(decode=bytes)

    def bulk(self, *rows):
        """MariaDB's COM_STMT_BULK_EXECUTE: one message, many rows."""
        body = struct.pack("<IH", self.number, 128)
        body += b"".join(kind(value) for value in rows[0])
        for row in rows:
            body += b"".join(b"\0" + encoded(value) for value in row)
        self.client.send(BULK_EXECUTE, body)
        return self.client.results(decode=bytes)

    def long_data(self, parameter, value):
        self.client.send(LONG_DATA, struct.pack("<IH", self.number, parameter) + raw(value))

    def execute_long(self):
        """Executes it with the one value that long_data() has sent."""
        self.client.send(EXECUTE, self.head() + b"\0\1" + bytes([252, 0]))
        return self.client.results(decode=bytes)

    def fetch(self, rows):
        """Rows of an open cursor."""
        self.client.send(FETCH, struct.pack("<II", self.number, rows))
        found = []
        while True:
            packet = self.client.packet()
            if packet[:1] == b"\xff":
                raise ServerError(packet)
            if packet[:1] == b"\xfe" and len(packet) < 9:
                return found
            found.append(packet)

    def reset(self):
        self.client.simple(RESET, struct.pack("<I", self.number))

    def close(self):
        self.client.send(CLOSE, struct.pack("<I", self.number))


def kind(value):
    if value is None:
        return bytes([TYPE_NULL, 0])
    return bytes([TYPE_LONGLONG if isinstance(value, int) else TYPE_STRING, 0])


def encoded(value):
    return struct.pack("<q", value) if isinstance(value, int) else with_length(raw(value))
