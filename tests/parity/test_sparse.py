"""Sparse tensors of every layout: what they are made of, what is computed with them, their gradients, text and errors are torch's."""

import io
import itertools
import warnings

import pytest
import torch

import mindtorch_v2 as mt

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

SETUP = """
i = torch.tensor([[0, 1, 1], [2, 0, 2]])
v = torch.tensor([3.0, 4.0, 5.0])
s = torch.sparse_coo_tensor(i, v, (2, 3))
c = s.coalesce()
u = torch.sparse_coo_tensor([[1, 0, 1], [1, 0, 1]], [2.0, 1.0, 3.0], (2, 2))
h = torch.sparse_coo_tensor([[1, 0]], [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], (3, 3))
z = torch.sparse_coo_tensor((2, 3))
d = torch.arange(6.0).reshape(2, 3) - 2
m = torch.arange(12.0).reshape(3, 4)
w = torch.tensor([1.0, 2.0, 3.0])
r = torch.sparse_csr_tensor([0, 1, 3], [2, 0, 2], [3.0, 4.0, 5.0], (2, 3))
k = torch.sparse_csc_tensor([0, 1, 1, 3], [1, 0, 1], [4.0, 3.0, 5.0], (2, 3))
b = torch.sparse_bsr_tensor([0, 1, 2], [1, 0], [[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]], (4, 4))
q = torch.tensor([[0.0, 1.0, 0.0, 2.0], [0.0, 0.0, 0.0, 3.0], [4.0, 0.0, 0.0, 0.0], [0.0, 5.0, 0.0, 0.0]])
batch = torch.stack([q, q.flip(0)])
x = torch.complex(d, -d).to_sparse()
"""

