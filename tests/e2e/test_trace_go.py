# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Returns of functions in Go programs, which move their stacks: C programs that are marked as Go's linker marks files."""

import os
import re
import subprocess

import pytest

from test_trace import Probed, build, trace		# noqa: F401
from requirements import need_root
from tool import FIXTURES, refused, run

SECTIONS = [".go.buildinfo", ".note.go.buildid", ".gopclntab", ".data.rel.ro.gopclntab"]
NOTE = '''
__asm__(".pushsection .note.mine,\\"a\\",@note\\n.balign 4\\n.long 4, 4, 4\\n.ascii \\"Go\\\\0\\\\0\\"\\n.long 7\\n.popsection");
'''


@pytest.fixture(scope="module", params=[*SECTIONS, "note"])
def program(request, tmp_path_factory):
    """work_begin() and others, with one of the marks."""
    folder = tmp_path_factory.mktemp("go")
    source = os.path.join(FIXTURES, "latency.c")
    if request.param == "note":
        (folder / "note.c").write_text(NOTE)
        build(folder, "-pthread", "-o", "app", source, "note.c")
        listed = subprocess.run(["readelf", "-lW", folder / "app"], capture_output=True, text=True, check=True).stdout
        assert re.search(r"^ +\d\d .*\.note\.mine", listed, re.M), "it is in no segment"
    else:
        build(folder, "-pthread", "-o", "plain", source)
        (folder / "mark").write_bytes(b"mark")
        subprocess.run(["objcopy", "--add-section", f"{request.param}=mark", "plain", "app"], check=True, cwd=folder)
    return folder / "app"


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plain")
    build(folder, "-pthread", "-o", "plain", os.path.join(FIXTURES, "latency.c"))
    return folder / "plain"


RETURNS = [["r:FILE:work_nest"], ["r:FILE:work_*"], ["--ret", "FILE", "work_nest"], ["--latency", "FILE", "work_nest"],
           ["--hist", "latency", "FILE", "work_nest"]]


@pytest.mark.parametrize("words", RETURNS, ids=" ".join)
def test_returns_are_refused(program, words):
    need_root()
    done = run("trace", "-d", "0.1", *(word.replace("FILE", str(program)) for word in words))
    refused(done, rf"{program}: a Go program .*\(work_(nest|\*)\); ", "entry", "--force=go-returns")


@pytest.mark.parametrize("words", RETURNS, ids=" ".join)
def test_other_programs_are_traced(plain, words):
    need_root()
    done = run("trace", "-d", "0.1", *(word.replace("FILE", str(plain)) for word in words))
    assert done.returncode == 0 and "Go" not in done.stderr, done


def counts(traced):
    return {one["function"]: one["count"] for one in traced.objects() if one["type"] == "hit_count"}


def test_entries_are_traced(trace, program):		# noqa: F811
    """Calls, and the latency from one to another: in a round, two threads call work_nest() 3 times, work_begin() twice."""
    one = Probed(program)
    counted = trace("--count", "-p", one.pid, "work_nest", "work_begin", "--json")
    pair = trace("--latency", "-p", one.pid, "work_begin", "work_end", "--json")
    lines = one()
    pair.wait_for(lambda tool: len(tool.hits) >= 2, what="the ends")
    pair.ended(), counted.ended()
    one.close()
    ends = sum(line.startswith("pair ") for line in lines)
    assert len(pair.hits) == ends == 2, pair.said()
    assert counts(counted) == {"work_nest": 6, "work_begin": 4}, counted.said()


def test_forced(trace, program):		# noqa: F811
    one = Probed(program)
    traced = trace("--count", "--force=go-returns", "-p", one.pid, f"r:{program}:work_begin", f"p:{program}:work_begin", "--json")
    one()
    traced.ended()
    one.close()
    found = [one["count"] for one in traced.objects() if one["type"] == "hit_count"]
    assert found == [4, 4], traced.said()


def test_other_files_of_a_pattern(trace, tmp_path):		# noqa: F811
    """A pattern that files of a process match: only the returns of the one that is Go's are omitted."""
    (tmp_path / "lib.c").write_text("__attribute__((noinline)) void work_other(void) { __asm__ volatile(\"\"); }\n")
    (tmp_path / "main.c").write_text(
        '#include <stdio.h>\n#include <unistd.h>\nvoid work_other(void);\n'
        '__attribute__((noinline)) void work_own(void) { __asm__ volatile(""); }\n'
        'int main(void)\n{\n\tprintf("pid %d\\n", getpid());\n\tfflush(stdout);\n\twhile (getchar() != EOF) {\n'
        '\t\twork_own();\n\t\twork_other();\n\t\tputs("done");\n\t\tfflush(stdout);\n\t}\n}\n')
    build(tmp_path, "-shared", "-fPIC", "-o", "libother.so", "lib.c")
    build(tmp_path, "-o", "plain", "main.c", "-L.", "-lother", f"-Wl,-rpath,{tmp_path}")
    (tmp_path / "mark").write_bytes(b"mark")
    subprocess.run(["objcopy", "--add-section", ".gopclntab=mark", "plain", "app"], check=True, cwd=tmp_path)
    one = Probed(tmp_path / "app")
    traced = trace("-p", one.pid, "r:work_*", "--json")
    one()
    traced.wait_for(lambda tool: tool.hits, what="the return")
    traced.ended()
    one.close()
    assert {hit["function"] for hit in traced.hits} == {"work_other"}, traced.said()
    assert traced.stderr.count(f"{tmp_path}/app: a Go program ") == 1, traced.said()
