"""Models run on examples, for what makes a graph of them: `torch.export`, `torch.onnx.export`, `torch.jit.save`.

`example` is a model with its arguments, `watch` what is seen while it runs, `dynamic` of which sizes it runs where dimensions are
dynamic, `sizes` a number that differs between those runs.
"""
