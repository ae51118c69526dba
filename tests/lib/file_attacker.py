# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
A user without privileges who starts programs that pretend to be a server and changes their files.

file_attacker.py PROGRAM FOLDER: carries out the commands on standard input, one a line, and prints "done" after each:

	make COUNT ENTRY	write FOLDER/mysqld anew, with a symbol table of COUNT entries of so many bytes
	run TIMES SECONDS	start it so often and end it after so many seconds
	storm FILES COUNT	make and run so many files, one after the other, each anew
	truncate BYTES		cut it to that length
"""

import errno
import os
import signal
import subprocess
import sys
import tempfile
import time

import sparse_elf

USER = 1001


class Attacker:
    """It while it runs, as USER, in a folder of its own."""

    def __init__(self, program):
        self.folder = tempfile.mkdtemp(prefix="attacker.", dir="/tmp")
        os.chmod(self.folder, 0o755)
        self.program = os.path.join(self.folder, "program")
        with open(program, "rb") as f, open(self.program, "wb") as to:
            to.write(f.read())
        os.chmod(self.program, 0o755)
        os.chown(self.folder, USER, USER)
        # The interpreter and this file may be in folders that only root may enter.
        with open(__file__, encoding="utf-8") as f, open(sparse_elf.__file__, encoding="utf-8") as g:
            source = g.read() + f.read().replace("import sparse_elf\n", "sparse_elf = sys.modules[__name__]\n")
        self.process = subprocess.Popen([sys.executable, "-c", source, self.program, self.folder], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, user=USER, group=USER, extra_groups=[],
                                        cwd="/")

    @property
    def path(self):
        return os.path.join(self.folder, "mysqld")

    def begin(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def finish(self):
        line = self.process.stdout.readline()
        assert line == "done\n", f"it ended with {self.process.wait()}"

    def do(self, *words):
        self.begin(*words)
        self.finish()

    def end(self):
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()
        subprocess.run(["rm", "-r", self.folder], check=True)


def started(path, seconds):
    process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    time.sleep(seconds)
    process.kill()
    process.wait()
    process.stdin.close()


def truncate(path, size):
    """Cut it. The kernel refuses that while the memory of a process that has ended is still read."""
    while True:
        try:
            os.truncate(path, size)
            return
        except OSError as why:
            if why.errno != errno.ETXTBSY:
                raise
        time.sleep(0.01)


def main(program, folder):
    path = os.path.join(folder, "mysqld")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for line in sys.stdin:
        word, *values = line.split()
        if word == "make":
            sparse_elf.with_symbols(program, path + ".new", *map(int, values))
            os.rename(path + ".new", path)
        elif word == "run":
            for _ in range(int(values[0])):
                started(path, float(values[1]))
        elif word == "storm":
            for _ in range(int(values[0])):
                sparse_elf.with_symbols(program, path + ".new", int(values[1]))
                os.rename(path + ".new", path)
                started(path, 0.1)
        elif word == "truncate":
            truncate(path, int(values[0]))
        print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
