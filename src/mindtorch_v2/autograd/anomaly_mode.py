"""`detect_anomaly`, `set_detect_anomaly`: find the forward call behind a failing or NaN gradient."""

from __future__ import annotations

import warnings

from .._autograd import anomaly

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class detect_anomaly:  # noqa: N801
    """Inside, forward calls remember where they were made, and backward raises when a gradient is NaN."""

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging.",
            UserWarning,
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self.previous = (anomaly.state.enabled, anomaly.state.check_nan)
        anomaly.set_mode(True, self.check_nan)

    def __exit__(self, *exc: object) -> None:
        anomaly.set_mode(*self.previous)


class set_detect_anomaly:  # noqa: N801
    """Switches anomaly detection on or off, at once and until the block ends."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.previous = (anomaly.state.enabled, anomaly.state.check_nan)
        anomaly.set_mode(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        anomaly.set_mode(*self.previous)


def is_anomaly_enabled() -> bool:
    """Whether anomaly detection is on."""
    return anomaly.state.enabled


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly detection looks for NaN."""
    return anomaly.state.check_nan


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Switch it on or off, until it is switched again."""
    anomaly.set_mode(mode, check_nan)
