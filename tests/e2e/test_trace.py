# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""trace: hits of any probe, compared with the output of the traced programs, and with bpftrace if it is installed."""

import collections
import contextlib
import functools
import os
import pty
import random
import re
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from cluster import wait_for
from containers import needs_namespaces
from elffile import Memory, readelf
from fallbacks import OLD, force, lacks
from mariadb import SERVER
from peer import Bpftrace
from requirements import need_maria, need_root
from tool import COMPLETION, DBSLOWER, FIXTURES, Announced, refused, run, run_other


COLUMNS = 65		# before the message


class Trace(Announced):
    """trace while it runs."""

    @property
    def hits(self):
        return [one for one in self.objects() if one["type"] == "hit"]

    def messages(self):
        """Return the text after the columns of each line."""
        return [row[COLUMNS:] for row in self.rows()]

    def ended(self):
        assert self.stop() == 0 and "nothing lost" in self.stderr, self.said()
        return self


@pytest.fixture
def trace(tool):
    return functools.partial(tool, "trace", kind=Trace)


def build(folder, *args):
    subprocess.run(["gcc", "-O2", *map(str, args)], check=True, cwd=folder)


class Probed:
    """The fixture while it runs; each call is a round, whose lines it returns."""

    def __init__(self, path, args=(), **keywords):
        self.path = str(path)
        self.process = subprocess.Popen([self.path, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **keywords)
        self.pid = int(self.process.stdout.readline().split()[1])

    def __call__(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        lines = []
        while not lines or lines[-1] != "done":
            line = self.process.stdout.readline()
            assert line, f"it ended with {self.process.wait(60)}"
            lines.append(line.rstrip("\n"))
        return lines

    def close(self):
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Built once: probed, and loads, which has the same in libprobed.so."""
    folder = tmp_path_factory.mktemp("probed")
    build(folder, "-o", "probed", os.path.join(FIXTURES, "probed.c"))
    build(folder, "-o", "testapp", os.path.join(FIXTURES, "testapp.c"))
    build(folder, "-shared", "-fPIC", "-Dmain=probed_main", "-o", "libprobed.so", os.path.join(FIXTURES, "probed.c"))
    (folder / "loads.c").write_text("int probed_main(void);\nint main(void) { return probed_main(); }\n")
    build(folder, "-o", "loads", "loads.c", "-L.", "-lprobed", f"-Wl,-rpath,{folder}")
    return folder


@pytest.fixture
def probed(programs):
    one = Probed(programs / "probed")
    yield one
    one.close()


def said(lines, name):
    """The values that the fixture printed for hits called @name."""
    return [line.split(" ", 1)[1] if " " in line else "" for line in lines if line.split(" ")[0] == name]


WAYS = [[], force("perf")]


# --- USDT arguments

@pytest.mark.parametrize("way", WAYS, ids=" ".join)
def test_all_arguments_by_each_sites_spec(trace, probed, way):
    traced = trace(*way, probed.path, "probed:sites", "probed:widths", "--json")
    lines = probed() + probed()
    traced.ended()
    seen = [one["args"] for one in traced.hits if one["probe"] == "sites"]
    assert [str(args[0]) for args in seen] == said(lines, "sites"), traced.said()
    widths = [" ".join(map(str, one["args"])) for one in traced.hits if one["probe"] == "widths"]
    assert widths == said(lines, "widths"), traced.said()
    assert {one["pid"] for one in traced.hits} == {one["tid"] for one in traced.hits} == {probed.pid}
    assert {one["comm"] for one in traced.hits} == {"probed"}
    assert {one["provider"] for one in traced.hits} == {"probed"}
    assert traced.summary["hits"] == traced.summary["printed"] == len(traced.hits) == 10


MERGED = r"""
#include <stdio.h>
#include <unistd.h>
#include <sys/sdt.h>
#define NOTE ".pushsection .note.stapsdt,\"?\",\"note\"\n.balign 4\n.4byte 992f-991f, 994f-993f, 3\n991: .asciz \"stapsdt\"\n" \
    "992: .balign 4\n993: .8byte 990b\n.8byte _.stapsdt.base\n.8byte 0\n.asciz \"probed\"\n.asciz \"merged\"\n.asciz \"\"\n" \
    "994: .balign 4\n.popsection\n"
int main(void)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    printf("pid %d\n", getpid());
    while (getchar() != EOF) {
        for (int i = 0; i < 3; i++) {
            __asm__ volatile("990: nop\n" NOTE NOTE);
            puts("merged");
        }
        puts("done");
        DTRACE_PROBE(probed, round);
    }
}
"""


NOPS = ["0x90", "0x66, 0x90", "0x0f, 0x1f, 0x00", "0x0f, 0x1f, 0x40, 0x00", "0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00",
        "0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00", "0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00",
        "0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00"]
ODD_NOTES = r"""
#include <stdio.h>
#include <unistd.h>
#include <sys/sdt.h>
#define NOTE(name, nop, site) "990: .byte " nop "\n.pushsection .note.stapsdt,\"" FLAGS "\",\"note\"\n.balign 4\n" \
    ".4byte 992f-991f, 994f-993f, 3\n991: .asciz \"stapsdt\"\n" \
    "992: .balign 4\n993: .8byte " site "\n.8byte 0\n.8byte 0\n.asciz \"probed\"\n.asciz \"" name "\"\n.asciz \"\"\n" \
    "994: .balign 4\n.popsection\n"
void others(void);
#ifdef OTHERS
#define FLAGS "a"
void others(void)
{
    __asm__ volatile(NOTE("allocated", "0x90", "990b"));
}
#else
#define FLAGS ""
int main(void)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    printf("pid %d\n", getpid());
    while (getchar() != EOF) {
        @NOPS@
        __asm__ volatile(NOTE("copied", "0x90", "990b"));
        __asm__ volatile(NOTE("copied", "0x90", "0x400000"));
        others();
        DTRACE_PROBE(probed, round);
        puts("done");
    }
}
#endif
"""


def test_odd_notes(trace, tmp_path):
    """
    As other linkers than GNU's leave them: in two sections, with base 0 beside others, and for code that was discarded; on each
    form of a nop but that of 5 bytes, which a kernel may not take.
    """
    nops = "".join(f'__asm__ volatile(NOTE("nop{n}", "{nop}", "990b"));\n' for n, nop in enumerate(NOPS))
    (tmp_path / "odd.c").write_text(ODD_NOTES.replace("@NOPS@", nops))
    build(tmp_path, "-c", "-o", "others.o", "-DOTHERS", "odd.c")
    build(tmp_path, "-no-pie", "-o", "odd", "odd.c", "others.o")
    assert readelf("-SW", tmp_path / "odd").count(".note.stapsdt ") == 2
    one = Probed(tmp_path / "odd")
    traced = trace(one.path, "probed:*", "--json")
    one()
    one.close()
    traced.ended()
    wanted = {"round", "copied", "allocated", *(f"nop{n}" for n in range(len(NOPS)))}
    assert sorted(hit["probe"] for hit in traced.hits) == sorted(wanted), traced.said()
    assert "probed:copied: site 0x400000: there is no nop at its site; skipped" in traced.stderr


# Those of one byte that 64-bit mode has, of some kinds, and with prefixes.
INSTRUCTIONS = [bytes([one]) for one in (*range(0x50, 0x54), *range(0x64, 0x70), *range(0x88, 0x92), *range(0xc8, 0xce), 0xcf,
                                          *range(0xe3, 0xea), *range(0xeb, 0xf6), *range(0xf8, 0x100))]
INSTRUCTIONS += [b"\x66\x2e\x0f\x1f\x84", b"\x26\x89\xc0", b"\x2e\x89\xc0", b"\x36\x89\xc0", b"\x3e\x89\xc0", b"\x64\x89\xc0",
                 b"\xf2\xf0\x48\x0f\xc1\x07", b"\xf3\x0f\x1e\xfb"]
INSTRUCTIONS = [f".byte {','.join(map(str, one))}" for one in INSTRUCTIONS] + [
    *(f"{name} %xmm1, %xmm2, %xmm3" for name in (
        "vpxor", "vpor", "vpand", "vpunpckldq", "vpunpcklqdq", "vpunpckhqdq", "vpmullw", "vpaddq", "vpaddd", "vpsubb", "vpsubd", "vpsubq",
        "vpmuludq", "vpmaxsw", "vpmaxub", "vpcmpeqd", "vaddps", "vxorps", "vandps", "vmovhlps", "vpmaxuw", "vpmulhw", "vpsubsb")),
    *(f"{name} %xmm1, %xmm2" for name in ("vmovdqa", "vmovdqu", "vmovups", "vmovaps", "vucomiss", "vcomiss", "vptest", "vpabsd", "vmovq")),
    *(f"{name} (%rdi), %xmm1" for name in ("vlddqu", "vmovd", "vmovdqu", "vbroadcastss")),
    *(f"{name} %ymm1, %ymm2, %ymm3" for name in ("vpxor", "vpermd", "vpermps", "vfmadd132ps")),
    *(f"{name} %xmm1, (%rdi)" for name in ("vmovntdq", "vmovdqa", "vmovd", "vmovhps", "vmovntps")),
    *(f"{name} %zmm1, %zmm2, %zmm3" for name in ("vpxord", "vaddps", "vpmullw", "vpunpckldq")),
    "vmovdqu64 (%rdi), %zmm1", "vmovups (%rdi), %zmm1", "vpinsrw $1, %eax, %xmm1, %xmm2", "vpextrw $1, %xmm1, %eax", "vzeroupper",
    "vinserti128 $1, %xmm1, %ymm2, %ymm3", "mulx %rax, %rbx, %rcx", "andn %rax, %rbx, %rcx", "crc32 %rax, %rbx", "movbe (%rdi), %eax",
    "syscall", "rdtsc", "cpuid", "ud2", "rdmsr", "wbinvd", "invd", "sysretq", "clts",
]


def refused_by_kernel(folder, path, offsets):
    """Of these, in a file that a process maps."""
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tracefs", "none", folder]).returncode:
        pytest.skip("no tracefs")
    try:
        events = os.open(folder / "uprobe_events", os.O_WRONLY | os.O_APPEND)
        for name, offset in offsets.items():
            event = f"dbslower/{name}"
            os.write(events, f"p:{event} {path}:{offset:#x}\n".encode())
            try:
                (folder / "events" / event / "enable").write_text("1")
            except OSError:
                yield name
            (folder / "events" / event / "enable").write_text("0")
            os.write(events, f"-:{event}\n".encode())
        os.close(events)
    finally:
        subprocess.run(["umount", folder], check=True)


def test_instructions_that_the_kernel_refuses(trace, tmp_path):
    """It says so only if a process maps the file: without one, nothing would be hit."""
    need_root()
    code = "".join(f".globl f{n}\n.type f{n},@function\nf{n}: {one}\n.fill 12\n.size f{n},.-f{n}\n"
                   for n, one in enumerate(INSTRUCTIONS))
    (tmp_path / "refused.s").write_text(f".text\n{code}.section .note.GNU-stack\n")
    (tmp_path / "main.c").write_text('#include <stdio.h>\nint main(void) { puts("pid 0"); fflush(stdout); getchar(); }\n')
    build(tmp_path, "-o", "main", "main.c", "refused.s")
    symbols = dict(line.split()[::2][::-1] for line in subprocess.run(
        ["nm", tmp_path / "main"], capture_output=True, text=True, check=True).stdout.splitlines() if len(line.split()) == 3)
    text = re.search(r" \.text +PROGBITS +(\w+) (\w+)", readelf("-SW", tmp_path / "main"))
    offsets = {f"f{n}": int(symbols[f"f{n}"], 16) - int(text[1], 16) + int(text[2], 16) for n in range(len(INSTRUCTIONS))}
    with contextlib.closing(Probed(tmp_path / "main")) as one:
        wanted = {name: INSTRUCTIONS[int(name[1:])] for name in refused_by_kernel(tmp_path / "tracing", one.path, offsets)}
    traced = trace(one.path, "p::f[0-9]*")
    traced.ended()
    found = re.findall(r"(f\d+): the kernel cannot probe the instruction at its site; skipped", traced.stderr)
    assert {name: INSTRUCTIONS[int(name[1:])] for name in found} == wanted, traced.said()
    assert {"vpxor %xmm1, %xmm2, %xmm3", ".byte 102,46,15,31,132"} < set(wanted.values()) and ".byte 80" not in wanted.values()


@pytest.mark.parametrize("way", WAYS, ids=" ".join)
def test_merged_code_is_hit_once(trace, tool, tmp_path, way):
    """A linker that merges copies of code (LTO, ICF) keeps the USDT note of each."""
    (tmp_path / "merged.c").write_text(MERGED)
    build(tmp_path, "-o", "merged", "merged.c")
    assert readelf("-n", tmp_path / "merged").count("Name: merged") == 2
    one = Probed(tmp_path / "merged")
    traced = trace(*way, one.path, "probed:*", "--json")
    slow = tool("slow", *way, "-x", one.path, "--start", "probed:merged", "--done", "probed:round", "-m", "0", "--json")
    lines = one() + one()
    one.close()
    traced.ended()
    assert slow.stop() == 0
    # Of three starts before an end, two have none.
    assert (len(slow.statements), slow.summary["lost"]["start_without_end"]) == (2, 4), slow.said()
    assert collections.Counter(hit["probe"] for hit in traced.hits) == {"merged": lines.count("merged"), "round": 2}, traced.said()


def test_text_form(trace, probed):
    traced = trace(probed.path, "probed:widths")
    probed()
    traced.ended()
    assert traced.stdout.splitlines()[0].split() == ["TIME(s)", "PID", "TID", "COMM", "FUNC", "-"]
    row = traced.rows()[0]
    assert re.match(rf"\d+\.\d{{6}} +{probed.pid} +{probed.pid} +probed +widths +arg1=-8 arg2=200 ", row), row
    assert row.endswith(" arg7=-6400000000 arg8=0xab54a98ceb1f0ad2"), row


def test_semaphore_and_nothing_left(trace, probed):
    assert not said(probed(), "guarded")
    memory = Memory(probed.pid, probed.path)
    traced = trace("-p", probed.pid, "probed:guarded", "--json")
    assert memory.semaphores() == {"guarded": 1}
    lines = probed()
    traced.ended()
    assert [str(one["args"][0]) for one in traced.hits] == said(lines, "guarded") == ["2"]
    assert not said(probed(), "guarded") and not memory.semaphores() and not memory.breakpoints()


@pytest.mark.parametrize("probe, words", [("probed:guarded", r"probed:guarded: cannot be traced \(WHY\); "),
                                          ("probed:*", "probed:guarded: WHY; skipped\n")], ids=["name", "glob"])
def test_semaphore_that_is_not_counted(probed, probe, words):
    """Where the kernel does not count semaphores, such a probe is refused by name: nothing is written."""
    done = run("trace", "-d", "0.1", *force("semaphore"), "-p", probed.pid, probe)
    words = words.replace("WHY", "the kernel does not count its semaphore, as Linux 4.20 does")
    assert done.returncode == 1 and not done.stdout and re.search(words, done.stderr), done
    memory = Memory(probed.pid, probed.path)
    assert not memory.semaphores() and not memory.breakpoints() and not said(probed(), "guarded")


def test_globs(trace, probed):
    traced = trace(probed.path, "*:*te*", "prob*:gu?rded", "--json")
    probed()
    traced.ended()
    assert collections.Counter(one["probe"] for one in traced.hits) == {"sites": 4, "text": 10, "guarded": 1}


# --- strings

def as_terminal(raw):
    """Return the fixture's texts as escape_terminal() prints them."""
    text = re.sub(rb"[\t\n\r]+", b" ", raw)
    out = ""
    while text:
        for n in range(1, 5):
            try:
                out += (lambda c: c if c >= " " and c != "\x7f" else f"\\x{ord(c):02x}")(text[:n].decode())
                text = text[n:]
                break
            except UnicodeDecodeError:
                pass
        else:
            out += f"\\x{text[0]:02x}"
            text = text[1:]
    return out


