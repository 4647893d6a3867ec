"""Recurrent modules, cells and packed sequences against torch's."""

import numpy as np
import pytest

import mindtorch_v2 as mt

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

LAYERS = ["RNN", "LSTM", "GRU"]
OPTIONS = [
    {},
    {"bias": False, "num_layers": 2},
    {"bidirectional": True, "batch_first": True},
    {"num_layers": 2, "bidirectional": True, "dropout": 0.4},
]


def packed(lib, data, lengths, batch_first=False):
    return lib.nn.utils.rnn.pack_padded_sequence(data, lengths, batch_first, enforce_sorted=False)


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_layers(kind, options):
    from module_comparison import compare

    def make(lib):
        return getattr(lib.nn, kind)(3, 4, **options)

    compare(make, [(5, 2, 3)], eval_mode=True)
    compare(make, [(5, 3)], eval_mode=True)

    def packed_call(lib, module, x):
        out, state = module(packed(lib, x, [2, 4, 1], options.get("batch_first", False)))
        assert isinstance(out, lib.nn.utils.rnn.PackedSequence)
        return [*out, state, lib.nn.utils.rnn.pad_packed_sequence(out, total_length=6, padding_value=0.5)]

    compare(make, [(3, 4, 3) if options.get("batch_first") else (4, 3, 3)], packed_call, eval_mode=True)


@pytest.mark.parametrize("options", [{}, {"num_layers": 2, "bidirectional": True}, {"bias": False}])
def test_projections(options):
    from module_comparison import compare

    def make(lib):
        return lib.nn.LSTM(3, 4, proj_size=2, **options)

    compare(make, [(5, 2, 3)])
    compare(make, [(4, 3, 3)], lambda lib, module, x: list(module(packed(lib, x, [2, 4, 1]))[0]))


def test_states_are_taken():
    from module_comparison import compare

    compare(lambda lib: lib.nn.GRU(3, 4), [(5, 2, 3), (1, 2, 4)])
    compare(lambda lib: lib.nn.RNN(3, 4, 2, "relu"), [(5, 3), (2, 4)])
    compare(lambda lib: lib.nn.LSTM(3, 4), [(5, 2, 3), (1, 2, 4), (1, 2, 4)], lambda lib, m, x, h, c: m(x, (h, c)))
    compare(lambda lib: lib.nn.LSTM(3, 4), [(5, 3), (1, 4), (1, 4)], lambda lib, m, x, h, c: m(x, (h, c)))
    compare(lambda lib: lib.nn.GRU(3, 4), [(4, 3, 3), (1, 3, 4)], lambda lib, m, x, h: list(m(packed(lib, x, [2, 4, 1]), h)))
    compare(
        lambda lib: lib.nn.LSTM(3, 4),
        [(4, 3, 3), (1, 3, 4), (1, 3, 4)],
        lambda lib, m, x, h, c: list(m(packed(lib, x, [2, 4, 1]), (h, c))),
    )


@pytest.mark.parametrize(
    ("kind", "options"),
    [("RNNCell", {}), ("RNNCell", {"nonlinearity": "relu"}), ("LSTMCell", {}), ("GRUCell", {}), ("GRUCell", {"bias": False})],
)
def test_cells(kind, options):
    from module_comparison import compare

    def make(lib):
        return getattr(lib.nn, kind)(3, 4, **options)

    def with_state(lib, module, x, h, c):
        return module(x, (h, c) if kind == "LSTMCell" else h)

    compare(make, [(2, 3)])
    compare(make, [(3,)])
    compare(make, [(2, 3), (2, 4), (2, 4)], with_state)
    compare(make, [(3,), (4,), (4,)], with_state)


