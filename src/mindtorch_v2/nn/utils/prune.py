"""Pruning: masks that set parts of a module's parameters to zero, by hooks that apply them before each call."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

from ..._functions import functions
from ..._memory_format import contiguous_format
from ..._ops.machinery.lookup import aten
from ..._tensor import Tensor
from ..modules.module import Module
from ..parameter import set_tensor_data
from .convert_parameters import parameters_to_vector

__all__ = [
    "BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured", "PruningContainer", "RandomStructured",
    "RandomUnstructured", "custom_from_mask", "global_unstructured", "identity", "is_pruned", "l1_unstructured", "ln_structured",
    "random_structured", "random_unstructured", "remove",
]  # fmt: skip


class BasePruningMethod(ABC):
    """A hook that multiplies a parameter (`name_orig`) by a mask (`name_mask`) before each call; `compute_mask` makes the mask."""

    PRUNING_TYPE: str
    _tensor_name: str

    def __call__(self, module: Module, inputs: object) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask for a tensor, on top of the mask that is there."""

    def apply_mask(self, module: Module) -> Tensor:
        """The parameter with the mask applied."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        original = getattr(module, self._tensor_name + "_orig")
        return getattr(module, self._tensor_name + "_mask").to(dtype=original.dtype) * original

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any
    ) -> BasePruningMethod:
        """Prune a module's parameter, after what pruned it before."""
        method = cls._on_top_of_others(module, name, args, kwargs)
        first = not isinstance(method, PruningContainer)
        value = getattr(module, name)
        if importance_scores is None:
            importance_scores = value
        elif importance_scores.shape != value.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}, "
                f"got {importance_scores.shape} vs {value.shape}"
            )
        if first:
            module.register_parameter(name + "_orig", value)
            del module._parameters[name]
            mask = aten.ones_like(value)
        else:
            mask = getattr(module, name + "_mask").detach().clone(memory_format=contiguous_format)
        try:
            module.register_buffer(name + "_mask", method.compute_mask(importance_scores, default_mask=mask))
            setattr(module, name, method.apply_mask(module))
            module.register_forward_pre_hook(method)
        except Exception:
            if first:
                module.register_parameter(name, getattr(module, name + "_orig"))
                del module._parameters[name + "_orig"]
            raise
        return method

    @classmethod
    def _on_top_of_others(cls, module: Module, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> BasePruningMethod:
        """A new method of this class, in a container with the one that is there; whose hook is taken away."""
        hooks = module._forward_pre_hooks
        found = [k for k, hook in hooks.items() if isinstance(hook, BasePruningMethod) and hook._tensor_name == name]
        if len(found) > 1:
            raise AssertionError(
                f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}. Use a PruningContainer."
            )
        before = hooks.pop(found[0]) if found else None
        method = cls(*args, **kwargs)
        method._tensor_name = name
        if before is None:
            return method
        container = before if isinstance(before, PruningContainer) else PruningContainer(before)
        container.add_pruning_method(method)
        return container

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """A pruned copy of a tensor, without a module."""
        if importance_scores is None:
            importance_scores = t
        elif importance_scores.shape != t.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as tensor t, got {importance_scores.shape} vs {t.shape}"
            )
        mask = aten.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(importance_scores, default_mask=mask)

    def remove(self, module: Module) -> None:
        """Make the pruned tensor the parameter, for good."""
        name = self._tensor_name
        if name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters.pop(name + "_orig")
        set_tensor_data(original, weight.detach())
        del module._buffers[name + "_mask"]
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Several methods for one parameter; the last one prunes what the others left."""

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[Any, ...] = ()
        if len(args) == 1:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: object) -> None:
        """Add a method for the same parameter."""
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to PruningContainer {self}. "
                f"Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: int) -> BasePruningMethod:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask of all methods so far: the last one is asked about what is not pruned yet."""
        method = self._pruning_methods[-1]
        part = _unpruned(method, t, default_mask)
        mask = default_mask.to(dtype=t.dtype)
        mask[part] = method.compute_mask(t[part], default_mask=default_mask[part]).to(dtype=mask.dtype)
        return mask


