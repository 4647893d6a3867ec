"""`FlopCounterMode`: counts by module and operator, forward and backward, and its table."""

import contextlib
import textwrap

import pytest

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F
from mindtorch_v2 import nn
from mindtorch_v2.utils import flop_counter
from mindtorch_v2.utils.flop_counter import FlopCounterMode, register_flop_formula
from mindtorch_v2.utils.module_tracker import ModuleTracker

aten = torch.ops.aten


def z(*shape, grad=False):
    return torch.zeros(*shape, requires_grad=grad)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(8 * 36, 4))

    def forward(self, x):
        return self.head(torch.relu(self.conv(x)))


CONV = 2 * 2 * 36 * (8 * 3 * 9)  # two images of 6 by 6 positions
LINEAR = 2 * 2 * (8 * 36) * 4


@pytest.fixture
def counter():
    net, images = Net(), z(2, 3, 8, 8)
    with FlopCounterMode(display=False) as counter:
        net(images).sum().backward()
    return counter


class TestCounts:
    def test_operators(self):
        with FlopCounterMode(display=False) as counter:
            z(2, 3) @ z(3, 4)
            torch.baddbmm(z(4), z(5, 2, 3), z(5, 3, 4))
            z(2, 3) + 1
            torch.mv(z(2, 3), z(3))
        assert counter.get_flop_counts() == {"Global": {aten.mm: 48, aten.baddbmm: 240}}
        assert counter.get_total_flops() == 288

    def test_modules_forward_and_backward(self, counter):
        conv = {aten.convolution: CONV, aten.convolution_backward: CONV}  # the images want no gradient
        head = {aten.addmm: LINEAR, aten.mm: 2 * LINEAR}
        assert counter.get_flop_counts() == {
            "Global": {**conv, **head}, "Net": {**conv, **head}, "Net.conv": conv, "Net.head": head, "Net.head.1": head,
        }  # fmt: skip

    def test_a_pass_that_begins_at_a_module(self):
        layer = nn.Linear(3, 4)
        with FlopCounterMode(display=False) as counter:
            layer(z(2, 3, grad=True)).backward(z(2, 4))
        assert counter.get_flop_counts()["Linear"] == {aten.addmm: 48, aten.mm: 96}

    def test_transposed_convolutions(self):
        x, w = z(2, 4, 8, 8, grad=True), z(4, 6, 3, 3, grad=True)
        with FlopCounterMode(display=False) as counter:
            F.conv_transpose2d(x, w).sum().backward()
        forward = 2 * 2 * 64 * (4 * 6 * 9)
        assert counter.get_flop_counts()["Global"] == {aten.convolution: forward, aten.convolution_backward: 2 * forward}

    @pytest.mark.parametrize("backend", [torch.nn.attention.SDPBackend.MATH, torch.nn.attention.SDPBackend.FLASH_ATTENTION])
    def test_attention_in_either_way(self, backend):
        q, k, v = z(2, 4, 5, 8, grad=True), z(2, 4, 6, 8, grad=True), z(2, 4, 6, 8, grad=True)
        product = 2 * (2 * 4 * 5 * 6 * 8)
        with FlopCounterMode(display=False) as forward, torch.nn.attention.sdpa_kernel(backend):
            out = F.scaled_dot_product_attention(q, k, v)
        with FlopCounterMode(display=False) as backward:
            out.sum().backward()
        in_blocks = backend is torch.nn.attention.SDPBackend.FLASH_ATTENTION
        assert (forward.get_total_flops(), backward.get_total_flops()) == (2 * product, (5 if in_blocks else 4) * product)

    def test_backward_passes_inside_each_other_however_deep(self):
        """Passes beyond some depth run on threads of their own, where the counter counts too."""

        class Nested(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, depth):
                ctx.depth = depth
                return x.clone()

            @staticmethod
            def backward(ctx, grad):
                with torch.enable_grad():
                    y = z(2, 2, grad=True) @ z(2, 2)
                    (Nested.apply(y, ctx.depth - 1) if ctx.depth else y).sum().backward()
                return grad, None

        with FlopCounterMode(display=False) as counter:
            Nested.apply(z(2, 2, grad=True), 150).sum().backward()
        assert counter.get_total_flops() == 151 * (16 + 16)

    def test_entering_again_begins_anew(self):
        counter = FlopCounterMode(display=False)
        for _ in range(2):
            with counter:
                z(2, 3) @ z(3, 4)
        assert counter.get_total_flops() == 48

    def test_outside_nothing_is_counted(self):
        with FlopCounterMode(display=False) as counter:
            pass
        nn.Linear(3, 4)(z(2, 3))
        assert counter.get_total_flops() == 0

    def test_an_exception_ends_it(self):
        counter = FlopCounterMode(display=False)
        with contextlib.suppress(KeyError), counter:
            z(2, 3) @ z(3, 4)
            raise KeyError
        z(2, 3) @ z(3, 4)
        assert counter.get_total_flops() == 48
        assert counter.mode is None

    def test_inside_a_profile(self):
        with torch.profiler.profile(with_flops=True) as prof, FlopCounterMode(display=False) as counter:
            z(2, 3) @ z(3, 4)
        assert sum(e.flops for e in prof.events()) == counter.get_total_flops() == 48

    def test_modules_are_not_asked_for_any_more(self):
        with pytest.warns(UserWarning, match="mods argument is not needed"):
            FlopCounterMode(nn.Linear(2, 2))


