# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Containers and control groups made by hand, as a container engine makes them."""

import os
import subprocess

import pytest

# What a container engine does: an overlay of the image, here the machine's own root, as the root of
# new mount and PID namespaces. The cluster's folder is a volume.
CONTAINER = r"""
set -e
mount -t tmpfs tmpfs /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work /mnt/root
mount --rbind /dev /mnt/root/dev
mount -t proc proc /mnt/root/proc
mkdir -p /mnt/root/{dir}
mount --bind {dir} /mnt/root/{dir}
exec chroot --userspec=postgres:postgres /mnt/root "$@"
"""
UNSHARE = ("unshare", "--mount", "--pid", "--fork", "--propagation", "private", "sh", "-c", CONTAINER, "container")


def needs_namespaces():
    tried = subprocess.run([*UNSHARE[:7], "-c", "mount -t tmpfs tmpfs /mnt && mkdir /mnt/u /mnt/w /mnt/r && mount -t "
                            "overlay overlay -o lowerdir=/,upperdir=/mnt/u,workdir=/mnt/w /mnt/r"],
                           capture_output=True, text=True)
    if tried.returncode:
        pytest.skip(f"no namespaces with an overlay of / here: {tried.stderr.strip()}")


def make_control_group(name):
    """A control group of that name: its folder and the one that it is in. Skips where none can be made."""
    for base in ("/sys/fs/cgroup", "/sys/fs/cgroup/pids", "/sys/fs/cgroup/freezer"):
        folder = os.path.join(base, name)
        try:
            os.mkdir(folder)
        except OSError:
            continue
        if os.path.exists(os.path.join(folder, "cgroup.procs")):
            return folder, base
        os.rmdir(folder)
    pytest.skip("no control groups can be made here")