def _unpruned(method: BasePruningMethod, t: Tensor, mask: Tensor) -> Any:
    """The index of what a method may prune: elements, or channels that are not all zeros."""
    if method.PRUNING_TYPE == "unstructured":
        return mask == 1
    whole: list[Any] = [slice(None)] * t.dim()
    if method.PRUNING_TYPE == "global":
        return tuple(whole)
    if method.PRUNING_TYPE != "structured":
        raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
    if not hasattr(method, "dim"):
        raise AttributeError('Pruning methods of PRUNING_TYPE "structured" need to have the attribute `dim` defined.')
    dim = method.dim if method.dim >= 0 else method.dim + t.dim()
    if dim < 0:
        raise IndexError(f"Index is out of bounds for tensor with dimensions {t.dim()}")
    whole[dim] = mask.sum(dim=[d for d in range(t.dim()) if d != dim]) != 0
    return tuple(whole)


# --- how many ---------------------------------------------------------------------------------------------------------


def _validate_pruning_amount_init(amount: object) -> None:
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if float(amount) < 0 or (not isinstance(amount, numbers.Integral) and float(amount) > 1):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _validate_pruning_amount(amount: int | float, tensor_size: int) -> None:
    """Refuse to prune more than there is."""
    if isinstance(amount, numbers.Integral) and int(amount) > tensor_size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={tensor_size}")


def _compute_nparams_toprune(amount: int | float, tensor_size: int) -> int:
    """How many of `tensor_size` an amount stands for."""
    return int(amount) if isinstance(amount, numbers.Integral) else round(amount * tensor_size)


def _count(amount: int | float, size: int) -> int:
    """How many of `size` are to be pruned."""
    _validate_pruning_amount(amount, size)
    return _compute_nparams_toprune(amount, size)


# --- methods ------------------------------------------------------------------------------------------------------------


class Identity(BasePruningMethod):
    """Prunes nothing: a mask of ones."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask that is there."""
        return default_mask

    @classmethod
    def apply(cls, module: Module, name: str) -> BasePruningMethod:  # type: ignore[override]
        """Give a module's parameter a mask that prunes nothing."""
        return super().apply(module, name)


class _Unstructured(BasePruningMethod):
    """Prunes single elements."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: int | float) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def _chosen(self, t: Tensor, count: int) -> Tensor:
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask that is there, with zeros for the elements chosen."""
        count = _count(self.amount, t.nelement())
        mask = default_mask.clone(memory_format=contiguous_format)
        if count:
            mask.view(-1)[self._chosen(t, count)] = 0
        return mask


class RandomUnstructured(_Unstructured):
    """Prunes elements at random."""

    def _chosen(self, t: Tensor, count: int) -> Tensor:
        return aten.topk(aten.rand_like(t).view(-1), k=count).indices

    @classmethod
    def apply(cls, module: Module, name: str, amount: int | float) -> BasePruningMethod:  # type: ignore[override]
        """Prune a number or a share of a parameter's elements."""
        return super().apply(module, name, amount=amount)


class L1Unstructured(_Unstructured):
    """Prunes the elements that are smallest by magnitude."""

    def _chosen(self, t: Tensor, count: int) -> Tensor:
        return aten.topk(aten.abs(t).view(-1), k=count, largest=False).indices

    @classmethod
    def apply(cls, module: Module, name: str, amount: int | float, importance_scores: Tensor | None = None) -> BasePruningMethod:  # type: ignore[override]
        """Prune a number or a share of a parameter's elements, by these scores if they are given."""
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class _Structured(BasePruningMethod):
    """Prunes whole channels along a dimension."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: int | float, dim: int = -1) -> None:
        _validate_pruning_amount_init(amount)
        self.amount, self.dim = amount, dim

    def _kept(self, t: Tensor, count: int) -> Tensor | None:
        """The index of the channels that stay; None where all do."""
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask that is there, with zeros for the channels chosen."""
        if t.dim() <= 1:
            raise ValueError(
                "Structured pruning can only be applied to multidimensional tensors. Found tensor of shape "
                f"{t.shape} with {t.dim()} dims"
            )
        if self.dim >= t.dim():
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        count = _count(self.amount, t.shape[self.dim])
        kept = self._kept(t, count)
        if not count:
            return default_mask
        mask = aten.zeros_like(t)
        index: list[Any] = [slice(None)] * t.dim()
        index[self.dim] = kept
        mask[tuple(index)] = 1
        mask *= default_mask.to(dtype=mask.dtype)
        return mask


