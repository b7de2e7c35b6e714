"""Whether a model is being exported, and how: what `torch.compiler.is_exporting` and `torch.jit.is_tracing` answer."""


class _State:
    graph = False  # as by torch.export: data may not be looked at
    traced = False  # as by torch.jit.trace: what is looked at is a constant


state = _State()
