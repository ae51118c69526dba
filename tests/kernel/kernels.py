# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Boot other kernels under QEMU, with an initramfs that is made file by file."""

import glob
import os
import re
import resource
import shutil
import signal
import stat
import subprocess
import time

from background import end_with_parent
from fetched import CannotBeHad, fetched
from tool import BUILD, ROOT

KERNELS = ["x86_64-5.10", "x86_64-6.1", "x86_64-6.12", "x86_64-6.18", "x86_64-newest",
           "aarch64-5.10", "aarch64-6.1", "aarch64-6.12", "aarch64-newest", "riscv64-6.12", "riscv64-newest"]
OF_MAKE_TEST = ["x86_64-5.10", "x86_64-newest", "aarch64-newest"]
SERVER_UID = 70		# as init.c has it
NICE = -15		# of the emulator, as root
CPU_TIMEOUT = 600	# of the emulator, which may wait for a CPU for long
TIMEOUT = 1800

# After cmpxchg16b an interrupt finds a part of rax in the flags, and the kernel, which uses it for its heap, dies or hangs (seen
# with QEMU 7.2, in every second boot of 6.12): the guest's processor has none. no_timer_check: an emulator that gets no CPU for
# some ms at the wrong time looks like a broken timer, for which the kernel panics.
QEMU = {
    "x86_64": ["qemu-system-x86_64", "-M", "q35", "-cpu", "max,-cx16", "-append", "console=ttyS0 panic=-1 quiet no_timer_check"],
    "aarch64": ["qemu-system-aarch64", "-M", "virt", "-cpu", "cortex-a72", "-append", "console=ttyAMA0 panic=-1 quiet"],
    "riscv64": ["qemu-system-riscv64", "-M", "virt", "-append", "console=ttyS0 panic=-1 quiet"],
}

# riscv64's board has one port.
SECOND_SERIAL = {
    "x86_64": lambda path: ["-serial", f"file:{path}"],
    "riscv64": lambda path: ["-chardev", f"file,id=data,path={path}", "-device", "pci-serial,chardev=data"],
}
QEMU_PACKAGE = {"x86_64": "qemu-system-x86", "aarch64": "qemu-system-arm", "riscv64": "qemu-system-misc"}


def wanted():
    """The kernels that this run is for: KERNELS, "all", or those of make test."""
    names = os.environ.get("KERNELS") or ",".join(OF_MAKE_TEST)
    return KERNELS if names == "all" else [name for name in names.replace(",", " ").split()]


def kernel(name):
    """The path of the kernel @name, fetched if it is not there."""
    return os.path.join(fetched("kernel", name, folder="kernels"), name)


def server(debarch):
    """The folder with PostgreSQL for @debarch, fetched if it is not there."""
    return fetched("server", "trixie forky", debarch, folder=f"server-{debarch}", more=("postgresql", "dash"))


def build_of(arch):
    """Return the build directory of @arch."""
    return BUILD if arch == os.uname().machine else os.path.join(BUILD, arch)