SAME = """
s
c
u
h
z
r
k
b
s.coalesce()
u.coalesce()
s.is_coalesced()
u.to_dense()
h.to_dense()
z.to_dense()
x
(s.layout, r.layout, k.layout, b.layout, d.layout)
(s.is_sparse, r.is_sparse, r.is_sparse_csr, k.is_sparse_csr, d.is_sparse_csr)
(s._nnz(), h._nnz(), r._nnz(), b._nnz())
(s.sparse_dim(), h.dense_dim(), r.sparse_dim(), d.sparse_dim(), d.dense_dim())
c.indices()
c.values()
s.indices()
s.values()
d.indices()
d.values()
d.coalesce()
d.is_coalesced()
s.crow_indices()
r.crow_indices()
r.col_indices()
r.values()
r.ccol_indices()
k.ccol_indices()
k.row_indices()
k.crow_indices()
r.indices()
torch.sparse_coo_tensor(i, v, (2, 2), check_invariants=True)
torch.sparse_coo_tensor(i[0], v)
torch.sparse_coo_tensor(-i, v)
torch.sparse_coo_tensor(i, v[:2])
torch.sparse_coo_tensor(i, v, (2, 3, 4), check_invariants=True)
torch.sparse_coo_tensor(i, v)
torch.sparse_coo_tensor(i, v, dtype=torch.float64)
torch.sparse_coo_tensor([[0, 1], [1, 0]], [1, 2])
torch.sparse_coo_tensor([[1, 0]], [1.0, 2.0], (2,), is_coalesced=True, check_invariants=True)
torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (2,), is_coalesced=True, check_invariants=True).is_coalesced()
torch.sparse_coo_tensor((2, 3), dtype=torch.int64)
torch.sparse_csr_tensor([0, 1, 3], [2, 0, 2], [3.0, 4.0, 5.0])
torch.sparse_csr_tensor([0, 1, 4], [2, 0, 2], [3.0, 4.0, 5.0], (2, 3), check_invariants=True)
torch.sparse_csr_tensor([1, 1, 3], [2, 0, 2], [3.0, 4.0, 5.0], (2, 3), check_invariants=True)
torch.sparse_csr_tensor([0, 1, 3], [2, 0, 3], [3.0, 4.0, 5.0], (2, 3), check_invariants=True)
torch.sparse_csr_tensor([0, 1, 3], [2, 2, 0], [3.0, 4.0, 5.0], (2, 3), check_invariants=True)
torch.sparse_csr_tensor([0, 1, 3], [2, 0, 2], [3.0, 4.0], (2, 3), check_invariants=True)
torch.sparse_compressed_tensor([0, 1, 3], [2, 0, 2], [3.0, 4.0, 5.0], (2, 3), layout=torch.sparse_csr)
torch.sparse_bsc_tensor([0, 1, 2], [1, 0], [[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]], (4, 4)).to_dense()
d.to_sparse()
d.to_sparse(1)
d.to_sparse(3)
torch.tensor(3.0).to_sparse()
torch.tensor(3.0).to_sparse().to_dense()
d.to_sparse_csr()
d.to_sparse_csc()
q.to_sparse_bsr((2, 2))
q.to_sparse_bsc((2, 2))
q.to_sparse_bsr((3, 2))
q.to_sparse(layout=torch.sparse_csr)
q.to_sparse(layout=torch.sparse_bsr, blocksize=(2, 1))
q.to_sparse(layout=torch.sparse_bsr)
q.to_sparse(layout=torch.sparse_coo, blocksize=(2, 1))
w.to_sparse_csr()
batch.to_sparse_csr()
batch.to_sparse_csr().to_dense()
batch.to_sparse_bsc((2, 2)).to_dense()
batch.to_sparse_csr().to_sparse()
s.to_sparse_csr()
s.to_sparse_csc()
r.to_sparse()
r.to_sparse_csc()
k.to_sparse_csr()
q.to_sparse_csr().to_sparse_bsr((2, 2))
b.to_dense()
k.to_dense()
s + s
c + c
c + z
s - c
s.sub(c, alpha=2)
u + u
d + s
d - s
torch.add(d, s, alpha=3)
s + d
s - d
s + 1
d + r
r + r
r + d
d.clone().add_(s)
d.clone().sub_(s)
s.clone().add_(c)
s * 2
2 * s
s * torch.tensor(2.0)
s * d
d * s
s * w
s * c
u * u
h * h
r * 2
r * d
r * r
x * 2j
s / 2
s / torch.tensor(2.0)
s / d
s / s
s.div(2, rounding_mode="floor")
s // 2
s ** 2
s ** 0
-s
-r
s.abs()
u.neg().abs()
u.sqrt()
r.sqrt()
s.sin()
k.tanh()
s.sign()
s.isnan()
s.relu()
s.exp()
s.mul_(2)
s.clone().mul_(d)
s.clone().div_(2)
u.clone().sin_()
r.clone().neg_()
s.zero_()
torch.zeros_like(s)
torch.empty_like(h)
torch.zeros_like(r).to_dense()
torch.ones_like(s)
s.clone().copy_(c * 2)
d.clone().copy_(s)
s.to(torch.float64)
r.to(torch.float64)
s.mm(m)
s @ m
torch.sparse.mm(s, m)
torch.spmm(s, m)
d.mm(s.t())
s.mm(s.t())
torch.sparse.mm(s, s.t())
s.mv(w)
s @ w
s.mm(m.t())
r @ m
r.mm(m)
r @ w
k @ m
d.mm(r.t())
b @ q
torch.addmm(torch.ones(2, 4), s, m, beta=2, alpha=3)
torch.sparse.addmm(torch.ones(2, 4), s, m, beta=2, alpha=3)
torch.addmm(torch.ones(2, 4), r, m)
torch.addmv(torch.ones(2), r, w, beta=2, alpha=3)
s.to_sparse_coo()
x.conj()
torch.add(s, s, out=z)
torch.sin(c, out=torch.sparse_coo_tensor((1, 1)))
torch.sparse.sampled_addmm(r, d[:, :2], m[:2, :3])
torch.sparse.sampled_addmm(r, d[:, :2], m[:2, :3], beta=0.5, alpha=2)
torch.sparse.mm(r, m, "sum")
torch.sparse.mm(r, m, "mean")
torch.sparse.mm(r, m, "amax")
torch.sparse.mm(r, m, "amin")
torch.bmm(batch.to_sparse(), batch)
s.sum()
u.sum()
r.sum()
torch.sparse.sum(s)
torch.sparse.sum(s, 0)
torch.sparse.sum(s, [0, 1])
torch.sparse.sum(h, 1)
torch.sparse.sum(h, 0)
torch.sparse.sum(s, 5)
torch.sparse.sum(s, dtype=torch.float64)
torch.sparse.sum(s, 1, dtype=torch.float64)
s.sum(0)
s.sum(0, keepdim=True)
s.norm()
torch.sparse.softmax(s, 1)
torch.sparse.softmax(s, 0)
torch.sparse.softmax(h, 1)
torch.sparse.log_softmax(s, 1)
torch.sparse.log_softmax(u, 0)
torch.sparse.softmax(s, 1, dtype=torch.float64)
s.t()
s.transpose(0, 1)
h.transpose(0, 1)
s.permute(1, 0)
s.t().is_coalesced()
r.t()
k.t()
b.t()
r.transpose(0, 1).to_dense()
s.clone().t_()
s.unsqueeze(0)
s.unsqueeze(-1)
s[0]
s[:, 0]
s[0, 2]
s[-1]
h[0]
h[:, 1]
s[0:1]
s[[0]]
s[5]
r[0]
r[:, 0]
batch.to_sparse_csr()[1]
s.index_select(1, torch.tensor([2, 0, 2]))
h.index_select(1, torch.tensor([2, 0]))
s.narrow_copy(1, 1, 2)
torch.cat([s, s])
torch.cat([s, c], 1)
torch.cat([h, h], 1)
torch.stack([s, s])
d.sparse_mask(c)
d.sparse_mask(s)
torch.ones(4, 3).sparse_mask(s)
d.sparse_mask(r)
c.sparse_mask(s)
s.reshape(6)
s.numpy()
s.tolist()
s.mean()
s.max()
s == s
s.any()
len(s)
torch.zeros_like(s).sparse_resize_((4, 4), 2, 0)
s.clone().sparse_resize_((4, 4), 2, 0)
s.clone().sparse_resize_((1, 1), 2, 0)
s.clone().sparse_resize_and_clear_((4, 4, 2), 2, 1)
torch.sparse.FloatTensor(i, v, torch.Size([2, 3]))
torch.sparse.check_sparse_tensor_invariants.is_enabled()
[torch.zeros(2, 3, layout=layout, dtype=torch.int64) for layout in (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc)]
[t.item() for t in (torch.eye(1).to_sparse(), torch.ones(()).to_sparse(), torch.sparse_coo_tensor([[0, 0]], [1.0, 2.0], (1,)))]
torch.tensor([torch.eye(1).to_sparse(), torch.eye(1)])
bool(torch.zeros(1, layout=torch.sparse_coo))
torch.zeros(2, 3, layout=torch.sparse_bsr)
torch.zeros(3, layout=torch.sparse_csr)
torch.zeros(2, 0, 3, layout=torch.sparse_csr)
torch.zeros(size=(2, 3), layout=torch.sparse_coo, requires_grad=True)
torch.empty(2, 3, layout=torch.sparse_coo, device="cpu")
torch.empty(2, 3, layout=torch.sparse_csr).shape
d.new_zeros(4, 2, layout=torch.sparse_coo, dtype=torch.float64)
d.new_empty((4, 2), layout=torch.sparse_csc).layout
[torch.zeros_like(t, layout=torch.sparse_coo) for t in (d, s, h, r, k, b)]
[torch.zeros_like(t, layout=torch.sparse_csc, dtype=torch.float64) for t in (d, s, r, k)]
torch.zeros_like(b, layout=torch.sparse_bsc)
torch.zeros_like(b, layout=torch.sparse_csr)
torch.zeros_like(d, layout=torch.sparse_bsr)
torch.zeros_like(r, layout=torch.strided)
torch.zeros_like(s, layout=torch.strided)
torch.empty_like(s, layout=torch.sparse_csr).shape
torch.empty_like(d, layout=torch.sparse_coo)
torch.empty_like(r, layout=torch.sparse_coo)
s.to(torch.int64) * s
c * d.to(torch.int64)
r * r.to(torch.int64)
h * torch.sparse_coo_tensor([[1, 0]], [[2.0], [3.0]], (3, 1))
s * torch.sparse_coo_tensor([[0], [0]], [2.0], (1, 3))
s.sparse_resize_and_clear_((3, 3), 2, 1)
s.sparse_resize_and_clear_((3, 3), 1, 1)
torch.sparse.spdiags(torch.arange(9.0).reshape(3, 3), torch.tensor([0, -1, 2]), (3, 3))
torch.sparse.spdiags(torch.arange(9.0).reshape(3, 3), torch.tensor([0, -1, 2]), (5, 4), layout=torch.sparse_csr)
torch.sparse.spdiags(torch.arange(1.0, 4), torch.tensor(1), (4, 4), torch.sparse_csc)
torch.sparse.spdiags(torch.ones(1, 3), torch.tensor([0]), (0, 4))
torch.sparse.spdiags(torch.ones(2, 3), torch.tensor([0, 0]), (3, 3))
torch.sparse.spdiags(torch.ones(2, 3), torch.tensor([0]), (3, 3))
torch.sparse.spdiags(torch.ones(1, 3), torch.tensor([0]), (3, 3), torch.strided)
torch.ops.aten._sparse_coo_tensor_with_dims_and_tensors(1, 0, (2, 3), i, v, layout=torch.sparse_coo)
torch.ops.aten._sparse_compressed_tensor_unsafe(r.crow_indices(), r.col_indices(), v, (2, 3), layout=torch.strided)
torch.ops.aten._sparse_compressed_tensor_unsafe(r.crow_indices(), r.col_indices(), v, (2, 3), dtype=torch.float64, layout=torch.sparse_csr)
""".strip().splitlines()

