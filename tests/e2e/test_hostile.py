# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Hostile files and processes: the tool neither changes them nor prints their bytes unescaped."""

import os
import platform
import re
import resource
import subprocess
import threading

import pytest

import elfmaker as elf
from containers import make_control_group
from elf_oracle import files_with_notes, readelf
from requirements import need_root
from statements import stopped, with_tag
from tool import DBSLOWER, FIXTURES, NOTEDUMP, memory_of, run

FIXTURE = os.path.join(FIXTURES, "hostile.c")
MEMORY_MAX = 96 << 20	# bytes of memory that it may have, beyond the files that it maps
REFUSED = {"inside": "inside an instruction", "data": "in data", "counter": "used for something else",
           "odd": "used for something else", "readonly": "used for something else", "code": "used for something else",
           "outside": "not in the file"}

x86_only = pytest.mark.skipif(platform.machine() != "x86_64", reason="the instructions are x86-64's")


def notedump(*args, text=None):
    done = subprocess.run([NOTEDUMP, *args], input=text, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done
    return done.stdout.splitlines()


# --- where instructions begin

def functions(path):
    """[(start, end)] of all functions that have unwind tables, as readelf finds them."""
    found = re.findall(r"pc=(\w+)\.\.(\w+)", readelf("--debug-dump=frames", path))
    return sorted({(int(start, 16), int(end, 16)) for start, end in found})


def disassembled(path, start, end):
    """Return the addresses of the instructions that objdump prints."""
    out = subprocess.run(["objdump", "-d", "-w", "--no-show-raw-insn", f"--start-address={start:#x}",
                          f"--stop-address={end:#x}", path], capture_output=True, text=True, timeout=60).stdout
    # What it shows as one is two: fwait, and fnstcw or another one.
    found = re.findall(r"^ *([0-9a-f]+):\t(?!f(?:stcw|stsw|clex|init|save|stenv))", out, re.M)
    return {int(at, 16) for at in found}


@x86_only
@pytest.mark.parametrize("part", ["first", "last"])
def test_lengths(part):
    """The last functions of glibc are those with vector instructions."""
    path = os.path.realpath("/lib/x86_64-linux-gnu/libc.so.6")
    if not os.path.exists(path):
        pytest.skip("no glibc of Debian's here")
    all_ = functions(path)
    some = [f for f in (all_[:500] if part == "first" else all_[-500:]) if f[1] - f[0] < 20000]
    there = disassembled(path, some[0][0], some[-1][1])
    some = [f for f in some if f[0] in there]
    assert len(some) > 300
    ours = notedump("--lengths", path, text="".join(f"{start:x}\n" for start, _ in some))
    ours = {int(line.split()[0], 16) for line in ours}
    wanted = {at for at in there if any(start <= at < end for start, end in some)}
    assert ours == wanted, f"{[hex(at) for at in sorted(ours ^ wanted)[:20]]}"


@pytest.mark.parametrize("path", files_with_notes())
def test_no_real_site_is_refused(path):
    for line in notedump("--sites", path):
        vaddr, start, refusal = line.split(" ", 2)
        assert not refusal, f"{vaddr} in the function at {start}: {refusal}"


@x86_only
def test_nops_inside_instructions(tmp_path):
    """Of bytes that look like a nop, those between instructions are one and none of the others is."""
    source = tmp_path / "nops.c"
    source.write_text("int f(int x) { __asm__ volatile(\"nop\\n mov $0x90909090, %%eax\\n nop\\n"
                      " movabs $0x9090909090909090, %%rcx\\n lea 0x90(%%rax,%%rdx,4), %%rdx\\n jmp 1f\\n"
                      " .byte 0x05, 0x05, 0x05, 0x48, 0xb8\\n1: nop\" : : : \"eax\", \"rcx\", \"rdx\"); return x; }\n")
    path = str(tmp_path / "nops.so")
    subprocess.run(["gcc", "-O1", "-shared", "-fcf-protection=none", "-o", path, source], check=True)
    start, end = next(f for f in functions(path) if f[0] == int(notedump("--symbol", "f", path)[0].split()[0], 16))
    with open(path, "rb") as f:
        code = f.read()[start:end]		# as it is linked, addresses are offsets there
    nops = [start + at for at, byte in enumerate(code) if byte == 0x90]
    first = code.index(b"\x90\xb8") + start
    last = code.index(b"\x48\xb8\x90") + 2 + start
    genuine = [first, first + 6, last]
    seen = notedump("--inside", path, text="".join(f"{at:x}\n" for at in nops))
    assert [at for at, inside in zip(nops, seen) if inside == "0"] == genuine, list(zip(map(hex, nops), seen))


# --- a program that is traced while it is hostile

class Hostile:
    """The program while it runs, in a folder whose name is hostile too."""

    def __init__(self, path):
        self.path = path
        self.process = subprocess.Popen([path, "x" * 500], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"

    @property
    def pid(self):
        return self.process.pid

    def run(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def end(self):
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    if platform.machine() != "x86_64":
        pytest.skip("the fixture is written for x86-64")
    folder = tmp_path_factory.mktemp("hostile") / "a\n\x1b[31m\u202eb"
    folder.mkdir()
    path = str(folder / "postgres")
    subprocess.run(["gcc", "-O2", "-rdynamic", "-no-pie", "-fcf-protection=none", "-Wl,-z,noseparate-code", "-o", path,
                    FIXTURE], check=True)
    one = Hostile(path)
    yield one
    one.end()


def test_the_program_works(hostile):
    assert hostile.run() == "intact"


@pytest.mark.parametrize("name", REFUSED)
def test_site_is_refused(hostile, name):
    need_root()
    done = run("trace", "-p", hostile.pid, f"hostile:{name}")
    assert done.returncode == 1 and REFUSED[name] in done.stderr, done
    done = run("-x", hostile.path, "--start", f"hostile:{name}", "--done", "hostile:good", "--text-arg", "1")
    assert done.returncode == 1 and f"{name}: its " in done.stderr and REFUSED[name] in done.stderr, done
    shown_well(done.stderr.encode())


def test_pattern_takes_the_good_one(hostile, tool):
    traced = tool("trace", "-p", hostile.pid, "hostile:*", attached=False)
    traced.wait_for(lambda traced: "dbslower: tracing 1 probe at 1 site" in traced.stderr, what="it to attach")
    assert hostile.run() == "intact"
    assert traced.stop() == 0, traced.said()
    for name in REFUSED:
        assert re.search(f"dbslower: hostile:{name}: its .*{REFUSED[name]}; skipped", traced.stderr), traced.said()
    assert "5 hits" in traced.stderr, traced.said()


def shown_well(out):
    """Check that the output has only printable lines in UTF-8."""
    text = out.decode("utf-8", errors="strict")
    raw = re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]", text)
    assert not raw, f"{raw[0]!r} in {text[max(0, raw.start() - 100):raw.end() + 100]!r}"


COLUMNS = "time,pid,tid,ms,user,db,client,rows,status,query"


@pytest.mark.parametrize("args", [
    ("postgres", "-m", "0"), ("postgres", "-m", "0", "-o", COLUMNS), ("postgres", "-m", "0", "--text", "1048576"),
    ("postgres", "-m", "0", "--json", "--text", "1048576"), ("top", "postgres"), ("stat", "postgres"),
], ids=" ".join)
def test_statements(hostile, tool, args):
    """Five texts, each a way to harm a terminal; the last has 16 MiB."""
    json = "--json" in args
    # As much as it asks for itself, with room for 1 MiB of text as it is held, copied and escaped.
    traced = tool(*args, "-p", hostile.pid, attached=False)
    traced.wait_for(lambda traced: b"racing" in b"".join(traced.out.lines + traced.err.lines), what="it to attach")
    assert hostile.run() == "intact"
    if args[0] == "postgres":
        traced.wait_for(lambda traced: b"huge" in traced.out.lines[-1] if traced.out.lines else False, what="the last one")
    assert memory_of(traced.pid) < MEMORY_MAX
    stopped(traced)
    shown_well(b"".join(traced.out.lines))
    shown_well(b"".join(traced.err.lines))
    if json:
        for tag in ("plain", "escapes", "invisible", "invalid", "huge"):
            assert len(with_tag(traced, tag)) == 1, f"{tag}: {len(traced.statements)} statements"


@pytest.fixture
def control_group(hostile):
    """The program in a control group whose name looks like a container's. The kernel takes no line ends there."""
    folder, base = make_control_group("lxc.payload.\x1b[2J\a\u202ename")

    def move(to):
        with open(os.path.join(to, "cgroup.procs"), "w") as f:
            f.write(str(hostile.pid))
    move(folder)
    yield
    move(base)
    os.rmdir(folder)


@pytest.mark.parametrize("args", [("-o", "container,query"), ("--json",)], ids=" ".join)
def test_container(hostile, tool, control_group, args):
    traced = tool("postgres", "-m", "0", "-p", hostile.pid, *args)
    assert hostile.run() == "intact"
    traced.wait_for(lambda traced: b"huge" in traced.out.lines[-1] if traced.out.lines else False, what="the last one")
    stopped(traced)
    assert "[2J" in traced.stdout and "name" in traced.stdout, traced.said()
    shown_well(b"".join(traced.out.lines))
    if "--json" in args:
        assert {one["server"]["container"] for one in traced.statements} == {"\x1b[2J\a\u202ename"}


@pytest.mark.parametrize("args", [("list", "-vv"), ("list", "--json"), ("doctor", "-v")], ids=" ".join)
def test_looked_at(hostile, args):
    done = run(*args, "-p", hostile.pid)
    shown_well(done.stdout.encode(errors="surrogateescape"))
    shown_well(done.stderr.encode(errors="surrogateescape"))
    assert hostile.run() == "intact"


def test_traced_text(hostile, tool):
    traced = tool("trace", "-p", hostile.pid, 'hostile:good "%s", arg1', attached=False)
    traced.wait_for(lambda traced: "dbslower: tracing 1 probe" in traced.stderr, what="it to attach")
    assert hostile.run() == "intact"
    traced.wait_for(lambda traced: b"huge" in b"".join(traced.out.lines), what="the last text")
    assert traced.stop() == 0, traced.said()
    shown_well(b"".join(traced.out.lines))


# --- files

def limited(path, *args, seconds=30):
    """Runs it within so many seconds of CPU time and MEMORY_MAX; returns the status and both outputs together."""
    def limit():
        memory = MEMORY_MAX + os.path.getsize(path)
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    done = subprocess.run([DBSLOWER, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          preexec_fn=limit, timeout=600)
    assert done.returncode in (0, 1), f"{args}: {done.returncode}: {done.stdout[-2000:]}"
    assert b"memory" not in done.stdout, f"{args}: {done.stdout[-2000:]}"
    return done.stdout


def ways(path):
    """Run each command on a file."""
    found = [("list", path), ("list", "-vv", path), ("list", "--json", path)]
    if os.geteuid() == 0:
        found += [("postgres", "-d", "0.1", "-x", path), ("trace", "-d", "0.1", f"{path}:*:*")]
    return found


def made(tmp_path, notes, sections=0, frames=b"", name="postgres"):
    """A file with nops, semaphores and these notes: its path. @notes is bytes, or makes them of the maker and these."""
    maker = elf.ElfMaker(machine=elf.EM_X86_64 if platform.machine() == "x86_64" else elf.EM_AARCH64)
    text = elf.BASE + maker.offset()
    nop = b"\x90" if platform.machine() == "x86_64" else b"\x1f\x20\x03\xd5"
    maker.add(".text", elf.PROGBITS, nop * (4096 // len(nop)), flags=6)
    probes = elf.BASE + maker.offset()
    maker.add(".probes", elf.PROGBITS, b"\0" * 4096, flags=3)
    if frames:
        maker.add(".eh_frame_hdr", elf.PROGBITS, frames)
    for number in range(sections):
        maker.add(f".s{number}", elf.PROGBITS, b"", flags=6, addr=text)
    maker.add(".note.stapsdt", elf.NOTE, notes(maker, text, probes) if callable(notes) else notes, flags=0)
    path = tmp_path / name
    path.write_bytes(maker.data())
    path.chmod(0o755)
    return str(path)


def many(count, spec="8@%rdi", provider="postgresql", probe="statement__status", step=0):
    return lambda maker, text, probes: b"".join(
        maker.site(text + 4 * (n % 1000) * step, 0, 0, provider, f"{probe}{n if step else ''}", spec)
        for n in range(count))


def refused(maker, text, probes):
    """Sites that are refused after a look at all that precedes them."""
    return b"".join(maker.site(text + 1, 0, text, "postgresql", f"p{n}", "") for n in range(100000))


def cases():
    return {
        "notes without end": many(600000, "", "p", "q"),
        "many sites of one probe": many(50000),
        "many probes": many(50000, step=1),
        "many probes with a bad semaphore": refused,
        "a spec of a megabyte": many(3, "8@%rdi " * 150000),
        "one operand of a megabyte": many(3, "8@" + "(" * (1 << 20)),
        "a name of a megabyte": many(3, "", "p" * (1 << 20), "statement__status"),
        "sites outside": lambda maker, text, probes: b"".join(
            maker.site(at, 0, at, "postgresql", "statement__status", "8@%rdi")
            for at in (0, 1, elf.BASE - 1, 1 << 63, (1 << 64) - 1, (1 << 64) - 2, text - 1)),
        "lengths that lie": b"\x08\0\0\0\xff\xff\xff\xff\x03\0\0\0stapsdt\0" + b"A" * 100,
        "nothing but ones": b"\xff" * 4096,
    }


@pytest.mark.parametrize("name", cases())
def test_notes(tmp_path, name):
    path = made(tmp_path, cases()[name])
    for args in ways(path):
        shown_well(limited(path, *args))


def test_overlapping_sections(tmp_path):
    """60,000 sections that all have the site, and 1,000 sites."""
    path = made(tmp_path, many(1000, step=1), sections=60000)
    for args in ways(path):
        limited(path, *args)


@pytest.mark.parametrize("frames", [
    b"\x01\x1b\x03\x3b" + b"\0" * 4 + b"\xff" * 4, b"\x01\x1b\x03\x3b" + b"\xff" * 4000,
    b"\x01\x1b\x03\x3b" + b"\0" * 4 + b"\x01\0\0\0" + b"\0\0\0\x80" + b"\xff\xff\xff\x7f", b"\x01\x1b\x03\x3b", b"\x01",
], ids=["count", "ones", "far", "short", "shorter"])
def test_frame_tables(tmp_path, frames):
    """Tables that lie about where functions begin: what they cannot tell, they do not."""
    path = made(tmp_path, many(20, step=1), frames=frames)
    assert all(line.split(" ", 2)[1:] == ["0", ""] for line in notedump("--sites", path))


def test_file_that_changes(tmp_path):
    """A file that is truncated, extended and overwritten while it is read."""
    path = made(tmp_path, many(2000, step=1), name="postgres")
    with open(path, "rb") as f:
        whole = f.read()
    enough = threading.Event()

    def change():
        with open(path, "r+b") as f:
            while not enough.is_set():
                f.truncate(5000)
                f.seek(0)
                f.write(whole)
                f.flush()
                f.seek(len(whole) // 2)
                f.write(b"\xff" * 8000)
                f.flush()
    changer = threading.Thread(target=change)
    changer.start()
    try:
        for args in 20 * ways(path):
            done = subprocess.run([DBSLOWER, *args], stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
            assert done.returncode in (0, 1), f"{args}: {done.returncode}: {done.stderr[-2000:]}"
    finally:
        enough.set()
        changer.join()
