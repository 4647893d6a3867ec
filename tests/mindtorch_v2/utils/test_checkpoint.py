"""Checkpoints: gradients as without them, what is computed again and when, and what is said when it differs."""

import functools
import gc
import weakref

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.utils import checkpoint as c

plain = functools.partial(c.checkpoint, use_reentrant=False)
reentrant = functools.partial(c.checkpoint, use_reentrant=True)


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


class Counted:
    """sin(x), and how often its last step was called."""

    def __init__(self):
        self.calls = self.ends = 0

    def __call__(self, x):
        self.calls += 1
        y = x.sin().exp()
        self.ends += 1
        return y


class TestBoth:
    @pytest.mark.parametrize("checkpoint", [plain, reentrant])
    def test_gradients_are_those_without(self, checkpoint):
        x = leaf(0.5, 1.0)
        checkpoint(lambda x: (x.sin() * x).exp(), x).sum().backward()
        y = leaf(0.5, 1.0)
        (y.sin() * y).exp().sum().backward()
        assert x.grad.tolist() == y.grad.tolist()

    @pytest.mark.parametrize("checkpoint", [plain, reentrant])
    def test_random_numbers_are_drawn_again(self, checkpoint):
        x = leaf(*[1.0] * 20)
        torch.manual_seed(3)
        out = checkpoint(lambda x: torch.nn.functional.dropout(x, 0.5), x)
        expected = torch.rand(1).item()
        out.sum().backward()
        assert x.grad.tolist() == out.tolist()
        torch.manual_seed(3)
        torch.nn.functional.dropout(x, 0.5)
        assert torch.rand(1).item() == expected

    @pytest.mark.parametrize("checkpoint", [plain, reentrant])
    def test_autocast_is_as_it_was(self, checkpoint):
        seen = []

        def function(x):
            seen.append(torch.is_autocast_enabled("cpu"))
            return (x @ x).float()

        with torch.autocast("cpu"):
            out = checkpoint(function, torch.ones(2, 2, requires_grad=True))
        out.sum().backward()
        assert seen == [True, True]

    def test_without_gradients_nothing_is_called_again(self):
        function = Counted()
        with torch.no_grad():
            assert not plain(function, leaf(1.0)).requires_grad
        assert function.calls == 1

    def test_the_variant_must_be_named(self):
        with pytest.warns(UserWarning, match="torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly"):
            c.checkpoint(torch.sin, leaf(1.0))

    @pytest.mark.parametrize("use_reentrant", [True, False])
    def test_sequential(self, use_reentrant):
        torch.manual_seed(0)
        layers = torch.nn.Sequential(*[torch.nn.Linear(3, 3) for _ in range(5)])
        x = torch.ones(2, 3, requires_grad=True)
        c.checkpoint_sequential(layers, 2, x, use_reentrant=use_reentrant).sum().backward()
        found = [p.grad.clone() for p in layers.parameters()]
        layers.zero_grad()
        layers(x).sum().backward()
        for one, p in zip(found, layers.parameters(), strict=True):
            torch.testing.assert_close(one, p.grad)
        with pytest.raises(ValueError, match="Unexpected keyword arguments: a"):
            c.checkpoint_sequential(layers, 2, x, use_reentrant=use_reentrant, a=1)


class TestReentrant:
    def test_it_needs_a_whole_backward(self):
        x = leaf(1.0)
        out = reentrant(torch.sin, x)
        with pytest.raises(RuntimeError, match=r"incompatible with .grad\(\)"):
            torch.autograd.grad(out, x)

    def test_inputs_without_gradients(self):
        with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
            reentrant(torch.sin, torch.ones(1))
        with pytest.raises(RuntimeError, match=r"this checkpoint.. is not necessary"):
            reentrant(lambda x: x.detach(), leaf(1.0)).sum().backward()

    def test_options_of_the_other(self):
        with pytest.raises(ValueError, match="only supported when use_reentrant=False"):
            reentrant(torch.sin, leaf(1.0), debug=True)
        with pytest.raises(ValueError, match="Unexpected keyword arguments: out"):
            reentrant(torch.sin, leaf(1.0), out=None)

    def test_detached_inputs(self):
        x = leaf(1.0)
        detached, number = c.detach_variable((x, 3))
        assert (detached.requires_grad, detached.is_leaf, detached is x, number) == (True, True, False, 3)
        with pytest.raises(RuntimeError, match="Only tuple of tensors is supported"):
            c.detach_variable([x])


