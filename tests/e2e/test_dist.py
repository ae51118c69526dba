# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""make dist: the packages, read by the ordinary tools, and that they are reproducible."""

import glob
import gzip
import hashlib
import json
import os
import pathlib
import re
import shutil
import stat
import subprocess
import tarfile

import pytest

import background
from elffile import readelf
from requirements import need_root
from source_tree import copy_tree, make
from tool import CACHE, ROOT

DATE = 1700000000
GIT = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null",
       "GIT_AUTHOR_DATE": f"{DATE} +0000", "GIT_COMMITTER_DATE": f"{DATE} +0000"}
LINKS = {"dbstat", "tplist"}
OWN = "GPL-2.0-only OR BSD-2-Clause"


def run(*command, **keywords):
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=600, **keywords)
    assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout}"
    return done.stdout


def git(folder, *args):
    return run("git", "-C", folder, "-c", "user.name=test", "-c", "user.email=test@localhost", *args,
               env={**os.environ, **GIT}).strip()


def sha256(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


class Release:
    """The files that make dist made of one tree."""

    def __init__(self, tree, folder, commit):
        self.tree, self.folder, self.commit = tree, folder, commit
        self.version = re.search(r"^VERSION\s*:=\s*(\S+)", open(os.path.join(tree, "Makefile")).read(), re.M)[1]
        self.arch = os.uname().machine
        self.name = f"dbslower-{self.version}-{self.arch}"
        self.deb_arch = run("dpkg", "--print-architecture").strip()
        self.sources = self.path(f"dbslower-{self.version}.tar.gz")
        self.bare = self.path(self.name)
        self.tar = self.path(f"{self.name}.tar.gz")
        self.deb = self.path(f"dbslower_{self.version}-1_{self.deb_arch}.deb")
        self.rpm = self.path(f"dbslower-{self.version}-1.{self.arch}.rpm")
        self.sbom = self.path(f"{self.name}.spdx.json")

    def path(self, name):
        return os.path.join(self.folder, name)


PROGRAMS = ("git", "rpmbuild", "dpkg-deb")


def released(folder):
    """One made in a git repository, and one of its archive of sources, elsewhere and otherwise."""
    where = pathlib.Path(folder)
    tree = copy_tree(where / "one")
    git(tree, "init", "-q")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "all")
    make(tree, "dist")
    first = Release(tree, os.path.join(tree, "build", "dist"), git(tree, "rev-parse", "--short=12", "HEAD"))

    os.makedirs(where / "another" / "place")
    run("tar", "-xf", first.sources, "-C", where / "another" / "place")
    tree = where / "another" / "place" / f"dbslower-{first.version}"
    # that sources are in someone else's repository must not matter
    git(where / "another", "init", "-q")
    git(where / "another", "commit", "-q", "--allow-empty", "-m", "not ours")
    before = os.umask(0o077)
    try:
        make(tree, "dist", f"DIST={where}/release", "BUILD=out", "TZ=Asia/Tokyo")
    finally:
        os.umask(before)
    if shutil.which("lintian"):
        first.linted = linted("error,warning", first.deb), linted("none", "--show-overrides", first.deb)
    return first, Release(tree, str(where / "release"), first.commit)


