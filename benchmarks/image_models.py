"""Image models from their papers, with their real channels and kernels on small images; the same code runs with either library.

Each takes the library and a factor for its channels.
"""

from __future__ import annotations

import itertools
from typing import Any

from .networks import convolution, excitation, head, residual

__all__ = [
    "convnext",
    "densenet",
    "discriminator",
    "efficientnet",
    "generator",
    "mobilenet",
    "resnet",
    "resnext",
    "unet",
    "vae",
    "vgg",
    "vit",
]


def _scaled(channels: int, width: float, multiple: int = 8) -> int:
    return max(multiple, int(channels * width) // multiple * multiple)


def vgg(lib: Any, width: float) -> Any:
    """VGG-11: eight 3×3 convolutions, five poolings, for 32×32."""
    nn, channels = lib.nn, 3
    layers: list[Any] = []
    for outputs in (64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0):
        if not outputs:
            layers.append(nn.MaxPool2d(2))
            continue
        wide = _scaled(outputs, width)
        layers += [nn.Conv2d(channels, wide, 3, padding=1), nn.ReLU(inplace=True)]
        channels = wide
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(channels, 512), nn.ReLU(), nn.Dropout(0.5), nn.Linear(512, 10))


def _shortcut(nn: Any) -> Any:
    class Shortcut(nn.Module):  # type: ignore[misc, name-defined]
        """Layers whose result is added to their input, which a 1×1 convolution brings to the same shape, and a ReLU."""

        def __init__(self, layers: list[Any], inputs: int, outputs: int, stride: int) -> None:
            super().__init__()
            self.layers = nn.Sequential(*layers)
            same = inputs == outputs and stride == 1
            self.way = nn.Identity() if same else nn.Sequential(*convolution(nn, inputs, outputs, 1, stride))

        def forward(self, x: Any) -> Any:
            return nn.functional.relu(self.layers(x) + self.way(x))

    return Shortcut


def _stem(nn: Any, channels: int) -> list[Any]:
    return [*convolution(nn, 3, channels, 7, 2, after=nn.ReLU), nn.MaxPool2d(3, 2, 1)]


def resnet(lib: Any, width: float) -> Any:
    """ResNet-18, for 64×64."""
    nn, channels = lib.nn, _scaled(64, width)
    block, layers = _shortcut(nn), _stem(nn, channels)
    for outputs, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        wide = _scaled(outputs, width)
        inner = [*convolution(nn, channels, wide, 3, stride, after=nn.ReLU), *convolution(nn, wide, wide)]
        layers.append(block(inner, channels, wide, stride))
        channels = wide
    return nn.Sequential(*layers, *head(nn, channels))


