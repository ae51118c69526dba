# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The fallbacks for older kernels, and the options that force them on a newer one."""


def force(*names):
    """Return the options that force these fallbacks."""
    return ["--force=" + ",".join(names)] if names else []


def forces(args, name):
    """Return whether the options @args force that fallback."""
    return any(name in arg[len("--force="):].split(",") for arg in map(str, args) if arg.startswith("--force="))


# All that can be forced at once: tracefs replaces what "perf" forces.
ALL = force("tracefs", "prealloc", "perfbuf", "probe-read", "semaphore", "pids")