ERRORS = {
    "no such mode": lambda lib: lib.nn.RNNBase("X", 3, 4),
    "input size": lambda lib: lib.nn.LSTM(0, 4),
    "type of size": lambda lib: lib.nn.LSTM(3, 4.0),
    "type of bias": lambda lib: lib.nn.LSTM(3, 4, bias=1),
    "layers": lambda lib: lib.nn.LSTM(3, 4, 0),
    "dropout": lambda lib: lib.nn.LSTM(3, 4, 2, dropout=1.5),
    "projection of a GRU": lambda lib: lib.nn.GRU(3, 4, proj_size=2),
    "negative projection": lambda lib: lib.nn.LSTM(3, 4, proj_size=-1),
    "large projection": lambda lib: lib.nn.LSTM(3, 4, proj_size=4),
    "nonlinearity": lambda lib: lib.nn.RNN(3, 4, nonlinearity="gelu"),
    "RNN dims": lambda lib: lib.nn.RNN(3, 4)(lib.zeros(3)),
    "LSTM dims": lambda lib: lib.nn.LSTM(3, 4)(lib.zeros(1, 1, 1, 3)),
    "GRU dims": lambda lib: lib.nn.GRU(3, 4)(lib.zeros(3)),
    "features": lambda lib: lib.nn.GRU(3, 4)(lib.zeros(5, 2, 4)),
    "dtype": lambda lib: lib.nn.GRU(3, 4)(lib.zeros(5, 2, 3, dtype=lib.float64)),
    "state size": lambda lib: lib.nn.GRU(3, 4)(lib.zeros(5, 2, 3), lib.zeros(1, 3, 4)),
    "state dims": lambda lib: lib.nn.GRU(3, 4)(lib.zeros(5, 2, 3), lib.zeros(2, 4)),
    "unbatched state dims": lambda lib: lib.nn.RNN(3, 4)(lib.zeros(5, 3), lib.zeros(1, 2, 4)),
    "cell size": lambda lib: lib.nn.LSTM(3, 4)(lib.zeros(5, 2, 3), (lib.zeros(1, 2, 4), lib.zeros(1, 2, 3))),
    "LSTM state dims": lambda lib: lib.nn.LSTM(3, 4)(lib.zeros(5, 2, 3), (lib.zeros(1, 2, 4), lib.zeros(2, 3))),
    "unbatched LSTM state dims": lambda lib: lib.nn.LSTM(3, 4)(lib.zeros(5, 3), (lib.zeros(1, 2, 4), lib.zeros(2, 3))),
    "packed features": lambda lib: lib.nn.GRU(3, 4)(lib.nn.utils.rnn.pack_padded_sequence(lib.zeros(5, 2, 4), [5, 3])),
    "cell dims": lambda lib: lib.nn.LSTMCell(3, 4)(lib.zeros(1, 1, 3)),
    "cell state dims": lambda lib: lib.nn.LSTMCell(3, 4)(lib.zeros(1, 3), (lib.zeros(1, 4), lib.zeros(1, 1, 4))),
    "cell hidden dims": lambda lib: lib.nn.GRUCell(3, 4)(lib.zeros(1, 3), lib.zeros(1, 1, 4)),
    "cell nonlinearity": lambda lib: lib.nn.RNNCell(3, 4, nonlinearity="x")(lib.zeros(1, 3)),
    "lengths not sorted": lambda lib: lib.nn.utils.rnn.pack_padded_sequence(lib.zeros(5, 2, 3), [3, 5]),
    "length zero": lambda lib: lib.nn.utils.rnn.pack_padded_sequence(lib.zeros(5, 2, 3), [3, 0]),
    "too few lengths": lambda lib: lib.nn.utils.rnn.pack_padded_sequence(lib.zeros(5, 2, 3), [3]),
    "nothing to pack": lambda lib: lib.nn.utils.rnn.pack_padded_sequence(lib.zeros(0, 2, 3), [3, 2]),
    "total length": lambda lib: lib.nn.utils.rnn.pad_packed_sequence(
        lib.nn.utils.rnn.pack_padded_sequence(lib.zeros(5, 2, 3), [5, 3]), total_length=4
    ),
    "no sequences": lambda lib: lib.nn.utils.rnn.pad_sequence([]),
    "no iterable": lambda lib: lib.nn.utils.rnn.pad_sequence(3),
    "padding side": lambda lib: lib.nn.utils.rnn.pad_sequence([lib.zeros(2)], padding_side="up"),
    "no pair": lambda lib: lib.nn.utils.rnn.PackedSequence(lib.zeros(3)),
}


