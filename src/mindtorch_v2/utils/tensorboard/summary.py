"""torch.utils.tensorboard.summary: the messages that event files are made of, each from what it shows."""

from __future__ import annotations

import io
import json
import struct
import wave
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from google.protobuf import struct_pb2
from numpy.typing import NDArray
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.hparams import api_pb2, plugin_data_pb2
from tensorboard.plugins.hparams import metadata as hparams_metadata
from tensorboard.plugins.mesh import metadata as mesh_metadata
from tensorboard.plugins.mesh.plugin_data_pb2 import MeshPluginData
from tensorboard.plugins.pr_curve.plugin_data_pb2 import PrCurvePluginData
from tensorboard.plugins.text.plugin_data_pb2 import TextPluginData

from ... import _dtype
from ..._creation import as_tensor
from ..._tensor import Tensor
from ._arrays import as_array, as_pixels, film, optional, to_hwc

__all__ = [
    "audio", "compute_curve", "custom_scalars", "histogram", "histogram_raw", "hparams", "image", "image_boxes", "mesh", "pr_curve", "pr_curve_raw",
    "scalar", "tensor_proto", "text", "video",
]  # fmt: skip

Array = NDArray[Any]
MOST_THRESHOLDS = 127  # that TensorBoard shows


def _shape(*sizes: int) -> Any:
    return TensorShapeProto(dim=[TensorShapeProto.Dim(size=n) for n in sizes])


def _metadata(plugin: str, content: bytes = b"") -> Any:
    return SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name=plugin, content=content))


def _summary(tag: str, **value: Any) -> Any:
    return Summary(value=[Summary.Value(tag=tag, **value)])


def scalar(name: str, tensor: Any, collections: Any = None, new_style: bool = False, double_precision: bool = False) -> Any:
    """A number."""
    array = as_array(tensor).squeeze()
    if array.ndim != 0:
        raise AssertionError(
            f"Tensor should contain one element (0 dimensions). Was given size: {array.size} and {array.ndim} dimensions."
        )
    value = float(array)
    if not new_style:
        return _summary(name, simple_value=value)
    field = {"double_val": [value], "dtype": "DT_DOUBLE"} if double_precision else {"float_val": [value], "dtype": "DT_FLOAT"}
    return _summary(name, tensor=TensorProto(**field), metadata=_metadata("scalars"))


def _flat(t: Tensor) -> list[Any]:
    return t.flatten().tolist()


def _bits(t: Tensor) -> list[int]:
    """Numbers of half precision by the bits of the same numbers in single precision, as torch writes them."""
    return [struct.unpack("i", struct.pack("f", x))[0] for x in _flat(t)]


def _parts(t: Tensor) -> list[float]:
    return [part for x in _flat(t) for part in (x.real, x.imag)]


_FIELDS: dict[_dtype.dtype, tuple[str, str, Callable[[Tensor], list[Any]]]] = {
    _dtype.float16: ("DT_HALF", "half_val", _bits),
    _dtype.bfloat16: ("DT_BFLOAT16", "half_val", _bits),
    _dtype.float32: ("DT_FLOAT", "float_val", _flat),
    _dtype.float64: ("DT_DOUBLE", "double_val", _flat),
    _dtype.int8: ("DT_INT8", "int_val", _flat),
    _dtype.int16: ("DT_INT16", "int_val", _flat),
    _dtype.int32: ("DT_INT32", "int_val", _flat),
    _dtype.int64: ("DT_INT64", "int64_val", _flat),
    _dtype.uint8: ("DT_UINT8", "uint32_val", _flat),
    _dtype.bool_: ("DT_BOOL", "bool_val", _flat),
    _dtype.complex64: ("DT_COMPLEX64", "scomplex_val", _parts),
    _dtype.complex128: ("DT_COMPLEX128", "dcomplex_val", _parts),
}


def tensor_proto(tag: str, tensor: Tensor) -> Any:
    """The elements of a tensor."""
    if tensor.numel() * tensor.itemsize >= 1 << 31:
        raise ValueError("tensor is bigger than protocol buffer's hard limit of 2GB in size")
    if tensor.dtype not in _FIELDS:
        raise ValueError(f"{tag} has unsupported tensor dtype {tensor.dtype}")
    dtype, field, convert = _FIELDS[tensor.dtype]
    proto = TensorProto(**{"dtype": dtype, "tensor_shape": _shape(*tensor.shape), field: convert(tensor)})
    return _summary(tag, metadata=_metadata("tensor"), tensor=proto)


