# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""ci/test itself, on small tests: what it counts, what it repeats, and what it never does."""

import os
import shutil
import subprocess

import pytest

from tool import ROOT, TESTS

HEAD = '''
import os, pytest
from complaints import DurationsOff, Off, report

def times(name):
    """Count the runs of a test."""
    with open({runs!r}, "a+") as f:
        f.write(name + "\\n")
        f.seek(0)
        return f.read().split().count(name)

OFF = [Off("slow")]

@pytest.fixture
def leftover():
    yield
    raise AssertionError("something is left")
'''

# name: (a test, how often it runs, what the last line says, whether it is flaky)
CASES = {
    "passes": ("@pytest.mark.calm\ndef test_it(): times('it')", 1, "1 passed, 0 failed, 0 skipped", False),
    "off once": ("@pytest.mark.calm\ndef test_it(): times('it') > 1 or report(OFF)", 2, "1 passed, 0 failed, 0 skipped", True),
    "off twice": ("@pytest.mark.calm\ndef test_it(): times('it') and report(OFF)", 2, "0 passed, 1 failed, 0 skipped", False),
    "a value, too": ("@pytest.mark.calm\ndef test_it(): times('it') > 1 or report([*OFF, 'not seen'])",
                     1, "0 passed, 1 failed, 0 skipped", False),
    "a value": ("@pytest.mark.calm\ndef test_it(): assert times('it') > 1", 1, "0 passed, 1 failed, 0 skipped", False),
    "a leftover, too": ("@pytest.mark.calm\ndef test_it(leftover): times('it') > 1 or report(OFF)",
                        1, "0 passed, 1 failed, 0 skipped", False),
    "not calm": ("def test_it(): times('it') > 1 or report(OFF)", 1, "0 passed, 1 failed, 0 skipped", False),
    "then a value": ("@pytest.mark.calm\ndef test_it():\n    assert times('it') < 2\n    report(OFF)",
                     2, "0 passed, 1 failed, 0 skipped", False),
    "then a skip": ("@pytest.mark.calm\ndef test_it(): times('it') > 1 and pytest.skip('no more') or report(OFF)",
                    2, "0 passed, 1 failed, 0 skipped", False),
    "a name with spaces": ("@pytest.mark.calm\n@pytest.mark.parametrize('one', ['a  b \\\\ $(c) [::d]'])\n"
                           "def test_it(one): times('it') > 1 or report(OFF)", 2, "1 passed, 0 failed, 0 skipped", True),
    "a crash": ("@pytest.mark.calm\ndef test_it(): times('it') and os.abort()", 1, "0 passed, 1 failed, 0 skipped", False),
}


@pytest.fixture
def suite(tmp_path):
    """suite(TEXT, ARGS...) runs ci/test on a test file of this text. Return the CompletedProcess and the tests that ran."""
    for folder in ("ci", "tests/e2e"):
        os.makedirs(tmp_path / folder)
    for name in ("test", "schema"):
        shutil.copy(os.path.join(ROOT, "ci", name), tmp_path / "ci")
    shutil.copy(os.path.join(TESTS, "conftest.py"), tmp_path / "tests")
    for folder in ("tests/lib", "docs", "cli"):	# what its modules read
        os.symlink(os.path.join(ROOT, folder), tmp_path / folder)
    runs = tmp_path / "runs"

    def run(text, *args):
        (tmp_path / "tests" / "e2e" / "test_made_up.py").write_text(HEAD.format(runs=str(runs)) + "\n" + text + "\n")
        runs.write_text("")
        done = subprocess.run([tmp_path / "ci" / "test", *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=120,
                              env={key: value for key, value in os.environ.items()
                                   if key != "STRICT_SKIPS" and not key.startswith("DBSLOWER_")})
        return done, runs.read_text().split()
    return run


@pytest.mark.parametrize("name", CASES)
def test_only_durations_are_measured_again(suite, name):
    text, ran, last, flaky = CASES[name]
    done, runs = suite(text)
    assert runs == ["it"] * ran, done.stdout
    *before, end = done.stdout.splitlines()
    assert end == last and done.returncode == ("0 failed" not in last), done.stdout
    assert [line.startswith("flaky: e2e/test_made_up.py::test_it") for line in before].count(True) == flaky, done.stdout
    assert not flaky or before[-1].startswith("flaky: "), done.stdout


def test_nothing_is_left_when_it_is_ended(suite, tmp_path):
    """What the fixtures of all its processes made is removed."""
    text = ("import time\n@pytest.fixture\ndef made():\n    times('made')\n    yield\n    times('removed')\n"
            "def test_it(made): os.kill(int(os.environ['DBSLOWER_PARENT']), 15); time.sleep(60)")
    done, runs = suite(text)
    assert runs == ["made", "removed"] and done.returncode == 1, done.stdout


@pytest.mark.parametrize("number, last", [(2, "4 passed, 0 failed, 0 skipped"), (3, "2 passed, 3 failed, 0 skipped")])
def test_more_than_two_flaky_fail(suite, number, last):
    flaky = f"@pytest.mark.calm\n@pytest.mark.parametrize('one', range({number}))\ndef test_it(one):\n" \
            "    times(f'it{one}') > 1 or report(OFF)\n"
    done, runs = suite(f"{flaky}\ndef test_other(): times('other')\n@pytest.mark.calm\ndef test_last(): times('last')")
    assert done.stdout.splitlines()[-1] == last and done.returncode == (number > 2), done.stdout
    names = [f"it{one}" for one in range(number)]
    assert sorted(runs[:-number]) == sorted([*names, "other", "last"]) and runs[0] == "other", "what is calm comes last"
    assert runs[-number:] == names, "they are repeated behind all others"
    assert done.stdout.splitlines()[-1 - number:-1] == [f"flaky: e2e/test_made_up.py::test_it[{one}]" for one in range(number)]
