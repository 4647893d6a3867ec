"""Floating point operations in profiles: the numbers by arithmetic, each counted once, and where they are shown."""

import json
import math
import sys
from pathlib import Path

import pytest

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F
from mindtorch_v2._dispatch import registry
from mindtorch_v2._op_packet import overload_of
from mindtorch_v2.overrides import split_arguments
from mindtorch_v2.profiler import profile
from mindtorch_v2.profiler.model import flops
from mindtorch_v2.profiler.model.session import Info, Session, TensorInput
from mindtorch_v2.profiler.output.event_list import EventList

from .by_hand import op, record

sys.path.insert(0, str(Path(__file__).parents[2] / "parity"))

import capture


def counted(call):
    """The operators that were counted, in order."""
    with profile(with_flops=True) as prof:
        call()
    return [(e.name.removeprefix("aten::"), e.flops) for e in prof.events() if e.flops]


def z(*shape, grad=False):
    return torch.zeros(*shape, requires_grad=grad)


class TestProducts:
    @pytest.mark.parametrize(
        ("name", "call", "count"),
        [
            ("mm", lambda: z(2, 3) @ z(3, 5), 2 * 2 * 3 * 5),
            ("addmm", lambda: F.linear(z(4, 3), z(5, 3), z(5)), 2 * 4 * 3 * 5),
            ("bmm", lambda: z(7, 2, 3) @ z(7, 3, 5), 2 * 7 * 2 * 3 * 5),
            ("baddbmm", lambda: torch.baddbmm(z(5), z(7, 2, 3), z(7, 3, 5)), 2 * 7 * 2 * 3 * 5),
            ("addbmm", lambda: torch.addbmm(z(2, 5), z(7, 2, 3), z(7, 3, 5)), 2 * 7 * 2 * 3 * 5),
            ("addmm_", lambda: z(2, 5).addmm_(z(2, 3), z(3, 5)), 2 * 2 * 3 * 5),
            ("mv", lambda: torch.mv(z(2, 3), z(3)), 2 * 2 * 3),
            ("dot", lambda: torch.dot(z(9), z(9)), 2 * 9),
            ("addr", lambda: torch.addr(z(2, 3), z(2), z(3)), 2 * 2 * 3),
            ("mm", lambda: z(4, 2, 3) @ z(3, 5), 2 * (4 * 2) * 3 * 5),  # batch and rows are one dimension
            ("bmm", lambda: torch.einsum("bij,bjk->bik", z(7, 2, 3), z(7, 3, 5)), 2 * 7 * 2 * 3 * 5),
        ],
    )
    def test_one_operator_has_it_all(self, name, call, count):
        assert counted(call) == [(name, count)]

    def test_backward(self):
        a, b = z(2, 3, grad=True), z(3, 5, grad=True)
        assert counted(lambda: torch.mm(a, b).backward(torch.ones(2, 5))) == [("mm", 60), ("mm", 60), ("mm", 60)]


