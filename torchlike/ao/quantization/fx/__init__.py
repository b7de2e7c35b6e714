"""Quantization of a model's graph: where observers go, and what becomes of them."""
