"""SciPy's parts are loaded when they are first needed, extensions without the packages around them."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.fft
import scipy.linalg
import scipy.sparse
import scipy.special

from mindtorch_v2 import _scipy


def run(program: str) -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)


def test_an_import_of_the_package_loads_nothing_of_scipy():
    run("import sys, mindtorch_v2; assert not [m for m in sys.modules if m.partition('.')[0] == 'scipy']")


def test_common_layers_need_no_package_of_scipy():
    run("""
import sys, mindtorch_v2 as torch
from mindtorch_v2.nn import functional as F
x = torch.randn(4, 8, requires_grad=True)
y = F.layer_norm(F.gelu(x).sigmoid(), (8,)).softmax(1) + F.embedding(torch.tensor([1, 2, 2, 0]), x)
y = y + torch.fft.irfft(torch.fft.rfft(y))
y[torch.tensor([0, 0])].sum().backward()
torch.linalg.cholesky(torch.eye(3) * 2)
torch.sparse.mm(torch.eye(3).to_sparse(), torch.ones(3, 2))
packages = {"scipy.special", "scipy.linalg", "scipy.sparse", "scipy.fft"} | ({"scipy"} if sys.platform != "win32" else set())
assert not packages & sys.modules.keys()
""")


def test_scipy_works_beside_extensions_that_were_loaded_without_it():
    run("""
from mindtorch_v2 import _scipy
parts = [_scipy.ufuncs, _scipy.blas, _scipy.lapack, _scipy.sparsetools, _scipy.fft]
for part in parts:
    part.load()
import numpy as np, scipy.fft, scipy.linalg, scipy.sparse, scipy.special
assert scipy.special.erf(0.5) == _scipy.ufuncs.erf(0.5) and scipy.special.erfinv(0.0) == 0
assert scipy.linalg.det(np.eye(3) * 2) == 8 and scipy.linalg.blas.dger(1.0, [1.0], [2.0])[0, 0] == 2
assert (scipy.sparse.csr_array(np.eye(3)) @ np.ones(3) == 1).all()
assert scipy.fft.rfft(np.ones(4))[0] == 4
""")


def test_the_number_of_threads_is_that_of_libraries_which_are_loaded_later():
    run("""
import os
os.environ["OPENBLAS_NUM_THREADS"] = "2"
import mindtorch_v2 as torch
from threadpoolctl import threadpool_info
torch.set_num_threads(1)
torch.linalg.lu_factor(torch.eye(3))
assert {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"} == {1}
""")


@pytest.mark.parametrize(
    ("part", "name", "expected"),
    [
        (_scipy.ufuncs, "expit", scipy.special.expit),
        (_scipy.ufuncs, "erfinv", scipy.special.erfinv),  # not in the extension of some versions
        (_scipy.special, "zeta", scipy.special.zeta),
        (_scipy.blas, "sger", scipy.linalg.blas.sger),
        (_scipy.lapack, "dpotrf", scipy.linalg.lapack.dpotrf),
        (_scipy.fft, "rfftn", scipy.fft.rfftn),
        (_scipy.sparse, "csr_array", scipy.sparse.csr_array),
    ],
)
def test_a_part_has_scipys_functions(part, name, expected):
    assert getattr(part, name) is expected


def test_a_part_without_its_extension_is_its_module():
    part = _scipy.Part("scipy.special", "scipy.special._no_such_extension")
    assert part.load() is scipy.special
    assert part.erf is scipy.special.erf
    with pytest.raises(AttributeError, match="no_such_function"):
        _ = part.no_such_function


class TestLoadParts:
    @pytest.fixture
    def part(self, monkeypatch):
        part = _scipy.Part("math")
        monkeypatch.setitem(globals(), "PART", part)
        return part

    def test_what_a_function_names(self, part):
        _scipy.load_parts(named(lambda x: PART.floor(x)))  # noqa: F821
        assert part._loaded is not None

    def test_what_a_function_in_its_closure_names(self, part):
        inner = named(lambda x: PART.floor(x))  # noqa: F821
        _scipy.load_parts(named(lambda x: inner(x)))
        assert part._loaded is not None

    def test_nothing_that_it_does_not_name(self, part):
        _scipy.load_parts(named(lambda x: np.floor(x)))
        assert part._loaded is None


def named(function):
    """The function as one of the package, whose functions alone are followed."""
    function.__module__ = "mindtorch_v2.kernels"
    return function
