"""Factorisations and solvers: they reconstruct, their derivatives agree with differences, and failures are named."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import mindtorch_v2 as torch

RNG = np.random.default_rng(1)
BATCHES = [(), (3,), (2, 0), (2, 3)]


def random(*shape, dtype=np.float64):
    values = RNG.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * RNG.standard_normal(shape)
    return torch.from_numpy(values.astype(dtype))


def positive(*batch, n=4, dtype=np.float64):
    a = random(*batch, n, n, dtype=dtype)
    return a @ a.mH + torch.eye(n, dtype=a.dtype)


def array(t):
    return np.asarray(t.detach()._array)


def same(t, expected, tolerance=1e-9):
    np.testing.assert_allclose(
        array(t), array(expected) if isinstance(expected, torch.Tensor) else expected, atol=tolerance, rtol=1e-9
    )


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
class TestFactorisationsReconstruct:
    def test_cholesky(self, batch, dtype):
        a = positive(*batch, dtype=dtype)
        lower, upper = torch.linalg.cholesky(a), torch.linalg.cholesky(a, upper=True)
        same(lower @ lower.mH, a)
        same(upper.mH @ upper, a)
        same(torch.cholesky_inverse(lower), torch.linalg.inv(a))
        b = random(*batch, 4, 2, dtype=dtype)
        same(torch.cholesky_solve(b, lower), torch.linalg.solve(a, b))

    @pytest.mark.parametrize(("m", "n"), [(4, 4), (5, 3), (3, 5)])
    def test_lu(self, batch, dtype, m, n):
        a = random(*batch, m, n, dtype=dtype)
        p, lower, upper = torch.linalg.lu(a)
        same(p @ lower @ upper, a)
        unpacked = torch.lu_unpack(*torch.linalg.lu_factor(a))
        for ours, direct in zip(unpacked, (p, lower, upper), strict=True):
            same(ours, direct)

    @pytest.mark.parametrize(("m", "n"), [(4, 4), (5, 3), (3, 5)])
    def test_qr(self, batch, dtype, m, n):
        a = random(*batch, m, n, dtype=dtype)
        for mode in ("reduced", "complete"):
            q, r = torch.linalg.qr(a, mode)
            same(q @ r, a)
            same(q.mH @ q, np.broadcast_to(np.eye(q.shape[-1]), (*batch, q.shape[-1], q.shape[-1])))
        q, r = torch.linalg.qr(a, "r")
        assert q.shape == (0,)
        same(r, torch.linalg.qr(a).R)

    @pytest.mark.parametrize(("m", "n"), [(4, 4), (5, 3), (3, 5)])
    def test_svd(self, batch, dtype, m, n):
        a = random(*batch, m, n, dtype=dtype)
        u, s, vh = torch.linalg.svd(a, full_matrices=False)
        same((u * s.unsqueeze(-2).to(u.dtype)) @ vh, a)
        assert torch.linalg.svd(a).U.shape == (*batch, m, m)
        same(torch.linalg.svdvals(a), s)

    def test_eigenvalues(self, batch, dtype):
        a = positive(*batch, dtype=dtype)
        values, vectors = torch.linalg.eigh(a)
        same(a @ vectors, vectors * values.unsqueeze(-2).to(vectors.dtype))
        same(torch.linalg.eigvalsh(a), values)
        general = random(*batch, 4, 4, dtype=dtype)
        values, vectors = torch.linalg.eig(general)
        assert values.dtype is torch.complex128
        same(general.to(torch.complex128) @ vectors, vectors * values.unsqueeze(-2))

    @pytest.mark.parametrize("hermitian", [False, True])
    def test_ldl(self, batch, dtype, hermitian):
        a = random(*batch, 5, 5, dtype=dtype)
        a = a + (a.mH if hermitian else a.mT)
        b = random(*batch, 5, 2, dtype=dtype)
        factors, pivots = torch.linalg.ldl_factor(a, hermitian=hermitian)
        same(a @ torch.linalg.ldl_solve(factors, pivots, b, hermitian=hermitian), b)

    def test_solvers(self, batch, dtype):
        a, b = random(*batch, 4, 4, dtype=dtype), random(*batch, 4, 2, dtype=dtype)
        same(a @ torch.linalg.solve(a, b), b)
        c = random(*batch, 2, 4, dtype=dtype)
        same(torch.linalg.solve(a, c, left=False) @ a, c)
        triangle = positive(*batch, dtype=dtype).triu()
        same(triangle @ torch.linalg.solve_triangular(triangle, b, upper=True), b)
        same(torch.linalg.solve_triangular(triangle, c, upper=True, left=False) @ triangle, c)
        factors, pivots = torch.linalg.lu_factor(a)
        same(a.mH @ torch.linalg.lu_solve(factors, pivots, b, adjoint=True), b)
        same(torch.linalg.lu_solve(factors, pivots, c, left=False) @ a, c)

    def test_determinants(self, batch, dtype):
        a = random(*batch, 4, 4, dtype=dtype)
        det = torch.linalg.det(a)
        same(det, np.linalg.det(array(a)))
        sign, log = torch.linalg.slogdet(a)
        same(sign * log.exp().to(sign.dtype), det)
        same(torch.linalg.matrix_power(a, -2) @ a @ a, np.broadcast_to(np.eye(4), (*batch, 4, 4)), 1e-6)

    def test_pseudo_inverse(self, batch, dtype):
        a = random(*batch, 5, 3, dtype=dtype)
        pinv = torch.linalg.pinv(a)
        same(a @ pinv @ a, a)
        hermitian = positive(*batch, dtype=dtype)
        same(torch.linalg.pinv(hermitian, hermitian=True), torch.linalg.inv(hermitian))


def test_reflectors():
    a = random(5, 3)
    packed, tau = torch.geqrf(a)
    q, _ = torch.linalg.qr(a)
    same(torch.linalg.householder_product(packed, tau), q)
    other = random(5, 2)
    whole = torch.linalg.qr(a, "complete").Q
    same(torch.ormqr(packed, tau, other), whole @ other)
    same(torch.ormqr(packed, tau, other, transpose=True), whole.mT @ other)
    same(torch.ormqr(packed, tau, other.mT, left=False), other.mT @ whole)


@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
def test_least_squares(driver):
    a, b = random(2, 6, 3), random(2, 6, 2)
    found = torch.linalg.lstsq(a, b, driver=driver)
    same(found.solution, torch.linalg.pinv(a) @ b)
    assert (found.rank.shape == (0,)) == (driver == "gels")
    if driver == "gelsy":
        assert found.residuals.shape == (0,)
    else:
        same(found.residuals, ((a @ found.solution - b) ** 2).sum(-2))
    assert torch.linalg.lstsq(a[0], b[0, :, 0], driver=driver).solution.shape == (3,)


def test_rank_and_condition():
    a = torch.diag(torch.tensor([3.0, 1.0, 0.0]))
    assert torch.linalg.matrix_rank(a).item() == 2
    assert torch.linalg.matrix_rank(a, atol=2.0).item() == 1
    assert torch.linalg.matrix_rank(a, tol=2.0, hermitian=True).item() == 1
    assert torch.linalg.cond(torch.diag(torch.tensor([4.0, 2.0]))).item() == pytest.approx(2)
    assert torch.linalg.cond(torch.zeros(2, 2), 1).item() == float("inf")


@pytest.mark.parametrize("order", ["fro", "nuc", 1, -1, 2, -2, float("inf"), -float("inf")])
def test_matrix_norms_are_numpys(order):
    a = random(2, 3, 4)
    expected = np.linalg.norm(array(a), order, axis=(0, 2), keepdims=True)
    same(torch.linalg.matrix_norm(a, order, (0, 2), keepdim=True), expected)
    same(torch.linalg.norm(a[0], order), np.linalg.norm(array(a)[0], order))


@pytest.mark.parametrize("order", ["fro", "nuc", 1, 2, float("inf")])
@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0)])
def test_norms_of_empty_matrices_are_zero(order, shape):
    assert torch.linalg.matrix_norm(torch.zeros(shape), order).item() == 0


def test_exponential_of_a_rotation_generator():
    angle = 0.3
    a = torch.tensor([[0.0, -angle], [angle, 0.0]], dtype=torch.float64)
    same(torch.linalg.matrix_exp(a), [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def test_tensors_as_linear_maps():
    a = random(4, 2, 2)
    inverse = torch.linalg.tensorinv(a, ind=1)
    same(torch.tensordot(inverse, a, 1).reshape(4, 4), np.eye(4))
    b = random(4)
    same(torch.tensordot(a, torch.linalg.tensorsolve(a, b), 2), b)


def test_vandermonde_matrices():
    x = torch.tensor([1.0, 2.0, 3.0])
    same(torch.linalg.vander(x), np.vander(array(x), increasing=True))
    same(torch.vander(x, 4), np.vander(array(x), 4))
    assert torch.vander(torch.tensor([1, 2], dtype=torch.int8)).dtype is torch.int64


def test_low_rank_approximations_find_a_low_rank():
    torch.manual_seed(0)
    a = random(8, 2) @ random(2, 6)
    u, s, v = torch.svd_lowrank(a, 2)
    same((u * s) @ v.mT, a)
    u, s, v = torch.pca_lowrank(a, 2)
    same((u * s) @ v.mT, a - a.mean(0, keepdim=True))


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("linalg_svd", lambda a: torch.linalg.svd(a)),
        ("linalg_qr", lambda a: torch.linalg.qr(a)),
        ("linalg_eigh", lambda a: torch.linalg.eigh(a)),
        ("linalg_slogdet", lambda a: torch.linalg.slogdet(a)),
        ("linalg_lu_factor", lambda a: torch.linalg.lu_factor(a)),
        ("svd", lambda a: torch.svd(a)),
    ],
)
def test_results_are_named(name, function):
    assert type(function(positive())).__name__ == name


@pytest.mark.parametrize(
    ("function", "square"),
    [
        (lambda a: torch.linalg.inv(a), True),
        (lambda a: torch.linalg.det(a), True),
        (lambda a: torch.linalg.cholesky(a @ a.mT + torch.eye(3, dtype=a.dtype)), True),
        (lambda a: torch.linalg.lu_factor(a)[0], True),
        (lambda a: torch.linalg.lu_factor(a)[0], False),
        (lambda a: torch.linalg.qr(a).Q, True),
        (lambda a: torch.linalg.svdvals(a), False),
        (lambda a: torch.linalg.eigvalsh(a + a.mT), True),
        (lambda a: torch.linalg.matrix_exp(a), True),
        (lambda a: torch.linalg.pinv(a), False),
        (lambda a: torch.linalg.solve(a, a.mT), True),
    ],
)
def test_gradients_agree_with_differences_twice(function, square):
    a = random(3, 3) if square else random(3, 4)
    a.requires_grad = True
    assert torch.autograd.gradcheck(function, (a,))
    assert torch.autograd.gradgradcheck(function, (a,))


def test_second_derivative_of_the_determinant_of_a_singular_matrix():
    a = torch.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(torch.linalg.det(a), a, create_graph=True)
    same(first, [[4.0, -2.0], [-2.0, 1.0]])
    (second,) = torch.autograd.grad(first[0, 0], a)
    same(second, [[0.0, 0.0], [0.0, 1.0]], 1e-6)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda z: torch.linalg.cholesky(z),
            "linalg.cholesky: The factorization could not be completed because the input is not positive-definite (the leading "
            "minor of order 1 is not positive-definite).",
        ),
        (
            lambda z: torch.linalg.inv(z.expand(3, 2, 2)),
            "linalg.inv: (Batch element 0): The diagonal element 1 is zero, the inversion could not be completed because the "
            "input matrix is singular.",
        ),
        (lambda z: torch.linalg.solve(z, z), "torch.linalg.solve: The solver failed because the input matrix is singular."),
    ],
)
def test_singular_matrices_are_reported(call, text):
    with pytest.raises(torch.linalg.LinAlgError) as caught:
        call(torch.zeros(2, 2))
    assert str(caught.value) == text
    assert isinstance(caught.value, RuntimeError)


def test_ex_functions_report_codes_instead():
    good, bad = positive(n=2), torch.tensor([[1.0, 2.0], [2.0, 1.0]], dtype=torch.float64)
    both = torch.stack([good, bad])
    assert torch.linalg.cholesky_ex(both).info.tolist() == [0, 2]
    assert torch.linalg.inv_ex(torch.zeros(2, 2)).info.item() == 1
    assert torch.linalg.lu_factor_ex(torch.zeros(2, 2)).info.dtype is torch.int32
    with pytest.raises(torch.linalg.LinAlgError):
        torch.linalg.cholesky_ex(bad, check_errors=True)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: torch.linalg.inv(random(3)), RuntimeError, "linalg.inv: The input tensor A must have at least 2 dimensions."),
        (
            lambda: torch.linalg.det(random(2, 3)),
            RuntimeError,
            "linalg.det: A must be batches of square matrices, but they are 2 by 3 matrices",
        ),
        (
            lambda: torch.linalg.qr(torch.ones(2, 2, dtype=torch.int64)),
            RuntimeError,
            "linalg.qr: Expected a floating point or complex tensor as input. Got Long",
        ),
        (
            lambda: torch.linalg.svd(torch.ones(2, 2, dtype=torch.float16)),
            NotImplementedError,
            "\"linalg_svd_cpu\" not implemented for 'Half'",
        ),
        (
            lambda: torch.linalg.solve(random(2, 2), random(3)),
            RuntimeError,
            "linalg.solve: Incompatible shapes of A and B for the equation AX = B (2x2 and 3x1)",
        ),
        (lambda: torch.linalg.eigh(random(2, 2), "X"), RuntimeError, "Expected UPLO argument to be 'L' or 'U', but got X"),
        (lambda: torch.linalg.matrix_norm(random(2, 2), 3), RuntimeError, "linalg.matrix_norm: Order 3 not supported."),
        (
            lambda: torch.linalg.lu_factor(random(2, 2), pivot=False),
            RuntimeError,
            "linalg.lu_factor: LU without pivoting is not implemented on the CPU",
        ),
    ],
)
def test_refusals(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == text


def test_a_singular_triangle_divides_by_zero():
    result = torch.linalg.solve_triangular(torch.zeros(2, 2), torch.ones(2, 1), upper=True)
    assert not np.isfinite(array(result)).any()


def test_results_lie_in_memory_as_lapack_leaves_them():
    a = positive(2)
    for result in (torch.linalg.cholesky(a), torch.linalg.inv(a), torch.linalg.eigh(a)[1], torch.linalg.svd(a).Vh):
        assert result.stride() == (16, 1, 4)
    assert torch.linalg.lu(a).P.is_contiguous()


def test_out_receives_results():
    a = positive()
    out = torch.empty(4, 4, dtype=torch.float64)
    assert torch.linalg.inv(a, out=out) is out
    same(out @ a, np.eye(4))
    values, vectors = torch.empty(4, dtype=torch.float64), torch.empty(4, 4, dtype=torch.float64)
    torch.linalg.eigh(a, out=(values, vectors))
    same(a @ vectors, vectors * values)


@pytest.mark.parametrize("name", ["eig", "lstsq", "matrix_rank", "solve", "symeig"])
def test_removed_functions_name_their_successor(name):
    with pytest.raises(RuntimeError, match=r"is now removed.*torch\.linalg"):
        getattr(torch, name)(torch.eye(2))


def test_parts_of_a_diagonal_are_written_in_place():
    x = torch.ones(2, 2, dtype=torch.complex64)
    x.diagonal().real.mul_(3)
    assert array(x).tolist() == [[3, 1], [1, 3]]
    wide = torch.zeros(1, 2).expand(2, 2)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        wide.add_(1)


def test_an_argument_may_be_called_b():
    a, b = random(4, 3), random(4, 2)
    a.requires_grad = b.requires_grad = True
    (grad_b,) = torch.autograd.grad(torch.linalg.lstsq(a, b).solution.sum(), b)
    same(grad_b, array(torch.linalg.pinv(a)).T @ np.ones((3, 2)))


def test_a_count_as_a_norm_has_no_gradient():
    x = torch.tensor([1.0, 0.0, 2.0], requires_grad=True)
    torch.linalg.vector_norm(x, 0).backward()
    assert x.grad is None


@pytest.mark.parametrize("ord", [0.5, 1, 2, 3, -1, float("inf")])
@pytest.mark.parametrize("recorded", [False, True])
def test_the_norm_of_one_element_is_its_size_exactly(ord, recorded):
    x = torch.tensor([[0.1, -0.7, 3.3]])
    with torch.profiler.profile() if recorded else contextlib.nullcontext():
        norms = torch.linalg.vector_norm(x, ord, 0), torch.linalg.vector_norm(x, ord, 0, keepdim=True)
    assert norms[0].tolist() == x.abs()[0].tolist()
    assert norms[1].tolist() == x.abs().tolist()


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 4), (1, 4), (4, 1), (0, 4), (4, 0), (5,)])
@pytest.mark.parametrize("dim", [None, -1, 0, (0, -1), (-1, 0)])
def test_vector_norms_over_all_sorts_of_dimensions(shape, dim):
    if isinstance(dim, tuple) and len(shape) == 1:
        dim = (0,)
    x = random(*shape, dtype=np.float32)
    expected = np.sqrt(np.square(x.numpy().astype(np.float64)).sum(dim))
    norm = torch.linalg.vector_norm(x, 2, dim)
    assert tuple(norm.shape) == expected.shape
    np.testing.assert_allclose(norm.numpy(), expected, rtol=1e-6)


class TestProductsOfReflectors:
    @pytest.mark.parametrize("dtype", [torch.float32, torch.complex128])
    @pytest.mark.parametrize("batch", [(), (1,), (2, 3)])
    @pytest.mark.parametrize(("left", "transpose"), [(True, True), (True, False), (False, True), (False, False)])
    def test_gradients_are_the_same_while_somebody_records(self, left, transpose, batch, dtype):
        torch.manual_seed(0)
        a, tau = torch.geqrf(torch.randn(*batch, 5, 3, dtype=dtype))
        other = torch.randn(*batch, *((5, 4) if left else (4, 5)), dtype=dtype)
        leaves = [t.requires_grad_() for t in (a, tau, other)]
        for y, inputs in (
            (torch.linalg.householder_product(a, tau), leaves[:2]),
            (torch.ormqr(a, tau, other, left, transpose), leaves),
        ):
            grad = torch.randn(y.shape, dtype=dtype)
            plain = torch.autograd.grad(y, inputs, grad, retain_graph=True)
            with torch.profiler.profile():
                recorded = torch.autograd.grad(y, inputs, grad)
            for p, r in zip(plain, recorded, strict=True):
                assert (p._array.tobytes(), p.stride(), p._version) == (r._array.tobytes(), r.stride(), r._version)

    @pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
    @pytest.mark.parametrize(("left", "transpose"), [(True, True), (True, False), (False, True), (False, False)])
    def test_gradients(self, left, transpose, dtype):
        torch.manual_seed(1)
        a, tau = (t.requires_grad_() for t in torch.geqrf(torch.randn(4, 2, dtype=dtype)))
        other = torch.randn(*((4, 3) if left else (3, 4)), dtype=dtype, requires_grad=True)
        assert torch.autograd.gradcheck(lambda *given: torch.ormqr(*given, left, transpose), (a, tau, other))
        assert torch.autograd.gradgradcheck(torch.linalg.householder_product, (a, tau))

    def test_without_reflectors(self):
        a, tau, other = torch.ones(4, 0, requires_grad=True), torch.ones(0, requires_grad=True), torch.arange(20.0).reshape(4, 5)
        y = torch.ormqr(a, tau, other.requires_grad_())
        assert y.tolist() == other.tolist()
        assert y.stride() == (1, 4)
        # torch: nobody's gradient, rather than one of no elements
        grads = torch.autograd.grad(y.sum(), (a, tau, other), allow_unused=True)
        assert grads[:2] == (None, None)
        assert grads[2].tolist() == torch.ones(4, 5).tolist()


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("which", [(0,), (1,), (0, 1)])
def test_gradients_of_qr_of_a_wide_matrix(which, dtype):
    x = random(2, 2, 4, dtype=dtype).requires_grad_()
    assert torch.autograd.gradcheck(lambda t: tuple(torch.linalg.qr(t)[i] for i in which), (x,))
