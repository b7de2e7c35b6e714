"""torch.backends.xnnpack: kernels of telephones."""

enabled = False
