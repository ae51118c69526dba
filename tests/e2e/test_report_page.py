# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The page of a report in a browser: with hostile texts, by mouse and keyboard, with and without scripts."""

import base64
import json
import os
import random
import re
import shutil
import subprocess
import time

import pytest

from browser import colors, console, need_browser, requests, start_browser
from recording_maker import LAYOUT, WALL_NS, Made, holder
from tool import BUILD, CACHE, run

WRITER = os.path.join(BUILD, "tests", "unit", "report")
MODULES = os.path.join(CACHE, "page", "node_modules")
CODE = 24 << 10		# bytes of style and script; what writes the page has the rest of 40 KiB
HOSTILE = "</script><img src=x onerror=alert(1)>\"' onclick='alert(2)'"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "incident.html"
    subprocess.run([WRITER, str(path)], check=True, timeout=60)
    return path


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    need_browser()
    browser = start_browser(tmp_path_factory.mktemp("chromium"))
    yield browser
    browser.quit()


@pytest.fixture
def browser(chromium, page):
    """The page, opened; no script of it may fail, and nothing may be requested."""
    open_page(chromium, page)
    yield chromium
    assert not console(chromium)
    assert not [url for url in requests(chromium) if not url.startswith("data:")]


def open_page(browser, page):
    browser.get("about:blank")
    requests(browser), console(browser)
    browser.get(page.as_uri())
    assert [url for url in requests(browser) if url != "about:blank"] == [page.as_uri()]


def rows(browser, table):
    """The cells' texts of the rows that are shown."""
    return browser.execute_script(
        "return [...document.getElementById(arguments[0]).tBodies[0].rows].filter(r => !r.hidden)"
        ".map(r => [...r.cells].map(c => c.textContent))", table)


def values(browser, table, at):
    """The values of a column by which the rows that are shown are sorted."""
    return browser.execute_script(
        "return [...document.getElementById(arguments[0]).tBodies[0].rows].filter(r => !r.hidden)"
        ".map(r => Number(r.cells[arguments[1]].dataset.v))", table, at)


def press(browser, *keys):
    from selenium.webdriver.common.action_chains import ActionChains
    ActionChains(browser).send_keys(*keys).perform()


def find(browser, selector):
    return browser.find_element("css selector", selector)


def click(browser, selector):
    """The driver does not know that the controls cover what is behind them."""
    element = find(browser, selector)
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
    element.click()


def status(browser):
    return find(browser, "#status").text


def test_file(page):
    """One file: nothing is loaded, no attribute is a style or a handler, the policy permits what is there."""
    text = page.read_text(encoding="utf-8")
    assert text.count("<script") == text.count("</script") == text.count("<style") == 1
    assert not re.search(r"<[^>]*\s(style|on\w+|src)=", text)
    assert not re.findall(r"(?:href|src|url)\b\W*(?:https?:)?//", text)
    style, script = (re.search(f"<{tag}>(.*?)</{tag}>", text, re.S)[1] for tag in ("style", "script"))
    assert len(style.encode()) + len(script.encode()) < CODE
    for content, what in ((style, "style-src"), (script, "script-src")):
        digest = subprocess.run("sha256sum | cut -c 1-64", shell=True, input=content.encode(), capture_output=True,
                                check=True).stdout.decode().strip()
        policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
        found = re.search(rf"{what} 'sha256-([^']*)'", policy)[1]
        assert bytes.fromhex(digest) == base64.b64decode(found)
    assert "default-src 'none'" in policy and "unsafe" not in policy


def test_parts_have_colors(tmp_path):
    """By their names, each its own; one without has the same as others without."""
    made = Made()
    made.statement(made.session(made.server()), "select 1", ms=1000, why={name: 1 + n for n, name in enumerate(LAYOUT["parts"]) if n})
    made.statement(made.session(made.server()), "select 2", ms=100)
    page = run("report", made.save(tmp_path / "x.rec")).stdout
    used = set(re.findall(r'class="(p-\w+)"', page))
    colors = re.findall(r'^(?:\.(p-\w+)|\[class\^="p-"\]) *{ *fill: *(#\w+);? *}$', page, re.M)
    assert used == {f"p-{name}" for name in [*LAYOUT["parts"], "unknown"]}
    assert colors[0][0] == "" and {name for name, _ in colors[1:]} <= used
    assert len({color for _, color in colors}) == len(colors) > 10


