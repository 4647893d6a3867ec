"""Parametrizations of weights: orthogonal matrices, weight and spectral normalisation."""

from __future__ import annotations

from enum import Enum, auto
from typing import Any

from ..._autograd.grad_mode import no_grad
from ..._dtype_info import finfo
from ..._memory_format import contiguous_format
from ..._ops.machinery.lookup import aten
from ..._tensor import Tensor
from .. import functional as F
from ..modules.module import Module
from .parametrize import register_parametrization
from .spectral_norm import output_dim

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


# --- orthogonal matrices ------------------------------------------------------------------------------------------------


class _OrthMaps(Enum):
    matrix_exp = auto()
    cayley = auto()
    householder = auto()


def _is_orthogonal(q: Tensor) -> bool:
    n, k = q.shape[-2:]
    identity = aten.eye(k, dtype=q.dtype, device=q.device)
    return bool(aten.allclose(q.mH @ q, identity, atol=10.0 * n * finfo(q.dtype).eps))


def _make_orthogonal(a: Tensor) -> Tensor:
    """The Q of a QR factorisation whose R has a positive diagonal."""
    x, tau = aten.geqrf(a)
    q: Tensor = aten.linalg_householder_product(x, tau)
    q *= x.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)
    return q


class _Orthogonal(Module):
    """A map from matrices to orthogonal ones; with `use_trivialization` it starts at the weight as it was (`base`)."""

    def __init__(self, weight: Tensor, orthogonal_map: _OrthMaps, *, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map is _OrthMaps.householder:
            # n(n - 1) real numbers in the reflectors do not determine a unitary matrix
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        wide = X.size(-2) < X.size(-1)
        tall = X.mT if wide else X
        q = self._reflected(tall) if self.orthogonal_map is _OrthMaps.householder else self._rotated(tall)
        if hasattr(self, "base"):
            q = self.base @ q
        return q.mT if wide else q

    def _rotated(self, x: Tensor) -> Tensor:
        """The first columns of the exponential, or the Cayley map, of a skew-Hermitian matrix."""
        n, k = x.shape[-2:]
        x = x.tril()
        if n != k:
            x = aten.cat([x, x.new_zeros(n, n - k).expand(*x.shape[:-2], -1, -1)], dim=-1)
        a = x - x.mH
        if self.orthogonal_map is _OrthMaps.matrix_exp:
            q = aten.matrix_exp(a)
        else:
            identity = aten.eye(n, dtype=a.dtype, device=a.device)
            q = aten.linalg_solve(aten.add(identity, a, alpha=-0.5), aten.add(identity, a, alpha=0.5))
        return q if n == k else q[..., :k]

    def _reflected(self, x: Tensor) -> Tensor:
        """A product of Householder reflections; the signs are on the diagonal, and not differentiated."""
        a = x.tril(diagonal=-1)
        q = aten.linalg_householder_product(a, 2.0 / (1.0 + (a * a).sum(dim=-2)))
        return q * x.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)

    def right_inverse(self, Q: Tensor) -> Tensor:
        """What `forward` makes this matrix of; with a base, the base is the matrix and that is minus the identity."""
        if Q.shape != self.shape:
            raise ValueError(f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}.")
        with no_grad():
            wide = Q.size(-2) < Q.size(-1)
            q = Q.mT if wide else Q
            if not hasattr(self, "base"):
                a = self._reflectors(q)
                return a.mT if wide else a
            self.base = _completed(q)
            start = aten.zeros_like(Q)
            start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
            return start

    def _reflectors(self, q: Tensor) -> Tensor:
        if self.orthogonal_map is not _OrthMaps.householder:
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley parametrizations when use_trivialization=False."
            )
        a, tau = aten.geqrf(q)
        diagonal = a.diagonal(dim1=-2, dim2=-1)
        diagonal.sign_()
        diagonal[tau == 0.0] *= -1  # LAPACK gives exactly zero where there is no reflection
        return a


def _completed(q: Tensor) -> Tensor:
    """A square orthogonal matrix that begins with the columns of q, made orthogonal if they are not."""
    n, k = q.shape[-2:]
    if n == k:
        return q.clone() if _is_orthogonal(q) else _make_orthogonal(q)
    rest = aten.randn((*q.shape[:-2], n, n - k), dtype=q.dtype, device=q.device)
    return _make_orthogonal(aten.cat([q, rest], dim=-1))


def _weight_of(module: Module, name: str) -> Tensor:
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Keep a matrix, or a batch of matrices, orthogonal (unitary, if complex)."""
    weight = _weight_of(module, name)
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1)
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in _OrthMaps.__members__:
        raise ValueError(f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}')
    made = _Orthogonal(weight, _OrthMaps[orthogonal_map], use_trivialization=use_trivialization)
    return register_parametrization(module, name, made, unsafe=True)


# --- weight norm --------------------------------------------------------------------------------------------------------


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return aten._weight_norm(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return aten.norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int = 0) -> Module:
    """Compute a weight from its lengths along `dim` (`original0`) and its directions (`original1`)."""
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(state_dict: dict[str, Any], prefix: str, *_: Any) -> None:
        """Read checkpoints of `torch.nn.utils.weight_norm`."""
        old = f"{prefix}{name}_g", f"{prefix}{name}_v"
        if all(key in state_dict for key in old):
            for i, key in enumerate(old):
                state_dict[f"{prefix}parametrizations.{name}.original{i}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(rename)
    return module


# --- spectral norm ------------------------------------------------------------------------------------------------------


class _SpectralNorm(Module):
    """Divides a weight by its largest singular value, which one step of the power method for each use in training keeps track of."""

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        ndim = weight.ndim
        if not -ndim <= dim < ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")
        self.dim = dim if dim >= 0 else dim + ndim
        self.eps = eps
        if ndim > 1:  # the norm of a vector needs no approximation
            self.n_power_iterations = n_power_iterations
            matrix = self._reshape_weight_to_matrix(weight)
            for name, size in zip(("_u", "_v"), matrix.shape, strict=True):
                self.register_buffer(name, F.normalize(matrix.new_empty(size).normal_(0, 1), dim=0, eps=eps))
            self._power_method(matrix, 15)

    def _reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        if self.dim != 0:
            weight = weight.permute(self.dim, *(d for d in range(weight.dim()) if d != self.dim))
        return weight.flatten(1)

    def _power_method(self, matrix: Tensor, steps: int) -> None:
        """Improve the singular vectors in place."""
        with no_grad():
            for _ in range(steps):
                self._u = F.normalize(aten.mv(matrix, self._v), dim=0, eps=self.eps, out=self._u)
                self._v = F.normalize(aten.mv(matrix.H, self._u), dim=0, eps=self.eps, out=self._v)

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._reshape_weight_to_matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        # copies: the next call writes to the vectors, and backward needs these
        u, v = self._u.clone(memory_format=contiguous_format), self._v.clone(memory_format=contiguous_format)
        return weight / aten.vdot(u, aten.mv(matrix, v))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide a weight by its largest singular value."""
    weight = _weight_of(module, name)
    dim = output_dim(module) if dim is None else dim
    return register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