# Gradients, of `a` by default: what it is, and what is made of it
GRADIENTS = """
v.clone() ; torch.sparse_coo_tensor(i, a, (2, 3)).to_dense() * d
v.clone() ; torch.sparse_coo_tensor([[1, 0, 1], [1, 0, 1]], a, (2, 2)).to_dense() ** 2
v.clone() ; torch.sparse.mm(torch.sparse_coo_tensor(i, a, (2, 3)), m) ** 2
v.clone() ; torch.sparse_coo_tensor(i, a, (2, 3)).coalesce().values() ** 2
v.clone() ; torch.sparse.sum(torch.sparse_coo_tensor(i, a, (2, 3)), 0).to_dense() ** 2
v.clone() ; torch.sparse.softmax(torch.sparse_coo_tensor(i, a, (2, 3)), 1).to_dense() * d
v.clone() ; torch.sparse.log_softmax(torch.sparse_coo_tensor(i, a, (2, 3)), 0).to_dense() * d
v.clone() ; torch.sparse_csr_tensor([0, 1, 3], [2, 0, 2], a, (2, 3)).to_dense() * d
v.clone() ; torch.sparse_csr_tensor([0, 1, 3], [2, 0, 2], a, (2, 3)).values() ** 2
v.clone() ; torch.sparse.mm(torch.sparse_csr_tensor([0, 1, 3], [2, 0, 2], a, (2, 3)), m) ** 2
d.clone() ; a.to_sparse().to_dense() ** 2
d.clone() ; a.to_sparse_csr().to_dense() ** 2
d.clone() ; a.sparse_mask(c).to_dense() ** 2
d.clone() ; (a + s) ** 2
m.clone() ; torch.sparse.mm(s, a) ** 2
m.clone() ; (r @ a) ** 2
m.clone() ; torch.addmm(torch.ones(2, 4), s, a, alpha=2) ** 2
m.clone() ; torch.sparse.mm(r, a, "mean") ** 2
w.clone() ; s.mv(a) ** 2
s.clone() ; a.to_dense() ** 2
c.clone() ; (a * 2).to_dense() ** 2
c.clone() ; (a + a).to_dense() ** 2
c.clone() ; torch.sparse.mm(a, m)
c.clone() ; torch.sparse.mm(a, c.t()).to_dense() * 2
c.clone() ; torch.sparse.sum(a, 1).to_dense() ** 2
c.clone() ; a.t().to_dense() ** 2
r.clone() ; a.to_dense() ** 2
r.clone() ; (a @ m) ** 2
d[:, :2].clone() ; torch.sparse.sampled_addmm(r, a, m[:2, :3]).to_dense() ** 2
d.clone() ; a.gather(1, torch.tensor([[0, 0], [1, 2]]), sparse_grad=True) ** 2
torch.ones(4, 2) ; torch.nn.functional.embedding(torch.tensor([1, 1, 3]), a, sparse=True) ** 2
torch.ones(4, 2) ; torch.nn.functional.embedding(torch.tensor([1, 3]), a, sparse=True).sum() + torch.nn.functional.embedding(torch.tensor([0, 3]), a, sparse=True).sum()
""".strip().splitlines()


