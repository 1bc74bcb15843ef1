"""A page in a real browser: it opens without a complaint, and everything on it works.

Headless Chromium, driven by Selenium; `make test` installs it where it can (as root, with apt).
"""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

import safesift as ss
from tests.hostile import hostile_frame, with_texts

pytestmark = pytest.mark.slow

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A page with everything on it, and one of hostile data."""
    folder = tmp_path_factory.mktemp("pages")
    data = load_breast_cancer(as_frame=True)
    X, y = data.data, data.target.map({0: "malignant", 1: "benign"})
    model = {"alpha": 1e-4}
    also = [ss.leave_one_out(X, y, **model), ss.safe_path(X, y, alphas=np.geomspace(1e-1, 1e-4, 6))]
    ss.screen(X, y, **model).report(folder / "whole.html", X, also=also)
    frame, labels = hostile_frame()
    also = [ss.leave_one_out(frame, labels, **model), ss.safe_path(frame, labels, n_alphas=3)]
    ss.screen(frame, labels, **model).report(
        folder / "hostile.html", with_texts(frame), also=also
    )  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("chromium and chromedriver are not installed: apt-get install chromium-driver")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in ("headless=new", "no-sandbox", "disable-gpu", "no-first-run", "disable-quic",
                 "disable-background-networking", "disable-component-update", "disable-sync",
                 "window-size=1280,1000"):  # fmt: skip
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


def opened(browser, page):
    """The page, freshly loaded, with nothing to complain about."""
    browser.get(page.as_uri())
    assert browser.get_log("browser") == []
    return browser


def by_id(browser, name):
    return browser.find_element("id", name)


def column(browser, number):
    cells = f"#samples tbody tr:not([hidden]) td:nth-child({number})"
    return [cell.text for cell in browser.find_elements("css selector", cells)]


def test_sorting(browser, pages):
    opened(browser, pages / "whole.html")
    heads = browser.find_elements("css selector", "#samples th")
    names = [head.text.split("\n")[0].strip(" ▲▼") for head in heads]
    at = names.index("how hard")
    heads[at].find_element("tag name", "button").click()
    found = [float(text) for text in column(browser, at + 1)]
    assert found == sorted(found, reverse=True) and len(found) > 50
    heads[at].find_element("tag name", "button").send_keys("\n")  # by keyboard, the other way
    found = [float(text) for text in column(browser, at + 1)]
    assert found == sorted(found)
    assert heads[at].get_attribute("aria-sort") == "ascending"
    assert sum(head.get_attribute("aria-sort") != "none" for head in heads) == 1
    label = names.index("label")
    heads[label].find_element("tag name", "button").click()
    texts = column(browser, label + 1)
    assert texts == sorted(texts) and len(set(texts)) == 2


def test_sorting_what_is_infinite_or_missing(browser, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] + 0.7 * rng.normal(size=60) > 0
    cells = [None, 3.0, np.inf, "text", -np.inf, np.nan, -2.0, 10**400]
    mixed = np.array([[cells[k % len(cells)]] for k in range(60)], dtype=object)
    opened(browser, ss.screen(X, y, alpha=1e-2).report(tmp_path / "mixed.html", mixed))
    *_, head = browser.find_elements("css selector", "#samples th button")
    last = len(browser.find_elements("css selector", "#samples th"))
    for expected in (
        ["inf", "3", "-2", "-inf", "text", ""],
        ["-inf", "-2", "3", "inf", "text", ""],
    ):
        head.click()
        # to a script a number that large is infinite
        shown = [text.replace("1.000e+400", "inf") for text in column(browser, last)]
        assert list(dict.fromkeys(shown)) == expected
        assert shown == sorted(shown, key=expected.index)
    assert browser.get_log("browser") == []


def test_filtering(browser, pages):
    opened(browser, pages / "whole.html")
    before = len(column(browser, 1))
    field = by_id(browser, "filter")
    field.send_keys("malignant doubtful")
    found = browser.find_elements("css selector", "#samples tbody tr:not([hidden])")
    assert 0 < len(found) < before and by_id(browser, "found").text == f"{len(found)} rows"
    assert all("malignant" in row.text and "doubtful" in row.text for row in found)
    field.clear()
    field.send_keys("there is no such word")
    assert column(browser, 1) == [] and by_id(browser, "found").text == "0 rows"


def test_hovering_and_walking(browser, pages):
    from selenium.webdriver import ActionChains, Keys

    opened(browser, pages / "whole.html")
    for name in ("margins", "left-out"):
        picture, told = by_id(browser, name), by_id(browser, f"{name}-told")
        assert told.text == ""
        browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", picture)
        ActionChains(browser).move_to_element(picture).perform()
        first = told.text
        assert (
            first.startswith("row ")
            and float(picture.find_element("class name", "here").get_attribute("cx")) > 0
        )
        ActionChains(browser).move_to_element_with_offset(picture, 200, 20).perform()
        assert told.text.startswith("row ") and told.text != first
        browser.execute_script("arguments[0].focus()", picture)
        picture.send_keys(Keys.HOME)
        at_home = told.text
        picture.send_keys(Keys.ARROW_RIGHT)
        assert told.text != at_home
        picture.send_keys(Keys.ARROW_LEFT)
        assert told.text == at_home


def test_the_slider(browser, pages):
    from selenium.webdriver import Keys

    opened(browser, pages / "whole.html")
    slider, told = by_id(browser, "level"), by_id(browser, "level-told")
    assert told.text.startswith("alpha = 0.1:")
    before = browser.find_element("css selector", "#path .upright").get_attribute("x1")
    values = browser.find_element("css selector", "#path-values .value").text
    slider.send_keys(Keys.END)
    assert told.text.startswith("alpha = 0.0001:")
    assert browser.find_element("css selector", "#path .upright").get_attribute("x1") != before
    assert browser.find_element("css selector", "#path-values .value").text != values


def test_hostile_names_and_cells_do_nothing(browser, pages):
    opened(browser, pages / "hostile.html")
    assert browser.execute_script("return window.harmed") is None
    assert len(browser.find_elements("tag name", "img")) == 0
    assert len(browser.find_elements("tag name", "script")) == 2
    assert "<script>window.harmed = true</script>" in by_id(browser, "samples").text
    for head in browser.find_elements("css selector", "#samples th button"):
        browser.execute_script("arguments[0].click()", head)  # some have names without width
    by_id(browser, "filter").send_keys("<img")
    by_id(browser, "level").send_keys("\ue010")  # the end of the slider
    assert len(column(browser, 1)) > 0
    assert browser.execute_script("return window.harmed") is None
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_it_fits_a_phone_and_can_be_read_by_day_and_by_night(browser, pages, scheme, width):
    emulated = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", emulated)
    metrics = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    opened(browser, pages / "whole.html")
    # nothing sticks out at the side: tables scroll in themselves
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    paper, *inks = browser.execute_script(_COLORS)
    assert (luminance(paper) > 0.5) == (scheme == "light")
    for ink in inks:
        assert contrast(ink, paper) >= 4.5, (ink, paper)
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


# the ground, and the colours of texts on it
_COLORS = """
const style = (query) => getComputedStyle(document.querySelector(query));
return [style("body").backgroundColor,
        ...["body", ".sub", "dt", "a", "td", "th", "figure output"].map((q) => style(q).color)]
"""


def luminance(color: str) -> float:
    red, green, blue = (int(part) / 255 for part in color[4:-1].split(",")[:3])
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (red, green, blue)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """As the guidelines for accessible pages count it."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_everything_can_be_reached_by_keyboard(browser, pages):
    from selenium.webdriver import ActionChains, Keys

    opened(browser, pages / "whole.html")
    reached = set()
    for _ in range(120):
        ActionChains(browser).send_keys(Keys.TAB).perform()
        reached.add(browser.execute_script("return document.activeElement.id"))
    assert {"filter", "level", "margins", "left-out"} <= reached