class RandomStructured(_Structured):
    """Prunes channels at random."""

    def _kept(self, t: Tensor, count: int) -> Tensor | None:
        if not count:
            return None
        drawn = aten.rand((t.shape[self.dim],))
        return drawn > aten.kthvalue(drawn, k=count).values

    @classmethod
    def apply(cls, module: Module, name: str, amount: int | float, dim: int = -1) -> BasePruningMethod:  # type: ignore[override]
        """Prune a number or a share of a parameter's channels."""
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_Structured):
    """Prunes the channels with the smallest norms."""

    def __init__(self, amount: int | float, n: float | str, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def _kept(self, t: Tensor, count: int) -> Tensor:
        dims = list(range(t.dim()))
        del dims[self.dim]
        lengths = functions["norm"](t, p=self.n, dim=dims)
        return aten.topk(lengths, k=t.shape[self.dim] - count, largest=True).indices

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Module, name: str, amount: int | float, n: float | str, dim: int, importance_scores: Tensor | None = None
    ) -> BasePruningMethod:
        """Prune a number or a share of a parameter's channels, by these scores if they are given."""
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """Prunes by a mask that is given."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask that is there, times the one that is given."""
        if default_mask.shape != self.mask.shape:
            raise AssertionError(f"default_mask shape {default_mask.shape} must match self.mask shape {self.mask.shape}")
        return default_mask * self.mask.to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module: Module, name: str, mask: Tensor) -> BasePruningMethod:  # type: ignore[override]
        """Prune a parameter by this mask."""
        return super().apply(module, name, mask=mask)


# --- functions ----------------------------------------------------------------------------------------------------------


def identity(module: Module, name: str) -> Module:
    """Give a module's parameter a mask that prunes nothing."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: int | float) -> Module:
    """Prune a number or a share of a parameter's elements at random."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Module, name: str, amount: int | float, importance_scores: Tensor | None = None) -> Module:
    """Prune the elements of a parameter that are smallest by magnitude."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: int | float, dim: int) -> Module:
    """Prune channels of a parameter at random."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module, name: str, amount: int | float, n: float | str, dim: int, importance_scores: Tensor | None = None
) -> Module:
    """Prune the channels of a parameter with the smallest norms."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prune a parameter by a mask."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: object,
    pruning_method: type[BasePruningMethod],
    importance_scores: dict[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prune the elements of several parameters as if they were one vector."""
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    pairs: Any = parameters
    values = parameters_to_vector([scores.get((module, name), getattr(module, name)) for module, name in pairs])
    masks = parameters_to_vector([getattr(module, name + "_mask", aten.ones_like(getattr(module, name))) for module, name in pairs])
    container, method = PruningContainer(), pruning_method(**kwargs)
    container._tensor_name = method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for '
            f"the `pruning_method`. Found method {pruning_method} of type {method.PRUNING_TYPE}"
        )
    container.add_pruning_method(method)
    mask = container.compute_mask(values, masks)
    at = 0
    for module, name in pairs:
        parameter = getattr(module, name)
        custom_from_mask(module, name, mask=mask[at : at + parameter.numel()].view_as(parameter))
        at += parameter.numel()


def remove(module: Module, name: str) -> Module:
    """Make the pruned tensor the parameter, for good."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module: Module) -> bool:
    """Whether a module, or one below it, is pruned."""
    return any(isinstance(hook, BasePruningMethod) for m in module.modules() for hook in m._forward_pre_hooks.values())