class TestRecomputation:
    def test_it_stops_early(self):
        function = Counted()
        plain(function, leaf(1.0)).backward()
        assert (function.calls, function.ends) == (2, 1)  # exp saves its result: nothing comes behind it
        function = Counted()
        plain(function, leaf(1.0), early_stop=False).backward()
        assert (function.calls, function.ends) == (2, 2)
        function = Counted()
        with c.set_checkpoint_early_stop(False):
            out = plain(function, leaf(1.0))
        out.backward()
        assert function.ends == 2

    def test_keywords_and_several_passes(self):
        x = leaf(2.0)
        function = Counted()
        out = plain(lambda x, *, factor: function(x) * factor, x, factor=3)
        (first,) = torch.autograd.grad(out, x, retain_graph=True)
        (second,) = torch.autograd.grad(out, x)
        assert (first.item(), function.calls) == (second.item(), 3)

    def test_nested(self):
        x = leaf(0.3)
        inner, outer = Counted(), Counted()
        plain(lambda x: outer(plain(inner, x)), x).backward()
        y = leaf(0.3)
        y.sin().exp().sin().exp().backward()
        assert x.grad.item() == y.grad.item()
        assert (outer.calls, inner.calls) == (2, 3)

    def test_results_are_freed(self):
        x = torch.ones(10, requires_grad=True)
        kept = []

        def function(x):
            y = x.sin()
            kept.append(weakref.ref(y))
            return y.exp()

        gc.disable()
        try:
            out = plain(function, x)
            assert kept[0]() is None
            out.sum().backward()
            del out
            assert kept[1]() is None
        finally:
            gc.enable()

    def test_inputs_that_were_written_to(self):
        x = leaf(1.0)
        y = x * 2
        out = plain(torch.sin, y)
        y.mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            out.backward()

    def test_contexts(self):
        seen = []

        class Noted:
            def __init__(self, name):
                self.name = name

            def __enter__(self):
                seen.append(self.name)

            def __exit__(self, *exception):
                seen.append(f"end of {self.name}")

        plain(torch.sin, leaf(1.0), context_fn=lambda: (Noted("first"), Noted("again"))).backward()
        assert seen == ["first", "end of first", "again", "end of again"]

    def test_a_context_that_hides_an_error(self):
        class Hiding:
            def __enter__(self):
                pass

            def __exit__(self, *exception):
                return True

        with pytest.raises(RuntimeError, match="suppressed an exception"):
            plain(lambda x: 1 / 0, leaf(1.0), context_fn=lambda: (Hiding(), Hiding()))

    def test_the_default_device_is_as_it_was(self):
        seen = []

        def function(x):
            seen.append(torch.empty(1).device.type)
            return x.sin()

        with torch.device("meta"):
            out = plain(function, torch.ones(1, device="cpu", requires_grad=True))
        out.backward()
        assert seen == ["meta", "meta"]

    def test_groups_of_passes(self):
        function = Counted()
        x = leaf(1.0, 2.0)

        def parts(x):
            return function(x[0]), function(x[1])

        one, other = plain(parts, x)
        with c.GraphExecGroup() as group:
            assert c.GraphExecGroup._get_current_group() is group
            one.backward(retain_graph=True)
            other.backward(retain_graph=True)
            with pytest.raises(RuntimeError, match="cannot be nested"), c.GraphExecGroup():
                pass
            assert function.calls == 4
            with pytest.raises(c.CheckpointError, match="already unpacked once"):
                one.backward()