def scope(library):
    names = {"torch": library}
    exec(SETUP, names)
    return names


def described(value):
    """What a result is, with the numbers of its parts."""
    if isinstance(value, (tuple, list)):
        return [described(part) for part in value]
    if not hasattr(value, "layout"):
        return str(value)
    facts = [str(value.layout), list(value.shape), str(value.dtype), str(value)]
    if "coo" in facts[0]:
        facts.append(value.is_coalesced())
    return facts


def outcome(library, evaluate):
    try:
        with warnings.catch_warnings(action="ignore"):
            return described(evaluate(scope(library)))
    except Exception as error:
        return type(error).__name__


@pytest.mark.parametrize("expression", SAME)
def test_same(expression):
    import torch

    ours, theirs = (outcome(library, lambda names: eval(expression, names)) for library in (mt, torch))
    assert ours == theirs


@pytest.mark.parametrize("made", ["s", "c", "h", "r", "k", "b", "x", "batch.to_sparse_csr()"])
def test_checkpoints_in_both_directions(made):
    import torch

    for writer, reader in ((mt, torch), (torch, mt)):
        file = io.BytesIO()
        writer.save(eval(made, scope(writer)), file)
        file.seek(0)
        assert described(reader.load(file)) == described(eval(made, scope(reader)))