class TestTable:
    def shown(self, text):
        return textwrap.dedent(text).strip("\n")

    def test_modules_above_their_operators(self, counter):
        assert counter.get_table() == self.shown("""
            Module                            FLOP    % Total
            -----------------------------  -------  ---------
            Net                            76.032K    100.00%
             - aten.convolution            31.104K     40.91%
             - aten.addmm                   4.608K      6.06%
             - aten.mm                      9.216K     12.12%
             - aten.convolution_backward   31.104K     40.91%
             Net.conv                      62.208K     81.82%
              - aten.convolution           31.104K     40.91%
              - aten.convolution_backward  31.104K     40.91%
             Net.head                      13.824K     18.18%
              - aten.addmm                  4.608K      6.06%
              - aten.mm                     9.216K     12.12%
            """)

    def test_depth(self, counter):
        modules = [line.split()[0] for line in counter.get_table(depth=3).splitlines()[2:] if " - " not in line]
        assert modules == ["Net", "Net.conv", "Net.head", "Net.head.1"]
        assert "Net.conv" not in counter.get_table(depth=1)

    def test_the_block_is_shown_if_no_module_did_it_all(self, capsys):
        with FlopCounterMode():
            z(2, 3) @ z(3, 4)
            nn.Linear(3, 4)(z(2, 3))
        assert capsys.readouterr().out.rstrip("\n") == self.shown("""
            Module            FLOP    % Total
            --------------  ------  ---------
            Global              96    100.00%
             - aten.mm          48     50.00%
             - aten.addmm       48     50.00%
             Linear             48     50.00%
              - aten.addmm      48     50.00%
            """)

    def test_nothing(self):
        with FlopCounterMode(display=False) as counter:
            z(2) + 1
        assert counter.get_table() == self.shown("""
            Module      FLOP    % Total
            --------  ------  ---------
            Global         0         0%
            """)

    @pytest.mark.parametrize(("number", "suffix"), [(0, ""), (9_999, ""), (10_000, "K"), (10**7, "M"), (10**19, "T")])
    def test_units(self, number, suffix):
        assert flop_counter.get_suffix_str(number) == suffix


class TestFormulas:
    @pytest.fixture
    def registry(self):
        before = dict(flop_counter.flop_registry)
        yield flop_counter.flop_registry
        flop_counter.flop_registry.clear()
        flop_counter.flop_registry.update(before)

    def test_one_for_this_counter(self):
        def count(shape, *args, out_shape, **kwargs):
            assert tuple(shape) == tuple(out_shape) == (3, 4)
            return 100

        with FlopCounterMode(display=False, custom_mapping={aten.exp: count}) as counter:
            z(3, 4).exp()
        assert counter.get_flop_counts()["Global"] == {aten.exp: 100}
        assert aten.exp not in flop_counter.flop_registry

    def test_one_for_all_counters(self, registry):
        @register_flop_formula([aten.sin, aten.cos])
        def count(shape, *args, out_shape=None, **kwargs):
            return shape.numel()

        with FlopCounterMode(display=False) as counter:
            z(3, 4).sin().cos()
        assert counter.get_flop_counts()["Global"] == {aten.sin: 12, aten.cos: 12}
        assert count(z(5)) == 5

    def test_one_that_sees_tensors(self, registry):
        @register_flop_formula(aten.tanh, get_raw=True)
        def count(x, out_val=None):
            assert isinstance(x, torch.Tensor)
            assert isinstance(out_val, torch.Tensor)
            return 7

        with FlopCounterMode(display=False) as counter:
            z(3).tanh()
        assert counter.get_total_flops() == 7

    def test_an_operator_has_one(self):
        with pytest.raises(RuntimeError, match=r"duplicate registrations for aten\.mm"):
            register_flop_formula(aten.mm)(lambda *args, **kwargs: 0)

    @pytest.mark.parametrize("target", [torch.mm, "aten.mm", aten.mm.default])
    def test_they_are_for_operators(self, target):
        with pytest.raises(ValueError, match="expected each target to be OpOverloadPacket"):
            register_flop_formula(target)(lambda *args, **kwargs: 0)

    def test_of_tensors(self):
        assert flop_counter.mm_flop(z(2, 3), z(3, 4)) == flop_counter.mm_flop((2, 3), (3, 4)) == 48

    def test_of_shapes_that_do_not_fit(self):
        with pytest.raises(AssertionError, match="inner dimensions must match"):
            flop_counter.mm_flop((2, 3), (4, 4))


class TestModuleTracker:
    def test_names_while_modules_run(self):
        seen = []

        class Inner(nn.Module):
            def forward(self, x):
                seen.append((set(tracker.parents), tracker.is_bw))
                x.register_hook(lambda grad: seen.append(("Outer.inner" in tracker.parents, tracker.is_bw)))
                return x * 2

        class Outer(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = Inner()

            def forward(self, x):
                return self.inner(x * 1) * 1

        with ModuleTracker() as tracker:
            Outer()(z(2, grad=True)).sum().backward()
            assert tracker.parents == {"Global"}
        assert seen[0] == ({"Global", "Outer", "Outer.inner"}, False)
        assert seen[1][1]

    def test_it_leaves_no_hooks(self):
        with ModuleTracker() as tracker:
            pass
        layer = nn.Linear(2, 2)
        layer(z(1, 2))
        assert tracker.parents == {"Global"}
        assert layer not in tracker._names
