# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The build: a small static file, reproducible, without warnings."""

import json
import os
import re
import shutil
import subprocess

import pytest

import background
from elffile import readelf
from source_tree import copy_tree, make
from tool import BUILD, DBSLOWER, ROOT, image

JOBS = f"-j{os.cpu_count() or 1}"


def test_static():
    segments = readelf("-l", DBSLOWER)
    assert "INTERP" not in segments, segments
    assert "NEEDED" not in readelf("-d", DBSLOWER)
    assert subprocess.run([DBSLOWER, "--version"], env={}, capture_output=True).returncode == 0


def test_no_executable_stack_and_no_writable_code():
    segments = re.findall(r"^\s+(LOAD|GNU_STACK)\s.*?\s([R ][W ][E ])\s", readelf("-l", DBSLOWER), re.M)
    assert segments and any(kind == "GNU_STACK" for kind, _ in segments), segments
    assert not any("W" in flags and "E" in flags for _, flags in segments), segments


def test_stripped_and_small():
    assert ".symtab" not in readelf("-S", DBSLOWER)
    sizes = subprocess.run([os.path.join(ROOT, "ci", "sizes"), os.path.join(BUILD, "dbslower.map")],
                           capture_output=True, text=True)
    assert sizes.returncode == 0 and not sizes.stderr, sizes.stdout + sizes.stderr


def test_no_paths_of_the_builder():
    assert ROOT.encode() not in image(BUILD), "the binary has the path of its sources"


def test_strings_finds_the_texts():
    found = subprocess.run(["strings", "-n", "8", DBSLOWER], capture_output=True, text=True, check=True).stdout
    for text in ("THRESHOLD is in milliseconds", "uprobe_multi link", "dual_license"):
        assert text in found, text


def built_as(folder, name, *what):
    """A clean build, of the same commit, in a folder of this name: that folder, and what make said."""
    tree = copy_tree(os.path.join(folder, name))
    with open(os.path.join(BUILD, "version.stamp")) as f:
        commit = f.read().split()[1]
    return tree, make(tree, f"COMMIT={commit}", *what)


ONE = (built_as, "one", "all", "tests")


def background_jobs(_):
    return [ONE]


@pytest.fixture(scope="module")
def built():
    """A clean build of all, with the product's compiler, elsewhere: the folder and what make said."""
    return background.result(*ONE)


def test_two_builds_are_the_same_bytes(built):
    with open(os.path.join(built[0], "build", "dbslower"), "rb") as one, open(DBSLOWER, "rb") as another:
        outputs = [one.read(), another.read()]
    assert outputs[0] == outputs[1], f"{len(outputs[0])} and {len(outputs[1])} bytes differ"


WARNS = re.compile(r"\bwarning\b|\berror:")


def test_compiles_clean(built):
    """Everything, the tests' programs too, with the project's warnings as errors."""
    assert not WARNS.search(built[1]), built[1]


def files_under(folder):
    return {os.path.relpath(os.path.join(where, name), folder): os.stat(os.path.join(where, name)).st_mode & 0o777
            for where, _, names in os.walk(folder) for name in names}


def test_install(built, tmp_path):
    """From a copy, so that nothing is built again in the tree under test."""
    folder, to = built[0], tmp_path / "to"
    make(folder, "install", f"DESTDIR={to}")
    assert files_under(to) == {
        f"usr/local/{path}": mode for name in ("dbslower", "dbstat", "tplist") for path, mode in (
            (f"sbin/{name}", 0o755), (f"share/man/man8/{name}.8", 0o644),
            (f"share/bash-completion/completions/{name}", 0o644),
            (f"share/fish/vendor_completions.d/{name}.fish", 0o644))} | {
        "usr/local/share/zsh/site-functions/_dbslower": 0o644}
    assert os.readlink(to / "usr/local/sbin/dbstat") == os.readlink(to / "usr/local/sbin/tplist") == "dbslower"
    assert ".symtab" not in readelf("-S", str(to / "usr/local/sbin/dbslower"))
    make(folder, "uninstall", f"DESTDIR={to}")
    assert files_under(to) == {}

    make(folder, "install", f"DESTDIR={to}", "PREFIX=/usr", "MANDIR=/m", "BASHCOMPDIR=/b", "ZSHCOMPDIR=/z",
         "FISHCOMPDIR=/f")
    assert set(files_under(to)) == {"z/_dbslower"} | {
        path for name in ("dbslower", "dbstat", "tplist")
        for path in (f"usr/sbin/{name}", f"m/man8/{name}.8", f"b/{name}", f"f/{name}.fish")}


