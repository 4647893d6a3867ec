"""Lazy modules, the adaptive softmax, synchronised batch norm, data parallel modules and gradients of convolutions against torch's."""

import copy

import numpy as np
import pytest

import mindtorch_v2 as mt

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

LAZY = {
    "linear": (lambda nn: nn.LazyLinear(4), (2, 3)),
    "linear without bias": (lambda nn: nn.LazyLinear(4, bias=False), (2, 3)),
    "convolution": (lambda nn: nn.LazyConv1d(4, 2), (2, 3, 5)),
    "image convolution": (lambda nn: nn.LazyConv2d(4, 3, padding=1, groups=2, bias=False), (2, 4, 5, 5)),
    "volume convolution": (lambda nn: nn.LazyConv3d(4, 2), (3, 4, 4, 4)),
    "transposed": (lambda nn: nn.LazyConvTranspose1d(4, 2, stride=2), (2, 3, 5)),
    "transposed image": (lambda nn: nn.LazyConvTranspose2d(4, 2), (2, 3, 5, 5)),
    "transposed volume": (lambda nn: nn.LazyConvTranspose3d(4, 2), (2, 3, 4, 4, 4)),
    "batch norm": (lambda nn: nn.LazyBatchNorm1d(), (4, 3)),
    "batch norm without affine": (lambda nn: nn.LazyBatchNorm2d(affine=False), (4, 3, 2, 2)),
    "volume batch norm": (lambda nn: nn.LazyBatchNorm3d(track_running_stats=False), (4, 3, 2, 2, 2)),
    "instance norm": (lambda nn: nn.LazyInstanceNorm1d(), (4, 3, 5)),
    "image instance norm": (lambda nn: nn.LazyInstanceNorm2d(), (4, 3, 5, 5)),
    "volume instance norm": (lambda nn: nn.LazyInstanceNorm3d(affine=False), (4, 3, 2, 2, 2)),
}


@pytest.mark.parametrize(("make", "shape"), LAZY.values(), ids=LAZY)
def test_lazy_modules(make, shape):
    from module_comparison import compare

    def used(lib):
        module = make(lib.nn)
        assert module.has_uninitialized_params() or not list(module.parameters())
        before = repr(module), list(module.state_dict()), [type(v).__name__ for v in module.state_dict().values()]
        lib.manual_seed(1)
        if lib is mt:  # torch does not copy buffers without a shape
            module = copy.deepcopy(module)
        module(lib.zeros(shape))
        module.before = str(before)
        return module

    compare(used, [shape], lambda lib, module, x: [module(x), module.before, type(module).__name__])


def loaded(lib):
    lazy, full = lib.nn.LazyLinear(4), lib.nn.Linear(3, 4)
    lazy.load_state_dict(full.state_dict())
    kinds = [type(lazy).__name__, type(lazy.weight).__name__]
    return [*kinds, lazy(lib.ones(1, 3)) - full(lib.ones(1, 3)), type(lazy).__name__, lazy.in_features]


def converted(lib):
    net = lib.nn.Sequential(lib.nn.LazyLinear(4), lib.nn.LazyBatchNorm1d()).double()
    out = net(lib.ones(2, 3, dtype=lib.float64))
    return [str(out.dtype)[-7:], repr(net), list(net.state_dict())]


@pytest.mark.parametrize("call", [loaded, converted])
def test_lazy_modules_are_loaded_and_converted(call):
    import torch
    from module_comparison import same

    found = []
    for lib in (mt, torch):
        lib.manual_seed(0)
        found.append(call(lib))
    same(*found, rtol=1e-6)


