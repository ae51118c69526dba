# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Completion by zsh and fish themselves, compared with what the program lists. That of bash is in test_errors.py."""

import os
import re
import shutil
import subprocess

import pytest

from tool import BUILD, DBSLOWER, ROOT

PROBED = os.path.join(BUILD, "tests/lib/empty-probes")

# completion.zsh DIRECTORY FILE list|insert LINE...: complete each LINE in an interactive shell, and write to FILE its
# candidates, or the completed line.
ZSH = r"""
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z "fpath=(${(q)1} \$fpath); autoload -Uz compinit; compinit -u -D; setopt no_auto_list; exec 3>${(q)2}"
[[ $3 = list ]] && zpty -w z 'compadd() { local -a hits; builtin compadd -O hits "$@"; print -rl -- $hits >&3 }'
zpty -w z 'zle-line-init() {
	for BUFFER in $LINES_; do CURSOR=$#BUFFER; zle complete; print -r -- "= $BUFFER" >&3; done; exit
}'
shift 3
zpty -w z "LINES_=(${(j: :)${(@qq)@}}); zle -C complete complete-word _main_complete; zle -N zle-line-init"
while zpty -r z line; do :; done
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """A directory for PATH and for zsh's fpath: the tool by its names, and zsh's function as it is installed."""
    where = tmp_path_factory.mktemp("completion")
    for name in ("dbslower", "dbstat", "tplist"):
        os.symlink(DBSLOWER, where / name)
    shutil.copy(os.path.join(ROOT, "cli/completion.zsh"), where / "_dbslower")
    return where


def listed(*words):
    """What the program lists: {candidate: description or ''}."""
    done = subprocess.run([DBSLOWER, "--complete", *words], capture_output=True, text=True, timeout=60)
    rows = [line.partition("\t") for line in done.stdout.splitlines() if not line.startswith(":")]
    return {word: about for names, _, about in rows for word in names.replace(",", " ").split()}


def run(programs, *command):
    env = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "TERM": "dumb", "LC_ALL": "C.UTF-8",
           "HOME": str(programs), "XDG_CONFIG_HOME": str(programs)}
    done = subprocess.run(command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and not done.stderr, done
    return done.stdout


def fish(programs, line):
    """{candidate: description} in fish."""
    if not shutil.which("fish"):
        pytest.skip("no fish (package fish)")
    script = "source cli/completion.fish; complete -C $argv[1]"
    out = run(programs, "fish", "--no-config", "-c", script, line)
    return {word: about for word, _, about in (row.partition("\t") for row in out.splitlines())}


def zsh(programs, what, *lines):
    """What the script above writes: for each line the candidates, and the completed line."""
    if not shutil.which("zsh"):
        pytest.skip("no zsh (package zsh)")
    to = programs / "completed"
    run(programs, "zsh", "-f", "-c", ZSH, "completion.zsh", str(programs), str(to), what, *lines)
    parts = re.split(r"^= (.*)\n", to.read_text(), flags=re.M)
    return [set(candidates.split()) for candidates in parts[:-1:2]], parts[1::2]


def test_zsh_lists_what_the_program_lists(programs):
    commands, options = listed("dbslower", ""), listed("dbslower", "top", "-")
    assert zsh(programs, "list", "dbslower ", "dbslower top -", "dbstat --by ")[0] == [
        set(commands), set(options), {"command", "status", "db", "user"}]
    assert "doctor" in commands and "--sort" in options


def test_zsh_completes(programs):
    wanted = {
        "dbslower trans": "dbslower transactions ",
        "dbslower --cont": "dbslower --container ",
        "dbslower -o time,us": "dbslower -o time,user",
        "dbslower --columns=time,us": "dbslower --columns=time,user",
        "dbslower top --sort=to": "dbslower top --sort=total ",
        "dbslower -x cli/completion.z": "dbslower -x cli/completion.zsh ",
        f"dbslower trace -l {PROBED} dbslower:self__d": f"dbslower trace -l {PROBED} dbslower:self__done ",
    }
    assert dict(zip(wanted, zsh(programs, "insert", *wanted)[1])) == wanted


def test_fish_lists_what_the_program_lists(programs):
    assert fish(programs, "dbslower ") == listed("dbslower", "")
    options = listed("dbslower", "top", "-")
    assert fish(programs, "dbslower top --") == {word: about for word, about in options.items() if word[:2] == "--"}
    assert set(fish(programs, "dbstat --by ")) == {"command", "status", "db", "user"}
    assert fish(programs, "dbslower -o time,us") == {"time,user": ""}
    assert fish(programs, "dbslower top --sort=to") == {"--sort=total": ""}
    assert fish(programs, "dbslower --path=cli/completion.z") == {"--path=cli/completion.zsh": ""}
    assert fish(programs, f"dbslower trace -l {PROBED} dbslower:self__d") == {"dbslower:self__done": ""}