def test_strings(trace, probed):
    form = trace(probed.path, 'probed:text (arg1 < 98) "<%s>", arg2')
    named = trace(probed.path, "probed:text (arg1 < 98) arg2:s", "--json")
    raws = [bytes.fromhex(value) for value in said(probed(), "text")]
    form.ended(), named.ended()
    assert form.messages() == [f"<{as_terminal(raw)}>" for raw in raws], form.said()
    assert [one["args"] for one in named.hits] == [[raw.decode(errors="replace")] for raw in raws], named.said()
    assert not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", b"".join(form.out.lines))


def test_strings_that_cannot_be_read(trace, probed):
    traced = trace(probed.path, 'probed:text (arg1 >= 98) "%d %s", arg1, arg2')
    probed()
    assert traced.stop() == 0
    assert traced.messages() == ["98 (null)", "99 [unreadable]"], traced.said()
    assert "lost: 1 unreadable texts" in traced.stderr, traced.said()


def test_long_strings_are_cut(trace, probed):
    traced = trace("--text", "16", "--strict", probed.path, "probed:text (arg1 == 7) arg2:s")
    json = trace("--text", "16", probed.path, "probed:text (arg1 == 7) arg2:s", "--json")
    probed()
    assert traced.stop() == json.stop() == 0
    assert traced.messages() == ['arg2="0123456789012345..."'], traced.said()
    assert "1 truncated texts" in traced.stderr
    assert json.hits[0]["args"] == ["0123456789012345"] and json.hits[0]["truncated"] is True