@pytest.mark.parametrize("action", ERRORS.values(), ids=ERRORS)
def test_errors(action):
    from module_comparison import compare_errors

    compare_errors(action)


def test_dropout_of_one_layer_warns():
    from module_comparison import compare_warnings

    compare_warnings(lambda lib: lib.nn.GRU(3, 4, dropout=0.5))


def sequences(lib):
    rng = np.random.default_rng(0)
    return [lib.from_numpy(rng.standard_normal((n, 2))) for n in (2, 4, 1)]


@pytest.mark.parametrize(
    "call",
    [
        lambda lib, R: R.pad_sequence(sequences(lib), True, 0.5),
        lambda lib, R: R.pad_sequence(sequences(lib), padding_side="left"),
        lambda lib, R: list(R.pack_sequence(sequences(lib), enforce_sorted=False)),
        lambda lib, R: R.unpack_sequence(R.pack_sequence(sequences(lib), enforce_sorted=False)),
        lambda lib, R: R.unpad_sequence(R.pad_sequence(sequences(lib)), lib.tensor([2, 4, 1])),
        lambda lib, R: R.invert_permutation(lib.tensor([2, 0, 1])),
        lambda lib, R: list(R.pack_sequence(sequences(lib), enforce_sorted=False).float()),
        lambda lib, R: [str(x.dtype)[-7:] for x in R.pack_sequence(sequences(lib)[1:]).long() if x is not None],
        lambda lib, R: R.pad_packed_sequence(R.pack_sequence(sequences(lib), enforce_sorted=False), True, -1.0, 6),
        lambda lib, R: list(R.PackedSequence((lib.ones(3, 2), lib.tensor([2, 1])))),
        lambda lib, R: (p := R.pack_sequence(sequences(lib)[1:])).to(lib.float64) is p,
    ],
)
def test_packing(call):
    import torch
    from module_comparison import same

    same(call(mt, mt.nn.utils.rnn), call(torch, torch.nn.utils.rnn))


def test_weights_given_from_outside_are_used():
    """As `functional_call` and weight normalisation replace them."""
    lstm, x = mt.nn.LSTM(3, 4), mt.randn(5, 2, 3)
    before = lstm(x)[0]
    weight = lstm.weight_hh_l0
    del lstm.weight_hh_l0
    lstm.weight_hh_l0 = weight.detach() * 2
    assert not mt.equal(lstm(x)[0], before)


# a question about CUDA; conversions of lengths that are of the right dtype and device already; numbers that the sort of the lengths begins with
NO_WORK = {"aten::cudnn_is_acceptable", "aten::to", "aten::lift_fresh", "aten::arange"}


@pytest.mark.parametrize("kind", ["lstm", "gru", "packed", "cell"])
def test_a_training_step_has_the_same_operators(kind):
    """Without oneDNN, whose LSTM is one kernel, `mkldnn_rnn_layer`."""
    from profile_comparison import compare_step

    def make(lib):
        nn = lib.nn
        net = {
            "lstm": lambda: nn.LSTM(3, 4, 2, bidirectional=True, dropout=0.5),
            "gru": lambda: nn.GRU(3, 4, batch_first=True),
            "packed": lambda: nn.LSTM(3, 4, bidirectional=True),
            "cell": lambda: nn.LSTMCell(3, 4),
        }[kind]()
        x = lib.randn(5, 2, 3)

        def step():
            net.zero_grad()
            if kind == "packed":
                out = nn.utils.rnn.pad_packed_sequence(net(packed(lib, x, [3, 5]))[0])[0]
            else:
                out = net(x[0] if kind == "cell" else x)[0]
            out.sum().backward()

        return step

    compared = compare_step(make)
    assert compared.misses("arrows") == []
    assert [miss for miss in compared.misses("names apart") if miss[1] not in NO_WORK] == []
