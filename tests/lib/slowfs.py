# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A FUSE file system with one file, in which each request takes a while. It counts them."""

import errno
import os
import stat
import subprocess
import sys
import time

from cluster import wait_for

DELAY = 0.03
CONTENT = b"0123456789" * 100


class SlowFs:
    """Mounted at a folder, as a context."""

    def __init__(self, folder):
        self.folder = str(folder)
        self.log = os.path.join(os.path.dirname(self.folder), "slowfs.log")

    def __enter__(self):
        os.makedirs(self.folder, exist_ok=True)
        self.process = subprocess.Popen([sys.executable, __file__, self.folder, self.log], stdin=subprocess.DEVNULL)
        wait_for(lambda: os.path.ismount(self.folder), what="it to be mounted")
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", self.folder], check=True)
        self.process.wait(20)

    def requests(self):
        """What was asked for so far."""
        with open(self.log, encoding="ascii") as log:
            return log.read().split()


def main(folder, path):
    import fusepy as fuse

    log = open(path, "a", buffering=1, encoding="ascii")

    class Slow(fuse.Operations):
        def __call__(self, op, *args):
            result = super().__call__(op, *args)
            if op not in ("init", "destroy", "release", "releasedir"):	# nobody waits for the others
                log.write(f"{op}\n")
                time.sleep(DELAY)
            return result

        def getattr(self, path, fh=None):
            if path == "/":
                return {"st_mode": stat.S_IFDIR | 0o755, "st_nlink": 2}
            if path != "/file":
                raise fuse.FuseOSError(errno.ENOENT)
            return {"st_mode": stat.S_IFREG | 0o644, "st_nlink": 1, "st_size": len(CONTENT)}

        def readdir(self, path, fh):
            return [".", "..", "file"]

        def read(self, path, size, offset, fh):
            return CONTENT[offset:offset + size]

        def flush(self, path, fh):
            return 0

        def access(self, path, amode):
            return 0

    fuse.FUSE(Slow(), folder, foreground=True, nothreads=True, allow_other=True, attr_timeout=0, entry_timeout=0, direct_io=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