# --- strings with a length

@pytest.fixture(scope="module")
def names_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("names")
    build(folder, "-o", "names", os.path.join(FIXTURES, "names.c"))
    return str(folder / "names")


@pytest.mark.parametrize("way", [[], force("prealloc", "perfbuf", "probe-read"), OLD], ids=" ".join)
def test_strings_without_nul(trace, names_file, way):
    process = Probed(names_file)
    form = trace(*way, names_file, 'entry "%.*s.%.*s %.4s %.1s%5.*s|", arg3, arg2, arg5, arg4, arg2, arg4, -1 * -2, arg4', "--json")
    named = trace(*way, names_file, "entry (arg1 < 3) arg3, arg2:.*s, arg4:.3s, 0, arg4:.*s")
    whole = trace(*way, names_file, "entry arg2:s, 0 - 1, arg4:.*s", "--text", "16")
    count = trace(*way, "--count", names_file, "entry arg3, arg2:.*s, arg5, arg4:.*s", "--json")
    lines = [text.split() for text in said(process() + process(), "entry")]
    form.ended(), named.ended(), count.ended()
    assert whole.stop() == 0
    process.close()
    assert [one["text"] for one in form.hits] == [
        f"{name}.{method} {name[:4]} {method[0]}{(method + '##')[:2]:>5}|" for name, method in lines], form.said()
    assert [one["args"][:2] for one in form.hits] == lines and not any("truncated" in one for one in form.hits)
    assert named.messages() == [f'arg2="{name}" arg4="{(method + "##")[:3]}" arg4=""' for name, method in lines[:3] * 2]
    # Without a length, memory behind the class cannot be read; and as in C, a negative length is none.
    assert all(re.fullmatch(r'arg2=("[^"]*\.\.\."|\[unreadable\]) arg4="[^"]{16}\.\.\."', one) for one in whole.messages())
    assert {tuple(one["args"]): one["count"] for one in count.objects() if one["type"] == "hit_count"} == \
        collections.Counter(map(tuple, lines)), count.said()


# --- memory that is not there

@pytest.fixture(scope="module")
def paged_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("paged")
    build(folder, "-o", "paged", os.path.join(FIXTURES, "paged.c"))
    return str(folder / "paged")


class Page:
    def __init__(self, text):
        index, number, state = text.split()
        self.index, self.number, self.present = int(index), int(number), state == "present"
        self.seen = self.number if self.present else None


def pages_of(process):
    """One round of the program; its pages, and those that its page table had, by /proc/PID/pagemap."""
    pages = [Page(text) for text in said(process(), "page")]
    assert {page.present for page in pages if not page.number} == {True, False}
    return pages


def losses(traced):
    return {name: count for name, count in traced.summary["lost"].items() if count}


@pytest.mark.parametrize("way", [[], force("perfbuf")], ids=" ".join)
def test_unreadable_arguments_are_not_0(trace, paged_file, way):
    process = Probed(paged_file)
    every = trace(*way, paged_file, "page", "--json")
    values = trace(*way, paged_file, "page arg2 + arg1, arg1, arg3:s", "--json")
    pages = pages_of(process)
    every.stop(), values.stop()
    process.close()
    absent = sum(not page.present for page in pages)
    assert [one["args"][:2] for one in every.hits] == [[page.index, page.seen] for page in pages], every.said()
    assert [one["args"][2] is not None for one in every.hits] == [page.present for page in pages]
    assert [one["args"] for one in values.hits] == [
        [page.number + page.index, page.index, "text"] if page.present else [None, page.index, None] for page in pages]
    assert losses(every) == {"value_unreadable": 2 * absent}
    assert losses(values) == {"value_unreadable": absent, "text_unreadable": absent}


@pytest.mark.parametrize("text, undecided, matches", [
    ("arg2 == 0", True, lambda page: page.number == 0), ("!arg2", True, lambda page: not page.number),
    ("arg2 != 0", True, lambda page: page.number), ('arg3 != "x"', True, lambda page: True),
    ("arg1 == 1 || arg2 == 1", True, lambda page: page.index == 1 or page.number == 1),
    ("arg1 == 2 && arg2 == 1", False, lambda page: page.index == 2)])
def test_unreadable_arguments_match_no_filter(trace, paged_file, text, undecided, matches):
    """Except where the filter is decided without them."""
    process = Probed(paged_file)
    traced = trace(paged_file, f"page ({text}) arg1", "--json")
    pages = pages_of(process)
    assert traced.stop() == 0
    process.close()
    seen = [page.index for page in pages if matches(page) and (page.present or page.index == 1 and "||" in text)]
    absent = sum(not page.present for page in pages) - (1 if "||" in text else 0)
    assert [one["args"][0] for one in traced.hits] == seen, traced.said()
    assert losses(traced) == ({"undecided": absent} if undecided else {})


def test_unreadable_arguments_as_text(trace, paged_file):
    process = Probed(paged_file)
    named, count = trace(paged_file, "page arg2, arg3:s"), trace("--count", paged_file, "page arg2", "--strict")
    hist, strict = trace("--hist", "arg2", paged_file, "page"), trace("--strict", paged_file, "page (!arg2)")
    pages = pages_of(process)
    assert named.stop() == hist.stop() == 0 and count.stop() == strict.stop() == 1
    process.close()
    absent = sum(not page.present for page in pages)
    assert named.messages() == [f'arg2={page.number} arg3="text"' if page.present else "arg2=? arg3=[unreadable]"
                                for page in pages], named.said()
    assert f"{absent:>10} {'page':16} ?" in count.stdout.splitlines(), count.said()
    assert f"lost: {absent} unreadable texts, {absent} unknown values" in named.stderr
    assert f"{len(pages)} hits, {len(pages) - absent} shown; lost: {absent} unknown values" in hist.stderr
    assert all(one.stderr.count("dbslower: ?: memory that was not present") == 1 for one in (named, count, hist))
    assert sum(map(int, re.findall(r": (\d+) ", hist.stdout))) == len(pages) - absent, hist.said()
    assert f"lost: {absent} hits (unknown values in the filter)" in strict.stderr


def test_pid_namespace_that_cannot_be_read(programs):
    """Without the PIDs of its own namespace, no hit could be told from those of others."""
    need_root()
    needs_namespaces()
    without = "setpriv --bounding-set=-sys_ptrace --inh-caps=-sys_ptrace"
    inner = f"unshare --pid --fork {without} {DBSLOWER} trace {programs}/probed number -d 0.2; exit $?"
    done = run_other(["unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", inner])
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done
    assert "/proc: cannot be read: Permission denied; mount that of dbslower's PID namespace" in done.stderr, done


# --- filters