ERRORS = {
    "shape": lambda lib: lib.nn.UninitializedParameter().shape,
    "shared": lambda lib: lib.nn.UninitializedParameter().share_memory_(),
    "loaded into": lambda lib: lib.nn.Linear(3, 4).load_state_dict(lib.nn.LazyLinear(4).state_dict()),
    "loaded and called with another size": lambda lib: (
        m := lib.nn.LazyLinear(4), m.load_state_dict(lib.nn.Linear(3, 4).state_dict()), m(lib.ones(1, 5)),
    ),
    "dims of a lazy convolution": lambda lib: lib.nn.LazyConv2d(4, 2)(lib.ones(2, 3)),
    "groups of a lazy convolution": lambda lib: lib.nn.LazyConv1d(4, 2, groups=2)(lib.ones(2, 3, 4)),
    "no way to initialize": lambda lib: type("Lazy", (lib.nn.modules.lazy.LazyModuleMixin, lib.nn.Module), {})()(1),
    "normalized lazy weight": lambda lib: lib.nn.utils.weight_norm(lib.nn.LazyLinear(4)),
    "spectral norm of a lazy weight": lambda lib: lib.nn.utils.spectral_norm(lib.nn.LazyLinear(4)),
    "no cutoffs": lambda lib: lib.nn.AdaptiveLogSoftmaxWithLoss(8, 10, []),
    "wrong cutoffs": lambda lib: lib.nn.AdaptiveLogSoftmaxWithLoss(8, 10, [5, 3]),
    "cutoff of all": lambda lib: lib.nn.AdaptiveLogSoftmaxWithLoss(8, 10, [10]),
    "target": lambda lib: lib.nn.AdaptiveLogSoftmaxWithLoss(8, 10, [3])(lib.ones(2, 8), lib.tensor([3, 10])),
    "targets": lambda lib: lib.nn.AdaptiveLogSoftmaxWithLoss(8, 10, [3])(lib.ones(2, 8), lib.tensor([3])),
    "target dims": lambda lib: lib.nn.AdaptiveLogSoftmaxWithLoss(8, 10, [3])(lib.ones(2, 8), lib.tensor([[3]])),
    "input dims": lambda lib: lib.nn.AdaptiveLogSoftmaxWithLoss(8, 10, [3])(lib.ones(2, 8), lib.tensor(3)),
    "synchronised dims": lambda lib: lib.nn.SyncBatchNorm(3)(lib.ones(3)),
    "synchronised channels": lambda lib: lib.nn.SyncBatchNorm(3)(lib.ones(3, 0)),
    "data parallel": lambda lib: lib.nn.parallel.data_parallel(lib.nn.Linear(2, 2), lib.ones(1, 2)),
    "factory": lambda lib: lib.nn.factory_kwargs({"x": 1}),
    "factory twice": lambda lib: lib.nn.factory_kwargs({"dtype": 1, "factory_kwargs": {"dtype": 2}}),
    "policy": lambda lib: lib.nn.LinearCrossEntropyOptions(acc_policy="x"),
    "chunks": lambda lib: lib.nn.LinearCrossEntropyOptions(chunking_method="aspect_ratio:x"),
    "chunk size": lambda lib: lib.nn.LinearCrossEntropyOptions(batch_chunk_size=0),
    "smoothing": lambda lib: lib.nn.LinearCrossEntropyLoss(3, 4, label_smoothing=2),
    "class weights": lambda lib: lib.nn.LinearCrossEntropyLoss(3, 4, weight=lib.ones(3)),
    "channels of conv_tbc": lambda lib: lib.conv_tbc(lib.ones(5, 2, 3), lib.ones(2, 4, 4), lib.ones(4)),
}  # fmt: skip


@pytest.mark.parametrize("action", ERRORS.values(), ids=ERRORS)
def test_errors(action):
    from module_comparison import compare_errors

    compare_errors(action)


def test_an_operator_on_a_parameter_without_shape_is_refused():
    import torch

    texts = []
    for lib in (mt, torch):
        with pytest.raises(ValueError) as caught:
            lib.nn.UninitializedParameter() + 1
        texts.append(str(caught.value).split(". This error")[1])
    assert texts[0] == texts[1]


@pytest.mark.parametrize("options", [{}, {"div_value": 2.0, "head_bias": True}])
def test_adaptive_softmax(options):
    from module_comparison import compare

    def make(lib):
        return lib.nn.AdaptiveLogSoftmaxWithLoss(16, 10, [3, 7], **options)

    def call(lib, module, x, target):
        return [*module(x, target), *module(x[0], target[0]), module.log_prob(x), module.predict(x), module.predict(x[:1])]

    compare(make, [(6, 16), np.array([0, 9, 3, 2, 8, 6])], call)


