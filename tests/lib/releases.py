# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Temporary servers of releases that Debian 12 does not have: MariaDB 11.8 and MySQL 9, run with the libraries of their own release."""

import os
import subprocess

import pytest

from fetched import CannotBeHad, fetched
from mariadb import Maria


def release(folder, suite, *packages):
    """Where ci/fetch has unpacked them."""
    debarch = subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True).stdout.strip()
    try:
        return fetched("server", suite, debarch, folder=folder, more=packages)
    except CannotBeHad as why:
        pytest.skip(f"{folder}: {why}")


def under_its_loader(root, program):
    """The command that runs it with what else is in @root."""
    triplet = f"{os.uname().machine}-linux-gnu"
    libraries = os.path.join(root, "usr", "lib", triplet)
    (loader,) = (os.path.join(libraries, name) for name in os.listdir(libraries) if name.startswith("ld-linux"))
    return [loader, "--library-path", f"{libraries}:{root}/usr/lib/mysql/private", f"{root}/usr/sbin/{program}"]


class Newer(Maria):
    """A release below @root, which may be readable by root only. Settings are those of Maria but for what it does not know."""
    UNKNOWN = ()
    MORE = {}
    RUN_AS = dict

    def __init__(self, root, program, **settings):
        command = under_its_loader(root, program)
        super().__init__(server=command[-1], command=command, basedir=f"{root}/usr", lc_messages_dir=f"{root}/usr/share/mysql",
                         character_sets_dir=f"{root}/usr/share/mysql/charsets", user="root", **{**self.MORE, **settings})
        self.root = root
        for name in self.UNKNOWN:
            self.settings.pop(name)


class Maria11(Newer):
    UNKNOWN = ("innodb_flush_method",)

    def __init__(self, **settings):
        super().__init__(release("mariadb-11.8", "trixie", "mariadb-server-core"), "mariadbd", **settings)


MYSQL = ("mysql-9", "sid", "mysql-server-core", "mysql-client-core")


def mysql_template(folder):
    root = release(*MYSQL)
    done = subprocess.run(
        [*under_its_loader(root, "mysqld"), "--no-defaults", "--initialize-insecure", f"--datadir={folder}/data",
         f"--basedir={root}/usr", f"--lc-messages-dir={root}/usr/share/mysql", "--innodb-use-native-aio=0",
         "--innodb-redo-log-capacity=16M", "--user=root"],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise RuntimeError(f"mysqld --initialize-insecure failed:\n{done.stdout}")


class Mysql9(Newer):
    UNKNOWN = ("log_output", "log_slow_slave_statements", "log_slow_rate_limit", "log_slow_verbosity", "sync_frm",
               "aria_pagecache_buffer_size", "innodb_log_file_size", "innodb_flush_method")
    MORE = {"mysqlx": "OFF", "secure_file_priv": "", "innodb_use_native_aio": "0", "log_slow_extra": "ON",
            "performance_schema": "ON", "innodb_redo_log_capacity": "16M"}
    TEMPLATE = staticmethod(mysql_template)

    def __init__(self, **settings):
        super().__init__(release(*MYSQL), "mysqld", **settings)
