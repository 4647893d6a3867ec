"""Matrix products: shapes, memory order, dtypes, in-place and `out=` forms, and the texts of refusals."""

from __future__ import annotations

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.nn import functional as F

RNG = np.random.default_rng(0)


def random(*shape, dtype=np.float64):
    return torch.from_numpy(RNG.standard_normal(shape).astype(dtype))


def array(t):
    return np.asarray(t.detach()._array)


def same(t, expected, **tolerance):
    np.testing.assert_allclose(array(t).astype(np.float64), expected, **{"rtol": 1e-12, "atol": 1e-12, **tolerance})


SHAPES = [
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (3,)), ((5, 2, 3), (3, 4)), ((3,), (5, 3, 4)),
    ((2, 3), (5, 3, 4)), ((5, 2, 3), (5, 3, 4)), ((6, 5, 2, 3), (5, 3, 4)), ((6, 1, 2, 3), (1, 5, 3, 4)), ((1, 2, 3), (5, 3, 4)),
    ((0, 2, 3), (3, 4)), ((5, 2, 0), (0, 4)),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b"), SHAPES)
@pytest.mark.parametrize("grad", [False, True])
def test_matmul_of_every_pair_of_ranks_is_numpys(a, b, grad):
    x, y = random(*a), random(*b)
    x.requires_grad = y.requires_grad = grad
    result = torch.matmul(x, y)
    same(result, np.matmul(array(x), array(y)))
    assert result.is_contiguous()
    if grad:
        result.sum().backward()
        assert x.grad.shape == x.shape
        assert y.grad.shape == y.shape


@pytest.mark.parametrize("shape", [(3,), (2, 3), (5, 2, 3), (4, 5, 2, 3)])
@pytest.mark.parametrize("bias", [False, True])
def test_linear_is_x_times_weight_transposed_plus_bias(shape, bias):
    x, w, b = random(*shape), random(4, 3), random(4) if bias else None
    same(F.linear(x, w, b), array(x) @ array(w).T + (array(b) if bias else 0))


def test_linear_of_a_transposed_input_adds_the_bias_in_place():
    x, w, b = random(2, 5, 3).transpose(0, 1), random(4, 3), random(4)
    same(F.linear(x, w, b), array(x) @ array(w).T + array(b))


def test_transposed_and_expanded_operands():
    x, y = random(4, 3), random(4, 5)
    same(torch.mm(x.t(), y), array(x).T @ array(y))
    row = random(1, 4).expand(6, 4)
    same(torch.mm(row, y), array(row) @ array(y))


def test_gradient_of_a_column_major_factor_is_column_major():
    x, w = random(5, 3), random(4, 3)
    column_major = w.t().detach()
    column_major.requires_grad = True
    (gradient,) = torch.autograd.grad(torch.mm(x, column_major), column_major, random(5, 4))
    assert gradient.stride() == (1, 3)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
def test_integer_products_wrap_around(dtype):
    d = getattr(torch, dtype)
    x = torch.full((2, 5), 100, dtype=d)
    y = torch.full((5, 2), 3, dtype=d)
    result = torch.mm(x, y)
    assert result.dtype is d
    assert array(result)[0, 0] == np.array(1500).astype(dtype)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_accumulates_in_single(dtype):
    x = torch.full((1, 4096), 1.0, dtype=dtype)
    result = torch.mm(x, x.t())
    assert result.dtype is dtype
    assert result.item() == 4096.0


def test_addmm_scales_both_terms_and_ignores_self_when_beta_is_zero():
    x, y = random(2, 3), random(3, 4)
    nan = torch.full((2, 4), float("nan"), dtype=torch.float64)
    same(torch.addmm(nan, x, y, beta=0, alpha=2), 2 * array(x) @ array(y))
    bias = random(4)
    same(torch.addmm(bias, x, y, beta=0.5, alpha=3), 0.5 * array(bias) + 3 * array(x) @ array(y))


def test_products_in_place():
    x, y = random(2, 3), random(3, 4)
    target = random(2, 4)
    before = array(target).copy()
    assert target.addmm_(x, y) is target
    same(target, before + array(x) @ array(y))
    batch = random(2, 2, 2)
    before = array(batch).copy()
    batch.baddbmm_(random(2, 2, 1) * 0, random(2, 1, 2), beta=2)
    same(batch, 2 * before)
    vector = torch.zeros(2, dtype=torch.float64)
    vector.addmv_(x, random(3), alpha=0)
    same(vector, [0, 0])
    with pytest.raises(
        RuntimeError, match=r"Bad in-place call: input tensor size \[4\] and output tensor size \[2, 4\] should match"
    ):
        random(4).addmm_(x, y)


