"""The number of threads: what the environment and the setting make of it, in processes of both libraries."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.parity

# Each line of a case runs by itself; what it prints, or the type of its error, is compared.
PROGRAM = """
import sys, warnings
warnings.simplefilter("ignore")
if sys.argv[1] == "torch":
    import torch
else:
    import mindtorch_v2 as torch
for line in sys.argv[2].split(";"):
    try:
        exec(line.strip())
    except Exception as error:
        print(type(error).__name__)
print(torch.get_num_threads(), torch.get_num_interop_threads())
"""


def printed(library, case, variables):
    environment = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, library, case],
        capture_output=True,
        text=True,
        env={**environment, **variables},
        timeout=300,
        check=True,
    )
    return done.stdout


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"OMP_NUM_THREADS": "1"},
        {"OMP_NUM_THREADS": "500"},
        {"MKL_NUM_THREADS": "1"},
        {"OMP_NUM_THREADS": "500", "MKL_NUM_THREADS": "1"},
        {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "500"},
        {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "0"},
        {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "-1"},
        {"OMP_NUM_THREADS": "0"},
        {"OMP_NUM_THREADS": "-2"},
        {"OMP_NUM_THREADS": "1.5"},
        {"OMP_NUM_THREADS": "many"},
        {"OMP_NUM_THREADS": "1,2"},
        {"OMP_NUM_THREADS": " 1 "},
        {"OMP_NUM_THREADS": "+1"},
        {"OMP_NUM_THREADS": "1,x"},
        {"OMP_NUM_THREADS": "1,"},
        {"MKL_NUM_THREADS": "many"},
        {"MKL_NUM_THREADS": "2x"},
        {"MKL_NUM_THREADS": "2 ", "OMP_NUM_THREADS": "2"},
        {"OPENBLAS_NUM_THREADS": "1"},
    ],
    ids=str,
)
def test_variables(variables):
    assert printed("mindtorch_v2", "", variables) == printed("torch", "", variables)


def test_settings():
    case = """
        torch.set_num_threads(5); print(torch.get_num_threads());
        torch.set_num_threads(0); torch.set_num_threads(-1); torch.set_num_threads(1.5); torch.set_num_threads('2'); torch.set_num_threads(True);
        torch.set_num_threads(1 << 31); torch.set_num_threads(1 << 70); torch.set_num_threads(int=2); torch.set_num_threads();
        import numpy; torch.set_num_threads(numpy.int64(3)); print(torch.get_num_threads()); torch.get_num_threads(1);
        torch.set_num_threads(torch.tensor(2)); print(torch.get_num_threads());
        torch.set_num_interop_threads(0); torch.set_num_interop_threads(True);
        print(torch.get_num_interop_threads()); torch.set_num_interop_threads(3); print(torch.get_num_interop_threads());
        torch.set_num_interop_threads(3)
    """.replace("\n", " ")
    assert printed("mindtorch_v2", case, {}) == printed("torch", case, {})