def test_hostile_texts(browser):
    """They are text, and visible; no element is theirs."""
    assert HOSTILE in find(browser, "h1").text
    assert HOSTILE in browser.title
    find(browser, "#find").send_keys("<img src=x")
    click(browser, "#statements tr:not([hidden]) td button")
    assert any(HOSTILE in title for *_, title in bars(browser, "st"))
    find(browser, "#reset").click()
    assert browser.execute_script("return document.querySelectorAll('img, iframe, object, embed, link, base').length") == 0
    assert browser.execute_script("return [...document.querySelectorAll('*')].every(e => [...e.attributes].every("
                                  "a => !/^on|^style$|^src$/.test(a.name)))")
    texts = [row for row in rows(browser, "statements") if any(HOSTILE in cell for cell in row)]
    assert len(texts) == 1 and sum(HOSTILE in cell for cell in texts[0]) >= 1
    assert any(HOSTILE in cell for row in rows(browser, "waits") for cell in row)
    body = find(browser, "body").text
    assert "\\u{202e}evil" in body and "\\x1b[31m\\x01\\x7f" in body and "\\xff\\xc3(" in body
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]", body)


def test_policy_is_enforced(chromium, page, tmp_path):
    """A script, a handler or a style that were in the page would not run: the test above is not deaf."""
    bad = tmp_path / "bad.html"
    bad.write_text(page.read_text().replace(
        "<main>", "<main><script>document.title='pwned'</script><img src=x onerror=\"document.title='pwned'\">"
        "<p style='color:red'>", 1))
    chromium.get(bad.as_uri())
    assert chromium.title != "pwned"
    assert sum("Content Security Policy" in message for message in console(chromium)) >= 3


def test_sorting(browser):
    for table, at in (("groups", 2), ("groups", 6), ("statements", 0), ("statements", 1), ("waits", 1)):
        heading = find(browser, f"#{table} th:nth-child({at + 1})")
        before = values(browser, table, at)
        button = f"#{table} th:nth-child({at + 1}) button"
        click(browser, button)
        assert heading.get_attribute("aria-sort") == "descending"
        assert values(browser, table, at) == sorted(before, reverse=True)
        click(browser, button)
        assert heading.get_attribute("aria-sort") == "ascending"
        assert values(browser, table, at) == sorted(before)
    click(browser, "#statements th:nth-child(3) button")
    texts = [row[2].lower() for row in rows(browser, "statements")]
    assert texts[0] <= texts[-1] and len(browser.find_elements("css selector", "#statements th[aria-sort]")) == 1


def test_search(browser):
    total = {table: len(rows(browser, table)) for table in ("groups", "statements", "waits")}
    find(browser, "#find").send_keys("ORDERS o join")
    for table in total:
        shown = rows(browser, table)
        assert all("orders o join" in re.sub(r"\s+", " ", " ".join(row)).lower() for row in shown), table
        assert len(shown) < total[table]
    assert len(rows(browser, "groups")) == 1 and rows(browser, "statements")
    assert f"1 of {total['groups']} fingerprints" in status(browser)
    find(browser, "#reset").click()
    assert {table: len(rows(browser, table)) for table in total} == total
    find(browser, "#find").send_keys("<img src=x")
    assert len(rows(browser, "statements")) == 1
    find(browser, "#find").send_keys("no such text")
    assert not rows(browser, "statements") and "0 of" in status(browser)


def drag(browser, selector, first, last):
    """Drag over a chart, from a share of its columns to another one."""
    from selenium.webdriver.common.action_chains import ActionChains
    chart = find(browser, selector)
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", chart)
    width = chart.rect["width"]
    offsets = [round(((64 + share * 960) / 1040 - 0.5) * width) for share in (first, last)]
    ActionChains(browser).move_to_element_with_offset(chart, offsets[0], 0).click_and_hold() \
        .move_by_offset(offsets[1] - offsets[0], 0).release().perform()


def selected(browser):
    return [int(find(browser, name).get_property("value")) for name in ("#from", "#to")]


def check_selection(browser):
    """All that is shown is of that time, by the numbers of the intervals and the times of the rows."""
    first, last = selected(browser)
    begin, width = (int(find(browser, "#controls").get_attribute(name)) * 10 ** 6 for name in ("data-from", "data-width"))
    intervals = rows(browser, "intervals")
    assert 0 < len(intervals) <= last - first + 1
    assert sum(values(browser, "intervals", 1)) == sum(values(browser, "groups", 2))
    for table in ("statements", "waits"):
        for start, took in zip(values(browser, table, 0), values(browser, table, 1)):
            assert start < begin + (last + 1) * width and start + took >= begin + first * width - 10 ** 6
    for name in (".heat", ".load", ".spark"):
        assert float(find(browser, f"{name} .sel").get_attribute("width")) > 0


