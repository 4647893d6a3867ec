"""Networks at their edges against torch's: empty inputs, wrong sizes, indices out of range, tensors without memory, sparse gradients."""

import pytest

import mindtorch_v2 as mt

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

CELLS = {"lstm_cell": 4, "gru_cell": 3, "rnn_tanh_cell": 1, "rnn_relu_cell": 1}


def cell(lib, name, *, ih=0, hh=0):
    gates, x, h = CELLS[name], lib.ones(4, 8), lib.ones(4, 16)
    weights = lib.ones(gates * 16 + ih, 8), lib.ones(gates * 16 + hh, 16)
    return getattr(lib, name)(x, (h, h) if gates == 4 else h, *weights, lib.ones(gates * 16), lib.ones(gates * 16))


def bag(lib, index, mode, padding, **options):
    return lib.nn.functional.embedding_bag(lib.tensor([[index, 1]]), lib.ones(10, 2), mode=mode, padding_idx=padding, **options)


def gradients(lib, *, groups):
    a, b, c = lib.ones(2, 4, 8), lib.ones(2, 5, 8), lib.ones(5, 4, 3)
    return lib.ops.aten.convolution_backward(a, b, c, [4], [1], [1], [1], True, [0], groups, [True, True, True])


class OldBuffers:
    """A module whose `register_buffer` has no `persistent`."""

    @staticmethod
    def of(lib, *, persistent):
        class Old(lib.nn.Module):
            def register_buffer(self, name, value):
                super().register_buffer(name, value, True)

        module = Old()
        module.kept = lib.nn.Buffer(lib.ones(2), persistent=persistent)
        return list(module.state_dict())


ERRORS = {
    **{f"{name}, weights of the input": lambda lib, name=name: cell(lib, name, ih=1) for name in CELLS},
    **{f"{name}, weights of the state": lambda lib, name=name: cell(lib, name, hh=1) for name in CELLS},
    **{
        f"bag of {index}, {mode}, padding {padding}": lambda lib, args=(index, mode, padding): bag(lib, *args)
        for index in (-1, 11)
        for mode in ("sum", "mean", "max")
        for padding in (None, 0)
    },
    "no groups": lambda lib: gradients(lib, groups=0),
    "fewer groups": lambda lib: gradients(lib, groups=-1),
    "padding": lambda lib: lib.nn.Conv1d(16, 4, 3, padding=9223372036854775803)(lib.ones(1, 16, 100)),
    "no sequences": lambda lib: lib.nn.utils.rnn.pad_packed_sequence(
        lib.nn.utils.rnn.PackedSequence(lib.ones(0, 5), lib.tensor([], dtype=lib.int64), None, None)
    ),
    "a buffer that is not persistent": lambda lib: OldBuffers.of(lib, persistent=False),
}


@pytest.mark.parametrize("action", ERRORS.values(), ids=ERRORS)
def test_errors(action):
    from module_comparison import compare_errors

    compare_errors(action)


class TensorLike:
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        raise NotImplementedError

    @classmethod
    def registered(cls, lib):
        module = lib.nn.Module()
        module.register_buffer("like", cls())
        return module.like


def empty_decoder(lib, *, batch_first):
    lib.manual_seed(0)
    layer = lib.nn.TransformerDecoderLayer(512, 2, 16, 0.0, batch_first=batch_first)
    memory, target = lib.ones(0, 10, 512, requires_grad=True), lib.ones(0, 20, 512, requires_grad=True)
    out = layer(target, memory)
    out.backward(lib.ones_like(out))
    return [out, target.grad, memory.grad]


def twice(lib):
    embedding = lib.nn.Embedding(10, 3, sparse=True)
    for _ in range(2):
        embedding(lib.tensor([7, 1, 3])).sum().backward()
    return [embedding.weight.grad._indices(), embedding.weight.grad._values(), embedding.weight.grad.is_coalesced()]


def no_embeddings(lib):
    embedding = lib.nn.Embedding(0, 0, sparse=True)
    embedding(lib.tensor([], dtype=lib.int64)).sum().backward()
    return [embedding.weight.grad._indices(), embedding.weight.grad._values()]


