"""`python -m torchlike.utils.collect_env`: what to put into a bug report."""
from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable

__all__ = ["get_cpu_info", "get_gcc_version", "get_gpu_info", "get_nvidia_driver_version", "get_platform", "get_pretty_env_info", "main", "run",
           "run_and_parse_first_match", "run_and_read_all", "run_and_return_first_line"]

Run = Callable[[str], tuple[int, str, str]]

PACKAGES = ("jax", "jaxlib", "numpy", "scipy", "optax", "safetensors", "torch")


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def run(command: str | list[str]) -> tuple[int, str, str]:
    """Runs a command (a text: in a shell); its exit status and what it wrote to its two streams, without space around it."""
    done = subprocess.run(command, shell=isinstance(command, str), capture_output=True)
    return done.returncode, done.stdout.decode(errors="replace").strip(), done.stderr.decode(errors="replace").strip()


def run_and_read_all(run_lambda: Run, command: str) -> str | None:
    """What a command writes; None if it fails."""
    status, out, _ = run_lambda(command)
    return out if status == 0 else None


def run_and_parse_first_match(run_lambda: Run, command: str, regex: str) -> str | None:
    """The first group of a pattern in what a command writes; None if it fails or nothing matches."""
    match = re.search(regex, run_and_read_all(run_lambda, command) or "")
    return match[1] if match else None


def run_and_return_first_line(run_lambda: Run, command: str) -> str | None:
    """The first line that a command writes; None if it fails."""
    out = run_and_read_all(run_lambda, command)
    return None if out is None else out.partition("\n")[0]


def get_platform() -> str:
    """One word for the operating system."""
    return next((name for name in ("linux", "win32", "cygwin", "darwin") if sys.platform.startswith(name)), sys.platform)


def get_cpu_info(run_lambda: Run) -> str:
    """The processor, as the system's own tool describes it; empty if there is none."""
    tools = {"linux": "lscpu", "darwin": "sysctl -n machdep.cpu.brand_string"}
    return run_and_read_all(run_lambda, tools.get(get_platform(), "")) or ""


def get_gcc_version(run_lambda: Run) -> str | None:
    """The version of gcc, None without it."""
    return run_and_parse_first_match(run_lambda, "gcc --version", r"gcc (.*)")


def get_gpu_info(run_lambda: Run) -> str | None:
    """NVIDIA's GPUs, a line each and without their serial numbers; None without its driver."""
    out = run_and_read_all(run_lambda, "nvidia-smi -L")
    return None if out is None else re.sub(r" \(UUID: .+?\)", "", out)


def get_nvidia_driver_version(run_lambda: Run) -> str | None:
    """The version of NVIDIA's driver, None without it."""
    return run_and_parse_first_match(run_lambda, "nvidia-smi", r"Driver Version: (.*?) ")


def get_pretty_env_info() -> str:
    """Versions, devices and the machine, as text."""
    import jax  # here, because asking for devices starts them

    from torchlike._core import processor
    from torchlike.version import __version__
    devices = ", ".join(f"{d.platform}:{d.id} {d.device_kind}" for d in jax.devices())
    settings = {k: v for k, v in sorted(os.environ.items()) if k.startswith(("TORCHLIKE_", "JAX_", "XLA_"))}
    rows = [
        ("torchlike", __version__),
        *((name, _version(name)) for name in PACKAGES),
        ("Python", f"{sys.version} ({sys.executable})"),
        ("platform", platform.platform()),
        ("CPUs for this process", str(processor.cores())),
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