class TestConvolutions:
    @pytest.mark.parametrize(
        ("call", "positions", "weight", "batch"),
        [
            (lambda x, w: F.conv1d(x, w), [6], (6, 4, 3), 2),
            (lambda x, w: F.conv2d(x, w, padding=1), [8, 8], (6, 4, 3, 3), 2),
            (lambda x, w: F.conv2d(x, w, stride=2, dilation=2), [2, 2], (6, 4, 3, 3), 2),
            (lambda x, w: F.conv2d(x, w, padding="same"), [8, 8], (6, 4, 3, 2), 2),
            (lambda x, w: F.conv2d(x, w, padding="valid"), [6, 7], (6, 4, 3, 2), 2),
            (lambda x, w: F.conv2d(x, w, groups=2), [6, 6], (6, 2, 3, 3), 2),
            (lambda x, w: F.conv2d(x[0], w), [6, 6], (6, 4, 3, 3), 1),
            (lambda x, w: F.conv3d(x, w), [7, 6, 5], (6, 4, 2, 3, 4), 2),
            (lambda x, w: F.conv_transpose1d(x, w, stride=2), [8], (4, 6, 3), 2),
            (lambda x, w: F.conv_transpose2d(x, w), [8, 8], (4, 6, 3, 3), 2),
            (lambda x, w: F.conv_transpose3d(x, w), [8, 8, 8], (4, 3, 2, 2, 2), 2),
        ],
    )
    def test_each_position_multiplies_the_whole_kernel(self, call, positions, weight, batch):
        ((_, count),) = counted(lambda: call(z(2, 4, *[8] * len(positions)), z(*weight)))
        assert count == 2 * batch * math.prod(positions) * math.prod(weight)

    @pytest.mark.parametrize("groups", [1, 2])
    def test_backward_takes_as_much_for_each_of_the_two_gradients(self, groups):
        x, w, b = z(2, 4, 8, 8, grad=True), z(6, 4 // groups, 3, 3, grad=True), z(6, grad=True)
        forward, back = counted(lambda: F.conv2d(x, w, b, groups=groups).backward(torch.ones(2, 6, 6, 6)))
        assert forward == ("conv2d", 2 * 2 * 36 * 6 * (4 // groups) * 9)
        assert back == ("convolution_backward", 2 * forward[1])

    def test_backward_of_what_needs_a_gradient_alone(self):
        w = z(6, 4, 3, 3, grad=True)
        forward, back = counted(lambda: F.conv2d(z(2, 4, 8, 8), w).backward(torch.ones(2, 6, 6, 6)))
        assert back[1] == forward[1]

    def test_transposed_backward(self):
        x, w = z(2, 4, 8, 8, grad=True), z(4, 6, 3, 3, grad=True)
        forward, back = counted(lambda: F.conv_transpose2d(x, w).backward(torch.ones(2, 6, 10, 10)))
        assert back == ("convolution_backward", 2 * forward[1])


class TestAttention:
    SCORES = 2 * (3 * 2 * 4 * 5 * 8)  # batch, heads, queries, keys, features

    def call(self, backend):
        q, k, v = z(3, 2, 4, 8, grad=True), z(3, 2, 5, 8, grad=True), z(3, 2, 5, 8, grad=True)
        with torch.nn.attention.sdpa_kernel(backend):
            F.scaled_dot_product_attention(q, k, v).backward(torch.ones(3, 2, 4, 8))

    def test_as_operators(self):
        products = [count for name, count in counted(lambda: self.call(torch.nn.attention.SDPBackend.MATH)) if name == "bmm"]
        assert products == [self.SCORES] * 6

    def test_in_blocks(self):
        found = counted(lambda: self.call(torch.nn.attention.SDPBackend.FLASH_ATTENTION))
        kernel = "_scaled_dot_product_flash_attention_for_cpu"
        assert found == [(kernel, 2 * self.SCORES), (kernel + "_backward", 5 * self.SCORES)]  # the scores are made again


class TestRecurrentLayers:
    def call(self):
        net, x = torch.nn.LSTM(3, 4), z(5, 2, 3, grad=True)
        net(x, (z(1, 2, 4, grad=True), z(1, 2, 4)))[0].sum().backward()

    def test_as_one_operator_it_has_the_products_of_its_steps(self):
        with torch.backends.mkldnn.flags(enabled=False):
            products = sum(count for name, count in counted(self.call) if name in ("mm", "addmm"))
        found = dict(counted(self.call))
        assert found["mkldnn_rnn_layer"] == 2 * 5 * 2 * 16 * (3 + 4)
        assert found["mkldnn_rnn_layer_backward"] == 2 * found["mkldnn_rnn_layer"]
        assert found["mkldnn_rnn_layer"] + found["mkldnn_rnn_layer_backward"] == products


class TestElements:
    @pytest.mark.parametrize(
        ("call", "expected"),
        [
            (lambda: z(2, 5) + 1, [("add", 10)]),
            (lambda: z(5) * z(2, 5), [("mul", 5)]),  # torch: the first operand
            (lambda: z(5) - z(2, 5), [("sub", 10)]),
            (lambda: z(2, 5).add_(1), [("add_", 10)]),
            (lambda: z(2, 1) / z(5), [("div", 10)]),
            (lambda: z(3).exp(), [("exp", 3)]),
            (lambda: torch.lerp(z(4), z(4), 0.5), [("lerp", 12)]),
            (lambda: F.gelu(z(4)), [("gelu", 20)]),
            (lambda: F.silu(z(4)), [("silu", 8)]),
            (lambda: z(4, 6).sum(1), [("sum", 24)]),
            (lambda: z(4, 6).mean(), [("mean", 24)]),
            (lambda: z(4, 6).var(), [("var", 96)]),
            (lambda: z(4, 6).softmax(-1), [("_softmax", 96)]),
            (lambda: z(4, 6).relu(), []),
            (lambda: z(4, 6).max(), []),
            (lambda: (z(4, 6) > 1).logical_not(), []),
            (lambda: z(4, 6).t().contiguous(), []),
            (lambda: torch.randn(4, 6), []),
            (lambda: F.mse_loss(z(4, 6), z(4, 6)), [("mse_loss", 72)]),
            (lambda: F.mse_loss(z(4, 6), z(4, 6), reduction="none"), [("mse_loss", 48)]),
            (lambda: F.layer_norm(z(4, 6), (6,)), [("native_layer_norm", 6 * 24)]),
            (lambda: F.layer_norm(z(4, 6), (6,), z(6), z(6)), [("native_layer_norm", 8 * 24)]),
            (lambda: F.batch_norm(z(4, 6), z(6), z(6)), [("native_batch_norm", 2 * 24)]),
            (lambda: F.batch_norm(z(4, 6), None, None, training=True), [("native_batch_norm", 6 * 24)]),
            (lambda: F.avg_pool2d(z(2, 3, 8, 8), 2), [("avg_pool2d", 2 * 3 * 16 * 5)]),
            (lambda: F.avg_pool2d(z(2, 3, 7, 7), 2, ceil_mode=True), [("avg_pool2d", 2 * 3 * 16 * 5)]),
            (lambda: F.avg_pool2d(z(2, 3, 7, 7), 2), [("avg_pool2d", 2 * 3 * 9 * 5)]),
            (lambda: F.max_pool2d(z(2, 3, 8, 8), 2), []),
            (lambda: F.interpolate(z(2, 3, 4, 4), scale_factor=2, mode="bilinear"), [("upsample_bilinear2d", 6 * 64 * 7)]),
            (lambda: F.embedding(torch.tensor([1, 2]), z(4, 3)), []),
            (lambda: z(4, 3).index_add_(0, torch.tensor([1, 1]), z(2, 3)), [("index_add_", 6)]),
        ],
    )
    def test_counts(self, call, expected):
        assert counted(call) == expected

    @pytest.mark.parametrize(
        ("call", "name", "count"),
        [
            (lambda: torch.linalg.cholesky(torch.eye(6)), "linalg_cholesky_ex", 6**3 // 3),
            (lambda: torch.linalg.solve(torch.eye(6), z(6, 2)), "_linalg_solve_ex", 2 * 6**3 // 3 + 2 * 36 * 2),
            (lambda: torch.linalg.inv(torch.eye(6).expand(4, 6, 6)), "linalg_inv_ex", 4 * 2 * 6**3),
            (lambda: torch.linalg.solve_triangular(torch.eye(6), z(6, 2), upper=True), "linalg_solve_triangular", 36 * 2),
            (lambda: torch.fft.fft(z(4, 8).to(torch.complex64)), "_fft_c2c", 5 * 4 * 8 * 3),
            (lambda: torch.fft.rfft(z(4, 8)), "_fft_r2c", 5 * 4 * 8 * 3 // 2),
            (lambda: torch.fft.irfft(z(4, 5).to(torch.complex64)), "_fft_c2r", 5 * 4 * 8 * 3 // 2),
        ],
    )
    def test_decompositions_and_transforms(self, call, name, count):
        assert (name, count) in counted(call)

    def test_an_optimizer_that_is_one_operator(self):
        weight = z(4, 6, grad=True)
        weight.grad = z(4, 6)
        step = torch.optim.SGD([weight], lr=0.1, momentum=0.9, fused=True).step
        assert ("_fused_sgd_", 4 * 24) in counted(step)
        step = torch.optim.Adagrad([weight], fused=True).step
        assert ("_fused_adagrad_", 7 * 24) in counted(step)


class TestOnce:
    def test_what_runs_inside_a_counted_operator_is_not_counted_again(self):
        with profile(with_flops=True) as prof:
            F.conv2d(z(1, 1, 4, 4), z(1, 1, 3, 3))
        rows = {r.key: r.flops for r in prof.key_averages()}
        assert rows["aten::conv2d"] == 2 * 4 * 9
        assert rows["aten::convolution"] == rows["aten::_slow_conv2d_forward"] == 0

    def test_the_rule_on_calls_made_by_hand(self):
        matrix = TensorInput((4, 4), (4, 1), "float32")
        inner = op("aten::addmm_", 2, 3, op("aten::add_", 2, 3, inputs=(matrix,)), inputs=(matrix, matrix, matrix))
        unknown = op("aten::linear", 1, 4, inner)
        again = op(
            "aten::mm", 5, 9, op("aten::other", 6, 8, op("aten::mm", 6, 7, inputs=(matrix, matrix))), inputs=(matrix, matrix)
        )
        session = record([unknown, again], info=Info(record_shapes=True, with_flops=True))
        found = {(e.name, e.flops) for e in EventList.of(session)}
        assert found == {
            ("aten::linear", 0), ("aten::addmm_", 128), ("aten::add_", 0), ("aten::mm", 128), ("aten::other", 0), ("aten::mm", 0),
        }  # fmt: skip

    def test_a_call_that_failed_has_none(self):
        with profile(with_flops=True) as prof:
            with pytest.raises(RuntimeError):
                torch.mm(z(2, 3), z(2, 3))
            with pytest.raises(RuntimeError):
                F.conv2d(z(2, 3), z(2, 3))
        assert [e.flops for e in prof.events() if e.name in ("aten::mm", "aten::conv2d")] == [0, 0]


class TestWhereShown:
    @pytest.fixture
    def prof(self):
        with profile(with_flops=True) as prof:
            torch.zeros(100, 100) @ torch.zeros(100, 100)
            torch.zeros(100, 100) + 1
        return prof

    def test_shapes_come_with_it(self, prof):
        mm = next(e for e in prof.events() if e.name == "aten::mm")
        assert mm.input_shapes == mm["input_shapes"] == [[100, 100], [100, 100]]

    def test_events_and_rows(self, prof):
        mm = next(e for e in prof.events() if e.name == "aten::mm")
        assert mm.flops == mm["flops"] == 2_000_000
        assert {r.key: r.flops for r in prof.key_averages() if r.flops} == {"aten::mm": 2_000_000, "aten::add": 10_000}

    def test_not_asked_for(self):
        with profile(record_shapes=True) as prof:
            torch.zeros(2, 2) @ torch.zeros(2, 2)
        assert all(e.flops == 0 and "flops" not in e for e in prof.events())
        assert "FLOPs" not in prof.key_averages().table()

    def test_the_column(self, prof):
        _, header, _, first, second, third, *_ = prof.key_averages().table(sort_by="flops").splitlines()
        assert header.split()[-2:] == ["Total", "KFLOPs"]
        shown = [(line.split()[0], line.split()[-1]) for line in (first, second, third)]
        assert shown[:2] == [("aten::mm", "2000.000"), ("aten::add", "10.000")]
        assert shown[2][1] == "--"

    def test_in_a_second(self, prof):
        mm = next(e for e in prof.events() if e.name == "aten::mm")
        assert mm.gflops_per_second == pytest.approx(2_000_000 / mm["duration_ns"])
        row = next(r for r in prof.key_averages() if r.key == "aten::mm")
        assert row.gflops_per_second == pytest.approx(2_000_000 / 1000 / row.cpu_time_total)
        assert next(r for r in prof.key_averages() if r.key == "aten::matmul").gflops_per_second == 0

    def test_in_a_second_of_the_device_where_there_was_one(self):
        row = torch.autograd.profiler_util.FunctionEventAvg()
        assert row.gflops_per_second == 0
        row.flops, row.cpu_time_total, row.device_time_total = 6_000_000, 500, 2
        assert row.gflops_per_second == 3000

    def test_in_traces(self, prof, tmp_path):
        prof.export_chrome_trace(str(tmp_path / "trace.json"))
        trace = json.loads((tmp_path / "trace.json").read_text())
        args = {e["name"]: e["args"].get("flops") for e in trace["traceEvents"] if e.get("cat") == "cpu_op"}
        assert (args["aten::mm"], args["aten::add"], args["aten::matmul"]) == (2_000_000, 10_000, None)
        assert trace["with_flops"] == 1

    def test_saved_and_read_again(self, prof, tmp_path):
        prof.profiler._session.save(tmp_path / "session")
        again = EventList.of(Session.load(tmp_path / "session"))
        assert [e.flops for e in again] == [e.flops for e in prof.events()]

    def test_the_older_profiler(self):
        with torch.autograd.profiler.profile(with_flops=True) as prof:
            torch.zeros(2, 3) @ torch.zeros(3, 5)
        assert sum(r.flops for r in prof.key_averages()) == 60


COMPARING = (
    "adaptive_max_pool2d adaptive_max_pool3d all amax amin aminmax any argmax argmin bucketize clamp clamp_ clamp_max clamp_max_ "
    "clamp_min clamp_min_ count_nonzero cummax cummin eq eq_ equal fmax fmin fractional_max_pool2d fractional_max_pool3d ge ge_ gt gt_ "
    "hardshrink hardshrink_backward hardtanh_backward heaviside heaviside_ isin isneginf isposinf kthvalue le le_ lt lt_ max "
    "max_pool2d_with_indices max_pool3d_with_indices maximum median min minimum mode nanmedian ne ne_ searchsorted softshrink_backward "
    "sort threshold threshold_ threshold_backward topk _unique _unique2 unique_consecutive unique_dim unique_dim_consecutive where nonzero "
    "nonzero_static bincount histc histogram _histogramdd_bin_edges _histogramdd_from_bin_cts _histogramdd_from_bin_tensors"
)
SIGNS_AND_BITS = (
    "__ilshift__ __irshift__ __lshift__ __rshift__ abs abs_ bitwise_and bitwise_and_ bitwise_left_shift bitwise_left_shift_ bitwise_not "
    "bitwise_not_ bitwise_or bitwise_or_ bitwise_right_shift bitwise_right_shift_ bitwise_xor bitwise_xor_ ceil ceil_ _conj_physical "
    "conj_physical_ complex copysign copysign_ floor floor_ frexp gcd gcd_ lcm lcm_ hash_tensor logical_and logical_and_ logical_not "
    "logical_not_ logical_or logical_or_ logical_xor logical_xor_ nan_to_num nan_to_num_ neg neg_ nextafter nextafter_ round round_ sgn "
    "sgn_ sign sign_ signbit trunc trunc_ _sobol_engine_draw _sobol_engine_ff_ _sobol_engine_initialize_state_ _sobol_engine_scramble_"
)
MOVING = (
    "cat clone copy_ fill_ flip gather im2col index_copy index_copy_ index_fill_ index_select _linalg_check_errors _local_scalar_dense "
    "_pack_padded_sequence lu_unpack masked_fill masked_fill_ masked_scatter_ masked_select max_unpool2d max_unpool3d narrow_copy native_channel_shuffle pixel_shuffle pixel_unshuffle "
    "reflection_pad1d reflection_pad2d reflection_pad3d repeat repeat_interleave replication_pad1d replication_pad2d replication_pad3d "
    "scatter scatter_ take tril tril_ triu triu_ upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d "
    "_upsample_nearest_exact2d _upsample_nearest_exact3d zero_"
)
DRAWING = "_sample_dirichlet _standard_gamma bernoulli_ binomial cauchy_ exponential_ geometric_ log_normal_ normal_ poisson random_ uniform_"
# How much there is to do depends on values: on the norm of the matrix, on which rows are too long.
UNKNOWN = "embedding_renorm_ linalg_matrix_exp"

# Kernels that call operators, which are counted.
OF_OPERATORS = "_native_multi_head_attention _transformer_encoder_layer_fwd"


def kernels():
    """Names of operators that are not made of others."""
    ops = registry.all_ops()
    return {o.name for o in ops if o.schema.namespace == "aten" and o.composite is None and not o.schema.is_view}


class TestTable:
    def test_every_kernel_has_a_formula_or_no_arithmetic(self):
        without = set(" ".join([COMPARING, SIGNS_AND_BITS, MOVING, DRAWING, UNKNOWN, OF_OPERATORS]).split())
        formulas = {name.removeprefix("aten::") for name in flops.FORMULAS}
        assert kernels() - formulas == without

    def test_every_formula_is_for_an_operator(self):
        assert [name for name in flops.FORMULAS if not registry.overloads(name)] == []

    def test_formulas_take_what_operators_are_called_with(self):
        """Calls of every operator, with their backward passes: no formula fails on one, none is negative."""
        ops = {capture.label(o): o for o in registry.all_ops()}
        with profile(with_flops=True) as prof:
            for name, samples in capture.load().items():
                for sample in samples:
                    args, kwargs = split_arguments(ops[name], sample)
                    result = overload_of(ops[name])(*map(wanting_grad, args), **kwargs)
                    backward(result)
        session = prof.profiler._session
        seen = set()
        for label, number in set(zip(session.label.tolist(), session.inputs.tolist(), strict=True)):
            name = session.labels[label].name
            if number >= 0 and name in flops.FORMULAS:
                seen.add(name)
                assert flops.FORMULAS[name](*session.input_table[number]) >= 0, name
        assert len(seen) > 200


def wanting_grad(x):
    if isinstance(x, torch.Tensor) and x.__dict__.get("wants_grad") and x.dtype.inexact:
        return x.detach().clone().requires_grad_()
    return [wanting_grad(v) for v in x] if isinstance(x, list) else x


def backward(result):
    results = result if isinstance(result, list | tuple) else [result]
    for r in results:
        if isinstance(r, torch.Tensor) and r.requires_grad and not r.dtype.is_complex:
            try:
                r.sum().backward()
            except (NotImplementedError, RuntimeError) as error:
                if "not implemented" not in str(error):
                    raise
            return