def gradient(names, case):
    leaf, computed = case.split(" ; ")
    names["a"] = eval(leaf, names).detach().requires_grad_()
    for _ in range(2):  # the second pass adds to what is there
        eval(computed, names).sum().backward()
    grad = names["a"].grad
    return grad.coalesce() if grad.is_sparse else grad


@pytest.mark.parametrize("case", GRADIENTS)
def test_gradients(case):
    import torch

    ours, theirs = (outcome(library, lambda names: gradient(names, case)) for library in (mt, torch))
    assert ours == theirs


@pytest.mark.parametrize("name", ["add", "sub", "add_", "sub_"])
def test_sums_of_dtypes(name):
    """Common dtypes, unsigned numbers that wrap, bools that cannot be subtracted, results that do not fit in place."""

    def outcomes(lib):
        dtypes = [getattr(lib, d) for d in ("uint8", "int8", "int64", "float32", "bool", "float64")]
        for a, b in itertools.product(dtypes, dtypes):
            x, y = lib.tensor([[0, 5], [3, 0]]).to(a), lib.tensor([[1, 1], [0, 1]]).to(b).to_sparse()
            for left in (x, x.to_sparse()):
                if left.is_sparse and a is b is lib.bool:
                    continue  # torch has no sum of sparse bools
                try:
                    made = getattr(left.clone(), name)(y)
                    yield str(made.dtype), made.to_dense().tolist()
                except RuntimeError as error:
                    yield str(error)

    assert list(outcomes(mt)) == list(outcomes(torch))
