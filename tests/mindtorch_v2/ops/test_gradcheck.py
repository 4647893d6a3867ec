"""First and second derivatives against finite differences, for every operator with a formula; needs no torch.

The samples (tests/data/op_samples.npz) were caught from PyTorch's operator database: `python tests/parity/capture.py`.
"""

import capture
import pytest
from hand_samples import HAND

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import registry
from mindtorch_v2._ops.machinery.declare import MissingDerivative

# Formulas that finite differences cannot confirm, with the reason.
TRIANGLE = "reads one triangle of a symmetric matrix; torch spreads the gradient over both"
PHASE = "eigenvectors are determined up to a phase"
DRAW = "a random draw, whose gradient torch defines"
SPARSE = "sparse tensors have no finite differences; tests/mindtorch_v2/ops/sparse"
STATISTICS = (
    "differentiates statistics, which are arguments, as functions of the input; tests/mindtorch_v2/nn/test_third_derivatives.py"
)
NOT_BY_DIFFERENCES = {
    "aten::_ctc_loss.default": "torch: the gradient presumes that the probabilities come from log_softmax",
    "aten::_linalg_eigh.default": PHASE,
    "aten::mkldnn_rnn_layer.default": "float32 and bfloat16 alone; its gradients are compared with torch's",
    **dict.fromkeys(
        (
            "aten::_coalesce.default",
            "aten::_sparse_addmm.default",
            "aten::_sparse_compressed_tensor_unsafe.default",
            "aten::_sparse_coo_tensor_with_dims_and_tensors.default",
            "aten::_sparse_log_softmax.default",
            "aten::_sparse_softmax.default",
            "aten::_sparse_sparse_matmul.default",
            "aten::_sparse_sum.dim",
            "aten::_to_dense.default",
            "aten::_to_sparse.default",
            "aten::_to_sparse.sparse_dim",
            "aten::_to_sparse_bsc.default",
            "aten::_to_sparse_bsr.default",
            "aten::_to_sparse_csc.default",
            "aten::_to_sparse_csr.default",
            "aten::sparse_mask.default",
            "aten::sparse_sampled_addmm.default",
            "aten::values.default",
            "aten::values_copy.default",
        ),
        SPARSE,
    ),
    **dict.fromkeys(
        (
            "aten::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default",
            "aten::fake_quantize_per_channel_affine_cachemask.default",
            "aten::fake_quantize_per_tensor_affine_cachemask.default",
        ),
        "rounds, and has the gradient of what it rounds",
    ),
    "aten::slice_inverse.default": "reads all of the memory that a slice was cut from",
    "aten::as_strided_scatter.default": "torch: `self` gets the gradient of the part that was replaced, too",
    "aten::cholesky.default": TRIANGLE,
    "aten::cholesky_inverse.default": TRIANGLE,
    "aten::cholesky_solve.default": TRIANGLE,
    "aten::linalg_cholesky_ex.default": TRIANGLE,
    "aten::linalg_eig.default": PHASE,
    "aten::log_sigmoid_backward.default": "takes exp(-|x|) from a buffer that the forward pass filled, instead of x",
    "aten::max_unpool3d.default": "positions may repeat, and the last one wins",
    "aten::native_batch_norm_backward.default": STATISTICS,
    "aten::native_dropout.default": DRAW,
    "aten::native_layer_norm_backward.default": STATISTICS,
    "aten::normal.Tensor_Tensor": DRAW,
    "aten::normal.Tensor_float": DRAW,
    "aten::normal.float_Tensor": DRAW,
    "aten::poisson.default": DRAW,
    "aten::_standard_gamma.default": DRAW,
    "aten::rrelu_with_noise.default": "writes to its argument `noise`",
}


# Formulas that cannot be differentiated again, with what says so. torch refuses these too.
LACKING = "is not implemented"
ONCE = {
    "aten::_cdist_forward.default": LACKING,
    "aten::_embedding_bag.default": LACKING,
    "aten::_masked_softmax.default": LACKING,
    "aten::_pdist_forward.default": LACKING,
    "aten::_scaled_dot_product_flash_attention_for_cpu.default": LACKING,
    "aten::_standard_gamma.default": LACKING,
    "aten::hardsigmoid.default": LACKING,
    "aten::multi_margin_loss.default": LACKING,
    "aten::multilabel_margin_loss_forward.default": LACKING,
    "aten::segment_reduce.default": LACKING,
    # the second gradients are a kernel; torch has operators for them
    "aten::grid_sampler_2d_backward.default": "Numerical gradient for function expected to be zero",
}
WHOLE = 40  # elements up to which whole Jacobians are compared; above, their products with random vectors


