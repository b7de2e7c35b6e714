"""Compiled programs kept between processes, in a per-user folder.

`TORCHLIKE_CACHE` names the folder (default `~/.cache/torchlike`, or XDG_CACHE_HOME's); `TORCHLIKE_CACHE=off` turns it
off. A program's key is a hash of its records, of torchlike's own source, and of the versions and processor it was
compiled for, so a stale entry is never found. Programs whose statics have no stable text (user functions) are not kept.
Files are written to a temporary name and moved, so that two processes may share the folder.
"""
from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import os
import pickle
import platform
import tempfile

import jax
import jaxlib

from . import device as _device
from . import dtype as dt
from .aval import Aval
from .traces import beside

MOST_BYTES = 1 << 30
LEAST_BYTES = 1 << 16  # what a small file counts, so that there are not too many of them


@functools.cache
def folder() -> str | None:
    where = os.environ.get("TORCHLIKE_CACHE")
    if where in ("off", "0", ""):
        return None
    if where is None:
        where = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "torchlike")
    where = os.path.join(where, "programs")
    try:
        os.makedirs(where, exist_ok=True)
    except OSError:  # a read-only home: programs are compiled again in each process
        return None
    return where if os.access(where, os.W_OK) else None


def enabled() -> bool:
    return folder() is not None


@functools.cache
def _versions() -> str:
    """Everything besides the records that an executable depends on."""
    top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    stamp = hashlib.sha256()
    for base in (top, os.path.join(os.path.dirname(top), "pallas_kernels")):
        for root, dirs, files in os.walk(base):
            dirs.sort()
            for f in sorted(files):
                if f.endswith(".py"):
                    s = os.stat(os.path.join(root, f))
                    stamp.update(f"{f}{s.st_size}{s.st_mtime_ns}".encode())
    return "|".join([jax.__version__, jaxlib.__version__, platform.machine(), _cpu(), os.environ.get("XLA_FLAGS", ""),
                     os.environ.get("OMP_NUM_THREADS", ""), str(os.cpu_count()), stamp.hexdigest()])


@functools.cache
def _cpu() -> str:
    try:
        with open("/proc/cpuinfo") as f:
            return hashlib.sha256("".join(x for x in f if x.startswith(("model name", "flags"))).encode()).hexdigest()
    except OSError:
        return platform.processor()


class _Unstable(Exception):
    """A static whose text would not be the same in another process."""


def _text(x) -> str:
    if x is None or x.__class__ in (int, float, bool, str, complex):
        return repr(x)
    if isinstance(x, (tuple, list)):
        return f"({','.join(map(_text, x))})"
    if isinstance(x, (dt.dtype, _device.device)):
        return str(x)
    if isinstance(x, Aval):
        return f"{x!r}@{x.device}{x.number}"
    if isinstance(x, slice):
        return f"slice({x.start},{x.stop},{x.step})"
    if x.__class__.__name__ == "Plan" and x.op.stable:
        return f"{x.op.name}{_text(x.avals)}{_text(x.statics)}"
    raise _Unstable


@functools.lru_cache(maxsize=4096)
def _body(info) -> str | None:
    try:
        parts = [_text(info.input_avals), str(info.device), str(dt.Default.float)]  # the last: integers times Python floats
        if info.device.type != "cpu":
            parts.append(_device.jax_device(info.device).device_kind)
        parts += [f"{_text(s.plan)}{s.plan.precision}{_text([r if r.__class__ is int else repr(r) for r in s.refs])}" for s in info.steps]
    except _Unstable:
        return None
    return hashlib.sha256(("\n".join(parts) + _versions()).encode()).hexdigest()[:40]


def _size(info) -> str:
    """Begins an entry's name. Most programs that are new here are in no cache: their size tells so without hashing them."""
    plans, _, n_inputs = info.operations()
    return f"{len(plans)}.{n_inputs}"


@functools.cache
def _listing() -> dict[str, list[str]]:
    """Entries by the size of their programs, read once a process: what this process stores it also remembers."""
    found: dict[str, list[str]] = {}
    try:
        for name in os.listdir(folder()):
            found.setdefault(name.split("-", 1)[0], []).append(name)
    except OSError:  # the folder vanished: nothing is cached
        pass
    return found


@functools.cache
def _bind(library: str) -> None:
    """What JAX sets up when it lowers the first call into `library`: an executable from disk was lowered elsewhere, and
    would call LAPACK through null pointers, or a kernel launcher that nobody registered."""
    if library == "lapack_":
        with jax.default_device(_device.jax_device(_device.CPU)):
            jax.jit(jax.numpy.linalg.cholesky).lower(jax.ShapeDtypeStruct((1, 1), "float32"))
    elif library == "__gpu$xla.gpu.triton":
        from jax.experimental.pallas import triton  # noqa: F401
    else:
        from jax.experimental.pallas import mosaic_gpu  # noqa: F401


