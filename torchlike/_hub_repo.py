"""Models from a repository with a `hubconf.py`: its functions are entry points. A folder, or one of GitHub's."""
from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

__all__ = ["help", "list", "load"]

CONF = "hubconf.py"
TRUSTED_OWNERS = ("facebookresearch", "facebookincubator", "pytorch", "fairinternal")  # as in PyTorch


def load(repo_or_dir: str, model: str, *args: Any, source: str = "github", trust_repo: bool | str | None = "check",
         force_reload: bool = False, verbose: bool = True, skip_validation: bool = False, **kwargs: Any) -> Any:
    """Call the entry point `model` of a folder (`source="local"`) or of "owner/name[:ref]" on GitHub.

    A repository's code runs in this process: `trust_repo="check"` asks about one seen for the first time. Raises
    RuntimeError when there is no such entry point, when packages it needs are missing, or without a network.
    """
    source = source.lower()
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    folder = repo_or_dir
    if source == "github":
        folder = _cached(repo_or_dir, force_reload, trust_repo, "load", verbose, skip_validation)
    with _imported(folder) as conf:
        return _entry_point(conf, model)(*args, **kwargs)


def list(github: str, force_reload: bool = False, skip_validation: bool = False,  # noqa: A001 (PyTorch's name)
         trust_repo: bool | str | None = "check", verbose: bool = True) -> list[str]:
    """The entry points of "owner/name[:ref]"."""
    with _imported(_cached(github, force_reload, trust_repo, "list", verbose, skip_validation)) as conf:
        return [name for name in dir(conf) if callable(getattr(conf, name)) and not name.startswith("_")]


def help(github: str, model: str, force_reload: bool = False, skip_validation: bool = False,  # noqa: A001
         trust_repo: bool | str | None = "check") -> str | None:
    """What the entry point `model` of "owner/name[:ref]" says of itself."""
    with _imported(_cached(github, force_reload, trust_repo, "help", True, skip_validation)) as conf:
        return _entry_point(conf, model).__doc__


@contextlib.contextmanager
def _imported(folder: str | os.PathLike) -> Iterator[ModuleType]:
    """The module hubconf.py, which may import its neighbours meanwhile."""
    folder = os.fspath(folder)
    sys.path.insert(0, folder)
    try:
        spec = importlib.util.spec_from_file_location(CONF, os.path.join(folder, CONF))
        conf = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(conf)
        yield conf
    finally:
        sys.path.remove(folder)


def _entry_point(conf: ModuleType, model: str) -> Callable:
    if not isinstance(model, str):
        raise ValueError("Invalid input: model should be a string of function name")
    missing = [p for p in getattr(conf, "dependencies", ()) if importlib.util.find_spec(p) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    function = getattr(conf, model, None)
    if not callable(function):
        raise RuntimeError(f"Cannot find callable {model} in hubconf")
    return function


def _cached(github: str, force_reload: bool, trust_repo: bool | str | None, what: str, verbose: bool,
            skip_validation: bool) -> Path:
    """The folder that holds the repository, downloaded if need be."""
    from .hub import download_url_to_file, get_dir  # the public module, which imports this one

    hub = Path(get_dir())
    hub.mkdir(parents=True, exist_ok=True)
    owner, name, ref = _parse(github, hub)
    ref_in_names = ref.replace("/", "_")
    folder = hub / f"{owner}_{name}_{ref_in_names}"
    _check_trust(hub, owner, name, trust_repo, what)
    if folder.exists() and not force_reload:
        if verbose:
            sys.stderr.write(f"Using cache found in {folder}\n")
        return folder
    if not skip_validation:
        _check_ref(owner, name, ref)
    url = f"https://github.com/{owner}/{name}/zipball/{ref}"
    if verbose:
        sys.stderr.write(f'Downloading: "{url}" to {hub / ref_in_names}.zip\n')
    with tempfile.TemporaryDirectory(dir=hub) as work:
        archive = os.path.join(work, "archive.zip")
        try:
            download_url_to_file(url, archive, progress=False)
        except HTTPError as error:
            raise RuntimeError(f"GitHub answers {error.code} ({error.reason}) for {url}") from error
        except URLError as error:
            raise RuntimeError(f"No network ({error.reason}), and {owner}/{name}:{ref} is not in {hub}") from error
        with zipfile.ZipFile(archive) as z:
            z.extractall(os.path.join(work, "content"))  # refuses paths that lead outside
        inner, = Path(work, "content").iterdir()
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(inner, folder)
    return folder


def _parse(github: str, hub: Path) -> tuple[str, str, str]:
    """Owner, name and branch or tag; without one: main if there is such a branch, else master."""
    repo, _, ref = github.partition(":")
    owner, slash, name = repo.partition("/")
    if not (owner and slash and name) or "/" in name:
        raise ValueError(f"expected 'owner/name[:ref]', got {github!r}")
    if ref:
        return owner, name, ref
    try:
        with urlopen(f"https://github.com/{owner}/{name}/tree/main/"):
            return owner, name, "main"
    except HTTPError as error:
        if error.code != 404:
            raise
        return owner, name, "master"
    except URLError as error:
        for known in ("main", "master"):
            if (hub / f"{owner}_{name}_{known}").exists():
                return owner, name, known
        raise RuntimeError("It looks like there is no internet connection and the repo could not be found in the "
                           f"cache ({hub})") from error


def _check_ref(owner: str, name: str, ref: str) -> None:
    """GitHub serves commits of forks under the name of the original, too: accept only its own branches and tags."""
    for kind in ("branches", "tags"):
        for page in range(1, 1000):
            url = f"https://api.github.com/repos/{owner}/{name}/{kind}?per_page=100&page={page}"
            try:
                with urlopen(Request(url, headers={"Accept": "application/vnd.github.v3+json"})) as answer:
                    found = json.load(answer)
            except HTTPError as error:
                raise RuntimeError(f"GitHub answers {error.code} ({error.reason}) for {url}; "
                                   "skip_validation=True does without") from error
            except URLError as error:
                raise RuntimeError(f"No network ({error.reason}), and {owner}/{name}:{ref} is not cached") from error
            if any(b["name"] == ref or b["commit"]["sha"].startswith(ref) for b in found):
                return
            if not found:
                break
    raise ValueError(f"Cannot find {ref} in https://github.com/{owner}/{name}. If it's a commit from a forked repo, "
                     "please call hub.load() with forked repo directly.")


def _check_trust(hub: Path, owner: str, name: str, trust_repo: bool | str | None, what: str) -> None:
    if trust_repo not in (True, False, None, "check"):
        raise ValueError(f"trust_repo must be True, False, None or 'check', got {trust_repo!r}")
    trusted = hub / "trusted_list"
    repo = f"{owner}_{name}"
    known = trusted.exists() and repo in trusted.read_text().split()
    known = known or any(p.name.startswith(repo + "_") for p in hub.iterdir()) or owner in TRUSTED_OWNERS
    if trust_repo is None or (trust_repo == "check" and known):
        return
    if trust_repo is not True:
        answer = input(
            f"The repository {repo} does not belong to the list of trusted repositories and as such cannot be "
            "downloaded. Do you trust this repository and wish to add it to the trusted list of repositories (y/N)?"
        )
        if answer.lower() not in ("y", "yes"):
            if answer.lower() not in ("", "n", "no"):
                raise ValueError(f"Unrecognized response {answer}.")
            raise RuntimeError(f"torch.hub.{what}: the repository {repo} is not trusted")
    with open(trusted, "a") as file:
        file.write(repo + "\n")
