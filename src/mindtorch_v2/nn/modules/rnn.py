"""Recurrent networks: RNN, LSTM and GRU over sequences, and their cells for one step."""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Callable
from typing import Any

from ..._ops.machinery.lookup import aten
from ..._tensor import Tensor
from ..._types import OptionalDevice, OptionalDType
from ...amp.autocast_state import is_any_autocast_enabled
from .. import init
from ..parameter import Parameter
from ..utils.rnn import PackedSequence
from .module import Module

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _draw_uniformly(module: Module) -> None:
    """Draw all parameters uniformly within 1 / sqrt(hidden_size)."""
    reach = 1.0 / math.sqrt(module.hidden_size) if module.hidden_size > 0 else 0
    for weight in module.parameters():
        init.uniform_(weight, -reach, reach)


def apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    """Deprecated name of `tensor.index_select(dim, permutation)`."""
    warnings.warn(
        "`apply_permutation` is deprecated, please use `tensor.index_select(dim, permutation)` instead", FutureWarning, stacklevel=2
    )
    return tensor.index_select(dim, permutation)


class RNNBase(Module):
    """What recurrent networks share: parameters for each layer and direction, checks, states for unbatched and packed input."""

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0, device: OptionalDevice = None, dtype: OptionalDType = None,
    ) -> None:  # fmt: skip
        super().__init__()
        _check_dropout(dropout, num_layers)
        _check_options(bias, batch_first, input_size, hidden_size, num_layers, proj_size)
        if mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.proj_size = bidirectional, proj_size
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            for suffix in ("", "_reverse")[: self._directions]:
                shapes = {f"{name}_l{layer}{suffix}": shape for name, shape in self._shapes(layer).items()}
                for name, shape in shapes.items():
                    self.register_parameter(name, Parameter(aten.empty(shape, device=device, dtype=dtype)))
                self._all_weights.append(list(shapes))
        self.reset_parameters()

    @property
    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    @property
    def _output_size(self) -> int:
        """How many features a step's output has in each direction."""
        return self.proj_size or self.hidden_size

    def _shapes(self, layer: int) -> dict[str, tuple[int, ...]]:
        """The shapes of a layer's parameters in one direction."""
        gates = _GATES[self.mode] * self.hidden_size
        inputs = self.input_size if layer == 0 else self._output_size * self._directions
        shapes: dict[str, tuple[int, ...]] = {"weight_ih": (gates, inputs), "weight_hh": (gates, self._output_size)}
        if self.bias:
            shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        return shapes

    def reset_parameters(self) -> None:
        """Draw new weights, uniform within 1 / sqrt(hidden_size)."""
        _draw_uniformly(self)

    def flatten_parameters(self) -> None:
        """Nothing: kernels here take the weights one by one."""

    def __getstate__(self) -> dict[str, Any]:
        """The attributes, with those lists of weights that PyTorch's layers have, which load what is saved here."""
        return {**self.__dict__, "_flat_weights_names": self._flat_weights_names, "_flat_weights": self._flat_weights}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({name: value for name, value in state.items() if not name.startswith("_flat_weight")})

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Any]:
        """The weights in the order that the operators take them in."""
        return [getattr(self, name, None) for name in self._flat_weights_names]

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def extra_repr(self) -> str:
        shown = [f"{self.input_size}, {self.hidden_size}"]
        for name, usual in (
            ("proj_size", 0), ("num_layers", 1), ("bias", True), ("batch_first", False), ("dropout", 0), ("bidirectional", False),
        ):  # fmt: skip
            if getattr(self, name) != usual:
                shown.append(f"{name}={getattr(self, name)}")
        return ", ".join(shown)

    # --- checks -----------------------------------------------------------------------------------------------------

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Complain about an input of another dtype or shape than the weights are made for."""
        wanted = getattr(self, self._all_weights[0][0]).dtype
        if input.dtype is not wanted and not is_any_autocast_enabled():
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({wanted}). "
                f"Convert input: input.to({wanted}), or convert model: model.to({input.dtype})"
            )
        dims = 3 if batch_sizes is None else 2
        if input.dim() != dims:
            raise RuntimeError(f"input must have {dims} dimensions, got {input.dim()}")
        if input.size(-1) != self.input_size:
            raise RuntimeError(f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}")

    def _state_shape(self, input: Tensor, batch_sizes: Tensor | None, features: int) -> tuple[int, int, int]:
        batch = input.size(0 if self.batch_first else 1) if batch_sizes is None else int(batch_sizes[0])
        return self.num_layers * self._directions, batch, features

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape that the hidden state must have for this input."""
        return self._state_shape(input, batch_sizes, self._output_size)

    def check_hidden_size(
        self, hx: Tensor, expected_hidden_size: tuple[int, int, int], msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        """Complain about a state of another shape."""
        if tuple(hx.shape) != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.shape)))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Complain about an input or a state of another shape."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The state with the sequences of the batch in another order."""
        return hx if permutation is None else hx.index_select(1, permutation)

    # --- forward, for states of one tensor; LSTM overrides what two need otherwise ------------------------------------

    _kind = "RNN"
    _got = "{}D tensor"

    def _zeros(self, batch: int | Tensor, features: int, like: Tensor) -> Tensor:
        return aten.zeros((self.num_layers * self._directions, int(batch), features), dtype=like.dtype, device=like.device)

    def _initial_state(self, batch: int | Tensor, like: Tensor) -> Any:
        return self._zeros(batch, self.hidden_size, like)

    def _with_batch(self, hx: Any, batched: bool) -> Any:
        """A given state with a batch dimension, after a check that it has as many as the input."""
        n = 3 if batched else 2
        if hx.dim() != n:
            kind = "batched" if batched else "unbatched"
            raise RuntimeError(f"For {kind} {n}-D input, hx should also be {n}-D but got {hx.dim()}-D tensor")
        return hx if batched else hx.unsqueeze(1)

    def _without_batch(self, hx: Any) -> Any:
        return hx.squeeze(1)

    def _operator(self) -> Callable[..., Any]:
        return getattr(aten, self.mode.lower())

    def _run(self, input: Tensor, hx: Any) -> tuple[Any, Any]:
        if isinstance(input, PackedSequence):
            return self._run_packed(input, hx)
        if input.dim() not in (2, 3):
            raise ValueError(f"{self._kind}: Expected input to be 2D or 3D, got {self._got.format(input.dim())} instead")
        batched, batch_dim = input.dim() == 3, 0 if self.batch_first else 1
        if not batched:
            input = input.unsqueeze(batch_dim)
        hx = self._initial_state(input.size(batch_dim), input) if hx is None else self._with_batch(hx, batched)
        self.check_forward_args(input, hx, None)
        output, *states = self._operator()(input, hx, *self._operator_options(), self.batch_first)
        state = self._joined(states)
        return (output, state) if batched else (output.squeeze(batch_dim), self._without_batch(state))

    def _run_packed(self, input: PackedSequence, hx: Any) -> tuple[PackedSequence, Any]:
        data, batch_sizes, order, first_order = input
        batch = batch_sizes[0]
        hx = self._initial_state(batch, data) if hx is None else self.permute_hidden(hx, order)
        self._check_packed(data, hx, batch_sizes)
        output, *states = self._operator()(data, batch_sizes, hx, *self._operator_options())
        return PackedSequence(output, batch_sizes, order, first_order), self.permute_hidden(self._joined(states), first_order)

    def _check_packed(self, data: Tensor, hx: Any, batch_sizes: Tensor) -> None:
        self.check_forward_args(data, hx, batch_sizes)

    def _joined(self, states: list[Tensor]) -> Any:
        return states[0]

    def _operator_options(self) -> tuple[Any, ...]:
        return self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional


