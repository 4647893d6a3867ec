"""A real browser, headless and without a network of its own: Debian's chromium, driven by selenium."""

import json
import shutil

import pytest
from tests.browser.report_page import Page
from tests.mindtorch_v2.profiler.report.reports import ALL, trained

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,1000",
]


class Browser:
    """What the tests ask of a browser."""

    def __init__(self, folder):
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for flag in [*FLAGS, f"--user-data-dir={folder}"]:
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        self.driver.set_script_timeout(60)

    def open(self, url):
        """Open a page, and forget what the one before said."""
        self.driver.get("about:blank")
        self.driver.get_log("browser"), self.driver.get_log("performance")
        self.driver.get(url)

    def errors(self):
        """What the page's console says."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self):
        """The addresses that the page has asked for."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]

    def run(self, script, *arguments):
        """The value of a JavaScript expression."""
        return self.driver.execute_script(f"return {script}", *arguments)

    def all(self, selector):
        return self.driver.find_elements("css selector", selector)

    def one(self, selector):
        return self.driver.find_element("css selector", selector)

    def pointer(self):
        from selenium.webdriver.common.action_chains import ActionChains

        return ActionChains(self.driver, duration=0)


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    opened = Browser(tmp_path_factory.mktemp("browser"))
    yield opened
    opened.driver.quit()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Steps of training, and the page of them."""
    prof = trained(**ALL)
    path = tmp_path_factory.mktemp("report") / "report.html"
    prof.export_report(path, title="the run")
    return prof, path


@pytest.fixture
def page(browser, recorded):
    return Page(browser, recorded[1])
