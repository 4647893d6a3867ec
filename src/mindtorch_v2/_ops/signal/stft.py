"""Short-time Fourier transforms: `stft` and its inverse."""

from __future__ import annotations

import warnings
from math import prod

from ... import _dtype
from ..._tensor import Tensor
from ..machinery.declare import op, public
from ..machinery.lookup import aten
from .fft import BY_N, BY_ROOT_N, NONE, _fft_c2c, _fft_c2r, _fft_r2c


def _tensor_text(t: Tensor | None, *, braces: bool) -> str:
    if t is None:
        return "None"
    shape = str(list(t.shape))
    kind = "CPUBoolType" if t.dtype.scalar_name == "Bool" else f"torch.{t.dtype.scalar_name}Tensor"
    return kind + (f"{{{shape}}}" if braces else shape)


def _describe_stft(self: Tensor, n_fft: int, hop: int, win: int, window: Tensor | None, normalized: bool, onesided: bool | None, complex_: bool | None, align: bool | None) -> str:  # fmt: skip
    return (
        f"stft({_tensor_text(self, braces=False)}, n_fft={n_fft}, hop_length={hop}, win_length={win}, "
        f"window={_tensor_text(window, braces=True)}, normalized={int(normalized)}, "
        f"onesided={_flag(onesided)}, return_complex={_flag(complex_)}, align_to_window={_flag(align)}) "
    )


def _flag(value: bool | None) -> int | None:
    return None if value is None else int(value)


def _padded_window(window: Tensor | None, like: Tensor, win_length: int, n_fft: int) -> Tensor | None:
    """The window in the middle of `n_fft` points; None when there is nothing to multiply with."""
    if win_length >= n_fft:
        return window
    left = (n_fft - win_length) // 2
    whole = (like if window is None else window).new_zeros((n_fft,))
    part = whole.narrow(0, left, win_length)
    if window is None:
        part.fill_(1)
        return whole
    return aten.constant_pad_nd(window, [left, n_fft - win_length - left])