@pytest.mark.parametrize("chart", [".heat", ".load"])
def test_brushing(browser, chart):
    total, calls = len(rows(browser, "statements")), sum(values(browser, "groups", 2))
    drag(browser, chart, 0.3, 0.5)
    columns = int(find(browser, "#from").get_attribute("max")) + 1
    assert [round(at / columns, 1) for at in selected(browser)] == [0.3, 0.5]
    assert 0 < len(rows(browser, "statements")) < total
    assert 0 < sum(values(browser, "groups", 2)) < calls
    check_selection(browser)
    drag(browser, chart, 0.9, 0.7)
    assert [round(at / columns, 1) for at in selected(browser)] == [0.7, 0.9]
    check_selection(browser)
    find(browser, "#reset").click()
    assert len(rows(browser, "statements")) == total and sum(values(browser, "groups", 2)) == calls


def test_keyboard(browser):
    """Each control is reached and used without a mouse, and the focus is visible."""
    from selenium.webdriver.common.keys import Keys
    reached = []
    for _ in range(24):
        press(browser, Keys.TAB)
        reached.append(browser.execute_script(
            "const e = document.activeElement, s = getComputedStyle(e);"
            "return [e.id || e.tagName, s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2]"))
    names = [name for name, _ in reached]
    assert names[:12] == ["A"] * 7 + ["find", "from", "to", "reset", "theme"] and {"at", "in", "out"} < set(names)
    assert all(visible for _, visible in reached), reached
    find(browser, "#from").send_keys(Keys.ARROW_RIGHT * 30)
    assert selected(browser)[0] == 30
    assert re.fullmatch(r"\d\d:\d\d:\d\d\.\d{3}", find(browser, "#from").get_attribute("aria-valuetext"))
    check_selection(browser)
    press(browser, Keys.ESCAPE)
    assert selected(browser)[0] == 0
    button = find(browser, "#groups th:nth-child(3) button")
    button.send_keys(Keys.ENTER)
    assert find(browser, "#groups th:nth-child(3)").get_attribute("aria-sort") == "descending"
    summary = find(browser, "#groups summary")
    summary.send_keys(Keys.ENTER)
    assert find(browser, "#groups details").get_attribute("open") is not None
    assert find(browser, "#groups pre").is_displayed()


# --- a selected time

TABLES = 70			# more than the page shows


@pytest.fixture(scope="module")
def busy(tmp_path_factory):
    """A recording of ten minutes, its page, and {start: duration} of its statements in ns."""
    rnd, made, took = random.Random(1), Made(), []
    sessions = [made.session(made.server()) for _ in range(5)]
    for i in range(4000):
        ms, at = round(rnd.lognormvariate(3, 1.5), 6), i * 150
        name = int(rnd.expovariate(0.05)) % TABLES if i < 3000 else int(rnd.expovariate(0.5)) % TABLES
        why = {"lock": ms * 0.4, "fsync": ms * 0.1 * rnd.random()} if i % 3 else None
        made.statement(sessions[i % 5], f"select {'abcdefghij'[name // 10]}{'abcdefghij'[name % 10]} from t", ms=ms, at=at,
                       rows=rnd.randrange(9), error="22012" if rnd.random() < .1 else None, why=why)
        took.append((at * 10 ** 6 + round(ms * 10 ** 6), round(ms * 10 ** 6)))
    for i in range(60):
        made.wait(sessions[i % 3], ms=100 + i, at=i * 9000, text="update t", outcome="deadlock" if i % 10 == 0 else "granted",
                  holders=[holder(pid=200 + i % 4, text="lock t", ms=90 + i)])
    path = made.save(tmp_path_factory.mktemp("busy") / "busy.rec")
    html = tmp_path_factory.mktemp("busy") / "busy.html"
    html.write_text(run("report", path).stdout)
    return path, html, took


def select_columns(browser, first, last):
    browser.execute_script("for (const [id, at] of [['from', arguments[0]], ['to', arguments[1]]]) { const e = document.getElementById(id); "
                           "e.value = at; e.dispatchEvent(new Event('input')); }", first, last)


