# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Short runs of make soak."""

import backends
import hostile_soak
import soak
from cluster import Cluster
from mariadb import Maria
from requirements import need_maria, need_root


def test_books_balance(postgres, tmp_path):
    need_root()
    assert soak.soak(2, backends.build(tmp_path), postgres) == []


def test_attackers(tmp_path):
    """Nothing is hidden, forged or stalled by processes of a user without privileges."""
    need_root()
    need_maria()
    with Cluster(name="attacked").init() as cluster, Maria().init() as maria:
        assert hostile_soak.soak(20, str(tmp_path), cluster.start(), maria.start()) == []