NUMBERS = list(range(-3, 13))

FILTERS = {
    "arg1 > 10": lambda n: n > 10, "arg1 == -3": lambda n: n == -3, "arg1 != 0 && arg1 < 2": lambda n: n != 0 and n < 2,
    "arg1 <= -2 || arg1 >= 12": lambda n: n <= -2 or n >= 12, "!(arg1 & 1)": lambda n: not n & 1,
    "!arg1": lambda n: not n, "(arg1 * 2 + 1) == 0x7": lambda n: n == 3, "arg1 - 1 == 'a' - 90": lambda n: n == 8,
    "arg1 >> 1 == -2": lambda n: n >> 1 == -2, "1 << arg1 == 8": lambda n: n == 3, "~arg1 == 2": lambda n: n == -3,
    "(u8)arg1 == 255": lambda n: n == -1, "(arg1 ^ 5) == 0 || arg1 == 2 | 1": lambda n: n == 5 or (n == 2) | 1,
    "arg1 == 1 || arg1 == 2 && arg1 == 3": lambda n: n == 1, "pid == {pid} && tid == pid && arg1 == 4": lambda n: n == 4,
    "arg1 % 3 == 2": lambda n: n > 0 and n % 3 == 2, "arg1 % -4 == -3": lambda n: n == -3, "arg1 / 4 == 2": lambda n: n // 4 == 2,
    "-7 / 2 == arg1": lambda n: n == -3, "arg1 != 0 && 12 % arg1 == 0": lambda n: n and 12 % n == 0,
    'comm == "probed" && arg1 > 10': lambda n: n > 10, 'arg1 == 3 || "probe" == comm': lambda n: n == 3,
    "uid == {uid} && arg1 == 5": lambda n: n == 5, "uid != {uid}": lambda n: False,
    "arg1 == 012": lambda n: n == 10, "-arg1 > 2": lambda n: -n > 2, "10 < arg1": lambda n: n > 10, "arg1": bool,
}


@pytest.mark.parametrize("text", FILTERS)
def test_filters_of_numbers(trace, probed, text):
    traced = trace(probed.path, f"probed:number ({text.format(pid=probed.pid, uid=os.getuid())}) arg1", "--json")
    probed()
    traced.ended()
    assert [one["args"][0] for one in traced.hits] == [n for n in NUMBERS if FILTERS[text](n)], traced.said()
    assert traced.summary["hits"] == len(traced.hits), "the kernel filters"


@pytest.mark.parametrize("text, want", [
    ('arg2 == "plain"', [0]), ('STRCMP("plain", arg2)', [0]), ('"" == arg2', [1]), ('arg2 == "plai"', []),
    ('arg2 == "plain2"', []), ('arg2 != "plain" && arg1 < 3', [1, 2]), ('!(arg2 != "caf\\xc3\\xa9")', [2]),
    ('arg2 == "a \\"quoted\\" one" || arg2 == "new\\nline"', [5, 6]), ('arg1 > 97 && arg2 == ""', []),
    ('arg1 > 97 && arg2 != ""', [98, 99]),
    ('arg2 == "012345678901234567890123456789012345678901234567890123456789012"', [])])
def test_filters_of_strings(trace, probed, text, want):
    traced = trace(probed.path, f"probed:text ({text}) arg1", "--json")
    probed()
    traced.ended()
    assert [one["args"][0] for one in traced.hits] == want, traced.said()


def test_division_by_zero_is_unknown(trace, probed):
    values = trace(probed.path, 'probed:number "%4d|%-3u|%p", 12 / arg1, 12 % arg1, arg1 / 0')
    decided = trace(probed.path, "probed:number (12 / arg1 == 4) arg1", "--json")
    probed()
    assert values.stop() == decided.stop() == 0
    assert values.messages() == [f"{int(12 / n) if n else '?':>4}|{12 - int(12 / n) * n if n else '?':<3}|?" for n in NUMBERS]
    assert [one["args"] for one in decided.hits] == [[3]] and losses(decided) == {"undecided": 1}
    assert len(re.findall(r"^dbslower: \?: ", values.stderr, re.M)) == 1 and "?: " not in decided.stderr, values.stderr


# --- formats

@pytest.mark.parametrize("form, want", [
    ('"%d %u %x"', ["-8 4000000000 ea60"]), ('"%5d|%-12u|%04x"', ["   -8|4000000000  |ea60"]),
    ('"%lld %llu %lx %%"', ["-8 4000000000 ea60 %"]), ('"%u %x %d"', ["248 ee6b2800 60000"]),
    ('"%c%p %o"', ["\\xf80xee6b2800 165140"])])
def test_formats(trace, probed, form, want):
    traced = trace(probed.path, f"probed:widths {form}, arg1, arg6, arg4")
    probed()
    traced.ended()
    assert traced.messages() == want, traced.said()


def test_lwns_example(trace, programs):
    """The program and the command of an article, hyphens and all."""
    with subprocess.Popen([programs / "testapp"], stdout=subprocess.PIPE, text=True) as app:
        printed = [app.stdout.readline().strip()]	# it has mapped its program by now
        traced = trace('u:./testapp:test-probe "%u", arg1', "-T", "-p", app.pid, "-n", "3", cwd=programs)
        assert traced.wait() == 0
        rows = [row.split() for row in traced.rows()]
        while int(printed[-1]) <= int(rows[-1][5]):	# it prints after the hit
            printed.append(app.stdout.readline().strip())
        app.kill()
    assert traced.stdout.splitlines()[0].split() == ["TIME", "PID", "TID", "COMM", "FUNC", "-"]
    assert len(rows) == 3
    for row in rows:
        assert re.match(r"\d\d:\d\d:\d\d\.\d{6}$", row[0])
        assert row[1:5] == [str(app.pid), str(app.pid), "testapp", "test-probe"] and row[5] in printed, row


def test_simple_form_with_hyphens(trace, programs):
    with subprocess.Popen([programs / "testapp"], stdout=subprocess.DEVNULL) as app:
        traced = trace(programs / "testapp", "test-app:test-probe", "-n", "1", "--json")
        assert traced.wait() == 0
        app.kill()
    assert [(one["provider"], one["probe"]) for one in traced.hits] == [("test-app", "test-probe")]


# --- functions

@pytest.mark.parametrize("way", WAYS, ids=" ".join)
def test_functions_and_returns(trace, probed, way):
    traced = trace(*way, f'p:{probed.path}:probed_add "%d %d %s", arg1, arg2, arg3', f'r:{probed.path}:probed_add "%d", retval',
                   f'{probed.path}:probed_local "%ld", arg1', f"r:{probed.path}:probed_local")
    lines = probed() + probed()
    traced.ended()
    assert traced.messages() == ["1 -5 five", "-4", "1", "retval=2", "2 -5 five", "-3", "2", "retval=4"], traced.said()
    assert said(lines, "add") == ["-4", "-3"] and said(lines, "local") == ["2", "4"]


@pytest.mark.parametrize("name", ["with blanks", "with:colons: (and) \"brackets\"", "u:x"])
def test_paths_with_blanks_and_colons(trace, programs, tmp_path, name):
    """A file that exists, with all that may stand in front of it and behind."""
    os.mkdir(tmp_path / name)
    shutil.copy(programs / "probed", tmp_path / name / "probed")
    one = Probed(tmp_path / name / "probed")
    words = [f'u:{one.path}:probed:text (arg1 == 7) "%d:%d", arg1, pid', f"{one.path}:probed:text (arg1 == 7) arg1",
             f'p:{one.path}:probed_add "%d", arg1', f'{one.path}:probed_local "%ld", arg1', f"r:{one.path}:probed_local"]
    traced, path = trace(*words), trace(one.path, "probed_add arg1")
    lines = one()
    assert traced.stop() == path.stop() == 0
    one.close()
    local = said(lines, "local")[0]
    assert sorted(traced.messages()) == sorted([f"7:{one.pid}", "arg1=7", "1", "1", f"retval={local}"]), traced.said()
    assert path.messages() == ["arg1=1"], path.said()


