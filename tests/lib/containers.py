# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Containers and control groups made by hand, as a container engine makes them."""

import contextlib
import os
import subprocess

import pytest

from cluster import wait_for

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


def disk_of(path):
    """Return the number of the disk that a file is on, MAJOR:MINOR; None if it is not on a disk."""
    number = os.stat(path).st_dev
    folder = os.path.realpath(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if os.path.exists(os.path.join(folder, "partition")):
        folder = os.path.dirname(folder)
    try:
        with open(os.path.join(folder, "dev"), encoding="ascii") as f:
            return f.read().strip()
    except FileNotFoundError:
        return None


@contextlib.contextmanager
def control_group(folder, base):
    """Yield move(pid), which puts a process into the group, and remove it. Its processes then are of the group @base."""
    def move(pid, to=folder):
        with open(os.path.join(to, "cgroup.procs"), "w", encoding="ascii") as f:
            f.write(str(pid))

    def removed():
        """Processes end meanwhile, and a group is busy until its last one is gone."""
        try:
            with open(os.path.join(folder, "cgroup.procs"), encoding="ascii") as f:
                for pid in f.read().split():
                    move(pid, base)
            os.rmdir(folder)
        except OSError:
            return not os.path.exists(folder)
        return True
    try:
        yield move
    finally:
        wait_for(removed, 60, f"{folder} to be removed")


def make_limited(what, limits):
    """A control group with the first of @limits that it can have, (hierarchy, file, value): its folder and the hierarchy."""
    for base, name, limit in limits:
        folder = os.path.join(base, f"{what}-{os.getpid()}")
        try:
            os.mkdir(folder)
        except OSError:
            continue
        if os.path.exists(os.path.join(folder, name)):
            with open(os.path.join(folder, name), "w", encoding="ascii") as f:
                f.write(limit)
            return folder, base
        os.rmdir(folder)
    pytest.skip(f"no control group that limits {what} can be made here")


@contextlib.contextmanager
def slow_reads(path, bytes_per_second):
    """
    Make a control group whose processes read that much from the disk of a file. Yield move(pid), which puts a
    process into it. Skip the test if the file is not on a disk or the kernel cannot limit this.
    """
    disk = disk_of(path)
    if not disk:
        pytest.skip(f"{path} is not on a disk")
    limits = (("/sys/fs/cgroup/blkio", "blkio.throttle.read_bps_device", f"{disk} {bytes_per_second}"),
              ("/sys/fs/cgroup", "io.max", f"{disk} rbps={bytes_per_second}"))
    with control_group(*make_limited("reads", limits)) as move:
        yield move


@contextlib.contextmanager
def little_cpu(percent, period_us=20000):
    """
    Make a control group whose processes get @percent of a CPU, and these before others: it is the limit that stops them. Yield
    move(pid), and the ns in which they were throttled so far.
    """
    quota = period_us * percent // 100
    folder, base = make_limited("cpu", (("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", f"{quota}"),
                                        ("/sys/fs/cgroup", "cpu.max", f"{quota} {period_us}")))
    if os.path.exists(os.path.join(folder, "cpu.cfs_period_us")):
        with open(os.path.join(folder, "cpu.cfs_period_us"), "w", encoding="ascii") as f:
            f.write(f"{period_us}")
    for name, most in (("cpu.shares", "262144"), ("cpu.weight", "10000")):
        if os.path.exists(os.path.join(folder, name)):
            with open(os.path.join(folder, name), "w", encoding="ascii") as f:
                f.write(most)

    def throttled_ns():
        with open(os.path.join(folder, "cpu.stat"), encoding="ascii") as f:
            stat = dict(line.split() for line in f)
        return int(stat["throttled_time"]) if "throttled_time" in stat else 1000 * int(stat["throttled_usec"])

    with control_group(folder, base) as move:
        yield move, throttled_ns
