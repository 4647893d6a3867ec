"""A report in the browser, as the tests use it."""


class Page:
    """A report in the browser."""

    def __init__(self, browser, path):
        self.browser, self.path = browser, path

    def open(self, fragment="overview"):
        self.browser.open(f"{self.path.as_uri()}#{fragment}")
        self.wait(lambda: self.browser.run("document.querySelector('main')?.dataset.ready") == fragment.partition("?")[0])
        return self

    def wait(self, condition):
        from selenium.webdriver.support.ui import WebDriverWait  # `conftest.py` is read where it is absent

        return WebDriverWait(self.browser.driver, 30).until(lambda _: condition())

    def rows(self):
        """The rows of the table in sight: cells by column."""
        script = "[...document.querySelectorAll('.t-row')].map(row => Object.fromEntries([...row.children].map(cell => [cell.dataset.column, cell.textContent])))"
        return self.browser.run(script)

    def fragment(self):
        return self.browser.run("decodeURIComponent(location.hash)")

    def press(self, *keys):
        self.browser.pointer().send_keys(*keys).perform()


def nanoseconds(text):
    number, unit = text.replace("−", "-").split()
    return float(number) * {"µs": 1e3, "ms": 1e6, "s": 1e9}[unit]
