# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""ci/lint and ci/sizes: the sources pass them, and planted faults do not."""

import os
import shutil
import subprocess

import pytest

from tool import BUILD, ROOT

LINT = os.path.join(ROOT, "ci", "lint")
SIZES = os.path.join(ROOT, "ci", "sizes")


def lint(*args):
    return subprocess.run([LINT, *args], capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("check", ["layers", "columns"])
def test_sources_pass(check):
    done = lint(check)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A small tree that passes."""
    root = tmp_path_factory.mktemp("tree")
    for folder in ("base", "usdt", "host", "loader", "sql", "probe", "db/postgres", "db/mysql", "db/locks", "cli/format", "bpf",
                   "tests"):
        (root / folder).mkdir(parents=True)
    (root / "usdt" / "elf.h").write_text("/* Read ELF files. */\nint elf_open(int fd);\n")
    (root / "host" / "file.h").write_text('#include "usdt/elf.h"\n')
    (root / "db" / "engine.h").write_text('#include "sql/lexer.h"\n')
    (root / "sql" / "lexer.h").write_text("int lexer_skip(int c);\n")
    (root / "db" / "engines.c").write_text('#include "db/mysql/probes.h"\n')
    (root / "db" / "postgres" / "probes.h").write_text('#include "db/engine.h"\n')
    (root / "db" / "mysql" / "probes.h").write_text('#include "db/engine.h"\n')
    done = lint("--root", str(root))
    assert (done.returncode, done.stdout) == (0, ""), done.stdout
    return root


FAULTS = [
    ("layers", "usdt/note.c", '#include "host/file.h"\n', "higher layer"),
    ("layers", "sql/glob.c", '#include "usdt/elf.h"\n', "higher layer"),
    ("layers", "loader/sys.c", '#include "db/engine.h"\n', "higher layer"),
    ("layers", "bpf/event.h", '#include "db/engine.h"\n', "higher layer"),
    ("layers", "db/postgres/locks.c", '#include "db/mysql/probes.h"\n', "db/mysql/probes.h is of an engine"),
    ("layers", "db/locks/locks.c", '#include "db/mysql/probes.h"\n', "db/mysql/probes.h is of an engine"),
    ("layers", "cli/format/locks_wait.c", '#include "db/mysql/probes.h"\n', "db/mysql/probes.h is of an engine"),
    ("layers", "base/hex.h", '#include "usdt/elf.h"\n', "higher layer"),
    ("layers", "cli/format/json.c", '#include "cli/gone.h"\n', "there is no cli/gone.h"),
    ("layers", "db/top.c", '#include "db/gone.h"\n', "there is no db/gone.h"),
    ("layers", "sql/lexer.c", '#include "db/engine.h"\n', "higher layer"),
    ("columns", "cli/wide.c", "\t/* " + "x" * 87 + " */\n", "101, at most 100"),
    ("columns", "tests/wide.h", "x" * 101 + "\n", "101, at most 100"),
]


@pytest.mark.parametrize("check, path, text, found", FAULTS, ids=[f"{check}-{i}" for i, (check, *_) in enumerate(FAULTS)])
def test_finds(tree, check, path, text, found):
    place = tree / path
    before = place.read_text() if place.exists() else None
    place.write_text(text)
    try:
        done = lint(check, "--root", str(tree))
    finally:
        place.unlink() if before is None else place.write_text(before)
    assert done.returncode == 1 and found in done.stdout and done.stdout.startswith(path), done.stdout


def test_finds_a_cycle(tree):
    (tree / "db" / "one.h").write_text('#include "db/two.h"\n')
    (tree / "db" / "two.c").write_text('#include "db/one.h"\n')
    (tree / "db" / "two.h").write_text("int two(void);\n")
    done = lint("layers", "--root", str(tree))
    assert done.returncode == 1 and "include cycle: db/one -> db/two -> db/one" in done.stdout, done.stdout


def test_last_column(tree):
    (tree / "cli" / "wide.c").write_text("\t/* " + "x" * 86 + " */\n")
    done = lint("columns", "--root", str(tree))
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("more", [0, 1])
def test_sizes_finds_what_is_over(tmp_path, more):
    shutil.copy(os.path.join(BUILD, "dbslower.map"), tmp_path)
    (tmp_path / "dbslower").write_bytes(bytes(960 * 1024 + more))
    done = subprocess.run([SIZES, str(tmp_path / "dbslower.map")], capture_output=True, text=True)
    assert done.returncode == more and done.stdout.endswith("the file   960.0 KiB of 960\n"), done.stdout