def linted(fails, *args):
    return subprocess.run(["lintian", "--allow-root", f"--fail-on={fails}", *args], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def background_jobs(_):
    return [(released,)] if all(map(shutil.which, PROGRAMS)) else []


@pytest.fixture(scope="module")
def releases():
    for program in PROGRAMS:
        if not shutil.which(program):
            pytest.skip(f"no {program} (ci/dependencies dist)")
    return background.result(released)


@pytest.fixture
def release(releases):
    return releases[0]


def test_files_and_sums(release):
    made = {release.sources, release.bare, release.tar, release.deb, release.rpm, release.sbom}
    assert {release.path(name) for name in os.listdir(release.folder)} == made | {release.path("SHA256SUMS")}
    run("sha256sum", "-c", "--strict", "SHA256SUMS", cwd=release.folder)
    with open(release.path("SHA256SUMS")) as f:
        assert {release.path(line.split()[1]) for line in f} == made


def test_same_bytes(releases):
    first, second = releases
    names = set(os.listdir(first.folder)) - {os.path.basename(first.sources)}
    assert set(os.listdir(second.folder)) == names
    names.discard("SHA256SUMS")
    differ = [name for name in names if sha256(first.path(name)) != sha256(second.path(name))]
    assert not differ, f"not the same bytes: {differ}"


def test_sources(release):
    """The archive has the committed files and the commit's name."""
    with tarfile.open(release.sources) as f:
        names = {member.name.split("/", 1)[1]: member for member in f if not member.isdir()}
        assert f.extractfile(names[".commit"]).read().decode() == f"{release.commit} {DATE}\n"
    assert set(names) == {".commit", *git(release.tree, "ls-files").splitlines()}
    assert {member.mtime for member in names.values()} == {DATE}


def test_bare_file(release):
    assert stat.S_IMODE(os.stat(release.bare).st_mode) == 0o755
    assert "INTERP" not in readelf("-l", release.bare)
    assert f"{release.version} (commit {release.commit})" in run(release.bare, "--version", env={})


def documents():
    """README.md, the documents that it refers to, and the schema of JSON."""
    return {"README.md", "CHANGELOG.md", "SECURITY.md", "docs/json.schema.json",
            *(f"docs/{name}" for name in os.listdir(os.path.join(ROOT, "docs")) if name.endswith(".md"))}


UNITS = {"dbslower.service", "dbslower-metrics.service"}


def fleet():
    return set(os.listdir(os.path.join(ROOT, "docs/fleet")))


def test_tar(release, tmp_path):
    with tarfile.open(release.tar) as f:
        members = {member.name.partition("/")[2]: member for member in f}
    licences = {f"LICENSES/{name}" for name in os.listdir(os.path.join(ROOT, "LICENSES"))}
    completions = {f"completion.{shell}" for shell in ("bash", "zsh", "fish")}
    assert set(members) == {"", "dbslower", *LINKS, "dbslower.8", *completions, "LICENSE", "LICENSES", *licences,
                            "docs", "docs/fleet", *(f"docs/fleet/{name}" for name in fleet()), *documents()}
    assert {(m.uid, m.gid, m.mtime) for m in members.values()} == {(0, 0, DATE)}
    run("tar", "-xf", release.tar, "-C", tmp_path)
    assert sha256(tmp_path / release.name / "dbslower") == sha256(release.bare)
    assert "histogram" in run(tmp_path / release.name / "dbstat", "--help")


def check_installed(release, root, zsh, changelogs, *others):
    """The tree that a package was unpacked into."""
    found = {os.path.relpath(os.path.join(where, name), root) for top in ("usr", "etc")
             for where, folders, names in os.walk(os.path.join(root, top)) for name in names}
    man = {f"usr/share/man/man8/{name}.8.gz" for name in {"dbslower", *LINKS}}
    doc = "usr/share/doc/dbslower/"
    assert found == {*man, *others, *(f"{doc}{name}" for name in (documents() - {"CHANGELOG.md"}) | changelogs),
                     f"{doc}examples/initramfs-tools/dbslower",
                     f"{doc}examples/dracut/90dbslower/module-setup.sh",
                     *(f"usr/sbin/{name}" for name in {"dbslower", *LINKS}),
                     *(f"usr/share/bash-completion/completions/{name}" for name in {"dbslower", *LINKS}),
                     *(f"usr/share/fish/vendor_completions.d/{name}.fish" for name in {"dbslower", *LINKS}),
                     *(f"{doc}docs/fleet/{name}" for name in fleet() - UNITS - {"dbslower.logrotate"}),
                     *(f"usr/lib/systemd/system/{name}" for name in UNITS), "etc/logrotate.d/dbslower",
                     f"usr/share/zsh/{zsh}/_dbslower"}
    assert stat.S_IMODE(os.stat(os.path.join(root, "var/log/dbslower")).st_mode) == 0o750
    for name in found:
        path = os.path.join(root, name)
        is_program = "/sbin/" in name or "/examples/" in name
        assert stat.S_IMODE(os.stat(path).st_mode) == (0o755 if is_program else 0o644), name
        assert (os.lstat(path).st_uid, os.lstat(path).st_gid) == (0, 0), name
    assert sha256(os.path.join(root, "usr/sbin/dbslower")) == sha256(release.bare)
    for name in man:
        with open(os.path.join(root, name), "rb") as f:
            packed = f.read()
        assert packed[4:8] == bytes(4), f"{name} has a time stamp"
        with open(os.path.join(ROOT, "cli", "dbslower.8"), "rb") as f:
            assert gzip.decompress(packed) == f.read()
    for command, word in (("dbslower", "slow"), ("dbstat", "histogram"), ("tplist", "USDT")):
        assert word in run(os.path.join(root, "usr/sbin", command), "--help", env={})
        completion = os.path.join(root, "usr/share/bash-completion/completions", command)
        assert f"_dbslower {command}" in run("bash", "-c", f". {completion}; complete -p {command}")


def left(root):
    return [os.path.join(where, name) for top in ("usr", "etc", "var/log")
            for where, _, names in os.walk(os.path.join(root, top)) for name in names]


def test_deb(release, tmp_path):
    need_root()
    root = tmp_path / "root"
    for folder in ("info", "updates", "triggers"):
        os.makedirs(root / "var/lib/dpkg" / folder)
    (root / "var/lib/dpkg/status").touch()
    dpkg = ("dpkg", f"--root={root}", "--force-script-chrootless", "--log=/dev/null")
    run(*dpkg, "-i", release.deb)
    check_installed(release, root, "vendor-completions", {"changelog.gz", "changelog.Debian.gz"},
                    "usr/share/doc/dbslower/copyright", "usr/share/lintian/overrides/dbslower")
    assert run(*dpkg, "--verify", "dbslower") == ""
    fields = run("dpkg-deb", "-f", release.deb)
    assert f"Version: {release.version}-1\nArchitecture: {release.deb_arch}\n" in fields and "Depends" not in fields
    text = (root / "usr/share/doc/dbslower/copyright").read_text()
    assert "GPL-2.0-only" in text and "Rich Felker" in text and "common-licenses/GPL-2" in text
    run(*dpkg, "-P", "dbslower")
    assert not left(root)


def test_deb_is_good_debian(release):
    """lintian finds nothing that is not overridden, and each override has a reason."""
    if not shutil.which("lintian"):
        pytest.skip("no lintian (package lintian)")
    strict, lenient = release.linted
    assert (strict.returncode, strict.stdout) == (0, "") and lenient.returncode == 0, (strict, lenient)
    with open(os.path.join(ROOT, "ci/packaging/deb/lintian-overrides")) as f:
        lines = f.read().splitlines()
    tags = {line.split()[1] for line in lines if not line.startswith("#")}
    assert {line.split()[2] for line in lenient.stdout.splitlines() if line.startswith("O:")} == tags, "an override without use"
    assert lines[0].startswith("#")
    changelog = run("sh", "-c", 'dpkg-deb --fsys-tarfile "$0" | tar -xO ./usr/share/doc/dbslower/changelog.Debian.gz | '
                    'gzip -d | dpkg-parsechangelog -l-', release.deb)
    assert f"Version: {release.version}-1\n" in changelog and f"Timestamp: {DATE}\n" in changelog, changelog


def test_rpm(release, tmp_path):
    need_root()
    root = tmp_path / "root"
    os.makedirs(root)
    rpm = ("rpm", "--root", root, "--dbpath", "/rpmdb")
    run(*rpm, "-i", release.rpm)
    licences = {f"usr/share/licenses/dbslower/{name}" for name in ["LICENSE", *os.listdir(os.path.join(ROOT, "LICENSES"))]}
    check_installed(release, root, "site-functions", {"CHANGELOG.md"}, *licences)
    assert run(*rpm, "-V", "dbslower") == ""
    said = run("rpm", "-qp", "--qf", "%{version}-%{release} %{arch} %{license} %{buildtime}\n[%{requirename}\n]", release.rpm)
    assert said.startswith(f"{release.version}-1 {release.arch} ({OWN}) AND MIT {DATE}\n"), said
    assert not [line for line in said.splitlines()[1:] if not line.startswith("rpmlib(")], said
    listed = set(run("rpm", "-qpl", release.rpm).split())
    assert {"/usr/sbin/dbslower", "/usr/sbin/dbstat", "/usr/share/man/man8/tplist.8.gz"} <= listed
    run(*rpm, "-e", "dbslower")
    assert not left(root)


# --- the SBOM

MODULES = os.path.join(CACHE, "spdx-tools/usr/lib/python3/dist-packages")


@pytest.fixture(scope="module")
def validator():
    """A function that validates a document with SPDX's own tool: what it refuses, and the document as it has read it."""
    if not os.path.exists(MODULES):
        pytest.skip("no spdx_tools (ci/dependencies sbom)")

    def validate(bom, folder):
        (folder / "given.spdx.json").write_text(json.dumps(bom))
        done = subprocess.run(["/usr/bin/python3", "-B", "-m", "spdx_tools.spdx.clitools.pyspdxtools", "--version", "SPDX-2.3",
                               "-i", "given.spdx.json", "-o", "read.spdx.json"], cwd=folder, text=True, timeout=120,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={**os.environ, "PYTHONPATH": MODULES})
        assert done.returncode == bool(done.stdout), done.stdout
        # Its writer has the older spelling of this word.
        return done.stdout, None if done.returncode else json.loads(
            (folder / "read.spdx.json").read_text().replace("PACKAGE_MANAGER", "PACKAGE-MANAGER"))

    return validate


def test_sbom_is_valid(release, validator, tmp_path):
    """SPDX's tool refuses nothing of it, and reads all of it: it would pass over a member that SPDX does not have."""
    with open(release.sbom) as f:
        bom = json.load(f)
    assert validator(bom, tmp_path) == ("", bom)
    bom["packages"][0]["maintainer"] = "nobody"
    assert validator(bom, tmp_path)[1] != bom


@pytest.mark.parametrize("where, member, value, said", [
    ("packages", "licenseDeclared", "GPL-2.0-onlyx", "Unrecognized license reference"),
    ("packages", "supplier", "nobody", "Actor nobody doesn't match"),
    ("packages", "checksums", [{"algorithm": "SHA256", "checksumValue": "12"}], "64 lowercase hexadecimal digits"),
    ("relationships", "spdxElementId", "SPDXRef-none", 'did not find the referenced spdx_id "SPDXRef-none"'),
])
def test_broken_sbom_is_refused(release, validator, tmp_path, where, member, value, said):
    with open(release.sbom) as f:
        bom = json.load(f)
    bom[where][0][member] = value
    assert said in validator(bom, tmp_path)[0]


def test_sbom_is_true(release, tmp_path):
    """The files are those of the archive, and what is linked in is what Debian says is there."""
    with open(release.sbom) as f:
        bom = json.load(f)
    assert bom["creationInfo"]["created"] == "2023-11-14T22:13:20Z"
    packages = {package["name"]: package for package in bom["packages"]}
    own = packages.pop("dbslower")
    assert own["versionInfo"] == release.version and release.commit in own["sourceInfo"]
    assert own["licenseDeclared"] == OWN

    run("tar", "-xf", release.tar, "-C", tmp_path)
    tree = tmp_path / release.name
    files = {os.path.relpath(path, tree): open(path, "rb").read()
             for path in glob.glob(f"{tree}/**", recursive=True) if os.path.isfile(path) and not os.path.islink(path)}
    assert {file["fileName"]: {one["algorithm"]: one["checksumValue"] for one in file["checksums"]}
            for file in bom["files"]} == {
        f"./{name}": {"SHA1": hashlib.sha1(data).hexdigest(), "SHA256": hashlib.sha256(data).hexdigest()}
        for name, data in files.items()}
    sums = "".join(sorted(hashlib.sha1(data).hexdigest() for data in files.values()))
    code = own["packageVerificationCode"]["packageVerificationCodeValue"]
    assert code == hashlib.sha1(sums.encode()).hexdigest()
    ids = {file["SPDXID"]: file["fileName"] for file in bom["files"]}
    contained = [ids[relation["relatedSpdxElement"]] for relation in bom["relationships"]
                 if (relation["spdxElementId"], relation["relationshipType"]) == (own["SPDXID"], "CONTAINS")]
    assert sorted(contained) == sorted(ids.values())
    assert {relation["relatedSpdxElement"] for relation in bom["relationships"]
            if relation["relationshipType"] == "STATIC_LINK" and ids[relation["spdxElementId"]] == "./dbslower"} == {
        package["SPDXID"] for package in packages.values()}

    gcc = [name for name in packages if name.startswith("gcc-")]
    assert set(packages) == {"musl", *gcc} and len(gcc) == 1
    assert packages["musl"]["licenseDeclared"] == "MIT"
    debian = run("dpkg-query", "-W", "-f", "${Version}\n", "musl-dev").split()
    assert packages["musl"]["versionInfo"] == debian[0]
    assert packages[gcc[0]]["versionInfo"] in run("dpkg-query", "-W", "-f", "${source:Version}\n", "gcc-*-base").split()
    upstream = debian[0].split("-")[0]
    assert f"cpe:2.3:a:musl-libc:musl:{upstream}:*:*:*:*:*:*:*" in [
        reference["referenceLocator"] for reference in packages["musl"]["externalRefs"]]

    sums = open(release.path("SHA256SUMS")).read()
    archive = own["packageFileName"]
    assert archive == os.path.basename(release.tar) and [one["checksumValue"] for one in own["checksums"]] == [sha256(release.tar)]
    assert f"{sha256(release.tar)}  {archive}\n" in sums
    assert own["supplier"] == "Organization: The dbslower authors (dbslower@localhost)"
    assert {package["supplier"] for package in packages.values()} == {"Organization: Debian"}


def test_sbom_licences(release):
    """SPDX's licence expressions, by the parser that npm contains, which knows the list of licences."""
    if not shutil.which("npm"):
        pytest.skip("no npm")
    parser = os.path.join(run("npm", "root", "--global", "--silent").split()[-1], "npm/node_modules/spdx-expression-parse")
    if not os.path.exists(parser):
        pytest.skip("this npm has no spdx-expression-parse")
    with open(release.sbom) as f:
        bom = json.load(f)
    licences = {one[key] for one in bom["packages"] + bom["files"]
                for key in ("licenseConcluded", "licenseDeclared") if key in one} - {"NOASSERTION"}
    script = "const parse = require(process.argv[1]); process.argv.slice(2).forEach(text => parse(text))"
    run("node", "-e", script, parser, bom["dataLicense"], *licences)
    assert len(licences) >= 4
    with pytest.raises(AssertionError):
        run("node", "-e", script, parser, "GPL-2.0-only OR BSD-2-Clauses")


def test_signature(release, tmp_path):
    """gpg verifies what make sign signed with a key of its own; not other sums."""
    if not (shutil.which("gpg") and shutil.which("gpgv")):
        pytest.skip("no gpg (ci/dependencies dist)")
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    env = {**os.environ, "GNUPGHOME": str(home)}
    gpg = ("gpg", "--batch", "--quiet", "--passphrase", "", "--pinentry-mode", "loopback")
    try:
        # gpg waits 5 s for the agent that it starts itself.
        subprocess.run(["gpg-agent", "--daemon"], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=True)
        for user in ("first@localhost", "releaser@localhost"):
            run(*gpg, "--quick-generate-key", user, "ed25519", "sign", "never", env=env)
        run("gpg", "--batch", "--export", "--output", tmp_path / "key", "releaser@localhost", env=env)
        shutil.copy(release.path("SHA256SUMS"), tmp_path)
        run("make", "-s", "-C", release.tree, "sign", f"DIST={tmp_path}", "KEY=releaser@localhost", env=env)
    finally:
        run("gpgconf", "--kill", "gpg-agent", env=env)
    verify = ("gpgv", "--keyring", tmp_path / "key", tmp_path / "SHA256SUMS.asc", tmp_path / "SHA256SUMS")
    assert "Good signature" in run(*verify, env=env)
    with open(tmp_path / "SHA256SUMS", "a") as f:
        f.write("\n")
    assert subprocess.run(verify, capture_output=True, env=env).returncode == 1


# --- refusals

def refused(tree, *args):
    done = subprocess.run(["make", "-s", "-C", str(tree), "dist", *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=600, env={"PATH": os.environ["PATH"], **GIT})
    assert done.returncode != 0, done.stdout
    return done.stdout


def test_refuses_what_is_not_committed(release):
    path = os.path.join(release.tree, "README.md")
    with open(path) as f:
        text = f.read()
    before = sha256(release.path("SHA256SUMS"))
    try:
        with open(path, "a") as f:
            f.write("More.\n")
        assert "not committed" in refused(release.tree)
    finally:
        with open(path, "w") as f:
            f.write(text)
    assert sha256(release.path("SHA256SUMS")) == before


@pytest.mark.parametrize("maintainer", ["nobody", "nobody <nowhere>", "<a@b>", 'A "B" <a@b>', "A|B <a@b>"])
def test_refuses_a_maintainer_without_address(release, maintainer):
    said = refused(release.tree, f"MAINTAINER={maintainer}")
    assert said.startswith("ci/dist: MAINTAINER=") and said.count("\n") <= 2, said


# --- what puts it into other things

def test_initramfs(release, tmp_path):
    """Debian's mkinitramfs with the hook; a namespace hides that the kernel's files are not there."""
    need_root()
    if not shutil.which("mkinitramfs"):
        pytest.skip("no mkinitramfs (package initramfs-tools-core)")
    config = tmp_path / "config"
    for folder in ("hooks", "scripts", "conf.d"):
        os.makedirs(config / folder)
    (config / "initramfs.conf").write_text("MODULES=list\nBUSYBOX=n\nCOMPRESS=gzip\nFSTYPE=ext4\n")
    (config / "modules").touch()
    shutil.copy(os.path.join(ROOT, "ci/packaging/initramfs-tools/dbslower"), config / "hooks")
    image = tmp_path / "initrd.img"
    script = ("mount -t tmpfs none /boot && echo CONFIG_RD_GZIP=y >/boot/config-6.1.0 && "
              f"exec mkinitramfs -d {config} -o {image} 6.1.0")
    run("unshare", "-m", "sh", "-c", script, env={**os.environ, "DBSLOWER": release.bare, "TMPDIR": str(tmp_path)})
    listed = run("lsinitramfs", image).split("\n")
    assert {f"usr/sbin/{name}" for name in {"dbslower", *LINKS}} <= set(listed)
    run("unmkinitramfs", image, tmp_path / "unpacked")
    found = glob.glob(f"{tmp_path}/unpacked/**/usr/sbin/dbslower", recursive=True)
    assert len(found) == 1 and sha256(found[0]) == sha256(release.bare)
    root = found[0].removesuffix("/usr/sbin/dbslower")
    assert release.version in run("chroot", root, "/usr/sbin/dbslower", "--version")


BUILDROOT = r"""
qstrip = $(strip $(subst ",,$(1)))
BR2_EXTERNAL_DBSLOWER_PATH = {folder}
BR2_PACKAGE_DBSLOWER_SITE = "file:///srv/dbslower"
BR2_ARCH = x86_64
TARGET_CC = gcc
TARGET_STRIP = strip
TARGET_CFLAGS = -O2
TARGET_DIR = {target}
STAGING_DIR = /staging
MAKE := $(MAKE) -n
define generic-package
{tree}/all:
	$$(DBSLOWER_BUILD_CMDS)
	$$(DBSLOWER_INSTALL_TARGET_CMDS)
	@echo version $$(DBSLOWER_VERSION), site $$(DBSLOWER_SITE)
endef
include $(BR2_EXTERNAL_DBSLOWER_PATH)/external.mk
"""


def test_buildroot(releases, tmp_path):
    """The recipe as make reads it, in a stand-in for Buildroot: commands are shown and not run."""
    release, second = releases
    folder = os.path.join(ROOT, "ci/packaging/buildroot")
    (tmp_path / "Makefile").write_text(BUILDROOT.format(folder=folder, target=tmp_path / "target", tree=second.tree))
    said = run("make", "-C", tmp_path, "-B", f"{second.tree}/all", env={"PATH": os.environ["PATH"]})
    assert f"version {release.version}, site file:///srv/dbslower\n" in said
    compiled = [line for line in said.splitlines() if " -c -o build/cli/main.o" in line]
    assert compiled and all("gcc -std=c11" in line and "/usr/include" not in line for line in compiled), said[-3000:]
    assert re.search(r"clang -isystem /staging/usr/include -target bpf", said)
    assert f"install -D -m 755 build/dbslower {tmp_path}/target/usr/sbin/dbslower" in said

    shutil.copy(os.path.join(folder, "dbslower/dbslower.hash"), tmp_path)
    shutil.copy(release.path("SHA256SUMS"), tmp_path)
    with open(tmp_path / "dbslower.hash") as f:
        run("sh", "-c", f.read().splitlines()[1].lstrip("# "), cwd=tmp_path)
        f.seek(0)
        sums = {tuple(line.split("  ")) for line in f.read().splitlines() if not line.startswith("#")}
    licences = ("LICENSE", "LICENSES/GPL-2.0-only.txt", "LICENSES/BSD-2-Clause.txt")
    assert sums == {("sha256", sha256(release.sources), os.path.basename(release.sources)),
                    *(("sha256", sha256(os.path.join(ROOT, name)), name) for name in licences)}