def test_path_is_not_lengthened(trace, programs, tmp_path, monkeypatch):
    """By files that another user creates beside it, or in the working directory."""
    shutil.copy(programs / "probed", tmp_path / "probed")
    for other in (f"{tmp_path}/probed:probed", f"{tmp_path}/u:{tmp_path}/probed"):
        os.makedirs(os.path.dirname(other), exist_ok=True)
        shutil.copy("/bin/true", other)
    monkeypatch.chdir(tmp_path)
    one = Probed(tmp_path / "probed")
    traced = trace(f"u:{one.path}:probed:text (arg1 == 7) arg1", f"{one.path}:probed:text (arg1 == 7) arg1")
    one()
    assert traced.stop() == 0
    one.close()
    assert traced.messages() == ["arg1=7", "arg1=7"], traced.said()


@pytest.mark.parametrize("way", [["--json"], [], ["--count"], ["--count", "--json"]], ids=" ".join)
def test_file_of_a_name_in_two(trace, programs, tmp_path, way):
    shutil.copy(programs / "probed", tmp_path / "second")
    both = Probed(programs / "probed"), Probed(tmp_path / "second")
    traced = trace(*way, "-p", ",".join(str(one.pid) for one in both), "probed_add arg1", "probed:text (arg1 == 7) arg1")
    for one in both:
        one()
    assert traced.stop() == 0, traced.said()
    for one in both:
        one.close()
    if "--json" in way:
        found = [one for one in traced.objects() if one["type"] in ("hit", "hit_count")]
        assert sorted((one["file"], one.get("function") or one["probe"]) for one in found) == sorted(
            (one.path, name) for one in both for name in ("probed_add", "text")), traced.said()
    else:
        for name in ("probed:probed_add", "probed:text", "second:probed_add", "second:text"):
            assert len(re.findall(rf" {name} ", traced.stdout)) == 1, traced.said()


def test_ret(trace, probed):
    traced = trace("--ret", probed.path, 'probed_name "%s", retval', "probed_add ((int)retval < 0) (int)retval", "--json")
    lines = probed()
    traced.ended()
    names = [one["text"] for one in traced.hits if one["function"] == "probed_name"]
    assert names == said(lines, "name") == ["(null)", "odd", "even"], traced.said()
    assert [one["args"] for one in traced.hits if one["function"] == "probed_add"] == [[-4]], traced.said()
    assert all(one["return"] is True for one in traced.hits)


def test_arguments_of_functions(trace, probed):
    bare = trace(probed.path, "probed_add")
    two = trace("--args", "2", probed.path, "probed_l*")
    probed()
    bare.ended(), two.ended()
    assert bare.messages() == [""] and two.messages()[0].startswith("arg1=1 arg2="), two.said()


# --- separate debug files

OTHER_USER = 65533


def build_stripped(folder, *flags):
    """A stripped program and its debug file, as distributions make them."""
    app, debug = folder / "stripped", folder / "stripped.debug"
    build(folder, "-o", app, os.path.join(FIXTURES, "probed.c"), "-Wl,--build-id", *flags)
    subprocess.run(["objcopy", "--only-keep-debug", app, debug], check=True)
    subprocess.run(["strip", app], check=True)
    subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", app], check=True)
    return app, debug


def build_id(path):
    return re.search(r"Build ID: (\w+)", readelf("-n", path))[1]


@contextlib.contextmanager
def moved(debug, place):
    """The debug file is at that place meanwhile."""
    made = [folder for folder in (place.parent, *place.parent.parents) if not folder.exists()]
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(debug, place)
    yield
    shutil.move(place, debug)
    for folder in made:
        folder.rmdir()


@pytest.mark.parametrize("where", ["beside", ".debug", "path", "build-id"])
def test_debug_file(trace, tmp_path, where):
    """Local functions, and variables that only the debug file names: the fourth of the sites."""
    need_root()
    app, debug = build_stripped(tmp_path)
    known = build_id(app)
    place = {"beside": debug, ".debug": tmp_path / ".debug" / debug.name,
             "path": Path(f"/usr/lib/debug{tmp_path}/{debug.name}"),
             "build-id": Path(f"/usr/lib/debug/.build-id/{known[:2]}/{known[2:]}.debug")}[where]
    process = Probed(app)
    with moved(debug, place):
        traced = [trace(app, one, "--json") for one in ("probed_local arg1", "probed:sites arg1")]
    lines = process()
    local, sites = [one.ended().hits for one in traced]
    process.close()
    assert [2 * one["args"][0] for one in local] == [int(value) for value in said(lines, "local")] and local
    assert [str(one["args"][0]) for one in sites] == said(lines, "sites")