def histogram_raw(
    name: str, min: float, max: float, num: int, sum: float, sum_squares: float, bucket_limits: Any, bucket_counts: Any
) -> Any:
    """A histogram whose counts are known."""
    proto = HistogramProto(
        min=min, max=max, num=num, sum=sum, sum_squares=sum_squares, bucket_limit=bucket_limits, bucket=bucket_counts
    )
    return _summary(name, histo=proto)


def histogram(name: str, values: Any, bins: Any, max_bins: int | None = None) -> Any:
    """A histogram of values; without the empty bins at both ends but one."""
    flat = as_array(values).astype(float).reshape(-1)
    if flat.size == 0:
        raise ValueError("The input has no element.")
    counts, limits = np.histogram(flat, bins=bins)
    if max_bins is not None and len(counts) > max_bins:
        counts, limits = _merged(counts, limits, len(counts) // max_bins)
    filled = np.flatnonzero(counts)
    first, last = int(filled[0]), int(filled[-1])
    shown = counts[first - 1 : last + 1] if first else np.concatenate([[0], counts[: last + 1]])
    shown_limits = limits[first : last + 2]
    facts = {"min": flat.min(), "max": flat.max(), "num": len(flat), "sum": flat.sum(), "sum_squares": flat.dot(flat)}
    return histogram_raw(name, **facts, bucket_limits=shown_limits.tolist(), bucket_counts=shown.tolist())


def _merged(counts: Array, limits: Array, factor: int) -> tuple[Array, Array]:
    """So many bins as one."""
    rest = -len(counts) % factor
    merged = np.pad(counts, (0, rest)).reshape(-1, factor).sum(axis=1)
    return merged, np.append(limits[:-1:factor], limits[-1])


def image(tag: str, tensor: Any, rescale: float = 1, dataformats: str = "NCHW") -> Any:
    """An image, or several side by side."""
    return _summary(tag, image=_picture(as_pixels(to_hwc(as_array(tensor), dataformats)), rescale, "add_image"))


def _picture(pixels: Array, rescale: float, used_by: str, boxes: Array | None = None, labels: Sequence[str] | None = None) -> Any:
    pillow = optional("pillow", "PIL.Image", used_by)
    height, width, channels = pixels.shape
    made = pillow.fromarray(pixels)
    for i, box in enumerate([] if boxes is None else boxes):
        _draw_box(made, box, labels[i] if labels is not None else "")
    made = made.resize((int(width * rescale), int(height * rescale)), pillow.Resampling.LANCZOS)
    buffer = io.BytesIO()
    made.save(buffer, format="PNG")
    return Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=buffer.getvalue())


def image_boxes(
    tag: str,
    tensor_image: Any,
    tensor_boxes: Any,
    rescale: float = 1,
    dataformats: str = "CHW",
    labels: Sequence[str] | None = None,
) -> Any:
    """An image with rectangles and their labels."""
    pixels = as_pixels(to_hwc(as_array(tensor_image), dataformats))
    picture = _picture(pixels, rescale, "add_image_with_boxes", as_array(tensor_boxes), labels)
    return _summary(tag, image=picture)


def _draw_box(picture: Any, box: Array, label: str | None) -> None:
    left, top, right, bottom = box[:4]
    draw = optional("pillow", "PIL.ImageDraw", "add_image_with_boxes").Draw(picture)
    draw.line([(left, top), (left, bottom), (right, bottom), (right, top), (left, top)], width=2, fill="Red")
    if not label:
        return
    font = optional("pillow", "PIL.ImageFont", "add_image_with_boxes").load_default()
    x, y, x_end, y_end = font.getbbox(label)
    width, height = x_end - x, y_end - y
    margin = np.ceil(0.05 * height)
    draw.rectangle([(left, bottom - height - 2 * margin), (left + width, bottom)], fill="Red")
    draw.text((left + margin, bottom - height - margin), label, fill="black", font=font)


def video(tag: str, tensor: Any, fps: float = 4) -> Any:
    """Videos side by side, as an animated GIF."""
    frames = as_pixels(film(as_array(tensor)))
    pillow = optional("pillow", "PIL.Image", "add_video")
    first, *rest = [pillow.fromarray(f[:, :, 0] if f.shape[2] == 1 else f) for f in frames]
    buffer = io.BytesIO()
    first.save(buffer, format="GIF", save_all=True, append_images=rest, duration=round(1000 / fps), loop=0)
    _, height, width, channels = frames.shape
    picture = Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=buffer.getvalue())
    return _summary(tag, image=picture)


