# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Kernels whose verifier lacks bounded loops, where to load a program can crash the host: nothing but the question is loaded there,
and what needs no program works. Seccomp user notification answers for the kernel.
"""

import errno
import json
import os
import platform
import subprocess

import pytest

import bpf_answers
from bpf_answers import Answered
from requirements import need_root
from tool import DBSLOWER, parsed, refused

TOO_OLD = f"the kernel's verifier lacks bounded loops (Linux 5.3; RHEL 8.3 has them); this is {platform.release()}"
SAMPLES = "; or, without programs and probes, specify --sample 10ms"	# behind it, of the commands that can


@pytest.fixture(autouse=True)
def known_numbers():
    need_root()
    if bpf_answers.SYS_BPF is None:
        pytest.skip(f"the number of bpf(2) on {platform.machine()} is not known here")


TRACING = {name: [name] for name in ("slow", "stat", "top", "locks", "transactions")}
TRACING |= {"record": ["record", "recording"], "trace": ["trace", DBSLOWER, "self__start"], "self-test": ["doctor", "--self-test"],
            "doctor": ["doctor"]}


def command(args, folder):
    return [DBSLOWER, *(str(folder / arg) if arg == "recording" else arg for arg in args)]


@pytest.mark.parametrize("name", TRACING)
def test_too_old(name, tmp_path):
    """EINVAL for the program that jumps back, which is the second one, and nothing follows it. Neither has another cause."""
    ran = Answered(command(TRACING[name], tmp_path), lambda program: errno.EINVAL if program.jumps_back or program.unversioned else 0)
    times = 2 if name == "self-test" else 1	# it asks which ways there are, and then tries one
    assert [one.jumps_back for one in ran.programs] == [False, True] * times and not ran.others, ran.done
    assert ran.done.returncode == 1
    if "doctor" in TRACING[name]:
        assert all(part in ran.done.stdout for part in TOO_OLD.split("; ")[1:]), ran.done
    else:
        offered = SAMPLES if TRACING[name][0] in ("slow", "stat", "top", "record") else ""
        assert ran.done.stderr == f"dbslower: BPF: {TOO_OLD}{offered}\n", ran.done


def test_doctor_in_json():
    ran = Answered([DBSLOWER, "doctor", "--json"], lambda program: errno.EINVAL if program.jumps_back else 0)
    found, = parsed([ran.done.stdout])
    assert ran.done.returncode == 1 and "lacks bounded loops" in json.dumps(found["obstacles"]), found
    assert all(one.get("has", True) for one in found["features"]), "what was not asked is unknown"


@pytest.mark.parametrize("name", ["slow", "trace"])
@pytest.mark.parametrize("which", [0, 1], ids=["first", "loop"])
@pytest.mark.parametrize("error, words", [(errno.EPERM, r"Operation not permitted; .*seccomp"),
                                          (errno.ENOMEM, "(Out of memory|Cannot allocate memory); free memory")], ids=["EPERM", "ENOMEM"])
def test_other_errors(name, which, error, words, tmp_path):
    """They say nothing of the verifier."""
    ran = Answered(command(TRACING[name], tmp_path), lambda program: error if program.jumps_back == bool(which) else 0)
    assert len(ran.programs) == which + 1 and not ran.others, ran.done
    refused(ran.done, words, status=1)
    assert "bounded loops" not in ran.done.stderr


def test_first_program_is_invalid():
    """EINVAL for a program that does not jump back has another cause."""
    ran = Answered([DBSLOWER, "slow"], lambda program: errno.EINVAL)
    assert len(ran.programs) == 1 and "bounded loops" not in ran.done.stderr, ran.done
    refused(ran.done, "BPF program probe: refused by the kernel: Invalid argument", status=1)


def test_released_names():
    """--force names the release."""
    done = subprocess.run([DBSLOWER, "slow", "--force=linux-4.18"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (1, f"dbslower: BPF: {TOO_OLD}{SAMPLES}\n")


def test_what_loads_nothing(postgres, tool, tmp_path):
    """ps, list, replay and report work everywhere."""
    recording = tmp_path / "recording"
    traced = tool("record", recording, "-p", postgres.pid, "-m", "0", attached=False)
    traced.wait_for(lambda tool: "dbslower: tracing" in tool.stderr, what="its start")
    postgres.psql("select 1 /* kept */")
    assert traced.stop() == 0, traced.said()
    for args, words in ((["ps", "-p", str(postgres.pid)], "XACT(s)"), (["list", "-p", str(postgres.pid)], "postgresql:query__start"),
                        (["replay", str(recording), "-m", "0"], "select 1 /* kept */"), (["report", str(recording)], "<html")):
        ran = Answered([DBSLOWER, *args], lambda program: errno.EINVAL)
        assert ran.done.returncode == 0 and words in ran.done.stdout and not ran.programs, ran.done
