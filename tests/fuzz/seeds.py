# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Seeds of the fuzz targets: seeds(TARGET) returns {name: bytes}.

Most are made here. Beside them are the files of seeds/TARGET/, which are the findings of before,
called by what they were: NAME.txt as it is, NAME.hex in hexadecimal, with # for remarks.
"""

import glob
import os
import re
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.path.insert(0, TESTS)

import elfmaker as elf    # noqa: E402
from elfmaker import ElfMaker    # noqa: E402
from recording_maker import Made, holder, hostile    # noqa: E402

X86_BODY = bytes.fromhex("488b8730020000488b9738020000c3")    # a pair of members
NOP, RET = b"\x90", b"\xc3"


# --- ELF files

def file_with_everything(is64, big, machine=elf.EM_X86_64):
    maker = ElfMaker(is64, big, machine)
    text = maker.offset()
    maker.add(".text", elf.PROGBITS, NOP * 8 + X86_BODY + b"\0" + bytes.fromhex("48897768c3"), flags=6)
    data = elf.BASE + maker.offset()
    maker.add(".probes", elf.PROGBITS, b"\0" * 8, flags=3)
    base = elf.BASE + maker.offset()
    maker.add(".stapsdt.base", elf.PROGBITS, b"\0")
    site = elf.BASE + text
    maker.add(".note.stapsdt", elf.NOTE,
              maker.site(site, base, 0, "app", "query__start", "8@%rdi -4@$12 8@-16(%rbp)") +
              maker.note(b"GNU\0", 1, b"abcde") +
              maker.site(site + 1 - 16, base - 16, data - 16, "app", "query__done", "") +
              maker.site(1, base, 0, "app", "nowhere", "4@[x0, 8]"), flags=2)
    symbols = [("probed", site, 8, elf.FUNC, 1), ("accessor", site + 8, len(X86_BODY), elf.FUNC, 1),
               ("setter", site + 24, 5, elf.FUNC, 1), ("missing", 0, 0, elf.FUNC, 0), ("data", data, 8, elf.OBJECT, 2)]
    frame = elf.BASE + maker.offset()
    maker.add(".eh_frame", elf.PROGBITS, maker.pack("IIiI", 12, 4, site - frame - 8, 32))
    table = elf.BASE + maker.offset()
    maker.add(".eh_frame_hdr", elf.PROGBITS,
              bytes.fromhex("011b033b") + maker.pack("iIii", frame - table - 4, 1, site - table, frame - table))
    maker.symbols(".dynsym", ".dynstr", symbols, hashed=True)
    maker.symbols(".symtab", ".strtab", symbols + [("static", site, 1, elf.FUNC, 1)])
    return maker.data()


def elf_seeds():
    found = {f"{32 + 32 * is64}-{'big' if big else 'little'}": file_with_everything(is64, big)
             for is64 in (False, True) for big in (False, True)}
    found["header"] = found["64-little"][:64]
    found["cut"] = found["64-little"][:-200]
    return found


def server_file(functions, probes=(), variables=(), rodata=b""):
    maker = ElfMaker()
    text, code, symbols = maker.offset(), b"", []
    for name, body in functions:
        symbols.append((name, elf.BASE + text + len(code), len(body), elf.FUNC, 1))
        code += body + NOP * (-len(body) % 16)
    maker.add(".text", elf.PROGBITS, code + NOP * 16, flags=6)
    maker.add(".rodata", elf.PROGBITS, rodata)
    data = elf.BASE + maker.offset()
    maker.add(".data", elf.PROGBITS, b"\0" * 8 * max(len(variables), 1), flags=3)
    symbols += [(name, data + 8 * i, 8, elf.OBJECT, 3) for i, name in enumerate(variables)]
    if probes:
        site = elf.BASE + text + len(code)
        maker.add(".note.stapsdt", elf.NOTE, b"".join(maker.site(site + i, 0, data, *p) for i, p in enumerate(probes)))
    maker.symbols(".dynsym", ".dynstr", symbols, hashed=True)
    return maker.data()


def names_of(source, form):
    with open(os.path.join(TESTS, "..", source)) as f:
        return sorted(set(re.findall(form, f.read())))


def server_seeds():
    postgres = [(name, b"\xf3\x0f\x1e\xfa" + RET) for name in (
        "pgstat_report_activity", "EndCommand", "GetCommandTagName", "AbortCurrentTransaction",
        "GetCurrentStatementStartTimestamp")]
    variables = ["MyProcPort", "PostmasterPid", "am_walsender", "debug_query_string"]
    words = b"\0postgres (PostgreSQL) 15.18\n\0"
    status = [("postgresql", "statement__status", "8@%rbx")]
    span = [("mysql", f"query__{step}", "8@%rdi 8@%rsi -4@-8(%rbp) 8@$3 8@(%rax)")
            for step in ("start", "done", "exec__start", "exec__done")]
    mysql = [(name, X86_BODY) for name in names_of("db/mysql/probes.c", r"\b(_Z\w+|thd_\w+)")]
    return {
        "postgres": b"\1" + server_file(postgres, status, variables, words),
        "postgres-symbols": b"\1" + server_file(postgres[:2] + postgres[3:], (), variables, words),
        "postgres-little": b"\1" + server_file(postgres[:1]),
        "mysql-usdt": b"\0" + server_file(mysql[:4], span, ["server_version"]),
        "own": b"\2" + file_with_everything(True, False),
        "mysql": b"\0" + server_file(mysql, (), ["server_version"]),
    }


def bpf_object():
    """A program that calls an argument and another function, and takes a constant's and a map's address."""
    maker = ElfMaker(machine=elf.EM_BPF, kind=elf.ET_REL)
    call = struct.pack("<BBhi", 0x85, 0x10, 0, -1)
    load = struct.pack("<BBhi", 0x18, 1, 0, 0) + struct.pack("<BBhi", 0, 0, 0, 0)
    leave = struct.pack("<BBhi", 0x95, 0, 0, 0)
    code = call + load + load + call + struct.pack("<BBhi", 0x85, 0x10, 0, 1) + leave + leave
    maker.add(".text", elf.PROGBITS, code, flags=6)
    names = [("program", 0, 64, elf.FUNC, 1), ("helper", 64, 8, elf.FUNC, 1), ("arg_text", 0, 0, 0, 0),
             ("constant_x", 0, 0, 0, 0), ("ring", 0, 0, 0, 0), ("", 0, 0, elf.SECTION, 1)]
    table = maker.symbols(".symtab", ".strtab", names)
    places = [(0, 3, 10), (8, 4, 1), (24, 5, 1), (40, 2, 10), (40, 6, 10)]
    relocations = b"".join(struct.pack("<QQ", at, symbol << 32 | kind) for at, symbol, kind in places)
    maker.add(".rel.text", elf.REL, relocations, link=table, info=1, entsize=16)
    return maker.data()


def object_seeds():
    found = {"small": bpf_object()}
    built = os.path.join(os.environ.get("BUILD") or os.path.join(TESTS, "..", "build"), "bpf", "statement.bpf.o")
    if os.path.exists(built):
        with open(built, "rb") as f:
            found["ours"] = f.read()
    return found


# --- instructions

def arch(name):
    """The number of an architecture, as in ARCHS() of usdt/arch.h; "ppc64le" is ppc64."""
    with open(os.path.join(os.path.dirname(TESTS), "usdt", "arch.h")) as f:
        names = re.findall(r"ROW\((\w+)\)", f.read().split("#define ARCHS(ROW)")[1].split("\n\n")[0])
    return next(i for i, known in enumerate(names) if name.startswith(known))


def accessor_seeds():
    """The bodies of the unit tests, which are real ones."""
    with open(os.path.join(TESTS, "unit", "accessor.c")) as f:
        source = f.read().replace("ENDBR64", '"f30f1efa"')
    found = {}
    for machine, pieces in re.findall(r'\b(X86|ARM)(?:_SET|_CMP)?\("[^"]*",\s*((?:"[0-9a-f]*"\s*|RET\s*)+)', source):
        body = "".join(re.findall(r'"([0-9a-f]*)"', pieces.replace("RET", '"c0035fd6"')))
        found[f"body-{len(found)}"] = bytes([arch("aarch64" if machine == "ARM" else "x86_64")]) + bytes.fromhex(body)
    with open(os.path.join(TESTS, "unit", "riscv.c")) as f:
        for pieces in re.findall(r'\b(?:READ|SET|CMP)\("[^"]*",\s*((?:"[0-9a-f]*"\s*)+)', f.read()):
            found[f"body-{len(found)}"] = bytes([arch("riscv64")]) + bytes.fromhex("".join(re.findall(r'"([0-9a-f]*)"', pieces)))
    return found


# --- specs

def spec_seeds():
    found = {}
    for name in sorted(os.listdir(os.path.join(TESTS, "data", "specs"))):
        with open(os.path.join(TESTS, "data", "specs", name)) as f:
            specs = [line.split("\t")[1] for line in f if "\t" in line and line[0] != "#"]
        for i in range(0, len(specs), 12):
            found[f"{name[:-4]}-{i}"] = bytes([arch(name), 1]) + " ".join(specs[i:i + 12]).encode()
    own = ["8@%arg0 4@%ret 8@16(%arg1) 8@8(0x68(%arg0)) 8@MyProcPort(%ip) -1@%sp",
           "8@8(16(24(32(%arg0)))) 8@8(16(24(32(40(%arg0))))) 8@384(MyProcPort(%ip))",
           "8@(%rax,%rbx,8) 8@a+8(%rip) -4@%fs:x@tpoff 8f@%xmm0 8@(,%rcx,4) 4@(%eax) 1@%ah"]
    for i, text in enumerate(own):
        found[f"own-{i}"] = bytes([arch("x86_64"), 1]) + text.encode()
    found["others"] = bytes([arch("s390"), 1]) + b"8@%r2 8@160(%r15) 4@8(%r1,%r2)"
    found["riscv"] = bytes([arch("riscv64"), 1]) + b"8@a0 -4@-20(s0) 8@zero"
    found["mips"] = bytes([arch("mips"), 1]) + b"8@$4 4@16($sp)"
    return found


# --- /proc

MAPS = b"""55d4c8a00000-55d4c8b00000 r--p 00000000 fd:01 1234567                    /usr/lib/postgresql/15/bin/postgres
55d4c8b00000-55d4c8c00000 r-xp 00100000 fd:01 1234567                    /usr/lib/postgresql/15/bin/postgres (deleted)
7f0000000000-7f0000021000 rw-p 00000000 00:00 0
7f0000021000-7f0000022000 rw-s 00000000 00:05 42                         /dev/zero\\012\\012x (deleted)
7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0                          [stack]
"""
STATUS = b"Name:\tpostgres\nPPid:\t12\nTracerPid:\t0\nNSpid:\t4711\t15\t3\n"
CGROUPS = [
    b"0::/system.slice/docker-" + b"0123456789abcdef" * 4 + b".scope\n",
    b"12:pids:/kubepods/burstable/pod1b2c/" + b"a" * 64 + b"/" + b"b" * 64 + b"\n0::/\n",
    b"0::/lxc.payload.web/init.scope\n", b"1:name=systemd:/lxc/db-1/x\n0::/machine.slice/machine-deb.scope\n",
]


def process_seeds():
    found = {"maps": b"\xfc" + MAPS, "maps-in-pieces": b"\x04" + MAPS, "status": b"\1" + STATUS,
             "name": b"\3/usr/sbin/mysqld (deleted)", "loader": b"\3/lib64/ld-linux-x86-64.so.2"}
    for i, text in enumerate(CGROUPS):
        found[f"cgroup-{i}"] = b"\xfe" + text
    return found


TITLES = ["postgres: app orders 10.0.0.5(54321) SELECT", "postgres: main: app orders [local] idle in transaction",
          "postgres: 15/main: walsender app [local] streaming", "postgres: checkpointer ", "postgres: a b c d",
          "postgres: app orders fe80::1%eth0(5432) idle"]


def library_seeds():
    keys = [b"libc.so.6\0/lib/x86_64-linux-gnu/libc.so.6\0", b"libm.so.6\0/lib/libm.so.6\0"]
    found = {}
    for old in (False, True):
        strings = b"".join(keys)
        entries, at = b"", 48 + 24 * 2
        for key in keys:
            entries += struct.pack("<iIIIQ", 0x0303, at, at + key.index(b"\0") + 1, 0, 0)
            at += len(key)
        cache = b"glibc-ld.so.cache1.1" + struct.pack("<II", 2, len(strings)) + b"\0" * 20 + entries + strings
        before = b"ld.so-1.7.0\0" + struct.pack("<I", 1) + b"\0" * 12 + b"\0" * 4 if old else b""
        found["old" if old else "new"] = b"c\n" + before + cache
    return found


# --- records

def statement(source, text, flags=2, kind=1, pid=7):
    head = struct.pack("<IIII9QIIII", kind, source, pid, pid, 10 ** 12, 10 ** 7, 0, 3, 1 << 63 | 4, 5, len(text), 7, 0,
                       1064, 1, len(text), flags)
    return head + text


def transaction(source, text, flags, who):
    head = struct.pack("<IIIIQQQ", 8, source, flags, flags, 3, 2 * 10 ** 6, 10 ** 6)
    return head + who + statement(source, text)


def nested(source, text, level, caller, length):
    return struct.pack("<IIII", 10, source, level, length) + caller.ljust(256, b"\0") + statement(source, text, 0x1002)


def record(data, head=0):
    return struct.pack("<II", len(data) | head, 0) + data + b"\0" * (-len(data) % 8)


def record_seeds():
    def session(kind, source=0):
        return struct.pack("<IIIIQ", kind, source, 7, 7, 10 ** 9)

    who = session(2) + b"".join(s.ljust(64, b"\0") for s in (b"app", b"orders", b"10.0.0.5")) + b"5432\0\0\0\0"
    title = b"postgres: app orders 10.0.0.5(5432) idle"
    name = session(9, 1) + struct.pack("<QQ", 10 ** 12, 1) + b"shop".ljust(64, b"\0")
    records = [statement(0, b"select 1"), who, name, statement(0, b"select 2", 1 << 24), name, statement(1, b"update t set a = 'x\xff' where b", 6),
               statement(2, b"", 9), session(3), session(4) + b"postgres".ljust(16, b"\0"),
               statement(0, b"select \xe2\x80\xae", 0x40), transaction(0, b"commit", 0x41, b"\0" * len(who)),
               transaction(1, b"insert \xff", 0x86, who), nested(1, b"select 4", 1, b"call p()", 8),
               nested(1, b"", 0, b"", 0), nested(0, b"select \xff", 2 ** 31, b"call \xff", 2 ** 32 - 1)]
    # Sessions that were added by user space: the user of their processes is read.
    records += [statement(source, b"select 3", 0x4200, pid=pid) for source, pid in ((0, 7), (2, 9), (4, 6))]
    found = {}
    for start in (0, 500):
        for choice in (0x10, 0x91, 0xd2, 0xb0, 0x98):
            found[f"all-{start}-{choice:x}"] = (bytes([choice, start % 256, len(title)]) + title +
                                                b"".join(record(r) for r in records))
    found["heads"] = (bytes([0x90, 0, 0]) + record(b"", 1 << 30) + record(statement(9, b"x")) +
                      record(b"\1" * 24) + struct.pack("<Q", 5000) + record(records[0], 1 << 31))
    return found


# --- texts

STATEMENTS = [
    "select * from Orders where id = 12 and name = 'it''s' -- done", "insert into t(a, b) values (1, 'x'), (2, 'y')",
    "SELECT /* c */ a, \"B\" FROM x WHERE y IN (1,2, -3.5e-7) LIMIT 5 OFFSET 6",
    "select $1::text, $tag$ body $tag$, E'a\\'b'",
    "select `a`.`B`, x'1f', 0xff, b'01', N'z' # end", "call p(null, true, @v); select 1 /*!40000 + 2 */ is not null",
    "update t set a = array[1,2], b = (select ? from c) order by d asc limit 1, 2", "begin", "", "((((('",
]
PATTERNS = ["from", "/from (orders|items)/", "/^select .* limit [0-9]+$/", "/[[:digit:]]{3,4}x/", "/(a*)*(a|aa)+b/",
            "/[^a-z ]\\(\\*\\)$/", "/((((a{3}){3})?|b{2,})+)/", "/[]-a]/"]
COMMAND_LINES = [
    "dbslower mysql 0.25", "dbslower -p 12,34 -m 0 --json", "dbslower postgres 30ms -d 5 -n 3 -t -o time,user,query",
    "dbslower --match /a(b|c)/ --user=x --db y --container 0123 --text 64k",
    "dbslower -x /opt/d --start a:b --done c:d",
    "dbslower --help", "dbslower list -vv -l c gc *", "dbslower stat -i 1 -n 2 --by command -u",
    "dbslower top --sort p99 --lines 5 --strict", "dbslower -5", "dbslower --nothing", "dbslower 1 -m 2",
    "dbslower -- 3",
]


def numbered(texts, before=b""):
    return {f"text-{i}": before + (t if isinstance(t, bytes) else t.encode()) for i, t in enumerate(texts)}


def pgcatalog_seeds():
    def page(*rows):
        pointers, data, at = b"", b"", 8192
        for info, oid, name in rows:
            old = bool(info & 8)
            row = struct.pack("<IIIIHHHB", 2, 0, 0, 0, 0, 33, info, 24 + 4 * old) + b"\0"
            row += struct.pack("<I", oid) + name.ljust(64, b"\0")
            at -= (len(row) + 7) & ~7
            pointers += struct.pack("<I", at | 1 << 15 | len(row) << 17)
            data = row.ljust((len(row) + 7) & ~7, b"\0") + data
        head = struct.pack("<QHHHHHHI", 1, 0, 0, 24 + len(pointers), at, 8192, 8196, 0)
        return (head + pointers).ljust(at, b"\0") + data

    return {"rows": page((0x900, 1259, b"pg_class"), (0x800, 1260, b"other")), "old": page((0x808, 1259, b"pg_class")),
            "two": page((0x500, 1259, b"before"), (0, 1259, b"one"), (0x800, 1259, b"two"))}


def fingerprint_seeds():
    return {f"{choice:02x}-{i}": bytes([choice]) + text.encode()
            for choice in (0x60, 0x61, 0xfe, 0x2d) for i, text in enumerate(STATEMENTS)}


def traceparent_seeds():
    valid = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    texts = [f"select 1 /*traceparent='{valid}'*/", f"/*a='%2F\\'',traceparent='{valid.replace('-', '%2D')}'*/ select '/*'",
             f"select '\\'/*' /*traceparent='cc{valid[2:]}-more'*/", f"select $$/*$$ -- traceparent='{valid}'",
             f"/*traceparent='ff{valid[2:]}'*/ /*! x='traceparent' /*traceparent='{valid}'*/ */"]
    return {f"{choice}-{i}": bytes([choice]) + text.encode() for choice in range(4) for i, text in enumerate(texts)}


def pattern_seeds():
    return numbered(f"{p}\nselect a from Orders limit 10 123x aaaaaaaab" for p in PATTERNS)


def option_seeds():
    found = {}
    for first in range(4):
        for i, line in enumerate(COMMAND_LINES):
            words = line.split()[1:]
            found[f"{first}-{i}"] = b"\0".join([bytes([first + 4]), *(w.encode() for w in words)]) + b"\0"
    return found


def escape_seeds():
    texts = ["plain", "a\tb\r\n\x1b[31mred\x07\x7f",
             'say "x\\y"', "caf\u00e9 \u202e \U0001f600 \u4e2d\u0301 \ufeff\U000e0001",
             b"\xff\xc3\xe2\x82\xf0\x9f\x98\xed\xa0\x80\xc0\xaf\xf4\x90\x80\x80", b"nul\0\x80\x9f"]
    return {**numbered(texts, b"\0"), **{f"cut-{n}": t for n, t in numbered(texts, b"\1").items()}}


def glob_seeds():
    return numbered(["*:query*\npostgresql:query__start", "a?c\nabc", "[a-c]*[!x]\nabc", "*a*a*a*b\naaaaaaaaaaaa",
                     "[\n[", "[]-a]\n]", "**\n"])


# --- what dbslower trace is told, and its records

EXPRESSIONS = [
    "arg1 > 10 && arg2 == \"text\"", "!(arg1 & 0x10) || arg3 != 'x'", "STRCMP(\"a\\x62c\", arg2)", "(int)retval < 0",
    "(unsigned int) arg2 >> 3 << arg4", "-3 * ~pid - (u8)tid + 18446744073709551615", "((((((arg12))))))", "\"x\" == \"y\"",
    "arg1 + (arg2 + (arg3 + (arg4 + (arg5 + (arg6 + (arg7 + arg8))))))", "0x7fffffffffffffff <= arg1 ^ arg2 | 5",
    "arg9 == \"012345678901234567890123456789012345678901234567890123456789012\" || retval", "arg13", "'\\", "\"",
    "arg1 / arg2 % 7 == -3 / (arg3 - arg3)", "comm == \"kworker/1:2-xyz\" && uid != 0", "STRCMP(\"init\", comm) || \"0123456789abcdef\" != comm",
    "comm",
]
WORDS = [
    "/bin/x:app:query__start", "c:malloc (arg1 > 100) \"size %d at %-8.3s\\n\", arg1, arg2", "u:app:done \"%s %20s %p\", arg1, arg2, arg3",
    "r:c:read (retval < 0) retval", "app:* arg1, arg2:s, (int)arg3", "f (arg1) == 5", "f \"%c %5x %lld %hhu %o %%\", 1, 2, 3, 4, 5",
    "f \"%99999999d\", arg1", "a:b:c:d:e", "f ((arg1)", "f \"%", ":", "f " + ",".join(f"arg{n}" for n in range(1, 13)),
    "f \"%.*s.%-20.8s %.3s\", arg1, arg2, arg3, comm", "f arg1, arg2:.*s, arg3:.16s, arg4:x, comm, uid", "f (comm == \"app\") comm, arg1 / arg2",
    "u:/x:f (arg1 % 10 == 0) pid, tid, uid", "usdt:/bin/x:app:done arg1", "kprobe:f", "t:sched:switch", "f \"%.99999999s\", arg1", "f arg1:.*s", "f \"%.*d\", 1, 2",
]


def expression_seeds():
    return numbered(EXPRESSIONS, b"\x02\x04\x07")


def trace_seeds():
    found = {}
    for i, word in enumerate(WORDS):
        head = struct.pack("<IIIIQ16s", 5, 0, 7, 8, 10 ** 12, b"app\x1b[31m")
        values = struct.pack("<12Q", 5, 2 ** 40, 2 ** 64 - 3, 0x7ff8000000000000, *range(8))
        text = struct.pack("<q", 6) + b"it\xff\"\n\0" + b"x" * 66
        record = (head + values + 2 * text).ljust(8 * 40, b"t")
        for choice in (1, 5, 7):
            found[f"word-{i}-{choice}"] = bytes([choice]) + word.encode() + b"\0" + bytes(
                [12, 0x21, 0x42, 0x81, 0xe1, 0x02, 0x03, 0x83, 1, 2, 3, 0, 4]) + bytes([40]) + record
    return found


# --- the host

MOUNTS = b"""22 28 0:20 / /proc rw,nosuid - proc proc rw,hidepid=invisible,gid=5
23 28 0:21 / /sys rw - sysfs sysfs rw
99 22 0:5 / /proc rw - proc proc rw,hidepid=2
"""


def host_seeds():
    texts = {"mounts": b"\xfc" + MOUNTS, "mounts-no-room": b"\0" + MOUNTS, "mounts-cut": b"\xfc" + MOUNTS[:-9],
             "status": b"\x01Name:\tx\nCapEff:\t000001ffffffffff\nSeccomp:\t2\n",
             "event": b"\xfep:dbslower_12_0badcafe/site3 /proc/self/fd/9:0x1234(0x56)\nr:other/x y:0x1\n",
             "event-no-room": b"\x12p:dbslower_12_0badcafe/site3 /x:0x1\n",
             "mark": b"\x03123 4567 890 7ffd00001234 64769 1234567\n", "mark-cut": b"\x03123 4567 890 7ffd",
             "mark-large": b"\x0399999999999 99999999999999999999999 1 ffffffffffffffffff 1 1\n"}
    return texts


def backend_seeds():
    def variables(text, begun, client, query, length, replication=0):
        return struct.pack("<QQQQQB7x", text, begun, client, query, length, replication)

    fine = variables(1, 8 * 10 ** 14, 1, 1, 8)
    return {"both": b"\xf0\x20" + fine + b"select 1\0and what was here before", "to-the-end": b"\xf3\x20" + fine + b"select 1",
            "cut": b"\xb1\0" + fine + b"select 1", "nowhere": b"\x80\x20" + variables(5, 1, 1, 6, 2 ** 40),
            "none": b"\xf0\x20" + variables(0, 0, 0, 0, 0), "walsender": b"\x10\x20" + variables(1, 1, 1, 1, 1, 1) + b"x",
            "long": b"\xb0\xff" + variables(1, 1, 1, 1, 2 ** 64 - 1) + b"select 1" * 500}


def tally_seeds():
    def call(which, how, ns):
        return bytes([which, how]) + b"select ?\0select 1\0" + struct.pack("<Q", ns)

    found = {"empty": b"\5"}
    for how in (0x11, 0x1d, 0x53, 0xd1, 0x31, 0x19):
        found[f"calls-{how:x}"] = b"\4" + b"".join(call(which, how, 7 ** (which % 17) * 1000) for which in range(0, 64, 3))
    return found


def report_seeds():
    hostile = b"</script><img src=x onerror=alert(1)>\"'&\xff\x01\xe2\x80\xae\0"
    when, took = struct.pack("<QB", 1790000000 * 10 ** 9, 0), struct.pack("<QB", 5 * 10 ** 9, 0)
    why = b"".join(struct.pack("<QB", n * 10 ** 8, 0) for n in range(13)) + b"\xff"
    found = {"empty": b"\0host\0"}
    for how in (0x04, 0x3f, 0x7c, 0x25):
        statement = bytes([0, how]) + hostile * 3 + bytes([7, how & 1]) + when + took + struct.pack("<Q", 12) + b"\1<\"'&>" + why
        backend = hostile + b"\7\0" + struct.pack("<Q", 10 ** 9)
        wait = bytes([3, how | 0x42]) + hostile + b"\2\3\5" + b"<b>\"'&" * 45 + when + took + b"\3" + backend * 4
        found[f"calls-{how:x}"] = b"\0<host>\0" + (statement + wait) * 3 + b"\4" + hostile * 2 + b"\1"
        found[f"times-{how:x}"] = b"\3\0" + when[:8] + struct.pack("<Q", 1790000600 * 10 ** 9) + statement * 2
    return found


# --- recordings

def recording_seeds():
    def number(n):
        found = b""
        while n > 0x7f:
            found += bytes([n & 0x7f | 0x80])
            n >>= 7
        return found + bytes([n])

    def string(text):
        return b"\0" if text is None else number(len(text) + 1) + text

    def event(kind, *parts):
        body = b"".join(number(p) if isinstance(p, int) else p for p in parts)
        return number(kind) + number(len(body)) + body

    def block(kind, *events):
        data = b"".join(events)
        return bytes([kind, len(data) & 255, len(data) >> 8]) + data

    def server(engine):
        return event(2, string(engine), string(engine), string(engine), string(b"15\x1b"), string(b"/bin/db"), 0, string(b"c0ffee"),
                     7, 99, string(b"/data"))

    session = event(3, 0, 7, 8, 1, 5, string(b"app"), string(None), string(b"10.0.0.5"), string(b"psql"))
    clock, call = event(5, 10 ** 18), event(4, string(b"fdatasync"))
    first, text = b"\0" + number(24) + b"select 1 from t where 'x", b"\1\1\7\1\2" + b"42"
    why = [3, 100, 50, 1, 0, 2, 40, 2, 1, 7, 1, 0, 9, 0, 5, 1, 77]
    backend = [0x2f, 12, 0, 100, 50, 9, b"select \xff"]
    wait = [99, 99, 4, 1000, 0, 5, 5, 726, 0, 0, 0, 1, 2, string(b"transactionid"), string(b"x"), 2, 98, 99]
    info = [16384, string(b"t"), string(b"d.t"), string(b"i"), *backend, 1, *backend, 3]
    start = block(0, event(1, string(b"host"), string(b"vm")), event(1, string(b"start_ns"), string(b"12")))
    status = event(8, 6, 5, 4, *range(18))
    most = [1, 2, 3, string(b"42P01"), 5, 6, 7, 8, string(b"0" * 32), string(b"1" * 16), 1, 0, first, *why]
    events = [server(b"postgresql"), server(b"mysql"), session, clock, call, event(9, 2 ** 63 + 5), event(6, 0xf, 0, 4, 1000, 1, first),
              event(6, 0xf, 0, 2, 10, 1, text), event(6, 0x11, 0, 2, 10, text, *why),
              event(6, 0x7ff75, 0, 2, 10, *most), event(6, 0x5003, 0, 2, 10, 3, first), event(7, 0xc, 0, *wait, *info),
              event(7, 1, 1, *wait), event(7, 0xc, 0, *wait, *info, 0), event(7, 1, 1, *wait, 0), status, event(99, b"later")]
    one = b"\2" + start + block(1, *events) + block(2, status)
    found = {"all": one, "twice": b"\2" + start + block(1, *events) + block(1, *reversed(events)) + block(1, *events[:7]),
             "file": b"\1" + b"dbslower" + bytes(56) + b"dbslower", **{f"event-{i}": b"\2" + block(1, *events[:6], one)
                                                                      for i, one in enumerate(events)}}
    made = recorded()
    blocks = [block(1, *one.events) for one in made.blocks[1:]]
    layout = made.options["layout"].encode()
    chosen = len(layout).to_bytes(2, "little") + layout
    return {**found, "made": b"\1" + made.bytes(), "hostile": b"\1" + hostile().bytes(), "ours": b"\0" + b"".join(blocks),
            "theirs": b"\4" + chosen + b"".join(blocks), "unnamed": b"\4\0\0" + b"".join(blocks)}


def recorded():
    """Of the version of today, with each type of member."""
    made = Made()
    shop = made.session(made.server(), user="app")
    made.statement(shop, "select 1 from t where 'x", rows=3, why={"disk": 0.5}, calls={"fsync": (1, 0.25)}, workers=(1, {"cpu": 1}),
                   phases={"plan": 0.1}, use={"sorts": 2}, plan=["full_scan"], query_id=7, length=99, lock_ms=1, examined=5, fetches=2)
    made.statement(shop, "update t set a = ?", changed=2, error="42P01", errno=7, original=40, parent=(b"1" * 32, b"2" * 16, 1))
    made.transaction(shop, "delete", statements=3, idle_ms=5)
    made.wait(shop, text="select \xff", name="t", more=1, cycle=(7, 8), tranche="x", relation=5, thing="d.t", index="i",
              holders=[holder(9, "commit", ms=1, queued=True, running=True, idle=True, idle_ms=3, cut=True), holder(connection=4)])
    made.status(lost={"ring_full": 3}, boundary=1)
    return made


MAKERS = {
    "backend_state": backend_seeds, "expression": expression_seeds, "privileges": host_seeds, "top": tally_seeds, "trace": trace_seeds,
    "accessor": accessor_seeds, "elf": elf_seeds, "escape": escape_seeds,
    "fingerprint": fingerprint_seeds, "glob": glob_seeds, "identity": lambda: numbered(TITLES),
    "library": library_seeds, "linker": object_seeds, "option": option_seeds, "regex": pattern_seeds,
    "catalog": pgcatalog_seeds,
    "process": process_seeds, "record": record_seeds, "recording": recording_seeds, "report": report_seeds,
    "server": server_seeds, "spec": spec_seeds, "traceparent": traceparent_seeds,
}


def checked_in(target):
    """The findings of before."""
    found = {}
    for path in sorted(glob.glob(os.path.join(HERE, "seeds", target, "*"))):
        name, form = os.path.splitext(os.path.basename(path))
        with open(path, "rb") as f:
            data = f.read()
        if form == ".hex":
            data = bytes.fromhex(re.sub(r"#.*", "", data.decode()))
        found[name] = data
    return found


def seeds(target):
    return {**MAKERS[target](), **checked_in(target)}