def audio(tag: str, tensor: Any, sample_rate: int = 44100) -> Any:
    """A sound of one channel, with values from -1 to 1."""
    array = as_array(tensor).squeeze()
    if abs(array).max() > 1:
        print("warning: audio amplitude out of range, auto clipped.")
        array = array.clip(-1, 1)
    if array.ndim != 1:
        raise AssertionError("input tensor should be 1 dimensional.")
    samples = (array * np.iinfo(np.int16).max).astype("<i2")
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(sample_rate)
        file.writeframes(samples.tobytes())
    sound = Summary.Audio(
        sample_rate=sample_rate,
        num_channels=1,
        length_frames=len(samples),
        encoded_audio_string=buffer.getvalue(),
        content_type="audio/wav",
    )
    return _summary(tag, audio=sound)


def text(tag: str, text: str) -> Any:
    """A text in Markdown."""
    tensor = TensorProto(dtype="DT_STRING", string_val=[text.encode()], tensor_shape=_shape(1))
    content = TextPluginData(version=0).SerializeToString()
    return _summary(f"{tag}/text_summary", metadata=_metadata("text", content), tensor=tensor)


def custom_scalars(layout: dict[str, dict[str, Any]]) -> Any:
    """Charts of several scalars: category → title → kind ("Multiline" or "Margin") and tags."""
    categories = [
        layout_pb2.Category(title=name, chart=[_chart(title, *content) for title, content in charts.items()])
        for name, charts in layout.items()
    ]
    content = layout_pb2.Layout(category=categories).SerializeToString()
    tensor = TensorProto(dtype="DT_STRING", string_val=[content], tensor_shape=TensorShapeProto())
    return _summary("custom_scalars__config__", tensor=tensor, metadata=_metadata("custom_scalars"))


def _chart(title: str, kind: str, tags: Sequence[str]) -> Any:
    if kind != "Margin":
        return layout_pb2.Chart(title=title, multiline=layout_pb2.MultilineChartContent(tag=tags))
    if len(tags) != 3:
        raise AssertionError(f"a margin has three tags (value, lower, upper), got {len(tags)}")
    series = layout_pb2.MarginChartContent.Series(value=tags[0], lower=tags[1], upper=tags[2])
    return layout_pb2.Chart(title=title, margin=layout_pb2.MarginChartContent(series=[series]))


def pr_curve(tag: str, labels: Array, predictions: Array, num_thresholds: int = MOST_THRESHOLDS, weights: Any = None) -> Any:
    """Precision and recall, from labels and probabilities."""
    count = min(num_thresholds, MOST_THRESHOLDS)
    return _curve(tag, compute_curve(labels, predictions, count, weights), count)


def pr_curve_raw(
    tag: str,
    tp: Any,
    fp: Any,
    tn: Any,
    fn: Any,
    precision: Any,
    recall: Any,
    num_thresholds: int = MOST_THRESHOLDS,
    weights: Any = None,
) -> Any:
    """Precision and recall that are known."""
    return _curve(tag, np.stack([as_array(x) for x in (tp, fp, tn, fn, precision, recall)]), min(num_thresholds, MOST_THRESHOLDS))


def _curve(tag: str, data: Array, count: int) -> Any:
    content = PrCurvePluginData(version=0, num_thresholds=count).SerializeToString()
    tensor = TensorProto(dtype="DT_FLOAT", float_val=data.reshape(-1).tolist(), tensor_shape=_shape(*data.shape))
    return _summary(tag, metadata=_metadata("pr_curves", content), tensor=tensor)


def compute_curve(labels: Array, predictions: Array, num_thresholds: int, weights: Any = None) -> Array:
    """Counts (true and false positives and negatives), precision and recall at each threshold."""
    weights = 1.0 if weights is None else weights
    positive = labels.astype(np.float64)
    bucket = np.floor(predictions * (num_thresholds - 1)).astype(np.int32)

    def at_least(weight: Array) -> Array:
        counts, _ = np.histogram(bucket, bins=num_thresholds, range=(0, num_thresholds - 1), weights=weight)
        return np.cumsum(counts[::-1])[::-1]

    tp, fp = at_least(positive * weights), at_least((1.0 - positive) * weights)
    fn = tp[0] - tp
    smallest = 1e-7  # of what is divided by
    return np.stack([tp, fp, fp[0] - fp, fn, tp / np.maximum(smallest, tp + fp), tp / np.maximum(smallest, tp + fn)])