VALUES = {
    "bags of a matrix end with its rows": lambda lib: lib.nn.EmbeddingBag(
        10, 3, include_last_offset=True, _weight=lib.arange(30.0).reshape(10, 3)
    )(lib.tensor([[1, 2, 4, 5], [4, 3, 2, 9]])),
    "layer norm of nothing": lambda lib: lib.nn.functional.layer_norm(lib.ones(0, 3, 512), (512,)),
    "a decoder layer of nothing": lambda lib: empty_decoder(lib, batch_first=False),
    "a decoder layer of no samples": lambda lib: empty_decoder(lib, batch_first=True),
    "sparse gradients added up": twice,
    "sparse gradients of no embeddings": no_embeddings,
    "buffers by the old method": lambda lib: OldBuffers.of(lib, persistent=True),
    **{
        f"converted to {kind.__name__}": lambda lib, kind=kind: [
            lib.arange(3.0).to(dtype=kind),
            lib.arange(3.0).to("cpu", kind),
            lib.arange(3.0).to(device="cpu", dtype=kind),
        ]
        for kind in (bool, int, float, complex)
    },
    "a module of float": lambda lib: [
        lib.nn.Linear(2, 2, bias=False).to(dtype=float).weight.dtype.itemsize,
        lib.nn.Linear(2, 2).to(complex).bias.dtype.itemsize,
    ],
    "lists of parameters without memory": lambda lib: [
        repr(lib.nn.ParameterList([lib.nn.Parameter(lib.empty(1, device="meta")), lib.empty(2, 3), 5])),
        repr(lib.nn.ParameterDict({"a": lib.nn.Parameter(lib.empty(1, device="meta")), "b": lib.empty(2)})),
    ],
    "a buffer that is like a tensor": lambda lib: type(TensorLike.registered(lib)).__name__,
    "a sparse mask": lambda lib: lib.sparse_coo_tensor(lib.tensor([[0, 0, 1]]), lib.tensor([True, False, False]), (3,)).to_dense(),
    "a mask that is sparse in one dimension": lambda lib: lib.tensor([[True, False], [True, True]]).to_sparse(1).to_dense(),
    "truncated without memory": lambda lib: [
        t.is_meta and tuple(t.shape) for s in ((3, 4), (0, 4)) for t in [lib.nn.init.trunc_normal_(lib.empty(s, device="meta"))]
    ],
}


@pytest.mark.parametrize("call", VALUES.values(), ids=VALUES)
def test_values(call):
    import torch
    from module_comparison import same

    same(call(mt), call(torch), rtol=1e-6)


def hooked(lib, kind, forward, *inputs):
    module = type("Hooked", (lib.nn.Module,), {"forward": lambda self, *args: forward(*args)})()
    getattr(module, kind)(lambda *given: None)
    result = module(*inputs)
    if kind == "register_full_backward_hook":
        result.sum().backward()


HOOKS = {
    "a list of inputs": lambda lib, a: (lambda given: (given[0].clone(), given[1].clone()), [a, a]),
    "a list of results": lambda lib, a: (lambda x, y: [x.clone(), y.clone()], a, a),
    "results of two nodes": lambda lib, a: (lambda x, y: (x.clone(), y.clone()), a, a),
    "several nodes": lambda lib, a: (lambda x: x.clone().clone(), a),
}


@pytest.mark.parametrize("case", HOOKS.values(), ids=HOOKS)
def test_hooks_of_one_node_say_what_they_do_not_see(case):
    from module_comparison import compare_warnings

    def call(lib):
        forward, *inputs = case(lib, lib.ones(2, requires_grad=True))
        hooked(lib, "register_backward_hook", forward, *inputs)

    compare_warnings(call)


def test_a_full_hook_without_gradients_of_inputs():
    from module_comparison import compare_warnings

    compare_warnings(
        lambda lib: hooked(lib, "register_full_backward_hook", lambda x, w=lib.ones(2, requires_grad=True): x * w, lib.ones(2))
    )


def test_hooks_do_not_keep_their_module():
    import copy
    import gc
    import pickle
    import weakref

    gc.disable()
    try:
        module = mt.nn.Linear(2, 2)
        module.register_load_state_dict_pre_hook(print_nothing)
        for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
            (hook,) = other._load_state_dict_pre_hooks.values()
            assert hook.module() is other
            other.load_state_dict(module.state_dict())
        reference = weakref.ref(module)
        del module
        assert reference() is None
    finally:
        gc.enable()


def print_nothing(*args):
    assert isinstance(args[0], mt.nn.Module)


def test_a_hook_may_return_no_gradients():
    x, w = mt.ones(2), mt.ones(2, requires_grad=True)
    module = type("Scaled", (mt.nn.Module,), {"forward": lambda self, x: x * w})()
    module.register_full_backward_hook(lambda module, grad_input, grad_output: (None,))
    module(x).sum().backward()
    assert w.grad.tolist() == [1.0, 1.0]


def test_a_lazy_parameter_of_one_length():
    parameter = mt.nn.UninitializedParameter()
    parameter.materialize(10)
    assert parameter.shape == (10,)


AMOUNTS = [0, 1, 10, 0.4, 1.0, 20]


@pytest.mark.parametrize("amount", AMOUNTS)
def test_amounts_to_prune(amount):
    import torch.nn.utils.prune as theirs

    import mindtorch_v2.nn.utils.prune as ours

    def outcome(prune):
        try:
            prune._validate_pruning_amount_init(amount)
            prune._validate_pruning_amount(amount, 15)
        except (TypeError, ValueError) as error:
            return type(error), str(error)
        return prune._compute_nparams_toprune(amount, 15)

    assert outcome(ours) == outcome(theirs)


def test_no_gradients_to_clip():
    from module_comparison import compare_warnings

    compare_warnings(lambda lib: lib.nn.utils.clip_grad_norm_((p for p in ()), 1.0))


def test_nothing_is_said_of_other_empty_collections():
    import warnings

    for lib in (mt, pytest.importorskip("torch")):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            lib.nn.utils.clip_grad_norm_({}.values(), 1.0)
        assert not caught