def of_time(browser, path, command, *options):
    """The JSON lines of a command that replays what ended in the selected columns; and the begin and end of these in ns since 1970."""
    begin, width = (int(find(browser, "#controls").get_attribute(name)) * 10 ** 6 for name in ("data-from", "data-width"))
    first, last = selected(browser)
    times = [begin + first * width, begin + (last + 1) * width - 1]
    since, until = (time.strftime("%FT%T", time.gmtime(ns // 10 ** 9)) + f".{ns % 10 ** 9:09}Z" for ns in times)
    done = run("replay", path, command, "--json", "--since", since, "--until", until, *options)
    return [json.loads(line) for line in done.stdout.splitlines()], times


def facts(browser):
    return dict(browser.execute_script("return [...document.querySelectorAll('[data-f]')].map(e => [e.dataset.f, e.textContent])"))


def in_ns(text):
    size = {"h": 3.6e12, "s": 1e9, "ms": 1e6, "us": 1e3, "": 1}
    number, unit = re.fullmatch(r"([\d.]+)(\D*)", text).groups()
    return float(number) * size[unit]


RANGES = [(0, 30), (70, 71), (100, 100), (110, 140), (130, 146), (0, 100)]


@pytest.mark.parametrize("first,last", RANGES)
def test_selected_groups(chromium, busy, first, last):
    """Each row has the numbers of "top" for that time, in the same order; what has no row is in one of its own."""
    path, html, _ = busy
    open_page(chromium, html)
    select_columns(chromium, first, last)
    expected = [line for line in of_time(chromium, path, "top", "--why")[0] if line["type"] == "group"]
    shown = {line["fingerprint"]: line for line in expected}
    found = chromium.execute_script(
        "return [...document.querySelectorAll('#groups tbody tr:not([hidden])')].map(r => [r.id, r.querySelector('.q code')?.textContent, "
        "[...r.cells].slice(2, 11).map(c => Number(c.dataset.v)), r.cells[11].querySelector('svg')?.getAttribute('aria-label')])")
    rest = [row for row in found if row[0] == "rest"]
    named = [row for row in found if row[0] != "rest"]
    assert [text for _, text, *_ in named] == [line["fingerprint"] for line in expected if any(
        text == line["fingerprint"] for _, text, *_ in named)]
    for _, text, numbers, bar in named:
        line = shown.pop(text)
        ns = [round(line[name] * 10 ** 6) for name in ("total_ms", "p50_ms", "p95_ms", "p99_ms", "max_ms")]
        assert numbers == [line["calls"], ns[0], ns[0] // line["calls"], *ns[1:], line["rows"], line["errors"]], text
        assert bool(bar) == ("why_ms" in line)
        parts = {name: ms for name, ms in line.get("why_ms", {}).items() if ms}
        assert set(re.findall(r"(\w+) \d+%", bar or "")) >= {name for name, ms in parts.items() if ms > .01 * sum(parts.values())}
        for name, percent in re.findall(r"(\w+) (\d+)%", bar or ""):
            assert abs(int(percent) - 100 * parts[name] / sum(parts.values())) <= 1
    assert bool(shown) == bool(rest)
    if rest:
        assert found[-1] == rest[0]
        numbers = rest[0][2]
        assert numbers[0] == sum(line["calls"] for line in shown.values())
        assert numbers[1] == sum(round(line["total_ms"] * 10 ** 6) for line in shown.values())
        assert numbers[6] == max(round(line["max_ms"] * 10 ** 6) for line in shown.values())
    assert not console(chromium)


@pytest.mark.parametrize("first,last", RANGES)
def test_selected_facts(chromium, busy, first, last):
    """The numbers above the tables are of the selected time, and again those of the page when all is shown."""
    path, html, took = busy
    open_page(chromium, html)
    before = facts(chromium)
    select_columns(chromium, first, last)
    now = facts(chromium)
    groups, (begin, end) = of_time(chromium, path, "top")
    groups = [line for line in groups if line["type"] == "group"]
    waits = [line for line in of_time(chromium, path, "locks")[0] if line["type"] == "lock_wait"]
    assert int(now["statements"]) == sum(line["calls"] for line in groups)
    assert int(now["errors"]) == sum(line["errors"] for line in groups)
    assert in_ns(now["total time"]) == pytest.approx(1e6 * sum(line["total_ms"] for line in groups), rel=.01)
    assert int(now["lock waits"]) == len(waits)
    assert int(now["deadlocks"]) == sum(line["outcome"] == "deadlock" for line in waits)
    assert in_ns(now["waited for locks"]) == pytest.approx(1e6 * sum(line["duration_ms"] for line in waits), rel=.01)
    here = sorted(ns for at, ns in took if begin <= WALL_NS + at <= end)
    for name, permille in (("p50", 500), ("p95", 950), ("p99", 990), ("longest", 1000)):
        assert in_ns(now[name]) == pytest.approx(here[max(0, -(-len(here) * permille // 1000) - 1)], rel=.05)
    shares = [float(text.rstrip("%")) for text in chromium.execute_script(
        "return [...document.querySelectorAll('.legend [data-part]:not([hidden]) i')].map(e => e.textContent)")]
    assert sum(shares) == pytest.approx(100, abs=1) and len(shares) >= 3
    find(chromium, "#reset").click()
    assert facts(chromium) == before and now != before


def test_selected_graph(chromium, busy):
    """The arrows are those of the waits that are listed, each with the time of these."""
    _, html, _ = busy
    open_page(chromium, html)

    def arrows():
        return sorted(chromium.execute_script(
            "const shown = e => !e.closest('.off'); const labels = [...document.querySelectorAll('.graph .el')];"
            "return [...document.querySelectorAll('.graph .ar')].map((p, i) => [p, labels[i]]).filter(([p]) => shown(p)).map("
            "([p, label]) => [...p.dataset.n.split(' ').map(i => document.querySelector(`.graph [data-i='${i}'] .nt`).textContent), "
            "label.textContent, shown(document.querySelector(`.graph [data-i='${p.dataset.n.split(' ')[1]}']`))])"))
    whole = arrows()
    for first, last in [*RANGES, (0, int(find(chromium, "#to").get_attribute("max")))]:
        select_columns(chromium, first, last)
        times = {}
        for row in rows(chromium, "waits"):
            whom, ns = re.match(r"(pid \d+), ([\d.]+ms)", row[6]).groups()
            times.setdefault((row[4], whom), []).append(in_ns(ns))
        now = arrows()
        assert {(who, whom) for who, whom, *_ in now} == set(times) and all(visible for *_, visible in now)
        for who, whom, text, _ in now:
            assert in_ns(text) == pytest.approx(sum(times[who, whom]), rel=.02)
        assert find(chromium, "#none").is_displayed() == (not now)
    assert now == whole


def test_order_of_a_selection(chromium, busy):
    """A column that was chosen stays the one by which groups are sorted."""
    _, html, _ = busy
    open_page(chromium, html)
    click(chromium, "#groups th:nth-child(9) button")
    for first, last in RANGES:
        select_columns(chromium, first, last)
        longest = chromium.execute_script("return [...document.querySelectorAll('#groups tbody tr:not([hidden]):not(#rest)')].map("
                                          "r => Number(r.cells[8].dataset.v))")
        assert longest == sorted(longest, reverse=True) and len(longest) > 3


# --- the sessions at a moment

def lanes(browser):
    """{label: vertical place} of the sessions that are drawn."""
    return {label.removesuffix(", idle"): float(y) - 17 for label, y in browser.execute_script(
        "return [...document.querySelectorAll('#lanes .yl')].map(t => [t.textContent, t.getAttribute('y')])")}


def bars(browser, kind):
    """(left, right, vertical place, title) of the bars of a class."""
    return [(float(x), float(x) + float(width), float(y), title) for x, width, y, title in browser.execute_script(
        "return [...document.querySelectorAll('#lanes rect.' + arguments[0])].map(r => [...['x', 'width', 'y'].map("
        "a => r.getAttribute(a)), r.textContent])", kind)]


def looked(browser):
    """The begin and end of what is drawn, in us since the charts begin, which is less than half a day before or after."""
    begin = int(find(browser, "#controls").get_attribute("data-from"))
    times = [sum(float(part) * size for part, size in zip(time.split(":"), (3600e3, 60e3, 1e3)))
             for time in re.match(r"(\S+) to (\S+): ", find(browser, "#when").text).groups()]
    day = 86400000
    return [((time - begin % day + day / 2) % day - day / 2) * 1000 for time in times]


def overlapping(browser, table):
    """The rows of a table, also those that are filtered out, of statements or waits within what is drawn."""
    begin = int(find(browser, "#controls").get_attribute("data-from")) * 10 ** 6
    low, high = (begin + us * 1000 for us in looked(browser))
    return [cells for start, took, cells in browser.execute_script(
        "return [...document.getElementById(arguments[0]).tBodies[0].rows].map(r => [Number(r.cells[0].dataset.v), "
        "Number(r.cells[1].dataset.v), [...r.cells].map(c => c.textContent)])", table)
        if low + 2e6 < start + took and start < high - 2e6]


def check_arrows(browser, waits):
    """Each arrow is from the strip of a wait to a session for which that one waited, by the table."""
    places = {place: label for label, place in lanes(browser).items()}
    pairs = {(row[4], holder) for row in waits for holder in re.findall(r"pid \d+|prepared transaction", row[6])}
    found = set()
    for path in browser.execute_script("return [...document.querySelectorAll('#lanes .ar')].map(p => p.getAttribute('d'))"):
        begin, end = (float(y) for y in re.fullmatch(r"M\S+ (\S+)V(\S+)", path).groups())
        found.add((places[begin - 16], places[end - (24 if end < begin else 4)]))
    assert found and found <= pairs, found - pairs
    return found


def test_moment_of_a_wait(browser):
    """From its row: all of the waits at that time, and who waited for whom, as the table has it."""
    assert find(browser, "#moment").is_displayed() and not find(browser, "#still").is_displayed()
    row = next(tr for tr in browser.find_elements("css selector", "#waits tbody tr") if "pid 100" in tr.text and "9.00s" in tr.text)
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", row)
    row.find_element("css selector", "button").click()
    assert browser.execute_script("return document.activeElement.id") == "at"
    assert ("pid 100", "pid 7") in check_arrows(browser, overlapping(browser, "waits"))
    assert "pid 7, idle" in find(browser, "#lanes").text
    left, right, place, title = max(bars(browser, "wt"), key=lambda bar: bar[1] - bar[0])
    assert title.startswith("waits for a lock, 9.00s: UPDATE accounts") and place == lanes(browser)["pid 100"] + 14
    assert any(abs(bar[0] - left) < 1 and abs(bar[1] - right) < 1 and bar[2] == lanes(browser)["pid 7"] + 19
               for bar in bars(browser, "ho"))
    assert 0.7 < (right - left) / 854 < 0.9		# with an eighth on each side
    assert find(browser, "#who li").text == "pid 100 waited 9.00s for pid 7, idle in transaction"
    for _ in range(3):
        click(browser, "#out")
        waits = overlapping(browser, "waits")
        assert len(waits) == len(bars(browser, "wt"))
    assert len(check_arrows(browser, waits)) > 4 and len(waits) > 10
    (dashed,) = browser.execute_script("return [...document.querySelectorAll('#lanes .ar.q')].map(p => p.getAttribute('d'))")
    assert float(dashed.split("V")[1]) - lanes(browser)["pid 8"] in (4, 24)
    assert sum(title == "ahead in the queue of pid 102, 3.00s" for *_, title in bars(browser, "ho")) == 1
    assert "pid 102 waited 3.00s for pid 8, ahead in the queue" in find(browser, "#who").text
    texts = [item.text for item in browser.find_elements("css selector", "#who li")]
    assert len(texts) == min(20, len(waits)) and all(" waited " in text for text in texts)
    click(browser, "#who button")
    assert "9.00s" in browser.execute_script("return document.activeElement.closest('#waits tr').textContent")


def test_moment_of_a_statement(browser):
    """The slowest one is highlighted; statements at its time are those of the table, and the longest of others."""
    click(browser, "#statements tbody button")
    rows_then = overlapping(browser, "statements")
    drawn = bars(browser, "st")
    assert len(rows_then) <= len(drawn) and len(bars(browser, "fo")) == 1
    took = rows(browser, "statements")[0][1]
    assert bars(browser, "fo")[0][3].startswith(took + ": ")
    sessions = {row[7] for row in rows_then}
    assert sessions <= set(lanes(browser))


def test_durations_of_bars(browser):
    """They are those of the tables, to the last digit."""
    last = int(find(browser, "#at").get_attribute("max"))
    for _ in range(10):
        find(browser, "#out").click()
    assert looked(browser)[0] <= 0 and last > 100
    took = {row[1] for row in rows(browser, "statements")} | {row[1] for row in rows(browser, "waits")}
    drawn = {title.removeprefix("waits for a lock, ").split(": ")[0] for kind in ("st", "wt") for *_, title in bars(browser, kind)}
    assert took <= drawn and len(took) > 20, took - drawn
    for kind, table, word in (("er", "statements", "failed"), ("dl", "waits", "deadlock")):
        bad = [row[1] for row in rows(browser, table) if any(cell.startswith(word) for cell in row)]
        marked = [title.removeprefix("waits for a lock, ").split(": ")[0] for *_, title in bars(browser, kind)]
        assert bad and set(bad) <= set(marked) and len(marked) < len(drawn)


def test_moment_of_many_sessions(chromium, page, tmp_path):
    """The page states how many sessions it does not draw."""
    many = tmp_path / "many.html"
    marks = "".join(f"0 1000000 p{pid}a g1 0," for pid in range(1, 101))
    many.write_text(re.sub(r'data-m="[^"]*"', f'data-m="{marks}"', page.read_text(), count=1))
    open_page(chromium, many)
    assert len(lanes(chromium)) == len(bars(chromium, "st")) == 40
    assert re.search(": 100 sessions, the longest 100 statements and 0 lock waits; 60 sessions are not drawn$",
                     find(chromium, "#when").text)
    assert not console(chromium)


@pytest.mark.parametrize("chart", [".heat", ".load"])
def test_moment_of_a_selection(browser, chart):
    width = int(find(browser, "#controls").get_attribute("data-width")) * 1000
    more = 0
    for share in (0.05, 0.2, 0.35, 0.6, 0.8, 0.95):
        drag(browser, chart, share, share)
        first, last = selected(browser)
        low, high = looked(browser)
        assert first == last and low <= first * width and (last + 1) * width <= high <= low + 6 * width + 1
        shown = bars(browser, "st")
        assert shown and all("..." not in bar[3] and len(bar[3]) > 5 for bar in shown)
        more += len(shown) > len(overlapping(browser, "statements"))
        box = find(browser, f"{chart} .now")
        assert float(box.get_attribute("x")) <= float(find(browser, f"{chart} .sel").get_attribute("x"))
    assert more, "no moment with other than the slowest statements was tested"


def test_moment_by_keyboard(browser):
    from selenium.webdriver.common.keys import Keys
    slider = find(browser, "#at")
    slider.send_keys(Keys.HOME)
    before = looked(browser)
    slider.send_keys(Keys.ARROW_RIGHT * 8)
    after = looked(browser)
    width = int(find(browser, "#controls").get_attribute("data-width")) * 1000
    assert after[0] - before[0] == pytest.approx(2 * width, abs=2000)
    assert re.fullmatch(r"\d\d:\d\d:\d\d\.\d{3}", slider.get_attribute("aria-valuetext"))
    for name, factor in (("#in", 0.5), ("#out", 2)):
        before = looked(browser)
        find(browser, name).send_keys(Keys.ENTER)
        after = looked(browser)
        assert after[1] - after[0] == pytest.approx((before[1] - before[0]) * factor, abs=3000)
    find(browser, "#statements tbody button").send_keys(Keys.ENTER)
    assert len(bars(browser, "fo")) == 1 and browser.execute_script("return document.activeElement.id") == "at"


def test_moment_is_visible(browser):
    """Its picture is not empty, has the colour of waits where there are waits, and follows the slider."""
    from selenium.webdriver.common.keys import Keys
    browser.execute_script("document.documentElement.dataset.theme = 'light'")
    waiting = colors(find(browser, "#lanes").screenshot_as_png)
    find(browser, "#at").send_keys(Keys.END)
    quiet = colors(find(browser, "#lanes").screenshot_as_png)
    red = (0xb3, 0x20, 0x2e)
    assert len(waiting) > 30 and len(quiet) > 10
    assert waiting[red] > 500 and quiet[red] == 0
    assert waiting[0xc7, 0x77, 0x00] > 200		# who blocks others


def test_load_scale(browser):
    """Its labels are multiples of a round number, up to the largest load or more."""
    labels = browser.execute_script("return [...document.querySelectorAll('.load .yl')].map(t => Number(t.textContent))")
    loads = [value / (int(find(browser, "#controls").get_attribute("data-width")) * 1e6) for value in values(browser, "intervals", 5)]
    step = labels[1]
    assert labels[0] == 0 and 3 <= len(labels) <= 6 and labels == pytest.approx([i * step for i in range(len(labels))])
    assert f"{step:e}"[0] in "125" and labels[-2] < max(loads) <= labels[-1]


def background(browser):
    found = colors(browser.get_screenshot_as_png())
    return len(found), sum(found.most_common(1)[0][0])


def test_themes(browser):
    seen = {}
    for scheme in ("light", "dark"):
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia",
                                {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        browser.execute_script("document.querySelector('.heat').scrollIntoView()")
        seen[scheme] = background(browser)
        assert find(browser, "#theme").get_attribute("aria-pressed") == str(scheme == "dark").lower()
    assert all(number > 100 for number, _ in seen.values()), seen
    assert seen["light"][1] > 3 * 200 and seen["dark"][1] < 3 * 60
    find(browser, "#theme").click()
    assert background(browser)[1] > 3 * 200
    find(browser, "#theme").click()
    assert background(browser)[1] < 3 * 60
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_print(browser):
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert not find(browser, "#controls").is_displayed() and find(browser, "#statements").is_displayed()
    assert browser.execute_script("return getComputedStyle(document.querySelector('.scroll')).overflowX") == "visible"
    assert find(browser, "#lanes").is_displayed() and not find(browser, "#at").is_displayed()
    browser.execute_script("document.querySelector('.heat').scrollIntoView()")
    assert background(browser)[0] > 50
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_without_scripts(chromium, page):
    """All of the tables and charts are there; the controls are not."""
    try:
        chromium.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        chromium.get("about:blank")
        console(chromium)
        chromium.get(page.as_uri())
        assert not find(chromium, "#controls").is_displayed()
        assert not chromium.find_elements("css selector", "th button")
        for name, least in (("#groups tbody tr", 6), ("#statements tbody tr", 200), ("#waits tbody tr", 45),
                            (".heat path", 5), (".load path", 5), (".spark path", 12), ("#still .lanes rect", 10),
                            (".graph rect", 5)):
            assert len(chromium.find_elements("css selector", name)) >= least, name
        assert not find(chromium, "#moment").is_displayed() and not find(chromium, "#hint").is_displayed()
        assert not re.search("click|select a", find(chromium, "#s-sessions").text, re.I)
        for name in (".heat", ".load", "#still .lanes", ".graph", "#groups", "#statements", "#waits"):
            assert find(chromium, name).is_displayed() and find(chromium, name).rect["height"] > 50
        assert background(chromium)[0] > 50
        assert not console(chromium)
    finally:
        chromium.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def need_module(name):
    if not os.path.exists(os.path.join(MODULES, name)) or not shutil.which("node"):
        pytest.skip(f"no {name} (ci/dependencies page)")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_accessibility(browser, theme):
    need_module("axe-core")
    with open(os.path.join(MODULES, "axe-core", "axe.min.js"), encoding="utf-8") as f:
        axe = f.read()
    browser.execute_script("document.documentElement.dataset.theme = arguments[0]", theme)
    browser.execute_script("document.querySelectorAll('#groups details, #intervals').forEach(d => { d.open = true; })")
    browser.execute_script(axe)
    browser.set_script_timeout(90)
    found = browser.execute_async_script("axe.run().then(arguments[0])")
    assert len(found["passes"]) > 15
    assert [(each["id"], each["impact"], each["nodes"][0]["html"][:200]) for each in found["violations"]] == []


def html_validate(path, folder):
    config = folder / "html-validate.json"
    config.write_text(json.dumps({"root": True, "extends": ["html-validate:standard"]}))
    return subprocess.run(["node", os.path.join(MODULES, "html-validate", "bin", "html-validate.mjs"), "--config", str(config),
                           "--formatter", "text", str(path)], capture_output=True, text=True, timeout=120)


def test_valid_html(page, tmp_path):
    need_module("html-validate")
    done = html_validate(page, tmp_path)
    assert done.returncode == 0, done.stdout[:3000] + done.stderr[:1000]
    bad = tmp_path / "bad.html"
    bad.write_text(page.read_text().replace("</main>", "<p id=\"from\"></main>", 1))
    assert html_validate(bad, tmp_path).returncode == 1


def test_size_and_memory(chromium, tmp_path):
    """Of a million statements: below 1 MiB, in bounded memory, and opened in less than 3 s of a CPU."""
    path = tmp_path / "large.html"
    subprocess.run([WRITER, str(path), "1000000"], check=True, timeout=120, preexec_fn=limit_memory)
    assert path.stat().st_size < 1 << 20
    chromium.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    open_page(chromium, path)
    assert int(re.search(r"(\d+) sessions", find(chromium, "#when").text)[1]) > 2 and bars(chromium, "wt")
    spent = {one["name"]: one["value"] for one in chromium.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]}
    chromium.execute_cdp_cmd("Performance.disable", {})
    assert 0 < spent["TaskDuration"] < 3, spent
    assert ">1.00M</dd>" in path.read_text()
    # Long texts of more fingerprints than are kept.
    subprocess.run([WRITER, str(path), "20000", "10000"], check=True, timeout=120, preexec_fn=limit_memory)
    assert path.stat().st_size < 2 << 20 and "fingerprints with the least total time" in path.read_text()


def limit_memory():
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (18 << 20, 18 << 20))