def test_debug_file_that_does_not_count(tmp_path):
    """Of another build, of another user, writable by others, a link, no file, no ELF file, cut."""
    need_root()
    app, debug = build_stripped(tmp_path)
    (tmp_path / "other").mkdir()
    _, other = build_stripped(tmp_path / "other", "-DOTHER", "-O1")
    good = debug.read_bytes()

    def found():
        done = run("trace", app, "probed_local", "-d", "0.1")
        assert done.returncode == 0 or "no USDT probe or function probed_local" in done.stderr, done
        return done.returncode == 0

    assert found()
    debug.write_bytes(other.read_bytes())
    assert not found()
    for bad in (b"", b"text", good[:70], good[:len(good) // 2]):
        debug.write_bytes(bad)
        assert not found(), len(bad)
    debug.write_bytes(good)
    os.chown(debug, OTHER_USER, OTHER_USER)
    assert not found()
    os.chown(app, OTHER_USER, OTHER_USER)
    assert found(), "of the program's own user"
    debug.chmod(0o666)
    assert not found()
    debug.chmod(0o644)
    shutil.move(debug, tmp_path / "elsewhere")
    debug.symlink_to(tmp_path / "elsewhere")
    assert not found()
    debug.unlink()
    os.mkfifo(debug)
    assert not found()


def test_debug_file_in_a_mount_namespace(trace, tmp_path):
    """Of the process, where that of the host is another file."""
    need_root()
    needs_namespaces()
    app, debug = build_stripped(tmp_path)
    inside = tmp_path / "inside"
    inside.mkdir()
    start = f"mount -t tmpfs tmpfs {inside} && cp {app} {debug} {inside} && exec {inside}/{app.name}"
    process = Probed("unshare", args=("--mount", "--propagation", "private", "sh", "-c", start))
    traced = trace("-p", process.pid, "probed_local arg1", "--json")
    lines = process()
    hits = traced.ended().hits
    process.close()
    assert [2 * one["args"][0] for one in hits] == [int(value) for value in said(lines, "local")] and hits


# --- processes and libraries

def test_only_these_processes(trace, programs):
    first, second = Probed(programs / "probed"), Probed(programs / "probed")
    both = trace(programs / "probed", "probed:guarded", "--json")
    one = trace("-p", second.pid, "probed:guarded", "--json")
    first(), second()
    both.ended(), one.ended()
    first.close(), second.close()
    assert [hit["pid"] for hit in both.hits] == [first.pid, second.pid]
    assert [hit["pid"] for hit in one.hits] == [second.pid], one.said()


def test_library_of_a_process(trace, programs):
    loads = Probed(programs / "loads")
    ways = [trace("-p", loads.pid, *args, "--json") for args in (
        ["-l", "probed", "probed:number"], ["probed:number"], [programs / "libprobed.so", "number"],
        ["u:probed:number"], ["-l", "probed", "probed_add"])]
    loads()
    counts = [len(one.ended().hits) for one in ways]
    loads.close()
    assert counts == [16, 16, 16, 16, 1], [one.said() for one in ways]


def test_library_by_its_short_name(trace):
    traced = trace("c:getenv arg1:s", "--json")

    def named():
        """A name that no one has read yet is not in memory: it is null."""
        subprocess.run(["bash", "-c", "true"], env={"HOME": "/"})
        return [one for one in traced.hits if one["args"][0]]
    seen = wait_for(named, what="a name that could be read")
    traced.stop()
    assert seen[0]["function"] == "getenv" and re.match(r"\w+$", seen[0]["args"][0]), traced.said()


def test_bash_readline(trace, tmp_path):
    """bashreadline is one line."""
    if not re.search(r"FUNC +GLOBAL +DEFAULT +\d+ readline$", readelf("--dyn-syms", "/bin/bash"), re.M):
        pytest.skip("this bash does not export readline")
    traced = trace("--ret", "/bin/bash", 'readline "%s", retval', "--json")
    pid, master = pty.fork()
    if not pid:
        os.execve("/bin/bash", ["bash", "--norc", "--noprofile", "-i"], {"TERM": "dumb", "HOME": str(tmp_path)})
    for line in ("echo one", "echo 'two words'", "exit"):
        os.write(master, line.encode() + b"\n")
        traced.wait_for(lambda tool: any(hit["text"] == line and hit["pid"] == pid for hit in tool.hits), what=line)
    while select.select([master], [], [], 10)[0]:
        try:
            if not os.read(master, 4096):
                break
        except OSError:
            break
    os.waitpid(pid, 0)
    os.close(master)
    traced.ended()
    assert [hit["text"] for hit in traced.hits if hit["pid"] == pid] == ["echo one", "echo 'two words'", "exit"]


def test_postgres(trace, postgres):
    traced = trace(postgres.postgres, 'query__start (arg1 != "select 2 -- traced") "%s", arg1', "--json")
    postgres.psql("select 1 -- traced", "select 2 -- traced", "select 'three' -- traced")
    traced.ended()
    texts = [hit["text"] for hit in traced.hits if "traced" in hit["text"]]
    assert texts == ["select 1 -- traced", "select 'three' -- traced"], traced.said()


# --- counting

def test_count(trace, probed):
    plain = trace("--count", probed.path, "probed:*", "--json")
    by = trace("--count", probed.path, "probed:sites arg1", "--json")
    text = trace("--count", probed.path, "probed:text (arg1 < 98) arg2:s", "--json")
    lines = probed() + probed()
    for one in (plain, by, text):
        one.ended()
    counts = [one for one in plain.objects() if one["type"] == "hit_count"]
    assert {one["probe"]: one["count"] for one in counts} == {
        "widths": 2, "sites": 8, "text": 20, "guarded": 2, "number": 32}, plain.said()
    assert [one["count"] for one in counts] == sorted([one["count"] for one in counts], reverse=True)
    assert {str(one["args"][0]): one["count"] for one in by.objects() if one["type"] == "hit_count"} == \
        collections.Counter(said(lines, "sites")), by.said()
    assert {one["args"][0] for one in text.objects() if one["type"] == "hit_count"} == {
        bytes.fromhex(value).decode(errors="replace")[:63] for value in said(lines, "text")}, text.said()


def test_count_as_text(trace, probed):
    traced = trace("--count", probed.path, "probed:number ((arg1 & 3) == 0) (arg1 > 4)")
    probed()
    traced.ended()
    assert traced.stdout.splitlines() == [
        f"{'COUNT':>10} {'FUNC':16} -", f"{2:>10} {'number':16} 0", f"{2:>10} {'number':16} 1"], traced.said()


def test_count_of_strings_that_are_none(trace, probed):
    text = trace("--count", probed.path, "probed:text (arg1 == 1 || arg1 > 97) arg2:s")
    json = trace("--count", probed.path, "probed:text (arg1 == 1 || arg1 > 97) arg2:s", "--json")
    probed()
    assert text.stop() == json.stop() == 0
    assert "lost: 1 unreadable texts" in text.stderr and losses(json) == {"text_unreadable": 1}, text.said()
    assert sorted(line.split(maxsplit=2)[2] for line in text.stdout.splitlines()[1:]) == ['""', "(null)", "[unreadable]"]
    assert [one["args"][0] for one in json.objects() if one["type"] == "hit_count"].count(None) == 2


def test_count_by_several_values(trace, probed):
    count = trace("--count", probed.path, "probed:text arg1 / 3, comm, arg2:.3s, uid", "--json")
    text = trace("--count", probed.path, "probed:number arg1 % 2, pid")
    form = trace("--count", probed.path, 'probed:number "%+d of %s", arg1 % 2, comm')
    hist = trace("--hist", "arg1", probed.path, "probed:number (arg1 >= 0) arg1 % 2, comm:s", "--json")
    bars = trace("--hist", "arg1", probed.path, 'probed:number (arg1 == 7) "of %s", comm')
    lines = probed()
    assert count.stop() == 0
    text.ended(), form.ended(), hist.ended(), bars.ended()
    texts = [bytes.fromhex(value)[:3].decode(errors="replace") for value in said(lines, "text")]
    assert {tuple(one["args"]): one["count"] for one in count.objects() if one["type"] == "hit_count"} == collections.Counter(
        [(i // 3, "probed", value, os.getuid()) for i, value in enumerate(texts)] + [(n // 3, "probed", None, os.getuid()) for n in (98, 99)])
    rows = {f"arg1 % 2={n} pid={probed.pid}": count for n, count in {0: 8, 1: 6, -1: 2}.items()}
    assert dict((row[28:], int(row[:10])) for row in text.stdout.splitlines()[1:]) == rows, text.said()
    assert [row[28:] for row in form.stdout.splitlines()[1:]] == ["+0 of probed", "+1 of probed", "-1 of probed"]
    assert [(one["args"], one["count"], one["expression"]) for one in hist.objects() if one["type"] == "hit_histogram"] == [
        ([0, "probed"], 7, "arg1"), ([1, "probed"], 6, "arg1")], hist.said()
    assert bars.stdout.splitlines()[1] == "number of probed:", bars.said()


@pytest.mark.parametrize("word, want", [
    ("probed:number (int)arg1", NUMBERS), ("probed:number (arg1+1)*2", [(n + 1) * 2 for n in NUMBERS]),
    ("probed:number (arg1 > 10) (arg1 + 1)", [12, 13]), ("probed:number (arg1 > 10) (int)arg1", [11, 12])])
def test_values_in_brackets(trace, probed, word, want):
    traced = trace(probed.path, word, "--json")
    probed()
    traced.ended()
    assert [one["args"][0] - 2 ** 64 * (one["args"][0] >= 2 ** 63) for one in traced.hits] == want, traced.said()


def test_pattern_goes_without_what_cannot_be(trace, probed):
    traced = trace(probed.path, "probed:* (arg2 != 0) arg1", "--json")
    probed()
    traced.ended()
    assert {one["probe"] for one in traced.hits} == {"widths", "text"}, traced.said()
    for name in ("sites", "number", "guarded"):
        assert f"dbslower: probed:{name}: arg2: it has 1 argument; skipped" in traced.stderr, traced.stderr


def test_histogram(trace, probed):
    json = trace("--hist", "arg1", probed.path, "probed:number", "--json")
    text = trace("--hist", "arg1", probed.path, "probed:number (arg1 < 4)")
    probed()
    json.ended(), text.ended()
    (seen,) = [one for one in json.objects() if one["type"] == "hit_histogram"]
    assert seen["count"] == 16 and seen["expression"] == "arg1" and seen["buckets"] == [
        {"lt": 0, "count": 3}, {"lt": 2, "count": 5}, {"lt": 4, "count": 7}, {"lt": 8, "count": 11}, {"lt": 16, "count": 16}]
    assert text.stdout.splitlines() == [
        "", "number:", "     arg1                : count     distribution",
        "                 below 0 : 3        |****************************************|",
        "         0 -> 1          : 2        |**************************              |",
        "         2 -> 3          : 2        |**************************              |"], text.said()


def test_intervals(trace, probed):
    """Each has a time and the counts since the one before, and they add up."""
    json = trace("--count", "-i", "0.2", probed.path, "probed:sites arg1", "probed:guarded", "--json")
    hist = trace("--hist", "arg1", "-i", "0.2", "-n", "3", probed.path, "probed:number")
    lines = probed()
    json.wait_for(lambda tool: any("guarded" in line for line in tool.stdout.splitlines()), what="the first interval")
    lines += probed()
    json.ended()
    assert hist.wait() == 0, hist.said()
    counts = [one for one in json.objects() if one["type"] == "hit_count"]
    times = {one["time"] for one in counts if one["probe"] == "guarded"}
    assert len(times) == 2 and all(re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", time) for time in times), json.said()
    total = collections.Counter()
    for one in counts:
        total[str([*one["args"], "guarded"][0])] += one["count"]
    assert total == collections.Counter([*said(lines, "sites"), *["guarded"] * 2]), json.said()
    assert len(re.findall(r"^\d\d:\d\d:\d\d\.\d{3}$", hist.stdout, re.M)) == 3, hist.said()


# --- ends

def test_duration(trace, probed):
    began = time.monotonic()
    traced = trace("-d", "0.7", probed.path, "probed:number")
    assert traced.wait() == 0 and 0.6 < time.monotonic() - began < 60
    assert "0 hits, 0 shown, nothing lost" in traced.stderr


def test_number_of_hits(trace, probed):
    traced = trace("-n", "5", probed.path, "probed:number")
    probed()
    assert traced.wait() == 0
    assert traced.messages() == [f"arg1={n}" for n in range(-3, 2)]


def test_loss_is_counted(trace, probed):
    """A reader that does not read: the buffer fills, and what did not fit is said."""
    read, write = os.pipe()
    traced = subprocess.Popen([DBSLOWER, "trace", "--text", "64k", "--strict", probed.path, "probed:text arg2:s"],
                              stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert "tracing" in traced.stderr.readline()
    for _ in range(60):
        probed()
    traced.send_signal(2)
    said_ = traced.communicate(timeout=60)[1]
    os.close(read)
    found = re.search(r"(\d+) hits, (\d+) shown; lost: .*?(\d+) events \(buffer full\)", said_)
    assert traced.returncode == 1 and (not found or int(found[1]) == 600), said_


# --- what goes wrong

@pytest.mark.parametrize("args, status, words", [
    ([], 2, "PROBE: missing"), (["PROBED"], 2, "PROBE: missing"), (["x"], 2, "no file specified"),
    (["PROBED", "probed:nothing"], 1, "no USDT probe probed:nothing"),
    (["PROBED", "nothing"], 1, "no USDT probe or function nothing"), (["nothing:x"], 1, "program or library not found"),
    (["/nonexistent/file", "x"], 1, "No such file"), (["SOURCE", "x"], 1, "not an ELF file"),
    (["-p", "4194303", "x"], 1, "No such process"), (["PROBED", "sites arg2"], 1, "arg2: it has 1 argument"),
    (["PROBED", "sites (arg2)"], 1, "arg2: it has 1 argument"), (["PROBED", "sites retval"], 1, "retval: it is known when"),
    (["PROBED", "probed_add arg7"], 1, "only the first 6"), (["PROBED", "r:probed_add arg1"], 1, "arguments are gone"),
    (["PROBED", "--ret", "probed:sites"], 2, "does not return"), (["-l", "c", "memcpy"], 1, "IFUNC"),
    (["-l", "c", "*"], 1, "too many probe sites (maximum {SITES} in a file, "), (["PROBED", "--count", "-n", "1", "x"], 2, "-n: counts intervals"),
    (["PROBED", "-i", "1", "x"], 2, "-i: requires --count or --hist"),
    (["PROBED", "--count", "sites 1, 2, 3, 4, 5, comm, 6"], 2, "too many values to count by (maximum 6"),
    (["PROBED", "--hist", "arg1", "sites 1, 2, 3, 4, 5, comm, 6"], 2, "too many values to count by (maximum 6"),
    (["PROBED", "--count", "sites arg1:s, 2, arg1:s, arg1:s"], 2, "too many strings to count by (maximum 2)"),
    (["PROBED", "--hist", "comm", "sites"], 2, "requires a number"),
    (["PROBED:text"], 1, "no function text; u:{PROBED}:text is a USDT probe"), (["PROBED", "p:text"], 1, "; u:text is a USDT probe"),
    (["u:PROBED:probed_add"], 1, "no USDT probe probed_add; p:{PROBED}:probed_add is a function"),
    (["-p", "SELF", "c:recv"], 1, "no file contains USDT probe c:recv; p:c:recv is a function"),
    (["-p", "SELF", "c:no_such"], 1, "USDT probe c:no_such; dbslower list -p PID"), (["PROBED", "r:text"], 1, "no function text; dbslower list"),
    (["kprobe:do_nanosleep"], 2, "kernel functions are not supported"), (["PROBED", "kretprobe:x"], 2, "kernel functions are not supported"),
    (["t:sched:sched_switch"], 2, "kernel tracepoints are not supported"), (["profile:hz:99"], 2, "timers are not supported"),
    (["PROBED", "profile:start"], 1, "no USDT probe profile:start"), (["PROBED", "usdt:start"], 1, "no USDT probe usdt:start"),
    (["PROBED", "--hist", "arg1:s", "sites"], 2, "requires a number"),
    (["PROBED", "--hist", "arg1 +", "sites"], 2, "value missing"), (["PROBED", "--args", "7", "x"], 2, "from 1 to 6"),
    (["PROBED", "-n", "0", "x"], 2, "must be at least 1"), (["PROBED", "--text", "1", "x"], 2, "too small"),
    (["PROBED", "--count", "--hist", "arg1", "sites"], 2, "cannot be combined with --hist"),
    (["u:a:b:c:d"], 2, "too many colons"), (["PROBED", "probed:"], 2, "name of a probe"),
])
def test_refused(programs, args, status, words):
    need_root()
    probed = str(programs / "probed")
    names = {"SELF": os.getpid(), "SOURCE": os.path.join(FIXTURES, "probed.c")}
    words = words.replace("{PROBED}", probed).replace("{SITES}", "512" if lacks([], (6, 6)) else "2048")
    done = run("trace", *[names.get(arg, arg.replace("PROBED", probed)) for arg in args], "-d", "0.2")
    assert done.returncode == status and words in done.stderr and not done.stdout, done
    assert len([line for line in done.stderr.splitlines() if "dbslower: " in line and not line.endswith("; skipped")]) == 1, done.stderr


@pytest.mark.parametrize("word, mark, words", [
    ("a:b (arg1 >> )", 13, "value missing"), ('a:b (arg1 == "x)', 13, "without an end"), ("a:b (foo)", 5, "unknown value"),
    ("a:b arg13", 4, "unknown value"), ("a:b (arg1", 9, "bracket missing"), ("a:b arg1 arg2", 9, "comma missing"),
    ('a:b ("x" < arg1)', 9, "by == or !="), ('a:b ("x" == "y")', 9, "by == or !="), ('a:b "x" (', 8, "comma missing"),
    ('a:b "%d"', 8, "more conversions than values"), ('a:b "%d", arg1, arg2', 8, "fewer conversions than values"),
    ('a:b "%k", arg1', 6, "unknown conversion"), ('a:b "%d, arg1', 4, "format without an end"), 
    ("a:b (0x)", 5, "not a 64-bit number"),
    ("a:b (99999999999999999999)", 5, "not a 64-bit number"), ("a:b arg1:z", 9, "must be followed by"),
    ("a:b (arg1 $ 2)", 10, "not an operator"), ("a:b (comm)", 9, 'comm is a string: == or != "text" missing'),
    ("a:b (comm == arg1)", 10, "by == or !="), ('a:b (comm == "0123456789abcdef")', 10, "comm has at most 15 bytes"),
    ("a:b comm:x", 4, "comm is a string"), ('a:b "%d", comm', 10, "comm is a string"), ('a:b "%.*s", arg1', 10, "more conversions"),
    ('a:b "%.3d", arg1', 6, "a precision requires a string"), ("a:b arg1:.*s", 4, "is the value before it"),
    ("a:b arg1:s, arg2:.*s", 12, "is the value before it"), ("a:b comm, arg2:.*s", 10, "is the value before it"),
    ("a:b arg1:.99999999s", 9, "precision too large"), ("a:b arg1:.3x", 9, "a precision requires a string"),
    (f'a:b (arg1 == "{"x" * 64}")', 13, "too long"), (f"a:b ({'(' * 40}arg1", None, "too long"), ("a:b (')", 5, "without an end"),
    ("a:b " + "arg1," * 12 + "arg1", None, "too many"), ("a:b (" + "arg1+" * 70 + "1)", None, "too long"),
    ('a:b (STRCMP(arg1, "x"))', 12, "without an end"), ('a:b (-"x")', 5, "by == or !="),
])
def test_refused_words(programs, word, mark, words):
    done = run("trace", programs / "probed", word)
    assert done.returncode == 2 and not done.stdout, done
    why, shown, caret = done.stderr.splitlines()
    assert words in why or words == "too many" and "too many" in why, done.stderr
    assert re.fullmatch(r"dbslower: PROBE: .+; .+", why), why
    assert shown == f"  {word}" and (mark is None or caret == " " * (mark + 2) + "^"), done.stderr


def test_foreign_words_are_escaped(programs):
    done = run("trace", programs / "probed", "a:b (\x1b[31m)")
    assert done.returncode == 2 and "\x1b" not in done.stderr, repr(done.stderr)


def test_other_architecture(programs, tmp_path):
    need_root()
    other = tmp_path / "other"
    data = bytearray((programs / "probed").read_bytes())
    data[18:20] = (8).to_bytes(2, "little")		# e_machine: MIPS
    other.write_bytes(data)
    done = run("trace", other, "probed:sites")
    assert done.returncode == 1 and "another architecture" in done.stderr, done


@pytest.mark.parametrize("word, kind", [("usdt:PROBED:probed:sites", "probe"), ("usdt:PROBED:sites", "probe"),
                                        ("uprobe:PROBED:probed_add", "function"), ("uretprobe:PROBED:probed_add", "return")])
def test_words_of_bpftrace(trace, probed, word, kind):
    traced = trace(word.replace("PROBED", probed.path), "--json")
    probed()
    traced.ended()
    assert traced.hits and all(kind in one for one in traced.hits), traced.said()


# --- another tracer

def test_as_bpftrace_sees_it(trace, probed):
    script = f'usdt:{probed.path}:probed:sites {{ printf("hit %d %d %d %s %d %d\\n", arg0, tid, uid, comm, arg0 % 3, arg0 / 2); }}'
    # It reads the buffers of all CPUs in any order. A breakpoint is there before its program is.
    os.sched_setaffinity(probed.pid, {min(os.sched_getaffinity(probed.pid))})
    with Bpftrace("-p", str(probed.pid), "-e", script) as other:
        wait_for(lambda: len(Memory(probed.pid, probed.path).breakpoints()) >= 4, what="bpftrace at the four sites")
        traced = trace("-p", probed.pid, 'probed:sites "%d %d %d %s %d %d", arg1, tid, uid, comm, arg1 % 3, arg1 / 2')
        lines = probed() + probed()
        traced.ended()
        theirs = re.findall(r"^hit (.*)", other.stop(), re.M)
    ours = traced.messages()
    assert [one.split()[0] for one in ours] == said(lines, "sites")
    # What is in a variable of the program, the fourth site, it cannot read; it divides without signs.
    assert len(theirs) == len(ours) == 8 and all(theirs[i] == ours[i] for i in (0, 1, 4, 5)), (ours, theirs)
    assert theirs[6].split()[0] == ours[6].split()[0] == "-2"


# --- names that are not found

def mangled_functions(path):
    """{name without arguments: mangled names at different addresses} of the exported functions, as nm and c++filt have them."""
    rows = [line.split() for line in subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True).stdout.splitlines()]
    rows = [(row[2], row[0]) for row in rows if len(row) == 3 and row[1] in "TW" and row[2].startswith("_Z") and "." not in row[2]]
    names = subprocess.run(["c++filt", "-p"], input="\n".join(name for name, _ in rows), capture_output=True, text=True, check=True).stdout.splitlines()
    found = {}
    for name, (mangled, address) in zip(names, rows):
        found.setdefault(name, {})[address] = mangled
    return {name: list(by.values()) for name, by in found.items() if re.fullmatch(r"[A-Za-z_]\w*(::[a-z_]\w*)?", name)}


def test_functions_of_cpp(tool):
    """Their names without arguments, where one function has it; else the message has the name of one."""
    need_maria()
    functions = mangled_functions(SERVER)
    one, several = ({name: names for name, names in functions.items() if (len(names) > 1) == many} for many in (False, True))
    assert len(one) > 500 and len(several) > 50
    chosen = random.Random(1).sample(sorted(one), 10) + ["dispatch_command", "THD::raise_condition"]
    for name in chosen:
        traced = tool("trace", f"p:{SERVER}:{name}", "--json", kind=Announced)
        traced.stop()
        assert "tracing 1 probe at 1 site" in traced.stderr, traced.said()
    for name in random.Random(1).sample(sorted(several), 10):
        done = run("trace", f"p:{SERVER}:{name}")
        shown = re.search(r"cannot be traced \(several functions of C\+\+; specify one, such as (\w+)\)", done.stderr)
        assert done.returncode == 1 and shown and shown[1] in several[name], done.stderr
    refused(run("trace", f"p:{SERVER}:THD::no_such"), "no function THD::no_such")


def test_functions_of_a_library():
    """A program that only calls them, and a stub: the message has the library that ldd and nm have it from."""
    bash = shutil.which("bash")
    libraries = re.findall(r"=> (\S+)", subprocess.run(["ldd", bash], capture_output=True, text=True, check=True).stdout)
    for name in "malloc", "tgetent":
        (path,) = (path for path in libraries if re.search(rf" [TiW] {name}(@|$)", subprocess.run(
            ["nm", "-D", path], capture_output=True, text=True, check=True).stdout, re.M))
        for kind in "pr":
            refused(run("trace", f"{kind}:{bash}:{name}"), f"no function {name}; it is in a library: {kind}:{os.path.basename(path)}:{name}\n")
    refused(run("trace", "p:pthread:pthread_create"), "no function pthread_create; it is in a library: p:libc.so.6:pthread_create")


def test_compressed_symbols(tmp_path):
    """.gnu_debugdata, as distributions add it."""
    program = tmp_path / "program"
    (tmp_path / "data").write_bytes(b"\xfd7zXZ")
    subprocess.run(["objcopy", "--add-section", f".gnu_debugdata={tmp_path}/data", shutil.which("true"), program], check=True)
    refused(run("trace", f"p:{program}:no_such"), re.escape("no function no_such; its other symbols are compressed (.gnu_debugdata); install its debug package\n"))


def test_labels_of_assembler_code(tmp_path):
    """A breakpoint on one without a type might be in data; with a type it is traced."""
    source, program = tmp_path / "labels.c", tmp_path / "labels"
    source.write_text(""" __asm__(".text; .globl bare, typed; bare: nop; ret; .type typed, %function; typed: nop; ret");
                          void bare(void), typed(void); int main(void) { bare(); typed(); return 0; } """)
    subprocess.run([os.environ.get("CC", "cc"), "-o", program, source], check=True)
    refused(run("trace", f"p:{program}:bare"), re.escape("bare: cannot be traced (a label without a type, as of assembler code: it may be of data)"))
    done = run("trace", f"p:{program}:typed", "-d", "0.1")
    assert done.returncode == 0 and "tracing 1 probe at 1 site" in done.stderr, done


# --- completion

def complete(*words):
    """Return bash's completions of the last word; it splits words at ':'."""
    script = f"""source {COMPLETION}; compopt() {{ :; }}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
                 _dbslower; printf '%s\\n' "${{COMPREPLY[@]}}" """
    done = subprocess.run(["bash", "-c", script, "bash", DBSLOWER, "trace", *words], capture_output=True, text=True)
    assert not done.stderr, done.stderr
    return done.stdout.split()


def test_completion_asks_the_tool(programs):
    probed = str(programs / "probed")
    all_ = ["guarded", "number", "sites", "text", "widths"]
    assert complete(probed, "prob") == [f"probed:{name}" for name in all_]
    assert complete(probed, "probed", ":") == all_
    assert complete(probed, "probed", ":", "si") == ["sites"]
    assert complete("-l", probed, "--count", "probed") == [f"probed:{name}" for name in all_]
    assert complete("-n", "2", str(programs / "testapp"), "test") == ["test-app:test-probe"]
    assert "--hist" in complete("--h") and complete(str(programs / "testap")) == [str(programs / "testapp")]
