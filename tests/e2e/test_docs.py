# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The documents: every message is explained, and each recipe does what it states."""

import os
import re

from messages import messages
from tool import ROOT

DOCS = os.path.join(ROOT, "docs")
INSERTED = r"\b(?:FILE|PID|NAME|REASON|N|PROBE)\b"


def page(name):
    with open(os.path.join(DOCS, name), encoding="utf-8") as f:
        return f.read()


def words(message):
    """A message without what is inserted."""
    return re.sub(INSERTED, "…", re.sub(r"\s+", " ", message)).replace("; ", ", ")


def pieces(message):
    """The parts of a message between what is inserted, if they are words."""
    return [one for one in re.split("… ?|: ", words(message)) if len(re.findall("[a-z]{2,}", one)) > 1]


def quoted(pattern):
    """The code in the parts of the page of messages that match."""
    return [one for part in re.findall(pattern, page("troubleshooting.md"), re.M | re.S) for one in re.findall(r"`([^`]+)`", part)]


def test_every_message_is_explained():
    """Each message that the sources have is in docs/troubleshooting.md, and each one there is one of the sources."""
    found = messages()
    shown = [words(one) for one in quoted(".*")]
    missing = [one for one in found if not any(all(piece in code for piece in pieces(one)) for code in shown)]
    assert not missing, "not explained: " + "\n".join(sorted(missing))
    known = [words(one) for one in found]
    # A heading, and the code with which an item of a list begins, without the remedy.
    heads = [one.split("; ")[0] for one in quoted(r"^### [^\n]*$") + quoted(r"^- `[^`]+`")]
    assert len(heads) > 100
    unknown = [one for one in heads if not all(any(piece.strip(" ,()") in text for text in known) for piece in pieces(one))]
    assert not unknown, "no message: " + "\n".join(unknown)