def normalized(lib):
    return lib.nn.Sequential(
        lib.nn.Conv2d(2, 3, 2), lib.nn.BatchNorm2d(3, momentum=None), lib.nn.Sequential(lib.nn.BatchNorm2d(3, affine=False))
    )


@pytest.mark.parametrize("eval_mode", [False, True])
def test_synchronised_batch_norm(eval_mode):
    from module_comparison import compare

    compare(lambda lib: lib.nn.SyncBatchNorm(3), [(4, 3, 2)], eval_mode=eval_mode)
    compare(lambda lib: lib.nn.SyncBatchNorm.convert_sync_batchnorm(normalized(lib)), [(2, 2, 4, 4)], eval_mode=eval_mode)


def test_data_parallel():
    from module_comparison import compare

    compare(lambda lib: lib.nn.DataParallel(lib.nn.Linear(3, 4)), [(2, 3)])


def test_linear_cross_entropy():
    from module_comparison import compare

    compare(lambda lib: lib.nn.LinearCrossEntropyLoss(3, 5, bias=True, label_smoothing=0.1), [(4, 3), np.array([0, 1, 4, 2])])
    compare(lambda lib: lib.nn.LinearCrossEntropyLoss(3, 5, out_features=(2,)), [(2, 3), np.array([[0, 1], [4, 2]])])


def test_container():
    from module_comparison import compare, compare_warnings

    compare(lambda lib: lib.nn.Container(a=lib.nn.Linear(2, 3)), [(1, 2)], lambda lib, module, x: module.a(x))
    compare_warnings(lambda lib: lib.nn.Container())


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("options", [{}, {"stride": 2, "padding": 1}, {"groups": 2, "dilation": 2}])
def test_gradients_of_convolutions(n, options):
    import torch
    from module_comparison import same

    rng = np.random.default_rng(0)
    groups = options.get("groups", 1)
    x, w = rng.standard_normal((2, 4, *[6] * n)), rng.standard_normal((6, 4 // groups, *[3] * n))

    def found(lib):
        a, b = lib.from_numpy(x), lib.from_numpy(w)
        out = getattr(lib.nn.functional, f"conv{n}d")(a, b, **options)
        grad = lib.arange(float(out.numel()), dtype=lib.float64).reshape(out.shape) / 100
        return [
            getattr(lib.nn.grad, f"conv{n}d_input")(x.shape, b, grad, **options),
            getattr(lib.nn.functional.grad, f"conv{n}d_weight")(a, w.shape, grad, **options),
        ]

    same(found(mt), found(torch))


@pytest.mark.parametrize("pad", [0, 1, 3])
def test_a_convolution_over_time_batch_channels(pad):
    from module_comparison import compare

    def call(lib, module, x, w, b):
        return lib.nn.functional.conv_tbc(x, w, b, pad)

    compare(lambda lib: lib.nn.Identity(), [(5, 2, 3), (3, 3, 4), (4,)], call)


def test_prefixes_of_states():
    import torch
    from module_comparison import same

    def found(lib):
        lib.manual_seed(0)
        state = lib.nn.DataParallel(lib.nn.Sequential(lib.nn.Linear(2, 2))).state_dict()
        lib.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
        return [dict(state), list(state._metadata)]

    same(found(mt), found(torch))


NOT_HERE = {"intrinsic", "qat", "quantizable", "quantized"}  # quantization


@pytest.mark.parametrize(
    "path", ["nn", "nn.modules", "nn.functional", "nn.utils", "nn.utils.rnn", "nn.utils.parametrize", "nn.parallel", "nn.parameter"]
)
def test_names(path):
    import torch

    ours, theirs = mt, torch
    for part in path.split("."):
        ours, theirs = getattr(ours, part), getattr(theirs, part)
    names = {n for n in dir(theirs) if not n.startswith("_")} if path == "nn" else set(getattr(theirs, "__all__", ()))
    assert {n for n in names if not hasattr(ours, n)} <= NOT_HERE
