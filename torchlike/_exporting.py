"""Whether a model is being exported, and how: what `torch.compiler.is_exporting`, `torch.jit.is_tracing` and `torch.onnx.is_in_onnx_export` answer."""


class _State:
    scopes = None  # of the graph that torch.jit._get_trace_graph makes
    graph = False  # as by torch.export: data may not be looked at
    traced = False  # as by torch.jit.trace: what is looked at is a constant
    example = False  # torch.jit.trace runs a function as it is
    onnx = False  # for a file of ONNX, in one of the two ways


state = _State()
