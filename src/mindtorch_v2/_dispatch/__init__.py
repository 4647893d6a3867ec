"""How a call finds its kernel. Knows neither tensors, nor autograd, nor the profiler: they register layers here."""
