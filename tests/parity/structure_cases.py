"""More calls whose operators are compared with ATen's: frequent operators, their backward, recurrent layers, optimizers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["BACKWARD", "FORWARD", "MODULES", "OPTIMIZERS", "RECURRENT", "module", "optimizer", "recurrent"]

Function = Callable[[Any, Any], Any]


def F(name: str, *args: Any, **kwargs: Any) -> Function:
    return lambda lib, x: getattr(lib.nn.functional, name)(x, *args, **kwargs)


def method(name: str, *args: Any, **kwargs: Any) -> Function:
    return lambda lib, x: getattr(x, name)(*args, **kwargs)


MATRIX, IMAGE = (3, 4), (2, 4, 6, 6)

# name → (shape, function)
FORWARD: dict[str, tuple[tuple[int, ...], Function]] = {
    "t": (MATRIX, method("t")),
    "T": (MATRIX, lambda lib, x: x.T),
    "mT": (MATRIX, lambda lib, x: x.mT),
    "H": (MATRIX, lambda lib, x: x.H),
    "clamp_min": (MATRIX, method("clamp_min", 0)),
    "clamp min only": (MATRIX, method("clamp", min=0)),
    "clamp max only": (MATRIX, method("clamp", max=0)),
    "clamp by tensors": (MATRIX, lambda lib, x: lib.clamp(x, x - 1, x + 1)),
    "clamp_": (MATRIX, lambda lib, x: x.clamp_(-1, 1)),
    "masked_fill_": (MATRIX, lambda lib, x: x.masked_fill_(x > 0, 0.0)),
    "masked_select": (MATRIX, lambda lib, x: x.masked_select(x > 0)),
    "masked_scatter": (MATRIX, lambda lib, x: x.masked_scatter(x > 0, x)),
    "nonzero": (MATRIX, method("nonzero")),
    "dropout2d": (IMAGE, F("dropout2d", 0.5)),
    "alpha_dropout": (MATRIX, F("alpha_dropout", 0.5, training=True)),
    "pixel_shuffle": (IMAGE, F("pixel_shuffle", 2)),
    "pixel_unshuffle": (IMAGE, F("pixel_unshuffle", 2)),
    "instance_norm": (IMAGE, F("instance_norm")),
    "normalize": (MATRIX, F("normalize")),
    "cosine_similarity": (MATRIX, lambda lib, x: lib.nn.functional.cosine_similarity(x, x)),
    "kl_div": (MATRIX, lambda lib, x: lib.nn.functional.kl_div(x, x.softmax(1), reduction="batchmean")),
    "kl_div of logs": (MATRIX, lambda lib, x: lib.nn.functional.kl_div(x, x, log_target=True, reduction="sum")),
    "huber_loss": (MATRIX, lambda lib, x: lib.nn.functional.huber_loss(x, x)),
    "hinge_embedding_loss": (MATRIX, lambda lib, x: lib.nn.functional.hinge_embedding_loss(x, x.sign())),
    "triplet_margin_loss": (MATRIX, lambda lib, x: lib.nn.functional.triplet_margin_loss(x, x, x)),
    "margin_ranking_loss": (MATRIX, lambda lib, x: lib.nn.functional.margin_ranking_loss(x, x, x.sign())),
    "cosine_embedding_loss": (MATRIX, lambda lib, x: lib.nn.functional.cosine_embedding_loss(x, x, lib.ones(3))),
    "poisson_nll_loss": (MATRIX, lambda lib, x: lib.nn.functional.poisson_nll_loss(x, x.abs())),
    "gaussian_nll_loss": (MATRIX, lambda lib, x: lib.nn.functional.gaussian_nll_loss(x, x, x.abs())),
    "cross_entropy of probabilities": (MATRIX, lambda lib, x: lib.nn.functional.cross_entropy(x, x.softmax(1))),
    "cross_entropy 2d": (IMAGE, lambda lib, x: lib.nn.functional.cross_entropy(x, lib.zeros(2, 6, 6, dtype=lib.long))),
    "hardtanh": (MATRIX, F("hardtanh")),
    "relu6": (MATRIX, F("relu6")),
    "hardswish": (MATRIX, F("hardswish")),
    "hardsigmoid": (MATRIX, F("hardsigmoid")),
    "mish": (MATRIX, F("mish")),
    "selu": (MATRIX, F("selu")),
    "celu": (MATRIX, F("celu")),
    "glu": (MATRIX, F("glu")),
    "logsigmoid": (MATRIX, F("logsigmoid")),
    "softsign": (MATRIX, F("softsign")),
    "tanhshrink": (MATRIX, F("tanhshrink")),
    "softmin": (MATRIX, F("softmin", dim=1)),
    "gumbel_softmax": (MATRIX, F("gumbel_softmax", hard=True)),
    "relu_": (MATRIX, lambda lib, x: lib.relu_(x)),
    "leaky_relu_": (MATRIX, F("leaky_relu", inplace=True)),
    "prelu": (MATRIX, lambda lib, x: lib.nn.functional.prelu(x, lib.tensor([0.25]))),
    "max_pool1d": ((2, 3, 8), F("max_pool1d", 2)),
    "avg_pool1d": ((2, 3, 8), F("avg_pool1d", 2)),
    "adaptive_avg_pool2d to 1": (IMAGE, F("adaptive_avg_pool2d", 1)),
    "adaptive_max_pool2d": (IMAGE, F("adaptive_max_pool2d", 2)),
    "pad reflect": (IMAGE, F("pad", (1, 1, 1, 1), mode="reflect")),
    "pad circular": (IMAGE, F("pad", (1, 1, 1, 1), mode="circular")),
    "unfold": (IMAGE, F("unfold", 2)),
    "grid_sample": ((2, 3, 4, 2), lambda lib, x: lib.nn.functional.grid_sample(lib.ones(2, 1, 5, 5), x, align_corners=False)),
    "all": (MATRIX, lambda lib, x: (x > 0).all()),
    "any": (MATRIX, lambda lib, x: (x > 0).any(1)),
    "sum bools": (MATRIX, lambda lib, x: (x > 0).sum()),
    "amax": (MATRIX, method("amax", 1)),
    "aminmax": (MATRIX, method("aminmax")),
    "max": (MATRIX, method("max")),
    "maximum": (MATRIX, lambda lib, x: lib.maximum(x, x)),
    "max of two": (MATRIX, lambda lib, x: lib.max(x, x)),
    "min dim": (MATRIX, method("min", 1)),
    "median": (MATRIX, method("median")),
    "prod": (MATRIX, method("prod")),
    "cumprod": (MATRIX, method("cumprod", 1)),
    "logsumexp": (MATRIX, method("logsumexp", 1)),
    "norm p=1": (MATRIX, method("norm", 1, dim=1)),
    "linalg.norm": (MATRIX, lambda lib, x: lib.linalg.norm(x)),
    "cdist": (MATRIX, lambda lib, x: lib.cdist(x, x)),
    "argsort": (MATRIX, method("argsort")),
    "var_mean": (MATRIX, lambda lib, x: lib.var_mean(x, 1)),
    "searchsorted": (MATRIX, lambda lib, x: lib.searchsorted(lib.tensor([0.0, 1.0]), x)),
    "diff": (MATRIX, lambda lib, x: lib.diff(x)),
    "diag": (MATRIX, lambda lib, x: lib.diag(x)),
    "diag of a vector": ((3,), lambda lib, x: lib.diag(x)),
    "triu": ((3, 3), method("triu", 1)),
    "trace": ((3, 3), method("trace")),
    "outer": ((3,), lambda lib, x: lib.outer(x, x)),
    "dot": ((3,), lambda lib, x: lib.dot(x, x)),
    "addmm": ((3, 3), lambda lib, x: lib.addmm(x, x, x)),
    "baddbmm": ((2, 3, 3), lambda lib, x: lib.baddbmm(x, x, x)),
    "einsum batched": ((2, 3, 4), lambda lib, x: lib.einsum("bij,bkj->bik", x, x)),
    "einsum of sums": (MATRIX, lambda lib, x: lib.einsum("ij->i", x)),
    "tensordot": (MATRIX, lambda lib, x: lib.tensordot(x, x, dims=([1], [1]))),
    "kron": (MATRIX, lambda lib, x: lib.kron(x, x)),
    "bilinear": (MATRIX, lambda lib, x: lib.nn.functional.bilinear(x, x, lib.ones(2, 4, 4))),
    "meshgrid": ((3,), lambda lib, x: lib.meshgrid(x, x, indexing="ij")),
    "expand": ((3, 1), method("expand", 3, 4)),
    "repeat_interleave": (MATRIX, method("repeat_interleave", 2, 0)),
    "unbind": (MATRIX, method("unbind")),
    "flatten": (IMAGE, method("flatten", 1)),
    "unflatten": (MATRIX, method("unflatten", 1, (2, 2))),
    "movedim": (IMAGE, method("movedim", 1, -1)),
    "view_as": (MATRIX, lambda lib, x: x.view_as(x)),
    "type_as": (MATRIX, lambda lib, x: x.type_as(x)),
    "split sizes": (MATRIX, method("split", [1, 2])),
    "tensor_split": (MATRIX, method("tensor_split", 2)),
    "vstack": (MATRIX, lambda lib, x: lib.vstack([x, x])),
    "hstack": (MATRIX, lambda lib, x: lib.hstack([x, x])),
    "index_select": (MATRIX, lambda lib, x: x.index_select(0, lib.tensor([0, 2]))),
    "index_add_": (MATRIX, lambda lib, x: x.index_add_(0, lib.tensor([0]), lib.ones(1, 4))),
    "index_fill_": (MATRIX, lambda lib, x: x.index_fill_(0, lib.tensor([0]), 1)),
    "index_copy_": (MATRIX, lambda lib, x: x.index_copy_(0, lib.tensor([0]), lib.ones(1, 4))),
    "scatter_": (MATRIX, lambda lib, x: x.scatter_(1, lib.tensor([[0], [1]]), 1.0)),
    "scatter_add_": (MATRIX, lambda lib, x: x.scatter_add_(1, lib.tensor([[0], [1]]), lib.ones(2, 1))),
    "scatter": (MATRIX, lambda lib, x: x.scatter(1, lib.tensor([[0], [1]]), 1.0)),
    "take_along_dim": (MATRIX, lambda lib, x: lib.take_along_dim(x, lib.tensor([[0], [1], [0]]), 1)),
    "slice assignment": (MATRIX, lambda lib, x: x.__setitem__((slice(None), 0), 1.0)),
    "tensor assignment": (MATRIX, lambda lib, x: x.__setitem__(0, lib.ones(4))),
    "mask assignment": (MATRIX, lambda lib, x: x.__setitem__(x > 0, 0.0)),
    "mixed index": (IMAGE, lambda lib, x: x[:, lib.tensor([0, 1]), 1]),
    "none index": (MATRIX, lambda lib, x: x[:, None]),
    "range index": (MATRIX, lambda lib, x: x[lib.arange(2), lib.tensor([0, 1])]),
    "isnan": (MATRIX, method("isnan")),
    "isfinite": (MATRIX, method("isfinite")),
    "isinf": (MATRIX, method("isinf")),
    "nan_to_num": (MATRIX, method("nan_to_num")),
    "equal": (MATRIX, lambda lib, x: lib.equal(x, x)),
    "comparisons": (MATRIX, lambda lib, x: ((x > 0) & (x < 1)) | ~(x >= 2)),
    "in-place logic": (MATRIX, lambda lib, x: (x > 0).__iand__(x < 1).__ior__(x > 2)),
    "floor division": (MATRIX, lambda lib, x: x // 2),
    "remainder": (MATRIX, lambda lib, x: x % 2),
    "powers": (MATRIX, lambda lib, x: 2**x),
    "square": (MATRIX, method("square")),
    "rsqrt": (MATRIX, method("rsqrt")),
    "lerp": (MATRIX, lambda lib, x: lib.lerp(x, x, 0.5)),
    "addcmul_": (MATRIX, lambda lib, x: x.addcmul_(x, x, value=0.5)),
    "float": (MATRIX, lambda lib, x: x.double().float()),
    "bool of": (MATRIX, lambda lib, x: bool((x > 0).any())),
    "tolist": (MATRIX, lambda lib, x: x.tolist()),
    "zeros_like": (MATRIX, lambda lib, x: lib.zeros_like(x)),
    "full": (MATRIX, lambda lib, x: lib.full((2, 2), 3.0)),
    "full_like": (MATRIX, lambda lib, x: lib.full_like(x, 3.0)),
    "linspace": (MATRIX, lambda lib, x: lib.linspace(0, 1, 5)),
    "tensor": (MATRIX, lambda lib, x: lib.tensor([1.0, 2.0])),
    "randn": (MATRIX, lambda lib, x: lib.randn(3)),
    "randn_like": (MATRIX, lambda lib, x: lib.randn_like(x)),
    "bernoulli": (MATRIX, lambda lib, x: lib.bernoulli(x.sigmoid())),
    "kaiming_uniform_": (MATRIX, lambda lib, x: lib.nn.init.kaiming_uniform_(x)),
    "xavier_normal_": (MATRIX, lambda lib, x: lib.nn.init.xavier_normal_(x)),
    "orthogonal_": (MATRIX, lambda lib, x: lib.nn.init.orthogonal_(x)),
    "trunc_normal_": (MATRIX, lambda lib, x: [lib.manual_seed(0), lib.nn.init.trunc_normal_(x)]),
    "solve_triangular": ((3, 3), lambda lib, x: lib.linalg.solve_triangular(x.triu() + 2 * lib.eye(3), x, upper=True)),
    "eigh": ((3, 3), lambda lib, x: lib.linalg.eigh(x + x.T)),
    "matrix_power": ((3, 3), lambda lib, x: lib.linalg.matrix_power(x, 3)),
    "fft2": ((4, 4), lambda lib, x: lib.fft.fft2(x).abs()),
    "complex": (MATRIX, lambda lib, x: lib.complex(x, x).conj() * 2),
    "det": ((3, 3), lambda lib, x: lib.linalg.det(x)),
    "slogdet": ((3, 3), lambda lib, x: lib.linalg.slogdet(x)),
    "logdet": ((3, 3), lambda lib, x: lib.logdet(x @ x.T)),
    "eig": ((3, 3), lambda lib, x: lib.linalg.eig(x)),
    "eigvals": ((3, 3), lambda lib, x: lib.linalg.eigvals(x)),
    "lu": ((3, 3), lambda lib, x: lib.linalg.lu(x)[1:]),
    "lu of a tall matrix": ((4, 3), lambda lib, x: lib.linalg.lu(x)[1]),
    "lu_factor": ((3, 3), lambda lib, x: lib.linalg.lu_factor(x)[0]),
    "lu_unpack": ((3, 3), lambda lib, x: lib.lu_unpack(*lib.linalg.lu_factor(x))),
    "lu_unpack of a wide matrix": ((3, 4), lambda lib, x: lib.lu_unpack(*lib.linalg.lu_factor(x))),
    "lu_solve": ((3, 3), lambda lib, x: lib.linalg.lu_solve(*lib.linalg.lu_factor(x + 3 * lib.eye(3)), x)),
    "matrix_exp": ((3, 3), lambda lib, x: lib.linalg.matrix_exp(x)),
    "matrix_power 0": ((3, 3), lambda lib, x: lib.linalg.matrix_power(x, 0)),
    "pinv": (MATRIX, lambda lib, x: lib.linalg.pinv(x)),
    "pinv with a tolerance": (MATRIX, lambda lib, x: lib.linalg.pinv(x, rtol=1e-3)),
    "pinverse": (MATRIX, lambda lib, x: lib.pinverse(x)),
    "matrix_rank": (MATRIX, lambda lib, x: lib.linalg.matrix_rank(x, atol=1e-3)),
    "unique": (MATRIX, lambda lib, x: lib.unique(x, return_inverse=True)),
    "bincount": (MATRIX, lambda lib, x: lib.bincount(lib.tensor([0, 1, 1]))),
    "histc": (MATRIX, lambda lib, x: lib.histc(x, 4)),
    "histogram": (MATRIX, lambda lib, x: lib.histogram(x, 4)),
    "embedding_bag": (MATRIX, lambda lib, x: bag(lib, x)),
    "repeat": (MATRIX, method("repeat", 2, 3)),
    "repeat along new dimensions": ((3,), method("repeat", 2, 1, 3)),
    "repeat never": (MATRIX, method("repeat", 0, 3)),
    "repeat nothing": ((0, 3), method("repeat", 2, 2)),
    "repeat a number": ((1,), lambda lib, x: x[0].repeat(())),
    "repeat a number along new dimensions": ((1,), lambda lib, x: x[0].repeat(2, 3)),
    "repeat what is transposed": (MATRIX, lambda lib, x: x.t().repeat(2, 2)),
    "tile": (MATRIX, lambda lib, x: lib.tile(x, (2,))),
    "tile along new dimensions": (MATRIX, lambda lib, x: lib.tile(x, (2, 1, 3))),
    "repeat_interleave by a tensor": (MATRIX, lambda lib, x: lib.repeat_interleave(x, lib.tensor([1, 2, 0]), 0)),
    "repeat_interleave to a size": (MATRIX, lambda lib, x: lib.repeat_interleave(x, lib.tensor([1, 2, 0]), 0, output_size=3)),
    "repeat_interleave by one number": (MATRIX, lambda lib, x: lib.repeat_interleave(x, lib.tensor(2))),
    "repeat_interleave of positions": (MATRIX, lambda lib, x: lib.repeat_interleave(lib.tensor([1, 2, 0], dtype=lib.int32))),
    "repeat_interleave of nothing": ((0,), lambda lib, x: lib.repeat_interleave(x, lib.tensor([], dtype=lib.int64))),
    "normal with a mean for each": (MATRIX, lambda lib, x: lib.normal(x, 2.0)),
    "renorm": (MATRIX, method("renorm", 2, 0, 1.0)),
    "renorm_": (MATRIX, method("renorm_", 2, 0, 1.0)),
    "isin": (MATRIX, lambda lib, x: lib.isin(x, x)),
    "trapz": (MATRIX, lambda lib, x: lib.trapz(x, x)),
    "trapezoid": (MATRIX, lambda lib, x: lib.trapezoid(x, dx=0.5)),
    "gradient": (MATRIX, lambda lib, x: lib.gradient(x)[0]),
    "gradient of second order": (MATRIX, lambda lib, x: lib.gradient(x, spacing=2.0, edge_order=2)[0]),
    "gradient over points": (MATRIX, lambda lib, x: lib.gradient(x, spacing=(lib.arange(4.0),), dim=1)[0]),
    "soft_margin_loss": (MATRIX, lambda lib, x: lib.nn.functional.soft_margin_loss(x, x.detach().sign())),
    "cov": (MATRIX, lambda lib, x: lib.cov(x, aweights=lib.ones(4))),
    "corrcoef": (MATRIX, lambda lib, x: lib.corrcoef(x)),
    "quantile": (MATRIX, lambda lib, x: lib.quantile(x, 0.3, 1)),
    "nanquantile": (MATRIX, lambda lib, x: lib.nanquantile(x, lib.tensor([0.3, 0.5]))),
    "nanmean": (MATRIX, lambda lib, x: lib.nanmean(x)),
    "count_nonzero": (MATRIX, method("count_nonzero", 1)),
    "dist": (MATRIX, lambda lib, x: lib.dist(x, 2 * x, 3)),
    "tensordot to a number": (MATRIX, lambda lib, x: lib.tensordot(x, x, dims=([0, 1], [0, 1]))),
    "index_fill_ by a tensor": (MATRIX, lambda lib, x: x.index_fill_(0, lib.tensor([0]), lib.tensor(1.0))),
    "poisson_nll_loss in full": (MATRIX, lambda lib, x: lib.nn.functional.poisson_nll_loss(x, x.detach().abs(), full=True)),
    "rrelu": (MATRIX, F("rrelu", training=True)),
    "conv_transpose3d": ((1, 2, 3, 3, 3), lambda lib, x: lib.nn.functional.conv_transpose3d(x, x[:1].transpose(0, 1))),
    "attention with a mask": ((2, 4, 3, 8), lambda lib, x: attention(lib, x, attn_mask=lib.ones(3, 3, dtype=lib.bool))),
    "attention with dropout": ((2, 4, 3, 8), lambda lib, x: attention(lib, x, dropout_p=0.5)),
    "quantile of a number": ((1,), lambda lib, x: lib.quantile(x[0], 0.3, 0)),
    "flatten a number": ((1,), lambda lib, x: x[0].flatten()),
    "view_copy": (MATRIX, lambda lib, x: lib.view_copy(x, (4, 3))),
    "view_copy of other strides": (MATRIX, lambda lib, x: lib.view_copy(x.t(), (3, 4))),
    "narrow_copy": (MATRIX, method("narrow_copy", 1, 1, 2)),
    "vector norm of single elements": ((1, 3), lambda lib, x: lib.linalg.vector_norm(x, 3, 0)),
    "vector norm of numbers": ((1,), lambda lib, x: lib.linalg.vector_norm(x[0], 2)),
    "ihfft2": (MATRIX, lambda lib, x: lib.fft.ihfft2(x)),
    "pinv of nothing": ((0, 0), lambda lib, x: lib.linalg.pinv(x)),
    "matrix_rank of nothing": ((2, 0, 3), lambda lib, x: lib.linalg.matrix_rank(x)),
    "_chunk_cat": (MATRIX, lambda lib, x: lib._chunk_cat([x, x], 0, 2)),
    "cummax": (MATRIX, method("cummax", 1)),
    "cummin": (MATRIX, method("cummin", 0)),
    "logsumexp of a number": ((1,), lambda lib, x: x[0].logsumexp(0)),
}

BACKWARD: dict[str, tuple[tuple[int, ...], Function]] = {
    name: FORWARD[name]
    for name in (
        "t", "clamp_min", "clamp by tensors", "masked_select", "dropout2d", "alpha_dropout", "pixel_shuffle", "pixel_unshuffle",
        "instance_norm", "normalize", "cosine_similarity", "kl_div", "huber_loss", "poisson_nll_loss", "hardtanh", "relu6", "hardswish",
        "hardsigmoid", "mish", "selu", "celu", "glu", "logsigmoid", "softsign", "prelu", "max_pool1d", "avg_pool1d",
        "adaptive_avg_pool2d to 1", "adaptive_max_pool2d", "pad reflect", "unfold", "grid_sample", "amax", "max",
        "maximum", "median", "prod", "cumprod", "logsumexp", "norm p=1", "linalg.norm", "cdist", "diag", "triu", "outer", "dot",
        "addmm", "baddbmm", "einsum batched", "einsum of sums", "tensordot", "kron", "expand",
        "repeat_interleave", "flatten", "unflatten", "movedim", "vstack", "index_select", "take_along_dim", "mixed index", "none index",
        "range index", "remainder", "powers", "square", "rsqrt", "lerp", "cross_entropy of probabilities", "cross_entropy 2d",
        "triplet_margin_loss", "margin_ranking_loss", "solve_triangular", "attention with a mask",
        "bilinear", "pad circular", "trace", "lu of a tall matrix", "lu_factor", "lu_solve", "matrix_exp",
        "pinv", "renorm", "trapz", "gradient", "gradient of second order", "soft_margin_loss", "cov", "quantile", "dist",
        "tensordot to a number", "embedding_bag", "repeat", "repeat never", "tile", "repeat_interleave by a tensor", "poisson_nll_loss in full", "rrelu",
    )
} | {
    "var_mean": (MATRIX, lambda lib, x: sum(lib.var_mean(x))),
    "std_mean": (MATRIX, lambda lib, x: sum(lib.std_mean(x, 1))),
    "amin of a dimension": (MATRIX, method("amin", 1)),
    "det": ((3, 3), lambda lib, x: lib.linalg.det(x)),
    "slogdet": ((3, 3), lambda lib, x: lib.linalg.slogdet(x)[1]),
    "logdet": ((3, 3), lambda lib, x: lib.logdet(x @ x.t() + lib.eye(3))),
    "lu_unpack of a wide matrix": ((3, 5), lambda lib, x: packed(lib, x, (1, 2))),
    "lu_unpack of a tall matrix": ((5, 3), lambda lib, x: packed(lib, x, (1, 2))),
    "lu_unpack, one factor": ((3, 5), lambda lib, x: packed(lib, x, (1,))),
    "eigvals": ((3, 3), lambda lib, x: lib.linalg.eigvals(x).abs()),
    "var_mean of a vector": ((5,), lambda lib, x: sum(lib.var_mean(x, 0))),
    "prod of a number": ((1,), lambda lib, x: x[0].prod()),
    "cat with nothing": (MATRIX, lambda lib, x: lib.cat([x[0, :0], x], 1)),
    "nuclear norm kept": (MATRIX, lambda lib, x: lib.linalg.matrix_norm(x, "nuc", (1, 0), True)),
    "spectral norm kept": ((2, 3, 2), lambda lib, x: lib.linalg.matrix_norm(x, 2, (0, 2), True)),
    "cosine_similarity of two shapes": (MATRIX, lambda lib, x: lib.cosine_similarity(x, x[:1], 1)),
    "bce with weights": (MATRIX, lambda lib, x: lib.nn.functional.binary_cross_entropy(x.sigmoid(), x.detach().sigmoid(), x[0].detach())),
    "triplet_margin_loss swapped": (MATRIX, lambda lib, x: lib.nn.functional.triplet_margin_loss(x, 2 * x, x - 1, swap=True)),
    "qr of a wide matrix": ((3, 5), lambda lib, x: sum(t.sum() for t in lib.linalg.qr(x))),
    "cumprod with zeros": (MATRIX, lambda lib, x: (x * lib.tensor([1.0, 0.0, 2.0, 0.0])).cumprod(1)),
    "lstsq with residuals": ((4, 3), lambda lib, x: least_squares(lib, x)),
    "atanh": (MATRIX, lambda lib, x: lib.tanh(x).atanh()),
    "sinc": (MATRIX, lambda lib, x: x.sinc()),
    "block_diag of vectors": ((3,), lambda lib, x: lib.block_diag(x, x[:1], x[0])),
    "stft": ((40,), lambda lib, x: lib.stft(x, 8, return_complex=True).abs()),
    "as_strided with a dimension of one": (MATRIX, lambda lib, x: x.as_strided((2, 1, 3), (4, 1, 1))),
    "as_strided, repeated": (MATRIX, lambda lib, x: x.as_strided((2, 3), (0, 1))),
    "as_strided_scatter": (MATRIX, lambda lib, x: x.as_strided_scatter(lib.zeros(2, 2), (2, 2), (4, 1))),
    "expand a number": ((1,), lambda lib, x: x[0].expand(())),
    "count as a norm": (MATRIX, lambda lib, x: x.norm(0) + x.sum()),
    "norm of a vector": ((5,), lambda lib, x: lib.linalg.norm(x, 0.5)),
    "repeat along new dimensions": ((3,), method("repeat", 2, 2, 3)),
    "index_add of a number": ((1,), lambda lib, x: x[0].index_add(0, lib.tensor([0]), x[0], alpha=2)),
    "weight norm": (MATRIX, lambda lib, x: lib._weight_norm(x, x[:, :1], 0)),
    "cumsum": (MATRIX, method("cumsum", 1)),
    "where": (MATRIX, lambda lib, x: lib.where(x > 0, x, x * 2)),
    "masked_fill": (MATRIX, lambda lib, x: x.masked_fill(x.detach() > 0, 0.0)),
    "split": (MATRIX, lambda lib, x: x.split(2)[0] * 2),
    "chunk": (MATRIX, lambda lib, x: x.chunk(2, 1)[1] * 2),
    "unbind": (MATRIX, lambda lib, x: x.unbind()[1] * 2),
    "stack": (MATRIX, lambda lib, x: lib.stack([x, x])),
    "std": (MATRIX, method("std")),
    "std dim": (MATRIX, method("std", 1)),
    "norm": (MATRIX, method("norm")),
    "norm dim": (MATRIX, method("norm", dim=1)),
    "bce": (MATRIX, lambda lib, x: lib.nn.functional.binary_cross_entropy(x.sigmoid(), x.detach().sigmoid())),
    "bce with logits": (MATRIX, lambda lib, x: lib.nn.functional.binary_cross_entropy_with_logits(x, x.detach().sigmoid())),
    "smooth_l1_loss": (MATRIX, lambda lib, x: lib.nn.functional.smooth_l1_loss(x, x.detach() + 1)),
    "l1_loss": (MATRIX, lambda lib, x: lib.nn.functional.l1_loss(x, x.detach() + 1)),
    "leaky_relu": (MATRIX, F("leaky_relu")),
    "elu": (MATRIX, F("elu")),
    "softplus": (MATRIX, F("softplus")),
    "silu": (MATRIX, F("silu")),
    "log_softmax": (MATRIX, F("log_softmax", dim=1)),
    "permute": (IMAGE, method("permute", 0, 2, 3, 1)),
    "transpose": (MATRIX, method("transpose", 0, 1)),
    "view": (MATRIX, method("view", 4, 3)),
    "reshape": (MATRIX, lambda lib, x: x.t().reshape(12)),
    "contiguous": (MATRIX, lambda lib, x: x.t().contiguous()),
    "clone": (MATRIX, method("clone")),
    "to": (MATRIX, method("double")),
    "sum dim": (MATRIX, method("sum", 1)),
    "mean dim": (MATRIX, method("mean", 1)),
    "abs": (MATRIX, method("abs")),
    "sqrt": (MATRIX, lambda lib, x: x.abs().sqrt()),
    "log": (MATRIX, lambda lib, x: x.abs().log()),
    "sin": (MATRIX, lambda lib, x: x.sin() + x.cos()),
    "sub": (MATRIX, lambda lib, x: x - x.detach() - (1 - x)),
    "broadcast add": ((4,), lambda lib, x: x + lib.ones(3, 4)),
    "broadcast mul": ((4,), lambda lib, x: x * lib.ones(3, 4)),
    "divide": (MATRIX, lambda lib, x: x / 2),
    "reciprocal": (MATRIX, lambda lib, x: 1 / x),
    "pow tensor": (MATRIX, lambda lib, x: x.abs() ** x),
    "in-place": (MATRIX, lambda lib, x: (x * 2).add_(1).mul_(x)),
    "in-place activation": (MATRIX, lambda lib, x: lib.relu_(x * 2)),
    "min dim": (MATRIX, lambda lib, x: x.min(1)[0]),
    "topk": (MATRIX, lambda lib, x: x.topk(2)[0]),
    "sort": (MATRIX, lambda lib, x: x.sort()[0]),
    "scatter_add": (MATRIX, lambda lib, x: lib.zeros(3, 4).scatter_add(1, lib.tensor([[0, 1, 2, 3]] * 3), x)),
    "index_put": (MATRIX, lambda lib, x: lib.zeros(5, 4).index_put((lib.tensor([0, 1, 2]),), x)),
    "assignment": (MATRIX, lambda lib, x: assigned(lib, x)),
    "index_add": (MATRIX, lambda lib, x: lib.zeros(5, 4).index_add(0, lib.tensor([0, 1, 2]), x)),
    "interpolate nearest": ((1, 2, 4, 4), F("interpolate", scale_factor=2)),
    "interpolate bilinear": ((1, 2, 4, 4), F("interpolate", scale_factor=2, mode="bilinear")),
    "conv1d": ((2, 3, 8), lambda lib, x: lib.nn.functional.conv1d(x, x[:, :, :3], x[0, 0, :2])),
    "conv_transpose2d": ((2, 3, 8, 8), lambda lib, x: lib.nn.functional.conv_transpose2d(x, x[:1, :, :3, :3].transpose(0, 1))),
    # with a bias, whose gradient torch adds up sample by sample with operators, dilated ones are one kernel here; so are groups
    "conv2d dilated without bias": ((2, 3, 8, 8), lambda lib, x: lib.nn.functional.conv2d(x, x[:, :, :3, :3], dilation=2)),
    "conv3d grouped": (
        (2, 4, 4, 4, 4),
        lambda lib, x: lib.nn.functional.conv3d(x, x[:, :2, :2, :2, :2], x[0, 0, 0, 0, :2], groups=2),
    ),
    "group_norm": ((4, 6, 2), F("group_norm", 3)),
    "rms_norm": ((4, 6), F("rms_norm", (6,))),
    "matmul 3d": ((2, 3, 4), lambda lib, x: x @ lib.ones(4, 5)),
    "linear 3d": ((2, 3, 4), lambda lib, x: lib.nn.functional.linear(x, lib.ones(5, 4, requires_grad=True), lib.ones(5, requires_grad=True))),
    "flip": (MATRIX, method("flip", 0)),
    "roll": (MATRIX, method("roll", 1, 0)),
    "pad": (MATRIX, F("pad", (1, 1))),
    "tril": ((3, 3), method("tril")),
    "cholesky": ((3, 3), lambda lib, x: lib.linalg.cholesky(x @ x.T + 3 * lib.eye(3))),
    "inverse": ((3, 3), lambda lib, x: lib.linalg.inv(x + 3 * lib.eye(3))),
    "solve": ((3, 3), lambda lib, x: lib.linalg.solve(x + 3 * lib.eye(3), x)),
    "eigh": ((3, 3), lambda lib, x: (lambda values, vectors: values.sum() + vectors.sum())(*lib.linalg.eigh(x + x.T))),
    "eigvalsh": ((3, 3), lambda lib, x: lib.linalg.eigvalsh(x + x.T)),
    "lu": ((3, 3), lambda lib, x: (lambda p, lower, upper: lower + upper)(*lib.linalg.lu(x))),
    "acosh": (MATRIX, lambda lib, x: (x.abs() + 2).acosh()),
    "addcmul": (MATRIX, lambda lib, x: lib.addcmul(x, x, x, value=0.5)),
    "addcdiv": (MATRIX, lambda lib, x: lib.addcdiv(x, x, x.abs() + 1, value=0.5)),
    "copysign": (MATRIX, lambda lib, x: lib.copysign(x, x[0])),
    "lerp by tensors": (MATRIX, lambda lib, x: lib.lerp(x, x * 2, x.sigmoid())),
    "i1": (MATRIX, lambda lib, x: lib.special.i1(x) + lib.special.i1e(x)),
    "xlog1py": (MATRIX, lambda lib, x: lib.special.xlog1py(x, x.abs())),
    "log_ndtr": (MATRIX, lambda lib, x: lib.special.log_ndtr(x)),
    "aminmax": (MATRIX, lambda lib, x: sum(lib.aminmax(x))),
    "bce of its target": (MATRIX, lambda lib, x: lib.nn.functional.binary_cross_entropy(x.detach().sigmoid(), x.sigmoid())),
    "bce with logits of its target": (
        MATRIX,
        lambda lib, x: lib.nn.functional.binary_cross_entropy_with_logits(x.detach(), x.sigmoid(), pos_weight=lib.ones(4)),
    ),
    "masked_fill by a tensor": (MATRIX, lambda lib, x: x.masked_fill(x.detach() > 0, x.sum())),
    "as_strided": (MATRIX, method("as_strided", (2, 2), (1, 2))),
    "overlapping as_strided": (MATRIX, method("as_strided", (2, 2), (1, 1))),
    "scatter_reduce by means": (MATRIX, lambda lib, x: scattered(lib, x, "mean")),
    "scatter_reduce by products": (MATRIX, lambda lib, x: scattered(lib, x, "prod")),
    "scatter_reduce by maxima": (MATRIX, lambda lib, x: scattered(lib, x, "amax")),
    "conv3d": ((1, 2, 4, 4, 4), lambda lib, x: lib.nn.functional.conv3d(x, x[:, :, :3, :3, :3], x[0, 0, 0, 0, :1])),
    "used twice": (MATRIX, lambda lib, x: x * 2 + x * 3 + x.exp()),
    "diamond": (MATRIX, lambda lib, x: (lambda y: y.tanh() * y.sigmoid())(x * 2)),
}  # fmt: skip


def bag(lib: Any, x: Any) -> Any:
    return lib.nn.functional.embedding_bag(lib.tensor([0, 2, 1]), x, lib.tensor([0, 2]))


def scattered(lib: Any, x: Any, reduce: str) -> Any:
    return lib.ones(3, 4).scatter_reduce(1, lib.tensor([[0, 1, 1, 3]] * 3), x, reduce)


def assigned(lib: Any, x: Any) -> Any:
    out = lib.zeros(3, 4)
    out[1:] = x[1:]
    return out


def packed(lib: Any, x: Any, factors: tuple[int, ...]) -> Any:
    """The sum of some factors unpacked from a matrix as if it were an LU factorisation."""
    pivots = lib.arange(1, min(x.shape) + 1, dtype=lib.int32)
    parts = lib.lu_unpack(x, pivots)
    return sum(parts[i].sum() for i in factors)


def least_squares(lib: Any, x: Any) -> Any:
    found = lib.linalg.lstsq(x, x[:, :2] * 2 + 1, driver="gels")
    return found.solution.sum() + found.residuals.sum()


def attention(lib: Any, x: Any, **options: Any) -> Any:
    if lib.__name__ == "torch":
        with lib.nn.attention.sdpa_kernel(lib.nn.attention.SDPBackend.MATH):
            return lib.nn.functional.scaled_dot_product_attention(x, x, x, **options)
    return lib.nn.functional.scaled_dot_product_attention(x, x, x, **options)


# name → (module, shape of the input)
MODULES: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "Linear": (lambda nn: nn.Linear(4, 3), (2, 4)),
    "Conv2d": (lambda nn: nn.Conv2d(3, 4, 3, padding=1), (2, 3, 8, 8)),
    "ConvTranspose2d": (lambda nn: nn.ConvTranspose2d(3, 4, 3), (2, 3, 8, 8)),
    "BatchNorm1d": (lambda nn: nn.BatchNorm1d(4), (3, 4)),
    "BatchNorm2d": (lambda nn: nn.BatchNorm2d(3), (2, 3, 4, 4)),
    "LayerNorm": (lambda nn: nn.LayerNorm(4), (3, 4)),
    "GroupNorm": (lambda nn: nn.GroupNorm(2, 4), (3, 4, 5)),
    "MLP": (lambda nn: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 3)), (2, 4)),
}


def module(name: str) -> Callable[[Any], Callable[[], Any]]:
    """Forward and backward of a module in training."""
    build, shape = MODULES[name]

    def make(lib: Any) -> Callable[[], Any]:
        net, x = build(lib.nn), lib.randn(*shape)

        def call() -> None:
            out = net(x)
            while isinstance(out, tuple):
                out = out[0]
            out.sum().backward()

        return _with_math(lib, call)

    return make


def _with_math(lib: Any, call: Callable[[], Any]) -> Callable[[], Any]:
    if lib.__name__ != "torch":
        return call

    def inside() -> Any:
        with lib.nn.attention.sdpa_kernel(lib.nn.attention.SDPBackend.MATH):
            return call()

    return inside


def recurrent(name: str, gates: int) -> Callable[[Any], Callable[[], Any]]:
    """Forward and backward of a recurrent layer's or cell's operator."""

    def make(lib: Any) -> Callable[[], Any]:
        weights = [lib.randn(*s, requires_grad=True) for s in ((gates * 3, 4), (gates * 3, 3), (gates * 3,), (gates * 3,))]
        cell = name.endswith("cell")
        x, h = (lib.randn(2, 4), lib.zeros(2, 3)) if cell else (lib.randn(5, 2, 4), lib.zeros(1, 2, 3))
        state = (h, h) if name.startswith("lstm") else h

        def call() -> None:
            out = (
                getattr(lib, name)(x, state, *weights)
                if cell
                else getattr(lib, name)(x, state, weights, True, 1, 0.0, True, False, False)
            )
            (out[0] if isinstance(out, tuple) else out).sum().backward()

        return call

    return make


RECURRENT = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1, "lstm_cell": 4, "gru_cell": 3}

OPTIMIZERS: dict[str, Callable[[Any, Any], Any]] = {
    "SGD": lambda lib, p: lib.optim.SGD(p, lr=0.1),
    "SGD with momentum": lambda lib, p: lib.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.1),
    "SGD Nesterov": lambda lib, p: lib.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "Adam": lambda lib, p: lib.optim.Adam(p),
    "Adam amsgrad": lambda lib, p: lib.optim.Adam(p, amsgrad=True, weight_decay=0.1),
    "AdamW": lambda lib, p: lib.optim.AdamW(p),
    "AdamW foreach": lambda lib, p: lib.optim.AdamW(p, foreach=True),
    "SGD foreach": lambda lib, p: lib.optim.SGD(p, lr=0.1, momentum=0.9, foreach=True),
    **{
        name: lambda lib, p, name=name: getattr(lib.optim, name)(p)
        for name in ("ASGD", "Adadelta", "Adafactor", "Adagrad", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop")
    },
    "RMSprop centered": lambda lib, p: lib.optim.RMSprop(p, centered=True, momentum=0.9, weight_decay=0.1),
    "RMSprop foreach": lambda lib, p: lib.optim.RMSprop(p, centered=True, momentum=0.9, foreach=True),
    "NAdam foreach": lambda lib, p: lib.optim.NAdam(p, foreach=True),
    "Adagrad fused": lambda lib, p: lib.optim.Adagrad(p, fused=True),
}


def optimizer(name: str) -> Callable[[Any], Callable[[], Any]]:
    """A step over a Linear, after clipping, and the gradients' end."""

    def make(lib: Any) -> Callable[[], Any]:
        net, x = lib.nn.Linear(4, 3), lib.randn(2, 4)
        chosen = OPTIMIZERS[name](lib, net.parameters())

        def step() -> None:
            net(x).sum().backward()
            lib.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            chosen.step()
            chosen.zero_grad()

        return step

    return make