def samples():
    found = capture.load()
    for name, given in HAND.items():
        qualified, _, overload = name.rpartition(".")
        schema = registry.find(qualified, overload).schema
        found[name] = [*found.get(name, []), given + tuple(a.default for a in schema.arguments[len(given) :])]
    return found


SAMPLES = samples()


def targets(op):
    """The arguments that have a derivative; torch declares some that it does not have."""
    return {name for formula in op.formulas if not isinstance(formula.function, MissingDerivative) for name in formula.targets}


def differentiable(op):
    return targets(op) and not op.schema.is_inplace and op.schema.namespace == "aten"


def prepare(op, sample):
    """The arguments, and those of them to vary: what required grad, and has a formula."""
    varied = []
    wanted_names = targets(op)

    def walk(x, wanted):
        if isinstance(x, torch.Tensor):
            if wanted and x.__dict__.get("wants_grad") and x.dtype.inexact:
                t = x.double() if not x.dtype.is_complex else x.to(torch.complex128)
                t.requires_grad_(True)
                varied.append(t)
                return t
            return x
        return [walk(v, wanted) for v in x] if isinstance(x, list | tuple) else x

    return [walk(x, a.name in wanted_names) for a, x in zip(op.schema.arguments, sample, strict=True)], varied


def run(op, sample):
    arguments, varied = prepare(op, sample)

    def function(*points):
        replaced = {id(old): new for old, new in zip(varied, points, strict=True)}

        def walk(x):
            return [walk(v) for v in x] if isinstance(x, list) else replaced.get(id(x), x)

        bound = [walk(a) for a in arguments]
        from mindtorch_v2._ops.machinery.calling import call_op

        torch.manual_seed(0)
        out = call_op(op, tuple(bound))
        outs = out if isinstance(out, list | tuple) else [out]
        kept = [t for t in outs if isinstance(t, torch.Tensor) and t.dtype.inexact and t.requires_grad]
        return tuple(kept)

    return function, tuple(varied)


CASES = [pytest.param(op, id=capture.label(op)) for op in registry.all_ops() if differentiable(op) and capture.label(op) in SAMPLES]


@pytest.mark.parametrize("op", CASES)
def test_derivative(op):
    """Holds on some sample: the others may sit on a kink or a pole, and their gradients are compared with torch's elsewhere."""
    if capture.label(op) in NOT_BY_DIFFERENCES:
        return
    error = None
    for sample in sorted(SAMPLES[capture.label(op)], key=capture._size):
        function, points = run(op, sample)
        if not all(t.isfinite().all() for t in function(*points)):
            continue
        try:
            assert torch.autograd.gradcheck(function, points, check_undefined_grad=False)
        except (RuntimeError, RuntimeWarning) as e:
            error = e
        else:
            return
    raise error or AssertionError("no sample with finite results")


@pytest.mark.parametrize("op", CASES)
def test_second_derivative(op):
    """Holds on some sample, as the first derivative does."""
    label = capture.label(op)
    if label in NOT_BY_DIFFERENCES:
        return
    error = None
    for sample in sorted(SAMPLES[label], key=capture._size):
        function, points = run(op, sample)
        results = function(*points)
        if not all(t.isfinite().all() for t in results):
            continue
        large = sum(t.numel() for t in (*points, *results)) > WHOLE
        try:
            assert torch.autograd.gradgradcheck(function, points, fast_mode=large)
        except (RuntimeError, Warning) as e:
            error = e
        else:
            assert label not in ONCE, "can be differentiated twice after all"
            return
    if label in ONCE:
        assert ONCE[label] in str(error)
        return
    raise error or AssertionError("no sample with finite results")


def test_the_exceptions_are_operators():
    assert all(registry.find(*name.rsplit(".", 1)) for name in (*NOT_BY_DIFFERENCES, *ONCE))


def test_every_formula_has_a_sample():
    missing = {capture.label(op) for op in registry.all_ops() if differentiable(op)} - set(SAMPLES) - set(NOT_BY_DIFFERENCES)
    assert not missing, sorted(missing)
