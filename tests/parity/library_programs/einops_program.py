"""einops: rearranging, reducing, repeating, einsum, and its layers."""

import torch
from einops import einsum, pack, rearrange, reduce, repeat, unpack
from einops.layers.torch import EinMix, Rearrange, Reduce
from report import show

torch.manual_seed(0)
x = torch.randn(2, 3, 8, 8, requires_grad=True)
patches = rearrange(x, "b c (h p) (w q) -> b (h w) (p q c)", p=2, q=2)
means = repeat(reduce(patches, "b n d -> b d", "mean"), "b d -> b k d", k=3)
scores = einsum(patches, patches, "b n d, b m d -> b n m")
packed, shapes = pack([patches, means], "b * d")
net = torch.nn.Sequential(Rearrange("b c h w -> b (h w) c"), torch.nn.Linear(3, 5), Reduce("b n c -> b c", "max"))
mix = EinMix("b c h w -> b h w d", weight_shape="c d", bias_shape="d", c=3, d=4)
loss = means.sum() + scores.square().mean() + net(x).sum() + mix(x).sum() + unpack(packed, shapes, "b * d")[1].mean()
loss.backward()
show(loss=loss, gradient=x.grad, linear=net[1].weight.grad, mix=mix.weight.grad)
