"""What holds for all tests."""

import gc

import pytest
from hypothesis import settings

settings.register_profile("untimed", deadline=None)  # how long an example takes says more about the machine than about the code
settings.load_profile("untimed")


@pytest.fixture
def no_other_collection():
    """The garbage collector runs when it is called, and not when it likes."""
    gc.disable()
    yield
    gc.enable()
