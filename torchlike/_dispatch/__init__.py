"""Tensors whose class has `__torch_dispatch__`: what holds their place in the engine, and what calls their class instead of recording.

Loaded when a program defines the first such class; `_leaves.record` hands operations on.
"""