def test_products_write_to_out():
    x, y = random(2, 3), random(3, 4)
    out = torch.empty(2, 4, dtype=torch.float64)
    assert torch.mm(x, y, out=out) is out
    same(out, array(x) @ array(y))


def test_addr_promotes_and_takes_bools():
    mask = torch.zeros(2, 2, dtype=torch.bool)
    yes = torch.tensor([True, False])
    assert array(torch.addr(mask, yes, yes)).tolist() == [[True, False], [False, False]]
    assert torch.addr(torch.zeros(2, 2), torch.tensor([1, 2]), torch.tensor([3, 4])).dtype is torch.float32


def test_vdot_conjugates_its_first_argument():
    x = torch.tensor([1 + 1j, 2j])
    assert torch.vdot(x, x).item() == 6
    assert torch.dot(x, x).item() == (2j - 4)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", ((2, 3), (3, 4))),
        ("ij,jk", ((2, 3), (3, 4))),
        ("bij,bjk->kib", ((2, 3, 4), (2, 4, 5))),
        ("ii->i", ((3, 3),)),
        ("ii", ((3, 3),)),
        ("iij->j", ((3, 3, 2),)),
        ("...ij->...ji", ((2, 3, 4),)),
        ("...ij,...jk->...ik", ((2, 1, 3, 4), (5, 4, 2))),
        ("i...,i...->...", ((3, 2), (3, 2))),
        ("i,j,k->kji", ((2,), (3,), (4,))),
        ("ab,bc,cd,de->ae", ((2, 3), (3, 4), (4, 5), (5, 2))),
        ("ij,k->k", ((2, 3), (4,))),
        ("ij->", ((2, 3),)),
        ("bqhd,bkhd->bhqk", ((2, 3, 4, 5), (2, 6, 4, 5))),
        (" i j , j k -> i k ", ((2, 3), (3, 4))),
    ],
)
def test_einsum_is_numpys(equation, shapes):
    operands = [random(*s) for s in shapes]
    same(torch.einsum(equation, *operands), np.einsum(equation.replace(" ", ""), *map(array, operands)))
    same(torch.einsum(equation, operands), np.einsum(equation.replace(" ", ""), *map(array, operands)))


def test_einsum_with_lists_of_subscripts():
    x, y = random(2, 3), random(3, 4)
    same(torch.einsum(x, [0, 1], y, [1, 2], [2, 0]), (array(x) @ array(y)).T)
    same(torch.einsum(x, [..., 0], y, [0, 5]), array(x) @ array(y))


def test_einsum_broadcasts_dimensions_of_one():
    x, y = random(2, 1), random(2, 3)
    same(torch.einsum("ij,ij->i", x, y), (array(x) * array(y)).sum(1))


def test_einsum_puts_the_product_in_the_order_of_the_output():
    result = torch.einsum("bij,bjk->bki", random(2, 3, 4), random(2, 4, 5))
    assert result.is_contiguous()


@pytest.mark.parametrize("dims", [0, 1, 2, ([1, 0], [0, 1]), ([0], [1])])
def test_tensordot_is_numpys(dims):
    x, y = random(3, 3), random(3, 3)
    same(torch.tensordot(x, y, dims=dims), np.tensordot(array(x), array(y), dims))


def test_chains_of_matrices():
    chain = [random(10, 2), random(2, 30), random(30, 3), random(3, 5)]
    expected = np.linalg.multi_dot([array(m) for m in chain])
    same(torch.linalg.multi_dot(chain), expected)
    same(torch.chain_matmul(*chain), expected)
    v = random(10)
    assert torch.linalg.multi_dot([v, *chain]).shape == (5,)
    assert torch.linalg.multi_dot([v, chain[0], random(2)]).shape == ()


def test_kron_outer_inner_and_cross():
    x, y = random(2, 3), random(4, 5)
    same(torch.kron(x, y), np.kron(array(x), array(y)))
    u, v = random(3), random(3)
    same(torch.outer(u, v), np.outer(array(u), array(v)))
    same(torch.inner(x, random(7, 3) * 0), np.zeros((2, 7)))
    same(torch.linalg.cross(u, v), np.cross(array(u), array(v)))
    same(torch.cross(x, x.flip(0)), np.cross(array(x), array(x)[::-1]))


