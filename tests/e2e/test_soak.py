# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Short runs of make soak."""

import platform

import backends
import hostile_soak
import pytest
import soak
from cluster import Cluster
from commanded import reveal
from mariadb import Maria
from requirements import need_maria, need_root, need_server

pytestmark = pytest.mark.alone


def test_books_balance(tmp_path):
    need_root()
    need_server()
    with Cluster(name="books").init() as cluster:
        assert soak.soak(2, backends.build(tmp_path), cluster.start()) == []


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the attacker is written for x86-64")
def test_attacker_of_locks(tmp_path):
    need_root()
    reveal(str(tmp_path))
    with Cluster(name="attacked").init() as cluster:
        assert hostile_soak.soak_locks(3, str(tmp_path), cluster.start()) == []


def test_attackers(tmp_path):
    """Nothing is hidden, forged or stalled by processes of a user without privileges."""
    need_root()
    need_maria()
    with Cluster(name="attacked").init() as cluster, Maria().init() as maria:
        assert hostile_soak.soak(20, str(tmp_path), cluster.start(), maria.start()) == []