def _stft(
    self: Tensor, n_fft: int, hop_length: int | None, win_length: int | None, window: Tensor | None, normalized: bool, onesided: bool | None,
    return_complex: bool | None, align_to_window: bool | None,
) -> Tensor:  # fmt: skip
    hop = n_fft >> 2 if hop_length is None else hop_length
    win = n_fft if win_length is None else win_length
    is_complex = self.dtype.is_complex or (window is not None and window.dtype.is_complex)
    if not return_complex and return_complex is not None:
        warnings.warn(
            "stft with return_complex=False is deprecated. In a future pytorch release, stft will return complex tensors for all "
            "inputs, and return_complex=False will raise an error.\nNote: you can still call torch.view_as_real on the complex "
            "output to recover the old return format.",
            UserWarning,
            stacklevel=4,
        )
    if return_complex is None and not is_complex:
        raise RuntimeError(
            "stft requires the return_complex parameter be given for real inputs, and will further require that "
            "return_complex=True in a future PyTorch release."
        )
    call = _describe_stft(self, n_fft, hop, win, window, normalized, onesided, return_complex, align_to_window)
    _check_stft(self, n_fft, hop, win, window, call)
    if onesided and is_complex:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    x = self.unsqueeze(0) if self.ndim == 1 else self
    if align_to_window and win < n_fft:
        # frames start with the window, not with the zeros around it
        x = aten.pad(x, [(n_fft - win) // 2] * 2)
    batch, length = x.shape
    frames = 1 + (length - n_fft) // hop
    steps = x.stride()
    pieces = x.as_strided((batch, frames, n_fft), (steps[0], hop * steps[1], steps[1]), x.storage_offset())
    shaped = _padded_window(window, x, win, n_fft)
    if shaped is not None:
        pieces = pieces * shaped
    code = BY_ROOT_N if normalized else NONE
    if is_complex:
        out = _fft_c2c(pieces, (2,), code, True)
    else:
        out = _fft_r2c(pieces, (2,), code, True if onesided is None else onesided)
    out = out.transpose_(1, 2)
    if self.ndim == 1:
        out = out.squeeze_(0)
    wants_complex = is_complex if return_complex is None else return_complex
    return out if wants_complex else aten.view_as_real(out)


def _check_stft(self: Tensor, n_fft: int, hop: int, win: int, window: Tensor | None, call: str) -> None:
    if not self.dtype.inexact:
        raise RuntimeError(f"{call}: expected a tensor of floating point or complex values")
    if self.ndim not in (1, 2):
        raise RuntimeError(f"{call}: expected a 1D or 2D tensor")
    length = self.shape[-1]
    if not 0 < n_fft <= length:
        raise RuntimeError(f"{call}: expected 0 < n_fft < {length}, but got n_fft={n_fft}")
    if hop <= 0:
        raise RuntimeError(f"{call}: expected hop_length > 0, but got hop_length={hop}")
    if not 0 < win <= n_fft:
        raise RuntimeError(f"{call}: expected 0 < win_length <= n_fft, but got win_length={win}")
    if window is not None and (window.ndim != 1 or window.shape[0] != win):
        raise RuntimeError(
            f"{call}: expected a 1D window tensor of size equal to win_length={win}, but got window with size {list(window.shape)}"
        )


_stft_op = op(
    "stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool normalized=False,"
    " bool? onesided=None, bool? return_complex=None, bool? align_to_window=None) -> Tensor",
    composite=_stft,
)


def _stft_centered(
    self: Tensor, n_fft: int, hop_length: int | None, win_length: int | None, window: Tensor | None, center: bool, pad_mode: str, normalized: bool,
    onesided: bool | None, return_complex: bool | None, align_to_window: bool | None,
) -> Tensor:  # fmt: skip
    if not self.dtype.inexact:
        hop, win = n_fft >> 2 if hop_length is None else hop_length, n_fft if win_length is None else win_length
        call = _describe_stft(self, n_fft, hop, win, window, normalized, onesided, return_complex, align_to_window)
        raise RuntimeError(f"{call}: expected a tensor of floating point or complex values")
    x = _centered(self, n_fft, pad_mode) if center else self
    return _stft_op(x, n_fft, hop_length, win_length, window, normalized, onesided, return_complex, align_to_window)


def _centered(x: Tensor, n_fft: int, pad_mode: str) -> Tensor:
    """Half a frame more on either side, so that frame t is centred on point t · hop."""
    extended = (1,) * (3 - x.ndim) + tuple(x.shape)
    half = n_fft // 2
    padded = aten.pad(x.view(extended), [half, half], pad_mode)
    return padded.view(padded.shape[-x.ndim :])


op(
    "stft.center(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True,"
    " str pad_mode='reflect', bool normalized=False, bool? onesided=None, bool? return_complex=None,"
    " bool? align_to_window=None) -> Tensor",
    composite=_stft_centered,
)


@public("function method")
def stft(
    input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Tensor | None = None,
    center: bool = True, pad_mode: str = "reflect", normalized: bool = False, onesided: bool | None = None,
    return_complex: bool | None = None, align_to_window: bool | None = None,
) -> Tensor:  # fmt: skip
    """The spectrum of successive frames of a signal, frequencies along the first of the two new dimensions."""
    if center:
        if align_to_window is not None:
            raise RuntimeError("stft align_to_window should only be set when center = false")
        input = _centered(input, n_fft, pad_mode)
    return _stft_op(input, n_fft, hop_length, win_length, window, normalized, onesided, return_complex, align_to_window)


# --- the inverse ------------------------------------------------------------------------------------------------------


def _describe_istft(
    self: Tensor,
    n_fft: int,
    hop: int,
    win: int,
    window: Tensor | None,
    center: bool,
    normalized: bool,
    onesided: bool | None,
    length: int | None,
    complex_: bool,
) -> str:
    return (
        f"istft(CPU{self.dtype.scalar_name}Type{list(self.shape)}, n_fft={n_fft}, hop_length={hop}, win_length={win}, "
        f"window={_tensor_text(window, braces=True)}, center={int(center)}, normalized={int(normalized)}, "
        f"onesided={_flag(onesided)}, length={length}, return_complex={int(complex_)}) "
    )


def _check_istft(self: Tensor, n_fft: int, hop: int, win: int, window: Tensor | None, onesided: bool, call: str) -> None:
    if not self.numel():
        raise RuntimeError(f"{call}: input tensor cannot be empty.")
    if self.ndim not in (2, 3):
        raise RuntimeError(f"{call}: expected a tensor with 2 or 3 dimensions, but got {self.ndim}")
    bins = self.shape[-2]
    if onesided and n_fft // 2 + 1 != bins:
        raise RuntimeError(
            f"{call}: expected the frequency dimension (3rd to the last) of the input tensor to match n_fft / 2 + 1 when "
            f"onesided=True, but got {bins}"
        )
    if not onesided and n_fft != bins:
        raise RuntimeError(
            f"{call}: expected the frequency dimension (3rd to the last) of the input tensor to match n_fft when onesided=False, "
            f"but got {bins}"
        )
    if not 0 < hop <= win:
        raise RuntimeError(f"{call}: expected 0 < hop_length <= win_length")
    if not 0 < win <= n_fft:
        raise RuntimeError(f"{call}: expected 0 < win_length <= n_fft")
    if window is not None and (window.ndim != 1 or window.shape[0] != win):
        raise RuntimeError(f"{call}: Invalid window shape. window has to be 1D and length of `win_length`")


def _istft(
    self: Tensor, n_fft: int, hop_length: int | None, win_length: int | None, window: Tensor | None, center: bool, normalized: bool, onesided: bool | None,
    length: int | None, return_complex: bool,
) -> Tensor:  # fmt: skip
    if not self.dtype.is_complex:
        raise RuntimeError("istft requires a complex-valued input tensor matching the output from stft with return_complex=True.")
    hop = n_fft // 4 if hop_length is None else hop_length
    win = n_fft if win_length is None else win_length
    bins, frames = self.shape[self.ndim - 2] if self.ndim >= 2 else self.size(-2), self.shape[-1]
    half = bins != n_fft if onesided is None else onesided
    call = _describe_istft(self, n_fft, hop, win, window, center, normalized, onesided, length, return_complex)
    _check_istft(self, n_fft, hop, win, window, half, call)
    if half and return_complex:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    spectra = (self.unsqueeze(0) if self.ndim == 2 else self).transpose(1, 2)
    code = BY_ROOT_N if normalized else BY_N
    if return_complex:
        pieces = _fft_c2c(spectra, (2,), code, False)
    else:
        if window is not None and window.dtype.is_complex:
            raise RuntimeError("Complex windows are incompatible with return_complex=False")
        if not half:
            spectra = aten.slice(spectra, -1, 0, n_fft // 2 + 1)
        pieces = _fft_c2r(spectra, (2,), code, n_fft)
    shaped = _synthesis_window(window, self, win, n_fft)
    total = n_fft + hop * (frames - 1)
    signal = aten.unfold_backward(pieces * shaped.view((1, 1, n_fft)), (pieces.shape[0], total), 1, n_fft, hop)
    squares = shaped.pow(2).expand((1, frames, n_fft))
    envelope = aten.unfold_backward(squares, (1, total), 1, n_fft, hop)
    out = _cut(signal, envelope, n_fft, total, center, length, call)
    return out.squeeze(0) if self.ndim == 2 else out


def _synthesis_window(window: Tensor | None, like: Tensor, win: int, n_fft: int) -> Tensor:
    if window is None:
        real = like.dtype.to_real()
        window = like.new_ones((win,), dtype=real if real is not _dtype.float16 else _dtype.float32)
    found = _padded_window(window, like, win, n_fft)
    assert found is not None
    return found


def _cut(signal: Tensor, envelope: Tensor, n_fft: int, total: int, center: bool, length: int | None, call: str) -> Tensor:
    """The signal without its padding, divided by what the overlapping windows add up to."""
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else total - n_fft // 2 if center else total
    signal = aten.slice(signal, 1, start, end)
    envelope = aten.slice(envelope, 1, start, end)
    if prod(envelope.shape) and bool((envelope.abs().min() < 1e-11)._array):
        raise RuntimeError(f"{call}window overlap add min: 1\n[ CPUBoolType{{}} ]")
    out = signal / envelope
    if end > total:
        warnings.warn("The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. "
                      "Please check your center and hop_length settings.", UserWarning, stacklevel=4)  # fmt: skip
        out = aten.constant_pad_nd(out, [0, end - total])
    return out


istft = op(
    "istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True,"
    " bool normalized=False, bool? onesided=None, int? length=None, bool return_complex=False) -> Tensor",
    composite=_istft,
)
