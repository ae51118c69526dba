# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Statements that try to get their literals past the redaction: `make soak`; tests/e2e/test_fingerprint.py has some.

Each literal, name and comment of a statement contains a number of its own. It is written for certain settings of
the session, and runs in a session with these settings. The server decides what is a literal: the numbers that
it reports in names are no secret (MariaDB: the digest; PostgreSQL: the names of the result's columns), all
others are, and none of them may be in the redacted text or in the fingerprint, of which the settings are unknown.
"""

import argparse
import os
import random
import re
import struct
import subprocess
import sys

from cluster import Cluster
from mariadb import Maria, maria_server
from mariadb_client import QUERY, ServerError
from tool import BUILD
from wire import Wire, simple

FINGERPRINT = os.path.join(BUILD, "tests", "lib", "fingerprint")
BATCH = 4000
SYNTAX_ERROR = 1064

# Characters whose second byte is a backslash or a backtick, and others.
CHARACTERS = {
    "utf8mb4": ["ä".encode(), "表".encode(), "ß".encode()], "latin1": [b"\xa1", b"\xe4", b"\x95", b"\xfe"],
    "sjis": [b"\x95\\", b"\x83\\", b"\x83`", b"\xa1", b"\x95\x95", b"\xe0@"],
    "cp932": [b"\x95\\", b"\xfa\\", b"\x83`", b"\xb1", b"\x81|"],
    "gbk": [b"\x95\\", b"\xa1\\", b"\x81`", b"\xfe\xfe", b"\x95\x80", b"\x81@"],
    "big5": [b"\xa4\\", b"\xae\\", b"\xa5`", b"\xa4\xa4", b"\xc7@"],
}
MARIA_SETTINGS = {"performance_schema": "ON", "performance_schema_consumer_events_statements_current": "ON",
                  "performance_schema_consumer_events_statements_history_long": "ON",
                  "performance_schema_events_statements_history_long_size": 2 * BATCH,
                  "performance_schema_max_digest_length": 4096, "max_digest_length": 4096}


class Statement:
    """Builds one; ->numbers are those in it."""

    def __init__(self, rng, settings):
        self.rng, self.settings, self.numbers = rng, settings, []

    def number(self):
        self.numbers.append(b"%d" % (10 ** 8 + self.below(9 * 10 ** 8)))
        return self.numbers[-1]

    def below(self, n):
        return int(self.rng.random() * n)

    def pick(self, *of):
        chosen = of[self.below(len(of))]
        return chosen() if callable(chosen) else chosen

    def some(self, atoms, most=5):
        """A few of @atoms, with a number between them."""
        out = [self.pick(*atoms) for _ in range(self.below(most))]
        out.insert(self.below(len(out) + 1), self.number())
        return b"".join(out)

    def other(self):
        return self.pick(b" ", b"--", b"-- ", b"#", b"/*", b"*/", b"/*!", b";", b",", b"$$", b"$a$", b"(", b"`", b"\n",
                         b"x'", b"/*!99999 ", b"\\n", b"E", b"_gbk") if self.rng.random() < 0.5 else \
            self.pick(*self.settings.characters)

    def comment(self, atoms):
        """What ends the comment is not part of it."""
        return re.sub(rb"\*+/|/(?=\*)|/$|\*$", b"", self.some(atoms)).replace(b"*/", b"")

    def line(self, atoms):
        return re.sub(rb"[\r\n]", b"", self.some(atoms))

    def blank(self, needed=True):
        if self.rng.random() < 0.7:
            return b" " if needed else self.pick(b"", b" ")
        return self.gap() or b" "

    def items(self):
        n = 1 + self.below(5)
        return (self.blank(False) + b"," + self.blank(False)).join(self.item() for _ in range(n))

    def text(self):
        return b"select" + self.blank() + self.items() + self.tail()


class MySql(Statement):
    def backslash(self):
        return self.pick(b"\\\\", b"\\'", b'\\"', b"\\n", b"\\%", b"\\`") if self.settings.escapes else b"\\"

    def string(self, quote=b"'"):
        other = b'"' if quote == b"'" else b"'"
        return quote + self.some([2 * quote, other, self.backslash, self.backslash, self.other, b"`"]) + quote

    def strings(self):
        return self.pick(self.string, self.string, self.string if self.settings.ansi else lambda: self.string(b'"'))

    def name(self):
        quote = b'"' if self.settings.ansi and self.rng.random() < 0.5 else b"`"
        inner = self.some([2 * quote, b"'", b"\\", b'"' if quote == b"`" else b"`", self.other])
        # A blank must not be last.
        return quote + re.sub(quote + rb"+", 2 * quote, inner) + b"a" + quote if self.plain() else self.pick(
            lambda: quote + b"a" + self.number() + 2 * quote + b"'\\" + quote,
            lambda: b"a" + self.number(), lambda: b"a" + self.number() + b"$$",
            lambda: b"$a" + self.number(), lambda: b"$$a" + self.number(),
            lambda: quote + self.pick(*self.settings.characters) + b"a" + self.number() + quote,
            lambda: self.pick(*self.settings.characters) + b"a" + self.number())

    def plain(self):
        return self.settings.charset in ("utf8mb4", "latin1") and self.rng.random() < 0.5

    def gap(self):
        # Characters in comments are bytes.
        atoms = [b"'", b'"', b"`", b"\\", b"\\'", b"it's", self.other]
        return self.pick(lambda: b"/*" + self.comment(atoms) + b"*/", lambda: b"-- " + self.line(atoms) + b"\n",
                         lambda: b"--\t" + self.line(atoms) + b"\n", lambda: b"--\x7f" + self.line(atoms) + b"\n",
                         lambda: b"#" + self.line(atoms) + b"\n", lambda: b"/*!99999 " + self.comment(atoms) + b"*/",
                         lambda: b"/*!50701 " + self.comment(atoms) + b"*/", b"/*!*/", b"\n", b"\t", b"/**/",
                         *self.settings.blanks)

    def item(self):
        value = self.pick(
            self.strings, self.strings, self.strings, lambda: self.strings() + b"\n" + self.strings(),
            lambda: self.strings() + b" " + self.strings(), lambda: b"N" + self.string(),
            lambda: b"_latin1" + self.string(), lambda: b"_utf8mb4 x'" + 2 * self.number()[:4] + b"'",
            lambda: b"x'0" + self.number() + b"'", lambda: b"0x0" + self.number(),
            self.number, lambda: b"-" + self.number() + b".5", lambda: b"." + self.number() + b"e1",
            lambda: b"1 mod ." + self.number() + b"e2", b"@a1", b"@`'\\`", lambda: b"@" + self.string(), lambda: b"5--" + self.number(), lambda: b"(" + self.item() + b")",
            lambda: b"/*!50000 " + self.item() + b"*/", lambda: b"/*!" + self.number() [:3] + b"*/",
            lambda: b"/*M!100100 " + self.item() + b"*/", lambda: b"/*! " + self.item() + b" */",
            lambda: b"get_lock(" + self.string() + b",0)", lambda: b"/*!500001*/", b"\\N" if self.settings.escapes else b"null")
        if self.rng.random() < 0.4:
            value += self.blank() + b"as" + self.blank() + self.name()
        return value

    def tail(self):
        return self.pick(b"", b"", self.blank, lambda: self.blank() + b"limit" + self.blank() + self.number(),
                         lambda: b" limit" + self.pick(b" ", *self.settings.blanks) + self.number(),
                         lambda: b" from (select 1 as " + self.name() + b") as" + self.blank() + self.name() +
                         b" where " + self.strings() + b"=" + self.strings(),
                         lambda: b" having" + self.blank() + self.strings() + b"=" + self.strings())


class MySqlSettings:
    statement, dialect = MySql, "mysql"

    def __init__(self, escapes, ansi, charset):
        self.escapes, self.ansi, self.charset = escapes, ansi, charset
        self.characters = CHARACTERS[charset]
        self.blanks = [b"\xa0", b"--\xa0it's\n"] if charset == "latin1" else []
        self.sql = (f"set names {charset}; set sql_mode='" + ",".join(
            ["ANSI_QUOTES"] * ansi + ["NO_BACKSLASH_ESCAPES"] * (not escapes)) + "'")

    def __repr__(self):
        return self.sql


class MariaJudge:
    def __init__(self, server):
        self.reader = server.connect()
        self.server, self.clients = server, {}

    def client(self, settings):
        if settings.sql not in self.clients:
            client = self.server.connect(flags=0)
            for part in [*settings.sql.split("; "), "do 0"]:	# as in names()
                client.query(part)
            thread = self.reader.rows("select thread_id from performance_schema.threads "
                                      f"where processlist_id={client.id}")[0][0].decode()
            self.clients[settings.sql] = client, thread
        return self.clients[settings.sql]

    def names(self, settings, texts):
        """For each text what the server calls names, or None for one that it does not accept."""
        client, thread = self.client(settings)
        self.reader.query("truncate performance_schema.events_statements_history_long")
        errors = []
        for text in [*texts, b"do 0"]:	# when that is answered, those before are recorded
            client.send(QUERY, text)
            errors.append(0)
            try:
                client.results()
            except ServerError as error:
                errors[-1] = error.number
        rows = self.reader.rows("select digest_text from performance_schema.events_statements_history_long "
                                f"where thread_id={thread} and sql_text<>'do 0' order by event_id")
        assert len(rows) == len(texts), (len(rows), len(texts))
        return [None if error == SYNTAX_ERROR else digest or None for error, (digest,) in zip(errors, rows)]


class Postgres(Statement):
    def backslash(self):
        return b"\\" if self.settings.conforming else self.pick(b"\\\\", b"\\'", b"\\n", b"\\\\")

    def string(self):
        return b"'" + self.some([b"''", b'"', self.backslash, self.backslash, self.other]) + b"'"

    def escaped(self):
        return b"E'" + self.some([b"''", b"\\'", b"\\\\", b'"', self.other]) + b"'"

    def raw(self):
        return b"U&'" + re.sub(rb"\\", b"\\\\\\\\", self.some([b"''", b"\\", b'"', self.other])) + b"'" \
            if self.settings.conforming else self.string()

    def dollars(self):
        tag = self.pick(b"$$", b"$a$", b"$_1$", "$ä$".encode())
        return tag + self.some([b"'", b"\\", b'"', b"$ $", self.other]).replace(tag, b"").rstrip(b"$") + b" " + tag

    def more(self):
        """A string that continues on other lines."""
        first = self.pick(self.string, self.escaped)
        atoms = [b"''", b"\\'", b"\\\\"] if first[:1] == b"E" or not self.settings.conforming else [b"''", b"\\", b"\\"]
        return first + self.pick(b"\n", b" -- it's\n", b"\r\n\t", b"\n -- \\'\n") + b"'" + self.some(atoms) + b"'"

    def name(self):
        return self.pick(lambda: b"a" + self.number(), lambda: b"a" + self.number() + b"$a$",
                         lambda: b'"' + self.some([b'""', b"'", b"\\", b"`", b" "]) + b'"',
                         lambda: b'U&"' + self.some([b'""', b"'", b" "]) + b'"', lambda: "ä".encode() + self.number())

    def gap(self):
        atoms = [b"'", b'"', b"$$", b"\\", b"\\'", b"it's", self.other]
        return self.pick(lambda: b"/*" + self.comment(atoms) + b"*/", lambda: b"--" + self.line(atoms) + b"\n",
                         lambda: b"/* /* " + self.comment(atoms) + b" */ " + self.comment(atoms) + b" */",
                         lambda: b"--" + self.line(atoms) + b"\r", b"\n", b"\t", b"/**/")

    def item(self):
        return self.pick(
            self.string, self.string, self.string, self.escaped, self.raw, self.dollars, self.more,
            lambda: b"X'" + self.number() + b"'", lambda: b"B'01'\n'10'", lambda: b"N" + self.string(),
            lambda: b"'1 day'::interval", self.number, lambda: b"-" + self.number() + b".5",
            lambda: b"." + self.number() + b"e1", lambda: b"text" + self.blank() + self.string(),
            lambda: self.string() + b"::text", lambda: b"cast(" + self.item() + b" as text)", lambda: b"array[" + self.string() + b"]",
            lambda: b"(" + self.string() + b")||" + self.string(), b"true", b"null is null", lambda: b"1=-" + self.number())

    def items(self):
        n = 1 + self.below(4)
        return (self.blank(False) + b"," + self.blank(False)).join(
            self.item() + self.blank() + b"as" + self.blank() + self.name() for _ in range(n))

    def tail(self):
        return self.pick(b"", b"", self.blank, lambda: self.blank() + b"limit" + self.blank() + self.number(),
                         lambda: b" where" + self.blank() + self.string() + b"=" + self.string(),
                         lambda: b" order by 1 offset " + self.number())


class PostgresSettings:
    statement, dialect = Postgres, "postgresql"

    def __init__(self, conforming):
        self.conforming, self.charset = conforming, "utf8mb4"
        self.characters = CHARACTERS["utf8mb4"]
        self.sql = f"set standard_conforming_strings={'on' if conforming else 'off'}; set escape_string_warning=off"

    def __repr__(self):
        return self.sql


class PostgresJudge:
    def __init__(self, cluster):
        self.cluster, self.wires = cluster, {}

    def wire(self, settings):
        if settings.sql not in self.wires:
            self.wires[settings.sql] = Wire(self.cluster, "hostile")
            self.wires[settings.sql].send(simple(settings.sql + "; set client_min_messages=error"))
            self.wires[settings.sql].until(b"Z")
        return self.wires[settings.sql]

    def names(self, settings, texts):
        wire, found = self.wire(settings), []
        for text in texts:
            wire.send(simple(text))
            kind, names, accepted = b"", b"", True
            while kind != b"Z":
                kind, body = wire.one()
                if kind == b"T":
                    names += columns(body)
                # Only syntax errors have this class: the text was not split into tokens as meant.
                accepted &= kind != b"E" or b"C42601\0" not in body and b"C22" not in body
                accepted &= kind != b"E" or names != b""
            found.append(names if accepted else None)
        return found


def columns(body):
    names, at = [], 2
    for _ in range(struct.unpack_from("!h", body)[0]):
        end = body.index(b"\0", at)
        names.append(body[at:end])
        at = end + 19
    return b" ".join(names)


def written(dialect, texts, *options):
    done = subprocess.run([FINGERPRINT, dialect, *options], input=b"".join(t + b"\0" for t in texts), timeout=600,
                          stdout=subprocess.PIPE, check=True)
    found = done.stdout.split(b"\0")[:-1]
    assert len(found) == len(texts), (len(found), len(texts))
    return found


def leaks(settings, texts, secrets, rng):
    """(option, text, what was written) of each text in which a secret is left, whole or shortened by a cut."""
    secrets = [[s for s in hidden if s in text] for text, hidden in zip(texts, secrets)]
    ends = [rng.randrange(len(text) + 1) for text in texts]
    cut = [text[:end] for text, end in zip(texts, ends)]
    left = [hidden + [text[at:end] for at in map(text.index, hidden) if at + 7 <= end < at + 9]
            for text, end, hidden in zip(texts, ends, secrets)]
    for dialect in (settings.dialect, "unknown"):
        for options, given in (("--redact",), texts), ((), texts), (("--redact", "--cut"), cut), (("--cut",), cut):
            for text, hidden, out in zip(given, left if "--cut" in options else secrets,
                                         written(dialect, given, *options)):
                out = out if "--redact" in options else out[17:]
                if any(secret in out for secret in hidden):
                    yield (dialect, *options), text, out


def run(judge, settings, cases, seed):
    """Returns (statements that the server accepted, secrets in them, leaks)."""
    accepted, hidden, found = 0, 0, []
    rng = random.Random(f"{settings} {seed}")
    while accepted < cases:
        made = []
        for _ in range(min(BATCH, cases)):
            statement = settings.statement(rng, settings)
            made.append((statement.text(), statement.numbers))
        texts, secrets = [], []
        for (text, numbers), names in zip(made, judge.names(settings, [text for text, _ in made])):
            if names is not None:
                texts.append(text)
                secrets.append([n for n in numbers if n not in names])
        if len(texts) * 5 < len(made):
            raise AssertionError(f"{settings}: the server accepts only {len(texts)} of {len(made)}")
        accepted += len(texts)
        hidden += sum(map(len, secrets))
        found += leaks(settings, texts, secrets, rng)
    return accepted, hidden, found


def maria_settings():
    return [MySqlSettings(escapes, ansi, charset) for charset in CHARACTERS for escapes in (True, False)
            for ansi in (False, True)]


def postgres_settings():
    return [PostgresSettings(conforming) for conforming in (True, False)]


def report(judge, every, cases, seed):
    """Runs @cases, as many of each settings; returns the complaints."""
    wrong = []
    for settings in every:
        accepted, hidden, found = run(judge, settings, -(-cases // len(every)), seed)
        print(f"{settings}: {accepted} statements, {hidden} secrets, {len(found)} leaks", flush=True)
        wrong += [f"{settings} {' '.join(options)}\n  {text!r}\n  {out!r}" for options, text, out in found]
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=100000, help="statements of each server")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=("mariadb", "postgres"))
    options = parser.parse_args()
    wrong = []
    if options.only != "mariadb":
        with Cluster(name="hostile").init() as cluster:
            cluster.start()
            wrong += report(PostgresJudge(cluster), postgres_settings(), options.cases, options.seed)
    if options.only != "postgres" and maria_server():
        with Maria(**MARIA_SETTINGS).init() as server:
            server.start()
            wrong += report(MariaJudge(server), maria_settings(), options.cases, options.seed)
    print("\n".join(wrong[:20]) + f"\n{len(wrong)} leaks")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
