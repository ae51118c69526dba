# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The messages on standard error, as the sources word them: "SUBJECT: CAUSE" without the remedy, with '…' for what is
inserted. Those about the command line are apart.
"""

import glob
import os
import re

from tool import ROOT

STRING = r'"(?:\\.|[^"\\])*"'
TOKEN = re.compile(rf"{STRING}|'(?:\\.|[^'\\])*'|/\*.*?\*/|//[^\n]*|[(),]", re.S)
LAYERS = ("db", "host", "loader", "probe", "usdt")
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


def table_of_causes(text):
    rows = re.search(r"message_rows\[\] = \{\n(.*?)^\};", text, re.M | re.S)[1]
    for kind, subject, cause in re.findall(rf"\[(\w+)\] = \{{ ({STRING}),\s+({STRING}|NULL)", rows):
        subject, cause = subject[1:-1], strings(cause)
        if kind != "ERROR_NONE":
            yield (subject + ("…" if subject.endswith(" ") else "") + ": " + cause[0]) if cause else subject


def message_c(text):
    """All words of cli/message.c, but for the remedies by kind: causes, reasons and remedies by host."""
    yield from table_of_causes(text)
    remedies = re.search(r"message_remedies\[\] = \{\n(.*?)^\};", text, re.M | re.S)[1]
    yield from (one.replace("; ", ", ") for one in strings(remedies))
    for body in functions(text):
        for one in strings(body):
            yield one if "func bpf" not in one and "helper bpf" not in one else ""


def losses():
    """The words of losses."""
    rows = re.search(r"summary_losses\[\] = \{\n(.*?)^\};", read("cli/summary.c"), re.M | re.S)[1]
    yield from (one for one in strings(rows) if " " in one)


def details():
    """What causes have in brackets."""
    words = re.search(r"words\[\] = \{\n(.*?)\};", read("usdt/spec.c"), re.S)[1]
    for name in ("probe/request.c", "probe/search.c", "usdt/site.c"):
        words += read(name)
    yield from (one for one in strings(words) if re.search(r"[a-z]{2} [a-z]{2}", one))
    for path in source_files(*LAYERS):
        yield from ("too many " + one for one in re.findall(r'(?:ERROR_TOO_MANY, -E2BIG, |request_too_many\(ctx, )"([^"]*)"', read(path)))


def messages():
    """{message} other than usage errors."""
    found = set(message_c(read("cli/message.c"))) | set(losses()) | set(details())
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
