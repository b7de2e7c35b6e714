"""Questions about the state of PyTorch's tracers. torchlike traces with none of them, so the answer is always that none is at work."""


def active_fake_mode() -> None:
    """The mode that makes fake tensors: there is none."""


def detect_fake_mode(inputs: object = None) -> None:
    """The mode of the fake tensors among the inputs: there are none."""