class TestDifferences:
    @staticmethod
    def changing(first, again):
        functions = iter([first, again])
        return lambda x: next(functions)(x)

    def test_fewer_and_more(self):
        out = plain(self.changing(lambda x: x.sin().cos().sum(), lambda x: x.sin().sum()), leaf(1.0))
        with pytest.raises(c.CheckpointError, match="A different number of tensors was saved"):
            out.backward()
        out = plain(self.changing(lambda x: x.sin().sum(), lambda x: x.sin().cos().sum()), leaf(1.0), early_stop=False)
        with pytest.raises(c.CheckpointError, match="trying to save more tensors"):
            out.backward()

    def test_other_shapes(self):
        function = self.changing(lambda x: x.sin().sum(), lambda x: x[:1].sin().sum())
        with pytest.raises(c.CheckpointError, match=r"tensor at position 0:\nsaved metadata: {'shape': torch.Size\(\[2\]\)"):
            plain(function, leaf(1.0, 2.0)).backward()

    def test_the_check_can_be_left_out(self):
        function = self.changing(lambda x: x.sin().sum(), lambda x: x[:1].sin().sum())
        plain(function, leaf(1.0, 1.0), determinism_check="none").backward()
        with pytest.raises(ValueError, match="determinism_check should be one of"):
            plain(torch.sin, leaf(1.0), determinism_check="else")

    @pytest.mark.parametrize("asked", ["argument", "context"])
    def test_operators_of_both_are_listed(self, asked):
        function = self.changing(lambda x: x.sin().cos().sum(), lambda x: x.sin().exp().exp().sum())
        with pytest.raises(c.CheckpointError) as caught, c.set_checkpoint_debug_enabled(True if asked == "context" else None):
            plain(function, torch.ones(3, requires_grad=True), debug=asked == "argument", early_stop=False).backward()
        text = str(caught.value)
        assert "because you passed `debug=True`" in text
        first, _, again = text.partition("Operations executed during recomputation:")
        assert "torch.ops.aten.cos.default(float32[3])" in first
        assert "torch.ops.aten.exp.default(float32[3])" in again
        assert "test_checkpoint.py" in first

    def test_debugging_has_contexts_of_its_own(self):
        with pytest.raises(ValueError, match="debug=True is incompatible with non-default context_fn"):
            plain(torch.sin, leaf(1.0), debug=True, context_fn=lambda: c.noop_context_fn())


class TestSelective:
    @staticmethod
    def contexts(policy, **options):
        return functools.partial(c.create_selective_checkpoint_contexts, policy, **options)

    def test_results_of_some_operators_are_kept(self):
        ran = []

        class Ran(torch.utils._python_dispatch.TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                ran.append(str(func))
                return func(*args, **(kwargs or {}))

        x = torch.ones(2, 2, requires_grad=True)
        out = plain(lambda x: (x @ x).sin().exp(), x, context_fn=self.contexts([torch.ops.aten.mm.default]))
        with Ran():
            out.sum().backward()
        assert "aten.sin.default" in ran
        assert ran.count("aten.mm.default") == 2  # both gradients, and no product again
        y = torch.ones(2, 2, requires_grad=True)
        (y @ y).sin().exp().sum().backward()
        torch.testing.assert_close(x.grad, y.grad)

    def test_policies(self):
        asked = []

        def policy(ctx, op, *args, **kwargs):
            asked.append((str(op), ctx.is_recompute, type(ctx.op_output).__name__))
            return True

        plain(torch.sin, leaf(1.0), context_fn=self.contexts(policy)).backward()
        assert asked == [("aten.sin.default", False, "Tensor")]

    def test_a_second_backward(self):
        out = plain(lambda x: x.sin().exp(), leaf(1.0), context_fn=self.contexts([torch.ops.aten.exp.default]))
        out.backward(retain_graph=True)
        with pytest.raises(RuntimeError, match="Trying to backward an extra time"):
            out.backward()

    def test_a_kept_result_that_was_written_to(self):
        def function(x):
            return x.sin().mul_(2).exp()

        out = plain(function, leaf(1.0), context_fn=self.contexts([torch.ops.aten.sin.default]))
        with pytest.raises(RuntimeError, match="has been mutated"):
            out.backward()
        out = plain(function, leaf(1.0), context_fn=self.contexts([torch.ops.aten.sin.default], allow_cache_entry_mutation=True))
        out.backward()

    def test_what_is_refused(self):
        with pytest.raises(ValueError, match=r"specific OpOverload, such as torch.ops.aten.mm.default"):
            c.create_selective_checkpoint_contexts([torch.ops.aten.mm])
        with pytest.raises(TypeError, match="either a function or a list of ops"):
            c.create_selective_checkpoint_contexts(3)
        offload = self.contexts(lambda *args, **kwargs: c.CheckpointPolicy.MUST_CPU_OFFLOAD)
        with pytest.raises(NotImplementedError, match="in the CPU's memory already"):
            plain(torch.sin, leaf(1.0), context_fn=offload)
