"""What holds for all tests."""

from hypothesis import settings

settings.register_profile("untimed", deadline=None)  # how long an example takes says more about the machine than about the code
settings.load_profile("untimed")
