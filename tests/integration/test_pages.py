"""The pages of a fleet and of a build in Debian's Chromium: filters, clicks, and that nothing runs or leaves.

`.ci/run` installs Chromium and its driver.
"""

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tenv.core.page import render_page
from tests.support.projects import call

if TYPE_CHECKING:
    from collections.abc import Iterator

    from selenium.webdriver.chrome.webdriver import WebDriver

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not shutil.which("chromedriver"), reason="needs Debian's chromium and chromium-driver"),
]

HOSTILE = '<img src=x onerror="document.title=1"></script><script>document.title="ran"</script>'


def report(name: str, driver: str, gpu: str, capability: str) -> dict[str, object]:
    """Return the report of a machine."""
    plain = call("host", "--json").data
    values = {"hostname": name, "driver": driver, "gpus": [{"name": gpu, "compute_capability": capability}]}
    return {**plain, **{key: {"value": value, "origin": "made"} for key, value in values.items()}}


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    rows = [
        *(report(f"big{number}", "580.65.06", "NVIDIA H100 80GB HBM3", "9.0") for number in range(3)),
        *(report(f"old{number}", "450.80.02", "Tesla V100-SXM2-16GB", "7.0") for number in range(2)),
        report(HOSTILE, "535.104.12", "Tesla T4", "7.5"),
    ]
    file = tmp_path / "fleet.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows) + "{}\n")
    page = tmp_path / "fleet.html"
    ended = call("check", "--against", str(file), "--html", str(page))
    assert (ended.status, f"{page} written" in ended.err) == (0, True)
    return page


@pytest.fixture(scope="module")
def browser() -> "Iterator[WebDriver]":
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1400,1100"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    yield driver
    driver.quit()


def logged(browser: "WebDriver", kind: str) -> list[dict[str, str]]:
    return list(browser.get_log(kind))  # type: ignore[no-untyped-call]


def heads(browser: "WebDriver") -> list[str]:
    return [node.text.splitlines()[0] for node in browser.find_elements("css selector", "button.head")]


def test_equal_machines_are_one_column_and_a_filter_leaves_those_that_match(browser: "WebDriver", fleet: Path) -> None:
    browser.get(fleet.as_uri())
    assert heads(browser) == ["3 machines", "2 machines", HOSTILE]
    search = browser.find_element("id", "search")
    search.send_keys("v100")
    assert heads(browser) == ["2 machines"]
    assert browser.find_element("id", "counted").text == "2 machines in 1 column of equal machines"
    search.clear()
    search.send_keys("old1 te")
    assert heads(browser) == ["old1 and 1 equal"]
    search.clear()
    search.send_keys("nothing")
    assert heads(browser) == []


def test_an_answer_of_one_target_filters(browser: "WebDriver", fleet: Path) -> None:
    browser.get(fleet.as_uri())
    browser.find_element("css selector", "#target").send_keys("cuda130")
    browser.find_element("css selector", "#answer").send_keys("neither")
    assert heads(browser) == ["2 machines"]


def test_a_click_opens_the_findings(browser: "WebDriver", fleet: Path) -> None:
    browser.get(fleet.as_uri())
    names = [node.text for node in browser.find_elements("css selector", ".name")]
    second = browser.find_elements("css selector", ".column")[1]
    cell = second.find_elements("css selector", "button.cell")[names.index("cuda130")]
    assert cell.text.startswith("no")
    assert "bad" in str(cell.get_attribute("class"))
    cell.click()
    detail = browser.find_element("id", "detail").text
    assert "cuda130 on 2 equal machines" in detail
    assert "error TE201" in detail
    assert "old0\nold1" in detail


def test_hostile_names_are_text_and_nothing_leaves_the_page(browser: "WebDriver", fleet: Path) -> None:
    logged(browser, "performance")
    browser.get(fleet.as_uri())
    browser.find_elements("css selector", "button.head")[2].click()
    assert browser.title == "tenv: machines and targets"
    assert HOSTILE in browser.find_element("id", "detail").text
    assert browser.find_elements("css selector", "img") == []
    asked = [
        event["params"]["request"]["url"]
        for row in logged(browser, "performance")
        if (event := json.loads(row["message"])["message"])["method"] == "Network.requestWillBeSent"
    ]
    assert asked == [fleet.as_uri()]
    browser.execute_script(
        "const node = document.createElement('script'); node.textContent = 'document.title = 2';"
        "document.body.append(node)"
    )
    assert browser.title == "tenv: machines and targets"
    assert any("Content Security Policy" in row["message"] for row in logged(browser, "browser"))


def test_reports_that_can_not_be_read_are_listed(browser: "WebDriver", fleet: Path) -> None:
    browser.get(fleet.as_uri())
    (broken,) = browser.find_elements("css selector", ".broken")
    assert broken.text.endswith("fleet.jsonl:7: not a host report: it has no `schema`")


def test_a_build_shows_its_tasks_and_why_it_failed(browser: "WebDriver", tmp_path: Path) -> None:
    finding = {"code": "TE961", "severity": "error", "subject": HOSTILE, "message": "m", "evidence": "e", "source": "s"}
    data: dict[str, Any] = {
        "target": "t",
        "checkout": "/c",
        "folder": "/c/build",
        "log": "/c/build.log",
        "largest": 3 << 30,
        "steps": [
            {"name": "configure", "ok": True, "seconds": 12.0, "lines": ["took 12 s"]},
            {"name": "build", "ok": False, "seconds": 754.0, "lines": []},
        ],
        "findings": [{**finding, "fix": "f"}],
        "cache": {"hits": 7, "misses": 3},
        "count": 3,
        "tasks": [["a.cpp.o", 0, 9000], ["b.cpp.o", 0, 4000], ["c.cpp.o", 4000, 5000]],
    }
    page = tmp_path / "build.html"
    page.write_text(render_page("build", "tenv build t", data))
    browser.get(page.as_uri())
    assert browser.find_element("id", "state").text == (
        "failed in step build; took 12 min 46 s; compile cache: 7 hits, 3 misses; largest process: 3.0 GiB"
    )
    assert HOSTILE in browser.find_element("id", "findings").text
    bars = browser.find_elements("css selector", "#timeline rect")
    assert [bar.get_attribute("y") for bar in bars] == ["4", "16", "16"]
    rows = [row.text for row in browser.find_elements("css selector", "table:last-of-type tr")]
    assert rows[-3:] == ["9 s a.cpp.o", "4 s b.cpp.o", "1 s c.cpp.o"]
    page.write_text(render_page("build", "tenv build t", {**data, "ended": False, "steps": data["steps"][:1]}))
    browser.get(page.as_uri())
    assert browser.find_element("id", "state").text.startswith("it did not end: ")
