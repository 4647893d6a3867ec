"""`assert_close` and the pairs of values that it compares."""

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.testing import _closeness as comparison

close = torch.testing.assert_close


def refusal(*args, **options):
    with pytest.raises(AssertionError) as caught:
        close(*args, **options)
    return str(caught.value)


class TestValues:
    def test_numbers(self):
        close(1.0, 1.0 + 1e-8)
        close(np.float32(2), 2.0)
        assert refusal(1.0, 2.0).splitlines()[2:] == [
            "Expected 2.0 but got 1.0.",
            "Absolute difference: 1.0 (up to 1e-07 allowed)",
            "Relative difference: 0.5 (up to 1e-07 allowed)",
        ]
        assert refusal(1, 2).startswith("Scalars are not equal!")
        assert refusal(1, 1.0) == "The (d)types do not match: <class 'int'> != <class 'float'>."
        close(1, 1.0, check_dtype=False)

    def test_not_a_number(self):
        nan = float("nan")
        close(nan, nan, equal_nan=True)
        close(torch.tensor([nan]), torch.tensor([nan]), equal_nan=True)
        assert "Expected nan but got nan" in refusal(nan, nan)

    def test_none_and_booleans(self):
        close(None, None)
        close(True, np.bool_(True))
        assert refusal(None, 1) == "None mismatch: None is not 1"
        assert refusal(True, False) == "Booleans mismatch: True is not False"

    def test_tensors(self):
        assert refusal(torch.tensor([[1.0, 2.0], [3.0, 5.0]]), torch.tensor([[1.0, 2.0], [3.0, 4.0]])).splitlines() == [
            "Tensor-likes are not close!",
            "",
            "Mismatched elements: 1 / 4 (25.0%)",
            "Greatest absolute difference: 1.0 at index (1, 1) (up to 1e-05 allowed)",
            "Greatest relative difference: 0.25 at index (1, 1) (up to 1.3e-06 allowed)",
        ]
        assert "255" in refusal(torch.tensor([0], dtype=torch.uint8), torch.tensor([255], dtype=torch.uint8))

    def test_attributes(self):
        x = torch.ones(2, 3)
        assert refusal(x, x.t()) == "The values for attribute 'shape' do not match: torch.Size([2, 3]) != torch.Size([3, 2])."
        assert "attribute 'dtype'" in refusal(x, x.double())
        close(x, x.double(), check_dtype=False)
        assert "attribute 'stride()'" in refusal(x, torch.ones(3, 2).t(), check_stride=True)
        assert "attribute 'device'" in refusal(x, torch.ones(2, 3, device="meta"))
        close(torch.ones(2, device="meta"), torch.zeros(2, device="meta"))

    def test_sparse(self):
        x = torch.eye(2).to_sparse()
        close(x, x.clone())
        assert refusal(x, 2 * x).startswith("Sparse COO values are not close!")
        assert refusal(x, torch.ones(2, 2).to_sparse()).startswith("The number of specified values in sparse COO tensors")
        assert "attribute 'layout'" in refusal(x, torch.eye(2))
        close(x, torch.eye(2), check_layout=False)

    def test_other_types(self):
        with pytest.raises(TypeError, match="No comparison pair was able to handle inputs of type <class 'str'> and <class 'str'>"):
            close("a", "a")
        with pytest.raises(TypeError, match="No comparison pair"):
            close(torch.ones(1), 1.0)
        with pytest.raises(TypeError):
            close(torch.nn.Parameter(torch.ones(1)), torch.ones(1), allow_subclasses=False)


class TestStructures:
    def test_the_place_is_named(self):
        assert refusal([1, {"a": (2, 3)}], [1, {"a": (2, 4)}]).endswith("The failure occurred for item [1]['a'][1]")

    def test_lengths_and_keys(self):
        assert refusal([1], [1, 2]) == "The length of the sequences mismatch: 1 != 2"
        assert refusal({"a": 1, "b": 2}, {"b": 2, "c": 3}).splitlines()[1:] == [
            "Missing keys in the actual mapping: ['c']",
            "Additional keys in the actual mapping: ['a']",
        ]


class TestOptions:
    def test_tolerances(self):
        close(torch.tensor(1.0), torch.tensor(1.5), rtol=0.5, atol=0)
        with pytest.raises(ValueError, match="but got no atol"):
            close(1.0, 1.0, rtol=1e-3)
        assert comparison.default_tolerances(torch.float16, torch.ones(1)) == (1e-3, 1e-5)
        with pytest.raises(TypeError, match=r"Expected a torch.Tensor or a torch.dtype"):
            comparison.default_tolerances(1)

    def test_messages(self):
        assert refusal(1, 2, msg="else") == "else"
        assert refusal([1], [2], msg=lambda text: f"before: {text}").startswith("before: Scalars")

    def test_older_function(self):
        with pytest.warns(FutureWarning, match="deprecated"):
            torch.testing.assert_allclose([1.0], torch.tensor([1.0 + 5e-5]))


class TestPairs:
    def test_a_pair_of_ones_own(self):
        class Text(comparison.Pair):
            def __init__(self, actual, expected, **options):
                self._check_inputs_isinstance(actual, expected, cls=str)
                super().__init__(actual, expected, **options)

            def compare(self):
                if self.actual.lower() != self.expected.lower():
                    self._fail(AssertionError, "other words")

        types = (Text, comparison.ObjectPair)
        assert comparison.not_close_error_metas(["a", 1], ["A", 1], pair_types=types) == []
        (meta,) = comparison.not_close_error_metas(["a", 1], ["b", 1], pair_types=types)
        assert str(meta.to_error()) == "other words\n\nThe failure occurred for item [0]"

    def test_errors_in_a_pair_name_it(self):
        class Broken(comparison.Pair):
            def compare(self):
                raise ZeroDivisionError

        with pytest.raises(RuntimeError, match=r"Comparing\n\nBroken\(\n    id=\(\),\n    actual=1"):
            comparison.not_close_error_metas(1, 1, pair_types=[Broken])

    def test_objects(self):
        class Odd:
            def __eq__(self, other):
                raise RuntimeError("no")

        (meta,) = comparison.not_close_error_metas(Odd(), Odd())
        assert isinstance(meta.to_error(), ValueError)
