"""Whether TorchScript's compiler is on. There is none here: functions run as they are written, as under PyTorch's `PYTORCH_JIT=0`."""


class EnabledProxy:
    """What libraries ask by its truth; `enabled` says the same."""

    enabled = False

    def __bool__(self) -> bool:
        return self.enabled


_enabled = EnabledProxy()