def test_bilinear_is_a_sum_over_both_inputs():
    x, y, w, b = random(2, 5, 3), random(2, 5, 4), random(6, 3, 4), random(6)
    same(F.bilinear(x, y, w, b), np.einsum("abi,oij,abj->abo", array(x), array(w), array(y)) + array(b))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: torch.mm(random(2, 3), random(4, 5)), "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)"),
        (lambda: torch.mm(random(3), random(3, 2)), "self must be a matrix"),
        (
            lambda: torch.mm(random(2, 3), random(3, 2).float()),
            "expected m1 and m2 to have the same dtype, but got: double != float",
        ),
        (lambda: torch.mv(random(2, 3), random(4)), "size mismatch, got input (2), mat (2x3), vec (4)"),
        (
            lambda: torch.dot(random(3), random(4)),
            "inconsistent tensor size, expected tensor [3] and src [4] to have the same number of elements, but got 3 and 4 "
            "elements respectively",
        ),
        (
            lambda: torch.bmm(random(2, 3, 4), random(3, 4, 6)),
            "Expected size for first two dimensions of batch2 tensor to be: [2, 4] but got: [3, 4].",
        ),
        (
            lambda: torch.matmul(torch.tensor(1.0), random(3)),
            "both arguments to matmul need to be at least 1D, but they are 0D and 1D",
        ),
        (
            lambda: torch.addmm(random(3, 3), random(2, 3), random(3, 5)),
            "The expanded size of the tensor (5) must match the existing size (3) at non-singleton dimension 1.  "
            "Target sizes: [2, 5].  Tensor sizes: [3, 3]",
        ),
        (
            lambda: torch.einsum("ij,jk", random(2, 3), random(4, 5)),
            "einsum(): subscript j has size 4 for operand 1 which does not broadcast with previously seen size 3",
        ),
        (
            lambda: torch.einsum("i1", random(2, 2)),
            "einsum(): invalid subscript given at index 1 in the equation string, subscripts must be in [a-zA-Z]",
        ),
        (
            lambda: torch.einsum("ij->ii", random(2, 2)),
            "einsum(): output subscript i appears more than once in the output",
        ),
        (
            lambda: torch.linalg.multi_dot([random(2, 2), random(3, 2)]),
            "multi_dot(): tensors 0 and 1 with shapes [2, 2] and [3, 2] cannot be multiplied",
        ),
        (
            lambda: torch.linalg.cross(random(2, 4), random(2, 4)),
            "linalg.cross: inputs dimension -1 must have length 3. Got 4 and 4",
        ),
    ],
)
def test_refusals_say_what_does_not_fit(call, text):
    with pytest.raises(RuntimeError) as caught:
        call()
    assert str(caught.value) == text


def test_bools_are_not_multiplied_as_matrices():
    yes = torch.ones(2, 2, dtype=torch.bool)
    with pytest.raises(NotImplementedError, match="\"addmm_impl_cpu_\" not implemented for 'Bool'"):
        torch.mm(yes, yes)


def test_meta_products_have_shapes_only():
    x = torch.empty(2, 3, device="meta")
    assert F.linear(x, torch.empty(4, 3, device="meta"), torch.empty(4, device="meta")).shape == (2, 4)
    assert torch.matmul(torch.empty(7, 2, 3, device="meta"), torch.empty(3, 5, device="meta")).shape == (7, 2, 5)


def test_reflected_matmul_takes_numpys_place():
    x = random(2, 2)
    assert isinstance(x.__rmatmul__(random(2, 2)), torch.Tensor)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64])
@pytest.mark.parametrize("rows", [1, 2, 9, 10, 48, 49])
def test_few_rows_by_a_transposed_matrix(rows: int, dtype: torch.dtype) -> None:
    """Around the sizes from which the transposed product is taken: the same values, in rows."""
    rng = np.random.default_rng(0)
    x, weight, bias = (rng.standard_normal(shape) for shape in ((rows, 128), (130, 128), (130,)))
    a, b, c = (torch.from_numpy(v).to(dtype) for v in (x, weight, bias))
    for found, expected in ((a @ b.t(), x @ weight.T), (torch.addmm(c, a, b.t()), x @ weight.T + bias)):
        assert found.is_contiguous()
        assert found.dtype is dtype
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-4)
