"""Training steps of small networks like MobileNet, ResNeXt and EfficientNet: many operators, few elements, convolutions of groups.

Four images of 32×32 a step. The same code runs with either library.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["NETWORKS", "convolution", "excitation", "head", "residual"]

Step = Callable[[], object]


def convolution(
    nn: Any, inputs: int, outputs: int, kernel: int = 3, stride: int = 1, groups: int = 1, after: Any = None
) -> list[Any]:
    """A convolution, a norm, and what comes after them."""
    layers = [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(outputs)]
    return layers if after is None else [*layers, after()]


def residual(nn: Any) -> Any:
    class Residual(nn.Module):  # type: ignore[misc, name-defined]
        """Layers whose result is added to their input where the two have one shape."""

        def __init__(self, layers: list[Any], *, after: Any = None) -> None:
            super().__init__()
            self.layers, self.after = nn.Sequential(*layers), after

        def forward(self, x: Any) -> Any:
            y = self.layers(x)
            if y.shape == x.shape:
                y = x + y
            return y if self.after is None else self.after(y)

    return Residual


def excitation(nn: Any) -> Any:
    class Excitation(nn.Module):  # type: ignore[misc, name-defined]
        """Channels scaled by what their means say about each other."""

        def __init__(self, channels: int, inner: int) -> None:
            super().__init__()
            self.reduce, self.expand = nn.Conv2d(channels, inner, 1), nn.Conv2d(inner, channels, 1)

        def forward(self, x: Any) -> Any:
            means = x.mean((2, 3), keepdim=True)
            return x * self.expand(nn.functional.silu(self.reduce(means))).sigmoid()

    return Excitation


def head(nn: Any, channels: int) -> list[Any]:
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10)]


def _mobile(nn: Any) -> Any:
    block, layers, channels = residual(nn), convolution(nn, 3, 16, after=nn.ReLU6), 16
    for outputs, stride in ((16, 1), (24, 2), (24, 1), (32, 2), (32, 1), (64, 2), (64, 1)):
        wide = channels * 4
        inverted = [
            *convolution(nn, channels, wide, 1, after=nn.ReLU6),
            *convolution(nn, wide, wide, 3, stride, groups=wide, after=nn.ReLU6),
            *convolution(nn, wide, outputs, 1),
        ]
        layers.append(block(inverted))
        channels = outputs
    return nn.Sequential(*layers, *convolution(nn, channels, 128, 1, after=nn.ReLU6), *head(nn, 128))


def _resnext(nn: Any) -> Any:
    block, layers, channels = residual(nn), convolution(nn, 3, 32, after=nn.ReLU), 32
    for outputs, stride in ((64, 1), (64, 1), (128, 2), (128, 1)):
        bottleneck = [
            *convolution(nn, channels, outputs // 2, 1, after=nn.ReLU),
            *convolution(nn, outputs // 2, outputs // 2, 3, stride, groups=8, after=nn.ReLU),
            *convolution(nn, outputs // 2, outputs, 1),
        ]
        layers.append(block(bottleneck, after=nn.ReLU()))
        channels = outputs
    return nn.Sequential(*layers, *head(nn, channels))


def _efficient(nn: Any) -> Any:
    block, excite, layers, channels = residual(nn), excitation(nn), convolution(nn, 3, 16, after=nn.SiLU), 16
    for outputs, stride, kernel in ((16, 1, 3), (24, 2, 3), (24, 1, 3), (40, 2, 5), (40, 1, 5), (80, 2, 3)):
        wide = channels * 4
        inverted = [
            *convolution(nn, channels, wide, 1, after=nn.SiLU),
            *convolution(nn, wide, wide, kernel, stride, groups=wide, after=nn.SiLU),
            excite(wide, max(1, channels // 4)),
            *convolution(nn, wide, outputs, 1),
        ]
        layers.append(block(inverted))
        channels = outputs
    return nn.Sequential(*layers, *convolution(nn, channels, 128, 1, after=nn.SiLU), *head(nn, 128))


def _step(make: Callable[[Any], Any]) -> Callable[[Any], Step]:
    def prepared(lib: Any) -> Step:
        lib.manual_seed(0)
        model = make(lib.nn)
        images, kinds = lib.randn(4, 3, 32, 32), lib.tensor([0, 1, 2, 3])
        optimizer = lib.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

        def step() -> None:
            optimizer.zero_grad()
            lib.nn.functional.cross_entropy(model(images), kinds).backward()
            optimizer.step()

        return step

    return prepared


NETWORKS = {"MobileNet-like": _step(_mobile), "ResNeXt-like": _step(_resnext), "EfficientNet-like": _step(_efficient)}
