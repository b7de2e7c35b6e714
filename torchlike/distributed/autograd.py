"""torch.distributed.autograd, as in a build of torch without it: a program can ask whether it is there."""


def is_available() -> bool:
    """False: there is one process per program, and no calls between them to differentiate through."""
    return False


class context:
    """A backward pass through calls between processes."""

    def __enter__(self) -> int:
        raise RuntimeError("torch.distributed.autograd is not available in torchlike: there is no torch.distributed.rpc")

    def __exit__(self, type: object, value: object, traceback: object) -> None:
        pass