class Initramfs:
    """A cpio archive in the kernel's format "newc"; add() what it has, then write() it."""

    def __init__(self):
        self.parts = []
        self.names = set()
        self.device("/dev/console", 5, 1)
        self.device("/dev/null", 1, 3)
        for folder in ("/proc", "/sys", "/run"):
            self.folder(folder)
        self.folder("/tmp", 0o1777)

    def add(self, name, mode, data=b"", uid=0, device=(0, 0)):
        name = name.lstrip("/")
        if name in self.names:
            return
        parent = os.path.dirname(name)
        if parent:
            self.folder(parent)
        self.names.add(name)
        fields = [len(self.names), mode, uid, uid, 1, 0, len(data), 0, 0, *device, len(name) + 1, 0]
        head = b"070701" + b"".join(b"%08x" % field for field in fields) + name.encode() + b"\0"
        self.parts += [head, b"\0" * (-len(head) % 4), data, b"\0" * (-len(data) % 4)]

    def folder(self, name, mode=0o755, uid=0):
        self.add(name, stat.S_IFDIR | mode, uid=uid)

    def device(self, name, major, minor):
        self.add(name, stat.S_IFCHR | 0o666, device=(major, minor))

    def file(self, name, source, uid=0):
        """A file of this machine, with links followed."""
        with open(source, "rb") as f:
            self.add(name, stat.S_IFREG | os.stat(source).st_mode & 0o777, f.read(), uid)

    def text(self, name, text):
        self.add(name, stat.S_IFREG | 0o644, text.encode())

    def tree(self, name, source, uid=0):
        self.folder(name, os.stat(source).st_mode & 0o7777, uid)
        for where, folders, names in os.walk(source, followlinks=True):
            to = name + where[len(source):]
            for one in sorted(folders):
                self.folder(f"{to}/{one}", os.stat(os.path.join(where, one)).st_mode & 0o7777, uid)
            for one in sorted(names):
                self.file(f"{to}/{one}", os.path.join(where, one), uid)

    def program(self, source):
        """A program of this machine where it is here, with the libraries that it needs."""
        said = subprocess.run(["ldd", source], capture_output=True, text=True, check=True).stdout
        self.file(source, source)
        for word in said.split():
            if word.startswith("/"):
                self.file(word, word)

    def steps(self, name, steps):
        """Commands for init: an application name and the words of a command each."""
        self.add(name, stat.S_IFREG | 0o644, "".join("".join(f"{word}\0" for word in [*step, ""]) for step in steps).encode())

    def foreign_program(self, root, path):
        """A program of another architecture, unpacked in @root, with the libraries that it needs."""
        source = next(os.path.join(root, folder, path.lstrip("/")) for folder in ("", "usr") if
                      os.path.exists(os.path.join(root, folder, path.lstrip("/"))))
        if path.lstrip("/") in self.names:
            return
        self.file(path, source)
        said = subprocess.run(["readelf", "-lWd", source], capture_output=True, text=True, check=True).stdout
        for loader in re.findall(r"program interpreter: (\S+)\]", said):
            self.foreign_program(root, loader)
        for library in re.findall(r"\(NEEDED\).*\[(\S+)\]", said):
            if not library.startswith("ld-"):
                self.foreign_program(root, os.path.join(glob.glob(f"{root}/usr/lib/*-linux-gnu*")[0][len(root):], library))

    def write(self, path):
        self.add("TRAILER!!!", 0)
        with open(path, "wb") as f:
            f.writelines(self.parts)
            f.write(b"\0" * (-f.tell() % 512))
        return str(path)


def victim_guest(arch):
    """Return an Initramfs with the tool, the victim and init."""
    build = build_of(arch)
    if not os.path.exists(build):
        raise CannotBeHad(f"nothing is built for {arch}: ci/dependencies {arch} could not get what that needs")
    guest = Initramfs()
    guest.file("/init", os.path.join(build, "tests", "kernel", "guest", "init"))
    guest.file("/victim", os.path.join(build, "tests", "kernel", "guest", "victim"))
    guest.file("/dbslower", os.path.join(build, "dbslower"))
    guest.file("/verify", os.path.join(build, "tests", "unit", "verify"))
    guest.tree("/data/specs", os.path.join(ROOT, "tests", "data", "specs"))
    return guest


def limit():
    """In the emulator's process. What another load takes from it would be a delay inside the guest, at any point of a statement."""
    end_with_parent()
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_TIMEOUT, CPU_TIMEOUT + 60))
    if not os.geteuid() and not os.nice(0):		# a job has a low priority
        os.nice(NICE)


def boot(name, initramfs, memory=512, data=None, options=""):
    """Boots kernel @name, with @options more on its command line. Returns what it said on its console and the seconds that it took."""
    arch = name.split("-")[0]
    command = [*QEMU[arch][:-1], f"{QEMU[arch][-1]} {options}", "-accel", "tcg,thread=single", "-smp", "2", "-m", str(memory), "-nodefaults", "-display", "none",
               "-no-reboot", "-kernel", kernel(name), "-initrd", initramfs, "-serial", "stdio"]
    if data:
        command += SECOND_SERIAL[arch](data)
    if not shutil.which(command[0]):
        raise CannotBeHad(f"no {command[0]} (package {QEMU_PACKAGE[arch]})")
    start = time.monotonic()
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TIMEOUT,
                              preexec_fn=limit)
        said = done.stdout
        if done.returncode == -signal.SIGXCPU:
            said += f"\nno end within {CPU_TIMEOUT} s of CPU time\n".encode()
    except subprocess.TimeoutExpired as why:
        said = (why.stdout or b"") + f"\nno end within {TIMEOUT} s\n".encode()
    return said.decode(errors="replace").replace("\r", ""), time.monotonic() - start
