"""`torchlike.__version__`: a string that compares as a version (PEP 440), also with strings and tuples."""

import re
from collections.abc import Iterable

__all__ = ["TorchVersion"]

_PATTERN = re.compile(
    r"""\s*v?(?:(?P<epoch>\d+)!)?(?P<release>\d+(?:\.\d+)*)
    (?:[-_.]?(?P<pre>alpha|a|beta|b|preview|pre|c|rc)[-_.]?(?P<pre_n>\d*))?
    (?:-(?P<post_n1>\d+)|[-_.]?(?P<post>post|rev|r)[-_.]?(?P<post_n2>\d*))?
    (?:[-_.]?(?P<dev>dev)[-_.]?(?P<dev_n>\d*))?
    (?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?\s*""",
    re.VERBOSE | re.IGNORECASE,
)
_STAGE = {"a": 0, "alpha": 0, "b": 1, "beta": 1, "c": 2, "rc": 2, "pre": 2, "preview": 2}
_FINAL = 3


def _key(version: str) -> tuple | None:
    """The sort key of a PEP 440 version, or None if `version` is not one."""
    match = _PATTERN.fullmatch(version)
    if match is None:
        return None
    release = [int(part) for part in match["release"].split(".")]
    while len(release) > 1 and release[-1] == 0:
        release.pop()
    is_post = match["post"] is not None or match["post_n1"] is not None
    post = int(match["post_n1"] or match["post_n2"] or 0) if is_post else -1
    if match["pre"] is not None:
        stage = (_STAGE[match["pre"].lower()], int(match["pre_n"] or 0))
    else:  # a development release alone comes before every pre-release
        stage = (-1, 0) if match["dev"] is not None and not is_post else (_FINAL, 0)
    dev = (0, int(match["dev_n"] or 0)) if match["dev"] is not None else (1, 0)
    local = re.split(r"[-_.]", match["local"].lower()) if match["local"] is not None else []
    parts = tuple((1, int(part), "") if part.isdigit() else (0, 0, part) for part in local)
    return int(match["epoch"] or 0), tuple(release), stage, post, dev, parts


class TorchVersion(str):
    """A version string. `TorchVersion("2.13.0") >= (2, 4)` and `> "2.9"` compare by number, not by letter."""

    __slots__ = ()
    __hash__ = str.__hash__

    def _compare(self, other: object, method: str) -> bool:
        if isinstance(other, str):
            text = str(other)
        elif isinstance(other, Iterable):
            text = ".".join(str(part) for part in other)
        else:
            return NotImplemented
        mine, theirs = _key(str(self)), _key(text)
        if mine is None or theirs is None:
            return getattr(str, method)(self, other)
        return getattr(tuple, method)(mine, theirs)

    def __eq__(self, other: object) -> bool:
        return self._compare(other, "__eq__")

    def __lt__(self, other: object) -> bool:
        return self._compare(other, "__lt__")

    def __le__(self, other: object) -> bool:
        return self._compare(other, "__le__")

    def __gt__(self, other: object) -> bool:
        return self._compare(other, "__gt__")

    def __ge__(self, other: object) -> bool:
        return self._compare(other, "__ge__")
