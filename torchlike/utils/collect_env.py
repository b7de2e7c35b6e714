"""`python -m torchlike.utils.collect_env`: what to put into a bug report."""
from __future__ import annotations

import importlib.metadata
import os
import platform
import sys

__all__ = ["get_pretty_env_info", "main"]

PACKAGES = ("jax", "jaxlib", "numpy", "scipy", "optax", "safetensors", "torch")


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def get_pretty_env_info() -> str:
    """Versions, devices and the machine, as text."""
    import jax  # here, because asking for devices starts them

    from torchlike.version import __version__
    devices = ", ".join(f"{d.platform}:{d.id} {d.device_kind}" for d in jax.devices())
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    settings = {k: v for k, v in sorted(os.environ.items()) if k.startswith(("TORCHLIKE_", "JAX_", "XLA_"))}
    rows = [
        ("torchlike", __version__),
        *((name, _version(name)) for name in PACKAGES),
        ("Python", f"{sys.version} ({sys.executable})"),
        ("platform", platform.platform()),
        ("CPUs for this process", str(cpus)),
        ("JAX devices", devices),
        *settings.items(),
    ]
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name + ':':<{width + 1}} {value}" for name, value in rows)


def main() -> None:
    """Print it."""
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
