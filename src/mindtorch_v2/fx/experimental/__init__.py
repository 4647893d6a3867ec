"""torch.fx.experimental: of tracing by operators, what libraries ask for."""
