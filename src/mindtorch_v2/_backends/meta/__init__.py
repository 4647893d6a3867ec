"""The meta device: shapes, strides and dtypes without elements."""
