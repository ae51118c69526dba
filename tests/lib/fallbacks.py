# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The fallbacks for older kernels, and the options that force them on a newer one."""

import os
import re

from tool import ROOT


def force(*names):
    """Return the options that force these fallbacks."""
    return ["--force=" + ",".join(names)] if names else []


def forces(args, name):
    """Return whether the options @args force that fallback."""
    return any(name in arg[len("--force="):].split(",") for arg in map(str, args) if arg.startswith("--force="))


def names():
    """Return the names of the man page."""
    with open(os.path.join(ROOT, "cli", "dbslower.8")) as f:
        section = re.search(r"^\.Sh OLDER KERNELS\n(.*?)^\.El", f.read(), re.M | re.S)[1]
    return re.findall(r"^\.It Cm (\S+)$", section, re.M)


# All that can be forced at once: tracefs replaces what "perf" forces.
ALL = force(*(name for name in names() if name != "perf"))