def mesh(
    tag: str, vertices: Any, colors: Any, faces: Any, config_dict: Any, display_name: Any = None, description: Any = None
) -> Any:
    """Points in space, with faces and colours."""
    kinds = ((vertices, MeshPluginData.VERTEX), (faces, MeshPluginData.FACE), (colors, MeshPluginData.COLOR))
    given = [(as_tensor(tensor), kind) for tensor, kind in kinds if tensor is not None]
    components = mesh_metadata.get_components_bitmask([kind for _, kind in given])
    config = "{}" if config_dict is None else json.dumps(config_dict, sort_keys=True)
    values = []
    for tensor, kind in given:
        shape = tuple(tensor.shape)
        proto = TensorProto(dtype="DT_FLOAT", float_val=_flat(tensor), tensor_shape=_shape(*shape))
        metadata = mesh_metadata.create_summary_metadata(
            tag, display_name, kind, components, shape, description, json_config=config
        )
        values.append(Summary.Value(tag=mesh_metadata.get_instance_name(tag, kind), tensor=proto, metadata=metadata))
    return Summary(value=values)


def hparams(
    hparam_dict: dict[str, Any], metric_dict: dict[str, Any], hparam_domain_discrete: dict[str, list[Any]] | None = None
) -> tuple[Any, Any, Any]:
    """Hyperparameters of a run and the names of its results: of the experiment, of the start of the session, and of its end."""
    domains = hparam_domain_discrete or {}
    for what, value in (("hparam_dict", hparam_dict), ("metric_dict", metric_dict), ("hparam_domain_discrete", domains)):
        if not isinstance(value, dict):
            raise TypeError(f"parameter: {what} should be a dictionary, nothing logged.")
    for k, v in domains.items():
        if k not in hparam_dict or not isinstance(v, list) or not all(isinstance(d, type(hparam_dict[k])) for d in v):
            raise TypeError(f"parameter: hparam_domain_discrete[{k}] should be a list of same type as hparam_dict[{k}].")
    start = plugin_data_pb2.SessionStartInfo()
    infos = [_hparam(start, k, v, domains.get(k)) for k, v in hparam_dict.items() if v is not None]
    metrics = [api_pb2.MetricInfo(name=api_pb2.MetricName(tag=k)) for k in metric_dict]
    end = plugin_data_pb2.SessionEndInfo(status=api_pb2.Status.Value("STATUS_SUCCESS"))
    experiment = api_pb2.Experiment(hparam_infos=infos, metric_infos=metrics)
    return (
        _hparams_summary(hparams_metadata.EXPERIMENT_TAG, experiment=experiment),
        _hparams_summary(hparams_metadata.SESSION_START_INFO_TAG, session_start_info=start),
        _hparams_summary(hparams_metadata.SESSION_END_INFO_TAG, session_end_info=end),
    )


def _hparam(start: Any, name: str, value: Any, domain: list[Any] | None) -> Any:
    """Put a hyperparameter into the start of the session, and describe it."""
    if isinstance(value, Tensor):
        value, domain = float(as_array(value).reshape(-1)[0]), None
    if isinstance(value, int | float):  # torch: a bool is shown as a number
        field, kind = "number_value", "DATA_TYPE_FLOAT64"
    elif isinstance(value, str):
        field, kind = "string_value", "DATA_TYPE_STRING"
    else:
        raise ValueError("value should be one of int, float, str, bool, or torch.Tensor")
    setattr(start.hparams[name], field, value)
    values = None if domain is None else struct_pb2.ListValue(values=[struct_pb2.Value(**{field: d}) for d in domain])
    return api_pb2.HParamInfo(name=name, type=api_pb2.DataType.Value(kind), domain_discrete=values)


def _hparams_summary(tag: str, **content: Any) -> Any:
    data = plugin_data_pb2.HParamsPluginData(version=hparams_metadata.PLUGIN_DATA_VERSION, **content)
    return _summary(tag, metadata=_metadata(hparams_metadata.PLUGIN_NAME, data.SerializeToString()))