@pytest.mark.parametrize("names, stated", [
    ("slow", "`slow` alone has {})"), ("slow list doctor", "links only these commands (about {} KiB;")], ids=["slow", "appliance"])
def test_fewer_commands(built, tmp_path, names, stated):
    """COMMANDS links those alone: --help, the options and completion have no others."""
    binary = tmp_path / "dbslower"
    shutil.copytree(os.path.join(built[0], "build"), tmp_path / "build", symlinks=True)
    make(built[0], f"COMMANDS={names}", f"BUILD={tmp_path / 'build'}")
    shutil.copy(tmp_path / "build" / "dbslower", binary)

    def said(*args):
        return subprocess.run([binary, *args], capture_output=True, text=True, timeout=60)

    section = re.search(r"^Commands.*:\n((?:  .*\n)+)", said("--help").stdout, re.M)[1]
    assert re.findall(r"^  (\w+) ", section, re.M) == names.split()
    without = "stat: this file was built without it"
    assert all(done.returncode == 2 and without in done.stderr for done in [said("stat"), said("help", "stat"), said("slow", "stat")])
    assert "sta: neither" in said("sta").stderr
    listed = said("--complete", "dbslower", "").stdout.splitlines()
    assert [line.split("\t")[0] for line in listed if "\t" in line] == names.split()
    assert [one["name"] for one in json.loads(said("--tables").stdout)["commands"]] == names.split()
    texts = image(tmp_path / "build")
    for text in (b"total, calls, mean", b"p99_ms"):
        assert text not in texts and text in image(BUILD), "texts of another command are linked"
    size = os.path.getsize(binary)
    whole = os.path.getsize(os.path.join(built[0], "build", "dbslower"))
    with open(os.path.join(ROOT, "README.md")) as f:
        readme = " ".join(f.read().split())
    if os.uname().machine == "x86_64":	# which README states
        assert whole < int(re.search(r"file of less than (\d+) KiB", readme)[1]) * 1024, whole
        assert stated.format(round(size / 1024, -1)).replace(".0", "") in readme, size
    print(f"{names}: {size} of {whole} bytes")
    assert size < whole, size


def test_unknown_command_to_link(built):
    done = subprocess.run(["make", "-C", built[0], "COMMANDS=slow fast"], capture_output=True, text=True)
    assert done.returncode and "unknown command fast; must be of" in done.stderr, done.stderr


def test_nothing_to_do_the_second_time(built):
    """The last one that needs it: it takes it away."""
    folder = built[0]
    assert not re.search(r"\b(CC|BPF|LINK|STRIP|EMBED)\b", make(folder, "all")), "it builds again"
    make(folder, "clean")
    assert not os.path.exists(os.path.join(folder, "build"))


def sources():
    """Files that must name their licence."""
    for where, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in (".git", "build", "__pycache__", "data")
                      and os.path.join(where, name) != BUILD]
        for name in names:
            if name.endswith((".c", ".h", ".S", ".py", ".sh", ".bash", ".8")) or name in ("Makefile", "Makefile.inc") \
                    or os.path.relpath(where, ROOT) in ("ci", ".ci") or name in ("sbom", "dbslower.mk", "dbslower.spec") \
                    or os.path.basename(where) == "initramfs-tools":
                yield os.path.join(where, name)


def test_licence_lines():
    without = []
    for path in sources():
        with open(path, errors="replace") as f:
            head = "".join(f.readline() for _ in range(6))
        if "SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause" not in head:
            without.append(os.path.relpath(path, ROOT))
    assert not without, f"no SPDX line: {without}"


def test_shell_scripts():
    if not shutil.which("shellcheck"):
        pytest.skip("no shellcheck (package shellcheck)")
    scripts = [os.path.join(ROOT, "ci", name) for name in (
        "dependencies", "fetch", "test", "demo", "dist", "packaging/sbom", "packaging/initramfs-tools/dbslower",
        "packaging/dracut/90dbslower/module-setup.sh")]
    done = subprocess.run(["shellcheck", *scripts, os.path.join(ROOT, ".ci", "run")], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