def _loaded(payload: tuple, device):
    """The executable that was serialized, for a device. (By default JAX would take its default platform and all devices of that.)"""
    from jax.experimental import serialize_executable
    where = _device.jax_device(device)
    with beside():
        return serialize_executable.deserialize_and_load(*payload, backend=where.platform, execution_devices=[where])


def variants(info) -> list[tuple]:
    """The executables of a program that earlier processes left: (live results, donated inputs, places of the results, types of the numbers, callable).

    The first that serves is taken, so one that donates more comes before one that donates less.
    """
    found: list[tuple] = []
    names = _listing() and _listing().get(_size(info))
    if not names:
        return found
    known = f"{_size(info)}-{_body(info)}-"
    for name in names:
        if not name.startswith(known) or name.endswith(_SIGHTS):
            continue
        blob = _read(name)
        if blob is None:
            continue
        for library in ("lapack_", "__gpu$xla.gpu.triton", "mosaic_gpu"):
            if library.encode() in blob:
                _bind(library)
        try:
            *variant, payload = pickle.loads(blob)
            found.append((*variant, _loaded(payload, info.device)))
        except Exception:  # written by an interrupted process or another build: it is compiled again and overwritten
            continue
    return sorted(found, key=lambda variant: len(variant[1]), reverse=True)


def store(info, live: tuple, donated: tuple, places: tuple, types: str | None, compiled) -> None:
    """Keep an executable for later processes."""
    from jax.experimental import serialize_executable
    body = _body(info)
    if body is None:
        return
    variant = hashlib.sha256(f"{live}{donated}".encode()).hexdigest()[:12]
    try:
        _write(f"{_size(info)}-{body}-{variant}", pickle.dumps((live, donated, places, types, serialize_executable.serialize(compiled))))
    except Exception:  # a full disk, or an executable that cannot be serialized: the cache is an optimisation only
        return
    if next(_stored) % 64 == 0:
        _trim()


def keep(kernel: str, form: str, compiled) -> None:
    """`store` for an executable that is no program's: `form` tells it from others of this name."""
    from jax.experimental import serialize_executable
    with contextlib.suppress(Exception):  # as above
        _write(_kernel(kernel, form), pickle.dumps(serialize_executable.serialize(compiled)))


def kept(kernel: str, form: str):
    """What `keep` was given by an earlier process, or None."""
    blob = _read(_kernel(kernel, form)) if enabled() else None
    try:
        return blob and _loaded(pickle.loads(blob), _device.CPU)
    except Exception:  # as above
        return None


def _kernel(name: str, form: str) -> str:
    return f"kernel-{name}-{hashlib.sha256(f'{form}{_versions()}'.encode()).hexdigest()[:40]}"


def _read(name: str) -> bytes | None:
    path = os.path.join(folder(), name)
    try:
        with open(path, "rb") as f:
            blob = f.read()
        os.utime(path)
        return blob
    except OSError:  # not there, or another process trimmed it
        return None


def _write(name: str, blob: bytes) -> None:
    fd, temp = tempfile.mkstemp(dir=folder())
    with os.fdopen(fd, "wb") as f:
        f.write(blob)
    os.replace(temp, os.path.join(folder(), name))


_SIGHTS = "-sights"


def note(info, sights: int) -> None:
    """Tell later processes how often a program has run that none has compiled yet."""
    body = _body(info)
    if body is not None:
        with contextlib.suppress(OSError):  # a full disk
            _write(f"{_size(info)}-{body}{_SIGHTS}", str(sights).encode())


def sights(info) -> int:
    """What `note` was told by an earlier process."""
    names = _listing() and _listing().get(_size(info))
    name = f"{_size(info)}-{_body(info)}{_SIGHTS}" if names else None
    if name is None or name not in names:
        return 0
    try:
        with open(os.path.join(folder(), name)) as f:
            return int(f.read())
    except (OSError, ValueError):  # trimmed, or cut short
        return 0


_stored = itertools.count()


def _trim() -> None:
    """Drop the least recently used entries beyond the folder's size. A look at each of many thousand files takes a while."""
    try:
        files = [(e.stat().st_mtime, max(e.stat().st_size, LEAST_BYTES), e.path) for e in os.scandir(folder())]
        excess = sum(s for _, s, _ in files) - MOST_BYTES
        for _, size, path in sorted(files):
            if excess <= 0:
                break
            os.unlink(path)
            excess -= size
    except OSError:  # another process is trimming too
        return