def _check_dropout(dropout: object, num_layers: int) -> None:
    if not isinstance(dropout, numbers.Number) or isinstance(dropout, bool) or not 0 <= dropout <= 1:  # type: ignore[operator]
        raise ValueError("dropout should be a number in range [0, 1] representing the probability of an element being zeroed")
    if dropout and num_layers == 1:
        warnings.warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers greater than 1, "
            f"but got dropout={dropout} and num_layers={num_layers}",
            stacklevel=4,
        )


def _check_options(bias: object, batch_first: object, input_size: int, hidden_size: int, num_layers: int, proj_size: int) -> None:
    for name, flag in (("bias", bias), ("batch_first", batch_first)):
        if not isinstance(flag, bool):
            raise TypeError(f"{name} should be of type bool, got: {type(flag).__name__}")
    for name, size in (("input_size", input_size), ("hidden_size", hidden_size)):
        if not isinstance(size, int):
            raise TypeError(f"{name} should be of type int, got: {type(size).__name__}")
        if size <= 0:
            raise ValueError(f"{name} must be greater than zero")
    if num_layers <= 0:
        raise ValueError("num_layers must be greater than zero")
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")


def _refuse_projection(options: dict[str, Any]) -> None:
    if "proj_size" in options:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


class RNN(RNNBase):
    """Elman's recurrent network: `h' = tanh(W_ih x + b_ih + W_hh h + b_hh)`, or with relu."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse_projection(kwargs)
        nonlinearity = args[3] if len(args) > 3 else kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(f"RNN_{nonlinearity.upper()}", *args[:3], *args[4:], **kwargs)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        return self._run(input, hx)


class GRU(RNNBase):
    """A network of gated recurrent units."""

    _kind = "GRU"
    _got = "{}D"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse_projection(kwargs)
        super().__init__("GRU", *args, **kwargs)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        return self._run(input, hx)


class LSTM(RNNBase):
    """Long short-term memory: the state is a pair of the hidden state and the cell's."""

    _kind = "LSTM"
    _got = "{}D"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape that the cell's state must have for this input."""
        return self._state_shape(input, batch_sizes, self.hidden_size)

    def check_forward_args(self, input: Tensor, hidden: tuple[Tensor, Tensor], batch_sizes: Tensor | None) -> None:
        """Complain about an input or a state of another shape."""
        self.check_input(input, batch_sizes)
        sizes = self.get_expected_hidden_size(input, batch_sizes), self.get_expected_cell_size(input, batch_sizes)
        for i, size in enumerate(sizes):
            self.check_hidden_size(hidden[i], size, f"Expected hidden[{i}] size {{}}, got {{}}")

    def permute_hidden(self, hx: tuple[Tensor, Tensor], permutation: Tensor | None) -> tuple[Tensor, Tensor]:
        """The state with the sequences of the batch in another order."""
        return hx if permutation is None else (hx[0].index_select(1, permutation), hx[1].index_select(1, permutation))

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Any, tuple[Tensor, Tensor]]:
        return self._run(input, hx)

    def _initial_state(self, batch: int | Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
        return self._zeros(batch, self._output_size, like), self._zeros(batch, self.hidden_size, like)

    def _with_batch(self, hx: tuple[Tensor, Tensor], batched: bool) -> tuple[Tensor, Tensor]:
        n = 3 if batched else 2
        if hx[0].dim() != n or hx[1].dim() != n:
            kind = "batched" if batched else "unbatched"
            raise RuntimeError(
                f"For {kind} {n}-D input, hx and cx should also be {n}-D but got ({hx[0].dim()}-D, {hx[1].dim()}-D) tensors"
            )
        return hx if batched else (hx[0].unsqueeze(1), hx[1].unsqueeze(1))

    def _without_batch(self, hx: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        return hx[0].squeeze(1), hx[1].squeeze(1)

    def _check_packed(self, data: Tensor, hx: tuple[Tensor, Tensor], batch_sizes: Tensor) -> None:
        """torch: packed input is left to the operator."""

    def _joined(self, states: list[Tensor]) -> tuple[Tensor, Tensor]:
        h, c = states
        return h, c


# --- cells ------------------------------------------------------------------------------------------------------------


class RNNCellBase(Module):
    """The parameters of a recurrent cell."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: OptionalDevice = None,
        dtype: OptionalDType = None,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        gates = num_chunks * hidden_size
        self.weight_ih = Parameter(aten.empty((gates, input_size), device=device, dtype=dtype))
        self.weight_hh = Parameter(aten.empty((gates, hidden_size), device=device, dtype=dtype))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(aten.empty((gates,), device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def extra_repr(self) -> str:
        bias = "" if self.bias is True else f", bias={self.bias}"
        nonlinearity = self.__dict__.get("nonlinearity", "tanh")
        return f"{self.input_size}, {self.hidden_size}{bias}" + ("" if nonlinearity == "tanh" else f", nonlinearity={nonlinearity}")

    def reset_parameters(self) -> None:
        """Draw new weights, uniform within 1 / sqrt(hidden_size)."""
        _draw_uniformly(self)

    def _check(self, value: Tensor, what: str) -> None:
        if value.dim() not in (1, 2):
            raise ValueError(f"{self._get_name()}: Expected {what} to be 1D or 2D, got {value.dim()}D instead")

    def _zeros(self, input: Tensor) -> Tensor:
        return aten.zeros((input.size(0), self.hidden_size), dtype=input.dtype, device=input.device)

    def _step(self, operator: Callable[..., Any], input: Tensor, hx: Tensor | None) -> Tensor:
        """One step of a cell whose state is one tensor."""
        self._check(input, "input")
        if hx is not None:
            self._check(hx, "hidden")
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
        if hx is None:
            hx = self._zeros(input)
        elif not batched:
            hx = hx.unsqueeze(0)
        out: Tensor = operator(input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return out if batched else out.squeeze(0)


class RNNCell(RNNCellBase):
    """One step of an `RNN`."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: OptionalDevice = None,
        dtype: OptionalDType = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=1, device=device, dtype=dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step(self._operator, input, hx)

    def _operator(self, *args: Any) -> Tensor:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return aten.rnn_tanh_cell(*args) if self.nonlinearity == "tanh" else aten.rnn_relu_cell(*args)


class LSTMCell(RNNCellBase):
    """One step of an `LSTM`: from a pair of states to the next pair."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: OptionalDevice = None, dtype: OptionalDType = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=4, device=device, dtype=dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        self._check(input, "input")
        for i, state in enumerate(hx or ()):
            self._check(state, f"hx[{i}]")
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
        if hx is None:
            zeros = self._zeros(input)
            hx = zeros, zeros
        elif not batched:
            hx = hx[0].unsqueeze(0), hx[1].unsqueeze(0)
        h, c = aten.lstm_cell(input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return (h, c) if batched else (h.squeeze(0), c.squeeze(0))


class GRUCell(RNNCellBase):
    """One step of a `GRU`."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: OptionalDevice = None, dtype: OptionalDType = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=3, device=device, dtype=dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step(aten.gru_cell, input, hx)
