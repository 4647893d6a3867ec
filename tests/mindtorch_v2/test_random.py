"""The generator, and what is drawn from it. The numbers for seed 0 and 42 are those of PyTorch's CPU generator."""

from __future__ import annotations

import copy
import math
import pickle
import threading

import numpy as np
import pytest

import mindtorch_v2 as torch


def test_known_numbers_of_seed_zero():
    torch.manual_seed(0)
    np.testing.assert_allclose(torch.rand(3).numpy(), [0.49625659, 0.76822180, 0.08847743], rtol=1e-7)
    torch.manual_seed(0)
    np.testing.assert_allclose(torch.randn(5).numpy(), [1.5409961, -0.2934289, -2.1787894, 0.56843126, -1.0845224], rtol=1e-6)
    torch.manual_seed(0)
    assert torch.randint(10, (4,)).tolist() == [4, 9, 3, 0]
    torch.manual_seed(0)
    assert torch.randperm(8).tolist() == [4, 0, 7, 3, 2, 5, 1, 6]
    torch.manual_seed(0)
    assert torch.bernoulli(torch.full((5,), 0.5)).tolist() == [1, 0, 1, 1, 1]


def test_stream_does_not_depend_on_how_it_is_cut():
    torch.manual_seed(5)
    whole = torch.rand(3000)
    torch.manual_seed(5)
    parts = [torch.rand(n) for n in (1, 623, 624, 5, 1247, 500)]
    assert np.array_equal(np.concatenate([p.numpy() for p in parts]), whole.numpy())


@pytest.mark.parametrize("before", [0, 1, 2, 623, 624])
def test_many_long_words_are_pairs_of_words(before):
    torch.manual_seed(5)
    words = torch.default_generator.words(before + 10_000 + 100)
    torch.manual_seed(5)
    torch.default_generator.words(before)
    long = torch.default_generator.long_words(5_000)
    assert ((long >> 32) == words[before : before + 10_000 : 2]).all()
    assert ((long & 0xFFFFFFFF) == words[before + 1 : before + 10_000 : 2]).all()
    assert (torch.default_generator.words(100) == words[-100:]).all()


def test_long_draws_continue_the_stream():
    torch.manual_seed(5)
    whole = torch.rand(50001)
    torch.manual_seed(5)
    parts = torch.cat([torch.rand(20000), torch.rand(30001)])
    assert torch.equal(whole, parts)


