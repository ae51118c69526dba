# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Run the fuzz targets: `make fuzz SECONDS=600 FUZZ="elf spec"`; tests/fuzz/test_fuzz.py replays their seeds.

What a run finds stays in $BUILD/fuzz/corpus/TARGET/, what breaks a target in $BUILD/fuzz/findings/TARGET/.
"""

import argparse
import glob
import os
import re
import subprocess
import sys

from tool import BUILD, TESTS

FOLDER = os.path.join(BUILD, "fuzz")
sys.path.insert(0, os.path.join(TESTS, "fuzz"))

from seeds import seeds	# noqa: E402

TARGETS = sorted(os.path.basename(p)[:-2] for p in glob.glob(os.path.join(TESTS, "fuzz", "*.c")))
INPUT_SECONDS = 5    # what takes longer is a finding
ENVIRON = {**os.environ, "ASAN_OPTIONS": "detect_leaks=1", "UBSAN_OPTIONS": "print_stacktrace=1"}
MAX_LEN = {"elf": 4096, "server": 16384, "object": 40000, "fingerprint": 8192}


def program(target):
    return os.path.join(FOLDER, target)


def folder(kind, target):
    path = os.path.join(FOLDER, kind, target)
    os.makedirs(path, exist_ok=True)
    return path


def write_seeds(target, to):
    """The files that were written."""
    paths = []
    for name, data in seeds(target).items():
        paths.append(os.path.join(to, name))
        with open(paths[-1], "wb") as f:
            f.write(data)
    return paths


def replay(target, paths, timeout):
    """Runs @target on each file once."""
    return subprocess.run([program(target), f"-timeout={INPUT_SECONDS * 4}", "-rss_limit_mb=1024", *paths],
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          timeout=timeout, env=ENVIRON, errors="replace")


def run(target, seconds):
    """Fuzz one target. Return whether nothing was found."""
    where = folder("seeds", target)
    write_seeds(target, where)
    findings = folder("findings", target)
    log = os.path.join(FOLDER, f"{target}.log")
    with open(log, "w") as out:
        status = subprocess.run(
            ["nice", "-n", "10", program(target), f"-max_total_time={seconds}", f"-timeout={INPUT_SECONDS}",
             "-rss_limit_mb=1024", f"-max_len={MAX_LEN.get(target, 2048)}", "-print_final_stats=1",
             f"-artifact_prefix={findings}/", folder("corpus", target), where],
            stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=ENVIRON).returncode
    with open(log, errors="replace") as f:
        text = f.read()
    covered = re.findall(r"cov: (\d+) ft: (\d+) corp: (\d+)", text)
    runs = re.search(r"stat::number_of_executed_units:\s*(\d+)", text)
    begin, end = (covered[0], covered[-1]) if covered else (("0", "0", "0"),) * 2
    print(f"{target:12} {runs[1] if runs else '?':>10} runs, edges {begin[0]} to {end[0]}, features {begin[1]} to "
          f"{end[1]}: {'nothing found' if not status else f'FOUND something, see {log} and {findings}'}", flush=True)
    return not status


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("target", nargs="*", help=", ".join(TARGETS))
    given = parser.parse_args()
    unknown = set(given.target) - set(TARGETS)
    if unknown:
        parser.error(f"no such target: {' '.join(sorted(unknown))}; there are {' '.join(TARGETS)}")
    fine = [run(target, given.seconds) for target in given.target or TARGETS]
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
