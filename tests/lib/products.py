# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The releases of MariaDB and MySQL that tests of both run on: from products import kind."""

import pytest

from mariadb import Maria
from releases import Maria11, Mysql9
from requirements import need_maria, need_root

KINDS = {"MariaDB 10.11": Maria, "MariaDB 11.8": Maria11, "MySQL 9": Mysql9}


@pytest.fixture(scope="module", params=KINDS, ids=list(KINDS))
def kind(request):
    """The class of a server."""
    need_root()
    need_maria()
    return KINDS[request.param]