def test_threads_share_a_generator_without_sharing_numbers():
    g = torch.Generator().manual_seed(0)
    drawn: list[np.ndarray] = []
    threads = [
        threading.Thread(target=lambda: drawn.extend(torch.rand(100, dtype=torch.float64, generator=g).numpy() for _ in range(200)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = torch.rand(80000, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).numpy()
    assert np.array_equal(np.sort(np.concatenate(drawn)), np.sort(expected))


def test_generators_are_independent():
    a, b = torch.Generator().manual_seed(3), torch.Generator().manual_seed(3)
    first = torch.rand(4, generator=a)
    torch.rand(10)
    assert torch.equal(first, torch.rand(4, generator=b))
    assert a.initial_seed() == 3
    assert torch.Generator().initial_seed() == 67280421310721


@pytest.mark.parametrize("drawn", [0, 1, 623, 624, 625, 2000])
def test_state_can_be_restored(drawn):
    g = torch.Generator().manual_seed(7)
    if drawn:
        torch.rand(drawn, generator=g)
    state = g.get_state()
    assert state.dtype is torch.uint8
    assert state.shape == (5056,)
    expected = torch.randn(5, generator=g)
    g.set_state(state)
    assert torch.equal(torch.randn(5, generator=g), expected)


def test_state_holds_the_waiting_half_of_a_normal_pair():
    g = torch.Generator().manual_seed(1)
    torch.randn(3, generator=g)
    state = g.get_state()
    expected = torch.randn(3, generator=g)
    assert torch.equal(torch.randn(3, generator=torch.Generator().set_state(state)), expected)
    assert torch.equal(torch.randn(3, generator=pickle.loads(pickle.dumps(torch.Generator().set_state(state)))), expected)


def test_bad_states_are_refused():
    with pytest.raises(TypeError, match=r"must be a torch\.ByteTensor"):
        torch.set_rng_state(torch.zeros(5056))
    with pytest.raises(RuntimeError, match="size 5056"):
        torch.set_rng_state(torch.zeros(3, dtype=torch.uint8))


def test_fork_rng_leaves_no_trace():
    torch.manual_seed(0)
    with torch.random.fork_rng():
        torch.rand(100)
    assert torch.rand(1).item() == pytest.approx(0.49625659)


def test_seed_is_unpredictable_and_reported():
    first, second = torch.seed(), torch.seed()
    assert first != second
    assert torch.initial_seed() == second


def test_fills_follow_memory_not_index():
    torch.manual_seed(0)
    straight = torch.empty(4, 3).uniform_()
    torch.manual_seed(0)
    transposed = torch.empty(4, 3).t().uniform_()
    assert torch.equal(straight.t(), transposed)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_uniform_stays_below_its_end(dtype):
    torch.manual_seed(0)
    x = torch.empty(20000, dtype=dtype).uniform_(-2, 5).double()
    assert x.min().item() >= -2
    assert x.max().item() < 5
    assert abs(x.mean().item() - 1.5) < 0.1


@pytest.mark.parametrize("n", [5, 15, 16, 17, 1000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_normal_has_its_moments(n, dtype):
    torch.manual_seed(0)
    draws = torch.stack([torch.empty(n, dtype=dtype).normal_(2, 3) for _ in range(20000 // n)])
    assert abs(draws.mean().item() - 2) < 0.1
    assert abs(draws.std().item() - 3) < 0.1


@pytest.mark.parametrize(
    ("draw", "mean"),
    [
        (lambda x: x.exponential_(2.0), 0.5),
        (lambda x: x.geometric_(0.25), 4.0),
        (lambda x: x.log_normal_(0.0, 0.5), np.exp(0.125)),
        (lambda x: x.bernoulli_(0.3), 0.3),
        (lambda x: x.random_(7), 3.0),
        (lambda x: x.random_(-3, 4), 0.0),
        (lambda x: torch.poisson(x.fill_(3.0)), 3.0),
        (lambda x: torch.poisson(x.fill_(30.0)), 30.0),
        (lambda x: torch.binomial(x.fill_(20.0), torch.full_like(x, 0.7)), 14.0),
        (lambda x: torch.binomial(x.fill_(8.0), torch.full_like(x, 0.2)), 1.6),
    ],
)
def test_means_of_distributions(draw, mean):
    torch.manual_seed(0)
    assert draw(torch.empty(40000)).mean().item() == pytest.approx(mean, rel=0.03, abs=0.05)


def test_normal_with_tensor_parameters():
    torch.manual_seed(0)
    mean, std = torch.arange(3.0).expand(20000, 3), torch.tensor([0.0, 1.0, 2.0])
    x = torch.normal(mean, std)
    assert x[:, 0].tolist() == [0.0] * 20000
    np.testing.assert_allclose(x.std(0).numpy(), [0, 1, 2], atol=0.05)
    assert torch.normal(0.0, 1.0, (2, 3)).shape == (2, 3)
    assert torch.normal(3.0, torch.ones(2)).shape == (2,)
    x = torch.ones(2, requires_grad=True)
    torch.normal(x, 1.0).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]


def test_multinomial():
    torch.manual_seed(0)
    weights = torch.tensor([0.0, 1.0, 3.0])
    draws = torch.multinomial(weights, 40000, replacement=True)
    np.testing.assert_allclose(np.bincount(draws.numpy(), minlength=3) / 40000, [0, 0.25, 0.75], atol=0.01)
    without = torch.multinomial(torch.ones(50, 6), 6)
    assert (without.sort(-1).values == torch.arange(6)).all()
    many = torch.multinomial(torch.tensor([[0.0, 1.0]]).expand(100, 2), 4, True)
    assert (many == 1).all()


@pytest.mark.parametrize("n", [0, 1, 2, 100])
def test_randperm_is_a_permutation(n):
    assert sorted(torch.randperm(n).tolist()) == list(range(n))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: torch.rand(2, dtype=torch.int64), NotImplementedError, "not implemented for 'Long'"),
        (lambda: torch.empty(2).uniform_(3, 1), RuntimeError, "found from=3 > to=1"),
        (lambda: torch.empty(2).normal_(0, -1), RuntimeError, "expects std >= 0.0"),
        (lambda: torch.randint(3, 3, (2,)), RuntimeError, "less than 'to', but got from=3 >= to=3"),
        (lambda: torch.empty(2, dtype=torch.uint8).random_(0, 300), RuntimeError, "to - 1 is out of bounds for unsigned char"),
        (lambda: torch.empty(2).bernoulli_(2.0), RuntimeError, "expects p to be in"),
        (lambda: torch.empty(2).exponential_(-1), RuntimeError, "expects lambda > 0.0"),
        (lambda: torch.empty(2).geometric_(0.0), RuntimeError, "expects p to be in"),
        (lambda: torch.empty(2).log_normal_(0, -1), RuntimeError, "expects std > 0.0"),
        (lambda: torch.empty(2).cauchy_(0, -1), RuntimeError, "expects sigma > 0.0"),
        (lambda: torch.multinomial(torch.ones(3), 4), RuntimeError, "without replacement"),
        (lambda: torch.multinomial(torch.zeros(3), 1), RuntimeError, "sum of probabilities <= 0"),
        (lambda: torch.multinomial(-torch.ones(3), 1), RuntimeError, "element < 0"),
        (lambda: torch.normal(torch.zeros(2), -torch.ones(2)), RuntimeError, "all elements of std >= 0.0"),
        (lambda: torch.poisson(-torch.ones(2)), RuntimeError, "expected rate to be non-negative"),
        (lambda: torch.rand(2, generator=3), TypeError, "must be torch.Generator, not int"),
        (lambda: torch.randperm(300, dtype=torch.uint8), RuntimeError, "without overflow"),
    ],
)
def test_refusals(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_in_place_draws_cut_the_graph():
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    y.uniform_()
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("draw", "node"),
    [
        (lambda x: x.normal_(), "NormalBackward0"),
        (lambda x: torch.normal(x, 1.0), "NormalBackward1"),
        (lambda x: torch.normal(1.0, x), "NormalBackward2"),
        (lambda x: torch.normal(x, x), "NormalBackward3"),
        (lambda x: x.random_(1, 3), "RandomBackward0"),
        (lambda x: x.random_(3), "RandomBackward1"),
        (lambda x: x.random_(), "RandomBackward2"),
        (lambda x: torch.bernoulli(x), "BernoulliBackward0"),
        (lambda x: x.bernoulli_(x.detach()), "BernoulliBackward1"),
        (lambda x: x.bernoulli_(0.3), "BernoulliBackward2"),
        (lambda x: x.exponential_(), "ExponentialBackward0"),
        (lambda x: torch.poisson(x), "PoissonBackward0"),
    ],
)
def test_names_of_nodes(draw, node):
    assert draw(torch.full((3,), 0.5, requires_grad=True) * 1).grad_fn.name() == node


def test_meta_tensors_draw_nothing():
    torch.manual_seed(0)
    assert torch.rand(3, device="meta").is_meta
    assert torch.rand(1).item() == pytest.approx(0.49625659)


def test_deepcopy_of_generator():
    g = torch.Generator().manual_seed(1)
    assert torch.equal(torch.rand(2, generator=copy.deepcopy(g)), torch.rand(2, generator=g))


# --- against PyTorch ------------------------------------------------------------------------------------------------

_DRAWS = {
    "rand": lambda L, n, d: L.rand(n, dtype=d),
    "randn": lambda L, n, d: L.randn(n, dtype=d),
    "uniform_": lambda L, n, d: L.empty(n, dtype=d).uniform_(-2, 5),
    "normal_": lambda L, n, d: L.empty(n, dtype=d).normal_(2, 3),
    "exponential_": lambda L, n, d: L.empty(n, dtype=d).exponential_(1.5),
    "geometric_": lambda L, n, d: L.empty(n, dtype=d).geometric_(0.3),
    "log_normal_": lambda L, n, d: L.empty(n, dtype=d).log_normal_(0.5, 0.7),
    "cauchy_": lambda L, n, d: L.empty(n, dtype=d).cauchy_(1, 2),
    "bernoulli_": lambda L, n, d: L.empty(n, dtype=d).bernoulli_(0.3),
    "bernoulli_ of tensor": lambda L, n, d: L.empty(n, dtype=d).bernoulli_(L.full((n,), 0.3)),
    "bernoulli": lambda L, n, d: L.bernoulli(L.full((n,), 0.3, dtype=d)),
    "random_": lambda L, n, d: L.empty(n, dtype=d).random_(),
    "random_ to": lambda L, n, d: L.empty(n, dtype=d).random_(7),
    "random_ from": lambda L, n, d: L.empty(n, dtype=d).random_(-5, 7),
    "poisson": lambda L, n, d: L.poisson(L.full((n,), 3.0, dtype=d)),
    "poisson of large rate": lambda L, n, d: L.poisson(L.full((n,), 20.0, dtype=d)),
}
_OTHERS = {
    "binomial": lambda L: L.binomial(L.full((100,), 9.0), L.full((100,), 0.3)),
    "binomial of large count": lambda L: L.binomial(L.full((100,), 100.0), L.full((100,), 0.6)),
    **{
        f"gamma {shape}": lambda L, shape=shape: L._standard_gamma(L.full((40,), shape))
        for shape in (0.0, 1e-40, 0.01, 0.7, 1.0, 3.5, 200.0, math.inf, -0.5, -3.0, -math.inf)
    },
    "gamma after a normal number": lambda L: L.cat(
        [L.randn(1), L._standard_gamma(L.arange(0.2, 5.0, dtype=L.float64)).float(), L.randn(2)]
    ),
    "gamma transposed": lambda L: L._standard_gamma(L.arange(0.5, 12.5).reshape(3, 4).t()),
    "dirichlet": lambda L: L._sample_dirichlet(L.tensor([[0.01, 0.5, 3.0], [2.0, 7.0, 100.0]]).expand(20, 2, 3)),
    "randint": lambda L: L.randint(-3, 10, (50,)),
    "randint of 2**28": lambda L: L.randint(0, 2**28, (50,)),
    "randint wide": lambda L: L.randint(-(2**40), 2**40, (50,)),
    "random_ of all": lambda L: L.empty(50, dtype=L.int64).random_(-(2**63), None),
    "random_ int8": lambda L: L.empty(50, dtype=L.int8).random_(),
    "randperm": lambda L: L.randperm(1000),
    "transposed normal_": lambda L: L.empty(16, 16).t().normal_(),
    "transposed uniform_": lambda L: L.empty(4, 8).t().uniform_(),
    "sliced normal_": lambda L: L.empty(8, 8)[:, ::2].normal_(),
    "bernoulli of transposed": lambda L: L.bernoulli(L.full((3, 4), 0.4).t()),
    "normal": lambda L: L.normal(L.arange(20.0).reshape(5, 4), L.ones(4)),
    "multinomial": lambda L: L.multinomial(L.arange(1.0, 33).reshape(4, 8), 3),
    "multinomial with replacement": lambda L: L.multinomial(L.arange(1.0, 33).reshape(4, 8), 30, True),
    "complex": lambda L: L.view_as_real(L.randn(40, dtype=L.complex64)),
    "pairs across calls": lambda L: L.cat([L.randn(3), L.randn(4), L.randn(20), L.randn(1)]),
}


def _same(draw):
    import torch as theirs

    ours = []
    for library in (torch, theirs):
        library.manual_seed(42)
        ours.append((draw(library).double().tolist(), library.rand(1).item()))
    assert ours[0][1] == ours[1][1], "the streams stand at different places"
    assert ours[0][0] == ours[1][0]


@pytest.mark.parity
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("n", [1, 5, 15, 16, 17, 40, 1000])
@pytest.mark.parametrize("name", _DRAWS)
def test_numbers_have_the_bits_of_torch(name, n, dtype):
    _same(lambda L: _DRAWS[name](L, n, getattr(L, dtype)))


@pytest.mark.parity
@pytest.mark.parametrize("name", _OTHERS)
def test_other_numbers_have_the_bits_of_torch(name):
    _same(_OTHERS[name])


@pytest.mark.parity
@pytest.mark.parametrize("drawn", [0, 1, 3, 623, 624, 625, 2000])
def test_states_are_interchangeable(drawn):
    import torch as theirs

    for library in (torch, theirs):
        library.manual_seed(7)
        if drawn:
            library.rand(drawn)
            library.randn(3)
    assert np.array_equal(torch.get_rng_state().numpy(), theirs.get_rng_state().numpy())
    theirs.randn(5)
    torch.set_rng_state(torch.from_numpy(theirs.get_rng_state().numpy().copy()))
    assert torch.randn(9).tolist() == theirs.randn(9).tolist()
    theirs.set_rng_state(theirs.from_numpy(torch.get_rng_state().numpy()))
    assert torch.randn(50).tolist() == theirs.randn(50).tolist()


def test_numbers_made_ahead_leave_the_stream_as_it_is():
    """Small normal draws are made of a whole block of outputs at once; what follows them must not notice."""
    ahead, plain = torch.Generator().manual_seed(3), torch.Generator().manual_seed(3)
    for n in (64, 16, 48, 256, 64, 64, 240, 16, 128):
        ahead_of_time = torch.randn(n, generator=ahead)
        whole_block = plain.clone_state().words(n)  # outputs, of which the same numbers follow in one draw
        plain.words(n)
        again = torch.Generator().set_state(ahead.get_state())
        assert torch.equal(ahead.get_state(), plain.get_state())
        assert torch.equal(torch.rand(5, generator=again), torch.rand(5, generator=plain.clone_state()))
        assert ahead_of_time.shape == (len(whole_block),)
    assert torch.equal(torch.rand(700, generator=ahead), torch.rand(700, generator=plain))


def test_small_normal_draws_are_parts_of_a_large_one():
    parts, whole = torch.Generator().manual_seed(5), torch.Generator().manual_seed(5)
    drawn = torch.cat([torch.randn(n, generator=parts) for n in (16, 64, 256, 32, 192, 128, 64, 256, 16)])
    assert torch.equal(drawn, torch.randn(len(drawn), generator=whole))


@pytest.mark.parametrize("n", [256, 257, 1000, 4096])
def test_randperm_exchanges_one_element_a_step(n):
    generator = torch.Generator().manual_seed(n)
    words = generator.clone_state().words(n - 1).tolist()
    expected = list(range(n))
    for i, word in enumerate(words):
        j = i + word % (n - i)
        expected[i], expected[j] = expected[j], expected[i]
    assert torch.randperm(n, generator=generator).tolist() == expected


def test_bernoulli_compares_the_uniforms_of_double_precision() -> None:
    for p in (0.0, 0.3, 0.5, 1.0):
        torch.manual_seed(5)
        uniforms = torch.rand(20_001, dtype=torch.float64)
        torch.manual_seed(5)
        assert torch.equal(torch.empty(20_001).bernoulli_(p), (uniforms < p).float())
