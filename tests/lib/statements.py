# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Find statements in the output of a tool that has ended, and stop it with a check of its losses."""

import re
import signal

ROW = re.compile(r"(?P<time>-?\d+\.\d{6}) +(?P<pid>\d+) +(?P<ms>\d+\.\d{3}) (?P<query>.*)")
# The keys of a statement of PostgreSQL in JSON.
KEYS = {"type", "time", "server", "pid", "tid", "duration_ms", "user", "database", "client", "backend", "rows", "status",
        "query", "query_bytes", "truncated"}


def with_tag(traced, tag):
    """The statements that have the tag in their text."""
    return [one for one in traced.statements if tag in one.get("query", "")]


def only(traced, tag):
    """The one statement with the tag."""
    found = with_tag(traced, tag)
    assert len(found) == 1, f"{len(found)} statements with {tag}\n{traced.said()}"
    return found[0]


def stopped(traced, sig=signal.SIGINT, idle=False):
    """
    Stops it; it must end well and have lost nothing. Returns it. @idle: no statement was running when it began, or
    is now.
    """
    status = traced.stop(sig)
    assert status == 0, f"exit status {status}\n{traced.said()}"
    if "--json" in traced.args:
        assert not traced.lost() and not (idle and traced.summary["boundary"]), traced.said()
    return traced


def rows(traced):
    """The rows of the familiar form, each matched."""
    matches = [ROW.fullmatch(row) for row in traced.rows()]
    assert all(matches), f"a row is not in the familiar form\n{traced.said()}"
    return matches


def tags(traced):
    return [re.search(r"/\* (.*?) \*/", row["query"])[1] for row in rows(traced) if "/*" in row["query"]]


def why_ns(one):
    """The time breakdown of the object in ns, which add up exactly."""
    return {part: round(ms * 1e6) for part, ms in one["why_ms"].items()}


def text_of(size, tag="x"):
    head = f"select '{tag}"
    return head + "y" * (size - len(head) - 1) + "'"
