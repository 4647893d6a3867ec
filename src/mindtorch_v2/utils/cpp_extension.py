"""torch.utils.cpp_extension: can be imported; building extensions in C++ is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._refusals import refused

CUDA_HOME = ROCM_HOME = None  # torch: where these are installed; there is neither

globals().update(
    refused(
        __name__,
        "the package is pure Python, and extensions for PyTorch's C++ interface have nothing to link with; register operators with torch.library",
        functions="CUDAExtension CppExtension SyclExtension check_compiler_is_gcc check_compiler_ok_for_platform"
        " get_compiler_abi_compatibility_and_version get_cxx_compiler get_default_build_root include_paths is_ninja_available library_paths load"
        " load_inline remove_extension_h_precompiler_headers verify_ninja_availability",
        classes="BuildExtension",
    )
)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
