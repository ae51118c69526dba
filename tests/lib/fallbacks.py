# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The fallbacks for older kernels, and the options that force them on a newer one."""

import os
import re

from tool import FORCE, ROOT


def force(*names):
    """Return the options that force these fallbacks."""
    return ["--force=" + ",".join(names)] if names else []


def section():
    """Return the list of the man page: {name: the release before which it is required}."""
    with open(os.path.join(ROOT, "cli", "dbslower.8")) as f:
        text = re.search(r"^\.Sh OLDER KERNELS\n(.*?)^\.El", f.read(), re.M | re.S)[1]
    return {name: (int(major), int(minor)) for name, major, minor in
            re.findall(r"^\.It Cm (\S+)\nBefore (\d+)\.(\d+):", text, re.M)}


def harmful():
    """Return the names that make a kernel count as harmful to traced programs, which are no fallbacks."""
    with open(os.path.join(ROOT, "cli", "dbslower.8")) as f:
        text = re.search(r"^\.Ss Harmful probes\n(.*?)^\.S[sh]", f.read(), re.M | re.S)[1]
    return set(re.findall(r"^\.Fl -force Ns = Ns Cm (\S+)$", text, re.M))


def names():
    """Return the names of the man page."""
    return list(section())


def forced(args):
    """Return the names that the options @args force, and those that this run forces (FORCE)."""
    options = [arg[len("--force="):] for arg in map(str, args) if arg.startswith("--force=")]
    return [name for option in [*options, *([FORCE] if FORCE else [])] for name in option.split(",")]


def lacks(args, release):
    """Return whether the options @args force all that a kernel before @release, (MAJOR, MINOR), lacks."""
    return any(tuple(map(int, name[len("linux-"):].split("."))) < release for name in forced(args) if name.startswith("linux-"))


def forces(args, name):
    """Return whether the options @args force that fallback, by its name or by that of a release."""
    return name in forced(args) or lacks(args, section()[name])


# All that can be forced at once.
ALL = force(*names())
# All that an old release lacks.
OLD = force("linux-5.4")

# The commands whose programs are the largest and the deepest.
LARGEST = ["slow --why --use --phases --prepares --db x --app x --max-overhead 1%",
           "stat --by user --wait lock --db x --app x --max-overhead 1%",
           "top --why --use --db x --app x --max-overhead 1%",
           "transactions --db x --app x --max-overhead 1%",
           "record recording --why --use --phases --db x --app x --client x --max-overhead 1%"]