def resnext(lib: Any, width: float) -> Any:
    """ResNeXt-50 (32×4d) with one block where it has three to six, for 64×64."""
    nn, channels = lib.nn, _scaled(64, width, 32)
    block, layers = _shortcut(nn), _stem(nn, channels)
    for outputs, stride in ((256, 1), (512, 2), (1024, 2), (2048, 2)):
        wide, inner = _scaled(outputs, width, 32), _scaled(outputs // 2, width, 32)
        bottleneck = [
            *convolution(nn, channels, inner, 1, after=nn.ReLU),
            *convolution(nn, inner, inner, 3, stride, groups=32, after=nn.ReLU),
            *convolution(nn, inner, wide, 1),
        ]
        layers.append(block(bottleneck, channels, wide, stride))
        channels = wide
    return nn.Sequential(*layers, *head(nn, channels))


def densenet(lib: Any, width: float) -> Any:
    """DenseNet-BC for 32×32: three blocks of six layers that each add 24 channels to what they are given."""
    nn = lib.nn

    class Dense(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, channels: int, growth: int) -> None:
            super().__init__()
            self.layers = nn.Sequential(
                *(nn.BatchNorm2d(channels), nn.ReLU(), nn.Conv2d(channels, 4 * growth, 1, bias=False)),
                *(nn.BatchNorm2d(4 * growth), nn.ReLU(), nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)),
            )

        def forward(self, x: Any) -> Any:
            return lib.cat([x, self.layers(x)], 1)

    growth = _scaled(24, width)
    channels = 2 * growth
    layers = [nn.Conv2d(3, channels, 3, padding=1, bias=False)]
    for block in range(3):
        for _ in range(6):
            layers.append(Dense(channels, growth))
            channels += growth
        layers += [nn.BatchNorm2d(channels), nn.ReLU()]
        if block < 2:
            layers += [nn.Conv2d(channels, channels // 2, 1, bias=False), nn.AvgPool2d(2)]
            channels //= 2
    return nn.Sequential(*layers, *head(nn, channels))


def mobilenet(lib: Any, width: float) -> Any:
    """MobileNetV2, for 64×64."""
    nn, channels = lib.nn, _scaled(32, width)
    block, layers = residual(nn), convolution(nn, 3, channels, 3, 2, after=nn.ReLU6)
    for expansion, outputs, count, stride in (
        *((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2)),
        *((6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)),
    ):
        for i in range(count):
            inner, narrow = channels * expansion, _scaled(outputs, width)
            inverted = [] if expansion == 1 else convolution(nn, channels, inner, 1, after=nn.ReLU6)
            inverted += convolution(nn, inner, inner, 3, 1 if i else stride, groups=inner, after=nn.ReLU6)
            layers.append(block([*inverted, *convolution(nn, inner, narrow, 1)]))
            channels = narrow
    last = _scaled(1280, width)
    return nn.Sequential(*layers, *convolution(nn, channels, last, 1, after=nn.ReLU6), *head(nn, last))


def efficientnet(lib: Any, width: float) -> Any:
    """EfficientNet-B0, for 64×64."""
    nn, channels = lib.nn, _scaled(32, width)
    block, excite, layers = residual(nn), excitation(nn), convolution(nn, 3, channels, 3, 2, after=nn.SiLU)
    for expansion, outputs, count, stride, kernel in (
        *((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3)),
        *((6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)),
    ):
        for i in range(count):
            inner, narrow = channels * expansion, _scaled(outputs, width)
            inverted = [] if expansion == 1 else convolution(nn, channels, inner, 1, after=nn.SiLU)
            inverted += convolution(nn, inner, inner, kernel, 1 if i else stride, groups=inner, after=nn.SiLU)
            layers.append(block([*inverted, excite(inner, max(1, channels // 4)), *convolution(nn, inner, narrow, 1)]))
            channels = narrow
    last = _scaled(1280, width)
    return nn.Sequential(*layers, *convolution(nn, channels, last, 1, after=nn.SiLU), *head(nn, last))


def convnext(lib: Any, width: float) -> Any:
    """ConvNeXt-T with one block where it has three (and three for nine), for 64×64: 7×7 depthwise, norms over channels, gelu."""
    nn = lib.nn

    class Norm(nn.LayerNorm):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, channels: int) -> None:
            super().__init__()
            self.depthwise = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
            self.norm = nn.LayerNorm(channels, eps=1e-6)
            self.inner, self.outer = nn.Linear(channels, 4 * channels), nn.Linear(4 * channels, channels)
            self.scale = nn.Parameter(0.1 * lib.ones(channels))

        def forward(self, x: Any) -> Any:
            y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
            y = self.scale * self.outer(nn.functional.gelu(self.inner(y)))
            return x + y.permute(0, 3, 1, 2)

    channels = _scaled(96, width)
    layers: list[Any] = [nn.Conv2d(3, channels, 4, 4), Norm(channels, eps=1e-6)]
    for outputs, count in ((96, 1), (192, 1), (384, 3), (768, 1)):
        wide = _scaled(outputs, width)
        if wide != channels:
            layers += [Norm(channels, eps=1e-6), nn.Conv2d(channels, wide, 2, 2)]
            channels = wide
        layers += [Block(channels) for _ in range(count)]
    return nn.Sequential(*layers, *head(nn, channels))


def unet(lib: Any, width: float) -> Any:
    """U-Net of four levels, from 32 channels to 256, for 64×64: two channels of results for each pixel."""
    nn = lib.nn

    def double(inputs: int, outputs: int) -> Any:
        return nn.Sequential(
            *(nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU()), *(nn.Conv2d(outputs, outputs, 3, padding=1), nn.ReLU())
        )

    class UNet(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            levels = [_scaled(c, width) for c in (32, 64, 128, 256)]
            self.down = nn.ModuleList(double(i, o) for i, o in zip([3, *levels], levels, strict=False))
            deeper = list(zip(levels[:0:-1], levels[-2::-1], strict=True))
            self.up = nn.ModuleList(nn.ConvTranspose2d(i, o, 2, 2) for i, o in deeper)
            self.merge = nn.ModuleList(double(i, o) for i, o in deeper)
            self.last = nn.Conv2d(levels[0], 2, 1)

        def forward(self, x: Any) -> Any:
            kept = []
            for layer in self.down[:-1]:
                x = layer(x)
                kept.append(x)
                x = nn.functional.max_pool2d(x, 2)
            x = self.down[-1](x)
            for up, merge in zip(self.up, self.merge, strict=True):
                x = merge(lib.cat([kept.pop(), up(x)], 1))
            return self.last(x)

    return UNet()


def vit(lib: Any, width: float) -> Any:
    """ViT-Ti with four layers of its twelve, for 32×32 in patches of 4×4."""
    nn, channels = lib.nn, _scaled(192, width, 24)

    class ViT(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.patches = nn.Conv2d(3, channels, 4, 4)
            self.kind = nn.Parameter(lib.zeros(1, 1, channels))
            self.places = nn.Parameter(0.02 * lib.randn(1, 65, channels))
            layer = nn.TransformerEncoderLayer(
                channels, 3, 4 * channels, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
            )
            self.layers = nn.TransformerEncoder(layer, 4, norm=nn.LayerNorm(channels), enable_nested_tensor=False)
            self.last = nn.Linear(channels, 10)

        def forward(self, x: Any) -> Any:
            x = self.patches(x).flatten(2).transpose(1, 2)
            x = lib.cat([self.kind.expand(len(x), -1, -1), x], 1) + self.places
            return self.last(self.layers(x)[:, 0])

    return ViT()


def vae(lib: Any, width: float) -> Any:
    """The variational autoencoder of digits: 784 pixels, 400 inner values, 20 latent ones; gives its loss."""
    nn, inner = lib.nn, _scaled(400, width)

    class VAE(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.encode = nn.Sequential(nn.Linear(784, inner), nn.Tanh())
            self.mean, self.logvar = nn.Linear(inner, 20), nn.Linear(inner, 20)
            self.decode = nn.Sequential(nn.Linear(20, inner), nn.Tanh(), nn.Linear(inner, 784), nn.Sigmoid())

        def forward(self, x: Any) -> Any:
            hidden = self.encode(x)
            mean, logvar = self.mean(hidden), self.logvar(hidden)
            seen = self.decode(mean + lib.randn_like(mean) * (0.5 * logvar).exp())
            apart = 0.5 * (mean**2 + logvar.exp() - 1 - logvar).sum()
            return (nn.functional.binary_cross_entropy(seen, x, reduction="sum") + apart) / len(x)

    return VAE()


def generator(lib: Any, width: float) -> Any:
    """DCGAN's generator of 32×32 from 100 numbers."""
    nn = lib.nn
    wide = [_scaled(c, width) for c in (256, 128, 64)]
    layers = [nn.ConvTranspose2d(100, wide[0], 4, bias=False), nn.BatchNorm2d(wide[0]), nn.ReLU()]
    for inputs, outputs in itertools.pairwise(wide):
        layers += [nn.ConvTranspose2d(inputs, outputs, 4, 2, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.ConvTranspose2d(wide[-1], 3, 4, 2, 1), nn.Tanh())


def discriminator(lib: Any, width: float) -> Any:
    """DCGAN's discriminator of 32×32."""
    nn = lib.nn
    wide = [_scaled(c, width) for c in (64, 128, 256)]
    layers = [nn.Conv2d(3, wide[0], 4, 2, 1), nn.LeakyReLU(0.2)]
    for inputs, outputs in itertools.pairwise(wide):
        layers += [nn.Conv2d(inputs, outputs, 4, 2, 1, bias=False), nn.BatchNorm2d(outputs), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers, nn.Conv2d(wide[-1], 1, 4), nn.Flatten(0))
