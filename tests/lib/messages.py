# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The messages on standard error: "SUBJECT: CAUSE" without the remedy, with '…' for what is inserted. Those in tables are as
the binary prints these, the others as the sources word them. Those about the command line are apart.
"""

import glob
import os
import re

from tables import tables
from tool import ROOT

STRING = r'"(?:\\.|[^"\\])*"'
TOKEN = re.compile(rf"{STRING}|'(?:\\.|[^'\\])*'|/\*.*?\*/|//[^\n]*|[(),]", re.S)
LAYERS = ("base", "db", "host", "loader", "probe", "usdt")
REPORTS = ("list_fail", "list_report", "trace_report")		# (…, subject, cause, remedy)
USAGE = re.compile(r"\b(option_message|option_refuse|fail_at|trace_refuse|EXIT_USAGE)\b")


def source_files(*folders):
    for folder in folders:
        yield from (os.path.relpath(path, ROOT)
                    for path in sorted(glob.glob(os.path.join(ROOT, folder, "**", "*.c"), recursive=True)))


def read(path):
    """The source without comments, with adjacent strings joined."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        text = re.sub(rf"({STRING})|'(?:\\.|[^'\\])*'|/\*.*?\*/|//[^\n]*", lambda m: m[1] or " ", f.read(), flags=re.S)
    for name, value in re.findall(rf"^#define (\w+)\s+({STRING})$", text, re.M):
        text = re.sub(rf"\b{name}\b", lambda _: value, text)	# pylint: disable=cell-var-from-loop
    return re.sub(rf"{STRING}(?:\s+{STRING})+", lambda m: '"' + "".join(one[1:-1] for one in re.findall(STRING, m[0])) + '"', text)


def strings(text):
    return [one[1:-1].replace('\\"', '"').replace("\\n", "\n") for one in re.findall(STRING, text)]


def functions(text):
    """The bodies of functions."""
    return re.findall(r"^\{$.*?^\}$", text, re.M | re.S)


def calls(body):
    """(name, [argument]) of each call in a text."""
    for call in re.finditer(r"\b(\w+)\(", body):
        depth, start, args = 0, call.end(), []
        for token in TOKEN.finditer(body, call.end() - 1):
            depth += {"(": 1, ")": -1}.get(token[0], 0)
            if not depth or token[0] == "," and depth == 1:
                args.append(body[start:token.start()].strip())
                start = token.end()
            if not depth:
                break
        yield call[1], args


def normal(text):
    """A message up to its remedy; '' if it is no words."""
    text = re.sub(r"%[-.*\d]*(?:ll|z)?[a-z]", "…", re.sub(r"(?m)^dbslower: ", "", text)).strip(" \n")
    text = re.sub(r"^(?:…: |[;:,(] )+", "", text).split("; ")[0]
    text = re.sub(r"(?:…|[\s:;,()])+$", "", text).strip()
    return text if len(re.findall(r"[a-z]{2,}", text)) > 1 else ""


def from_tables():
    """The kinds of errors with their causes, and the remedies by the state of the host."""
    for row in tables()["messages"][1:]:
        subject, cause = row["subject"], row.get("cause")
        yield f"{subject}{'…' if subject.endswith(' ') else ''}: {cause}" if cause else subject
    yield from (one.replace("; ", ", ") for one in tables()["remedies"])


def message_c(text):
    """The words of cli/message.c other than in tables: reasons and parts of messages."""
    for body in functions(text):
        for one in strings(body):
            yield one if "func bpf" not in one and "helper bpf" not in one else ""


def details():
    """What causes have in brackets."""
    words = re.search(r"words\[\] = \{\n(.*?)\};", read("usdt/spec.c"), re.S)[1]
    for name in ("probe/request.c", "probe/search.c", "usdt/site.c"):
        words += read(name)
    words += re.search(r"^const char \*hazard_refusal.*?^\}", read("loader/hazard.c"), re.M | re.S)[0]
    yield from (one for one in strings(words) if re.search(r"[a-z]{2} [a-z]{2}", one))
    for path in source_files(*LAYERS):
        yield from ("too many " + one for one in re.findall(r'(?:ERROR_TOO_MANY, -E2BIG, |request_too_many\(ctx, )"([^"]*)"', read(path)))


def messages():
    """{message} other than usage errors."""
    found = set(from_tables()) | set(message_c(read("cli/message.c"))) | set(details())
    for path in source_files("cli"):
        if path == "cli/message.c":
            continue
        for body in functions(read(path)):
            if USAGE.search(body):
                continue
            for name, args in calls(body):
                if name in REPORTS:
                    subject = strings(args[1]) if re.fullmatch(STRING, args[1]) else ["…"]
                    found |= {f"{subject[0]}: {cause}" for cause in strings(args[2])}
                elif name.startswith("output_") and re.search(r"\berr$", args[0]):
                    found |= {one for arg in args[1:] for one in strings(arg)}
    return {normal(one) for one in found} - {""}
