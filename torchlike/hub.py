"""Checkpoints by address: downloaded once into a folder of the user, checked by the hash in their name, loaded."""

import hashlib
import os
import re
import sys
import uuid
from pathlib import Path
from typing import Any
from urllib.parse import urlparse
from urllib.request import Request, urlopen

from tqdm import tqdm

from ._hub_repo import help, list, load  # noqa: A004
from .serialization import load as _load_checkpoint

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

# A file name carries the beginning of its SHA-256 after the last dash: resnet18-f37072fd.pth.
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
_CHUNK = 1 << 17
_chosen: str | None = None


def _get_torch_home() -> str:
    """The folder of a user's files: TORCH_HOME, XDG_CACHE_HOME/torch or ~/.cache/torch. torchvision asks for it."""
    cache = os.path.join(os.environ.get("XDG_CACHE_HOME", "~/.cache"), "torch")
    return os.path.expanduser(os.environ.get("TORCH_HOME", cache))


def get_dir() -> str:
    """The folder for downloads: that of `set_dir`, else `hub` in the user's folder."""
    return os.path.join(_get_torch_home(), "hub") if _chosen is None else _chosen


def set_dir(d: str | os.PathLike) -> None:
    """Chooses the folder for downloads."""
    global _chosen
    _chosen = os.path.expanduser(d)


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Downloads `url` into the file `dst`, which appears only when it is whole and right.

    RuntimeError if its SHA-256 does not begin with `hash_prefix`.
    """
    target = Path(dst).expanduser()
    with urlopen(Request(url, headers={"User-Agent": "torchlike.hub"})) as source:
        size = source.headers.get("Content-Length")
        partial = target.with_name(f"{target.name}.{uuid.uuid4().hex}.partial")
        try:
            digest = hashlib.sha256()
            total = int(size) if size else None
            with open(partial, "wb") as file, tqdm(total=total, disable=not progress, unit="B", unit_scale=True, unit_divisor=1024) as bar:
                while chunk := source.read(_CHUNK):
                    file.write(chunk)
                    digest.update(chunk)
                    bar.update(len(chunk))
            found = digest.hexdigest()
            if hash_prefix is not None and not found.startswith(hash_prefix):
                raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{found}")')
            os.replace(partial, target)
        finally:
            partial.unlink(missing_ok=True)


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> dict[str, Any]:
    """Loads the checkpoint at `url`, downloading it on first use into `model_dir` (`checkpoints` in `get_dir()`).

    With `check_hash` the file's SHA-256 must begin with the part of its name that HASH_REGEX finds.
    """
    folder = Path(model_dir if model_dir is not None else os.path.join(get_dir(), "checkpoints"))
    folder.mkdir(parents=True, exist_ok=True)
    name = file_name if file_name is not None else os.path.basename(urlparse(url).path)
    path = folder / name
    if not path.exists():
        sys.stdout.write(f'Downloading: "{url}" to {path}\n')
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, str(path), found[1] if found else None, progress=progress)
    return _load_checkpoint(path, map_location=map_location, weights_only=weights_only)
