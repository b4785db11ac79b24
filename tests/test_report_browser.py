"""The page in a real browser: it opens, filters, expands, compares, by mouse and by keys, without an error.

Screenshots are kept in `runs/artifacts/report/`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.report_buffers import SCRIPTS, WICKED, collected, controllers, evaluated, made_up, page

pytestmark = pytest.mark.browser

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed (extra dev)")
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import Select, WebDriverWait  # noqa: E402

ARTIFACTS = Path(__file__).parent.parent / "runs" / "artifacts" / "report"
ALL = "96 of 96 episodes"


@pytest.fixture(scope="module")
def driver() -> Iterator[webdriver.Chrome]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    chromedriver = shutil.which("chromedriver")
    if chromium is None or chromedriver is None:
        missing = [name for name, path in (("chromium", chromium), ("chromedriver", chromedriver)) if path is None]
        pytest.skip(f"{' and '.join(missing)} not found: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for word in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--window-size=1440,1000",
    ):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(chromedriver))
    yield browser
    browser.quit()


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser")
    collected(folder / "buffer")
    evaluated(folder / "buffer", [*SCRIPTS, *controllers(folder)])
    out = folder / "page.html"
    out.write_text(page(folder / "buffer").html)
    return out


@pytest.fixture
def opened(driver, html: Path):
    """The page afresh; at the end nothing may have gone wrong in it."""
    opened_page(driver, html)
    yield driver
    assert driver.get_log("browser") == []


def opened_page(driver, html: Path) -> None:
    driver.get("about:blank")
    driver.get_log("browser")
    driver.get(html.as_uri())
    wait(driver, lambda d: d.execute_script("return document.documentElement.dataset.ready"))


def wait(driver, until):
    return WebDriverWait(driver, 30).until(until)


def shoot(driver, name: str) -> None:
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    assert driver.save_screenshot(str(ARTIFACTS / f"{name}.png"))


def count(driver) -> str:
    return driver.find_element(By.ID, "count").text


def listed(driver, column: int) -> list[str]:
    return [cell.text for cell in driver.find_elements(By.CSS_SELECTOR, f"#list tbody td:nth-child({column})")]


def choose(driver, name: str, text: str) -> None:
    shown = count(driver)
    Select(driver.find_element(By.NAME, name)).select_by_visible_text(text)
    wait(driver, lambda d: count(d) != shown)


def open_first(driver) -> None:
    driver.find_element(By.CSS_SELECTOR, "#list .open").click()
    wait(driver, lambda d: d.find_elements(By.CSS_SELECTOR, "#opened .step"))


def test_it_opens_with_the_verdict_first(opened) -> None:
    headline = opened.find_element(By.CSS_SELECTOR, ".headline")
    assert headline.is_displayed()
    assert headline.location["y"] < 300
    assert "in simulation" in headline.text
    assert count(opened) == ALL  # 24 tasks x 2 collected; 6 tasks x 2 rollouts x 4 arms evaluated
    shoot(opened, "top_light")


def test_filters_narrow_the_list_and_can_be_undone(opened) -> None:
    choose(opened, "policy", "check_revise")
    assert count(opened).startswith("12 of ")
    assert set(listed(opened, 4)) == {"check_revise"}
    choose(opened, "verdict", "= same as the reference")
    assert set(listed(opened, 6)) == {"= same"}
    opened.find_element(By.CSS_SELECTOR, "#filters button[type=reset]").click()
    wait(opened, lambda d: count(d) == ALL)
    opened.find_element(By.NAME, "low").send_keys("1")
    wait(opened, lambda d: count(d) != ALL)
    assert {text.strip() for text in listed(opened, 5)} == {"1.000"}
    opened.find_element(By.CSS_SELECTOR, "#filters button[type=reset]").click()
    wait(opened, lambda d: count(d) == ALL)


def test_a_column_sorts_both_ways(opened) -> None:
    by_return = "#list th[data-column='return'] button"
    for expected in (sorted, lambda values: sorted(values, reverse=True)):
        opened.find_element(By.CSS_SELECTOR, by_return).click()
        values = [float(text) for text in listed(opened, 5)]
        assert values == expected(values)


def test_an_episode_opens_step_by_step_and_beside_another(opened) -> None:
    choose(opened, "policy", "check_revise")
    open_first(opened)
    steps = opened.find_elements(By.CSS_SELECTOR, ".step")
    assert not {"null", "undefined", "NaN"} & set(opened.find_element(By.ID, "opened").text.split())
    assert "observe" in steps[0].text
    assert "not legal" in steps[0].text
    assert "chosen, as base would" in steps[0].text
    parts = "[...document.querySelectorAll('.step .body > div')]"
    assert not opened.execute_script(f"return {parts}.some(part => part.scrollWidth > part.clientWidth)")
    assert "Draft version 1" in opened.find_element(By.ID, "opened").text
    assert "Check of version" in opened.find_element(By.ID, "opened").text
    steps[0].find_element(By.CSS_SELECTOR, "details summary").click()
    wait(opened, lambda d: "steps_left" in d.find_element(By.CSS_SELECTOR, ".step").text)
    beside = Select(opened.find_element(By.ID, "beside"))
    name = next(
        option.text for option in beside.options if option.text.startswith("base") and "same draws" in option.text
    )
    beside.select_by_visible_text(name)
    wait(opened, lambda d: len(d.find_elements(By.CSS_SELECTOR, "#opened .episode")) == 2)
    left, right = opened.find_elements(By.CSS_SELECTOR, "#opened .episode")
    assert left.location["y"] == right.location["y"]
    assert left.location["x"] < right.location["x"]
    assert "they differ from step" in opened.find_element(By.ID, "opened").text
    shoot(opened, "side_by_side")


def test_the_address_of_an_opened_episode_opens_it_again(opened, html: Path) -> None:
    open_first(opened)
    address, told = opened.current_url, opened.find_element(By.CSS_SELECTOR, ".episode h3").text
    opened.get("about:blank")
    opened.get(address)
    wait(opened, lambda d: d.find_elements(By.CSS_SELECTOR, "#opened .step"))
    assert opened.find_element(By.CSS_SELECTOR, ".episode h3").text == told


def test_keys_alone_lead_into_an_episode_and_back(opened) -> None:
    active = lambda: opened.switch_to.active_element  # noqa: E731
    first, second = opened.find_elements(By.CSS_SELECTOR, "#list .open")[:2]
    opened.execute_script("arguments[0].focus()", first)
    active().send_keys(Keys.ARROW_DOWN)
    assert active() == second
    row = second.get_attribute("data-row")
    active().send_keys(Keys.ENTER)
    wait(opened, lambda d: d.find_elements(By.CSS_SELECTOR, "#opened .step"))
    assert active().get_attribute("id") == "opened"
    webdriver.ActionChains(opened).send_keys(Keys.TAB).perform()
    wait(opened, lambda _: active().get_attribute("id") == "beside")
    webdriver.ActionChains(opened).send_keys(Keys.ESCAPE).perform()
    wait(opened, lambda d: not d.find_element(By.ID, "opened").is_displayed())
    assert active().get_attribute("data-row") == row


def test_light_and_dark_are_the_systems_until_chosen(opened) -> None:
    def paper() -> str:
        return opened.execute_script("return getComputedStyle(document.body).backgroundColor")

    prefer(opened, "light")
    light = paper()
    prefer(opened, "dark")
    dark = paper()
    assert light != dark
    shoot(opened, "top_dark")
    button = opened.find_element(By.ID, "theme")
    button.click()
    assert (button.text, paper()) == ("Theme: light", light)
    button.click()
    assert (button.text, paper()) == ("Theme: dark", dark)
    prefer(opened, "light")
    assert paper() == dark


def prefer(driver, scheme: str) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def test_a_narrow_window_does_not_scroll_sideways(opened) -> None:
    size = {"width": 400, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        open_first(opened)
        assert opened.execute_script("return document.documentElement.scrollWidth") <= 400
        shoot(opened, "narrow")
    finally:
        opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_what_a_model_wrote_is_shown_and_does_nothing(driver, tmp_path: Path) -> None:
    made_up(tmp_path / "buffer", odd_text=WICKED)
    (tmp_path / "page.html").write_text(page(tmp_path / "buffer").html)
    opened_page(driver, tmp_path / "page.html")
    open_first(driver)
    assert WICKED.replace(" ", "") in driver.find_element(By.ID, "opened").text.replace(" ", "").replace("\n", "")
    assert not driver.find_elements(By.TAG_NAME, "img")
    assert driver.title != "taken"
    assert driver.get_log("browser") == []
