# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A short run of make soak."""

import backends
import soak
from requirements import need_root


def test_books_balance(postgres, tmp_path):
    need_root()
    assert soak.soak(2, backends.build(tmp_path), postgres) == []
