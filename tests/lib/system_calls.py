# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The names of system calls, as the kernel's headers have them."""

import re
import subprocess

import pytest

LAST = 450	# newer headers may name more
# What asm-generic/unistd.h has of aarch64, and more than that of riscv64.
GENERIC = ("asm-generic/unistd.h", ("RENAMEAT", "NEW_STAT", "SET_GET_RLIMIT", "SYS_CLONE3", "MEMFD_SECRET"))


def named(header, defines=()):
    """{number: name} of a header."""
    done = subprocess.run(["gcc", "-E", "-dM", *(f"-D__ARCH_WANT_{name}" for name in defines), "-include", header, "-x", "c", "/dev/null"],
                          capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no {header} here: {done.stderr}")
    macros = dict(re.findall(r"#define (__NR\w+) (\w+)", done.stdout))
    values = {name.removeprefix("__NR_"): macros.get(value, value) for name, value in macros.items()
              if name.startswith("__NR_") and name not in ("__NR_syscalls", "__NR_arch_specific_syscall")}
    found = {int(value): name for name, value in values.items() if value.isdigit() and int(value) <= LAST}
    assert len(found) > 250
    return found


def lacking(calls, names):
    """What @calls, names by number, have in another way than @names."""
    return {number: (name, calls[number]) for number, name in names.items() if calls[number] != name}
