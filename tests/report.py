"""The state of the case table in one page: what fails, grouped by cause.

    python tests/report.py [--match REGEX] [--out FILE]
"""
import argparse
import importlib
import re
import signal
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import conftest
from cases import CASES
from checks import execution_modes, verify, verify_dtypes, verify_errors, verify_mode
from compare import Difference

SECONDS = 60


def timed_out(*_: Any) -> None:
    raise TimeoutError(f"more than {SECONDS} s")


def run(check: Callable, *args: Any) -> list[Difference]:
    """A check's differences; what escapes from it is one more."""
    signal.alarm(SECONDS)
    try:
        result = check(*args)
        return result[0] if isinstance(result, tuple) else result
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return [Difference("crash", f"{type(error).__name__}: {str(error)[:200]}")]
    finally:
        signal.alarm(0)


def cause(found: Difference) -> str:
    """A short key that unites rows failing for one reason."""
    missing = re.search(r"(has no attribute|unexpected keyword argument|cannot import name) '(\w+)'", found.text)
    if found.kind in ("missing", "crash") and missing:
        return f"missing {missing[2]}"
    if found.kind in ("raised", "crash"):
        message = found.text.split(": ", 1)[-1]
        return f"{found.kind} " + re.sub(r"\d+", "N", message)[:90]
    return found.kind


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--match", default="")
    parser.add_argument("--out")
    parser.add_argument("--modes", action="store_true", help="compare the ways of execution too (compiles)")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, timed_out)
    oracle, subject = conftest.load_oracle(), importlib.import_module(conftest.SUBJECT)
    start, failing, by_cause, counts = time.time(), {}, defaultdict(set), Counter()
    modes = execution_modes(subject) if options.modes else []
    for row in (row for row in CASES if re.search(options.match, row.id)):
        checks = {"row": (verify, oracle, subject, row), "errors": (verify_errors, oracle, subject, row),
            "dtypes": (verify_dtypes, oracle, subject, row)}
        if modes and row.values:
            checks["modes"] = (verify_mode, subject, row, modes)
        for label, (check, *args) in checks.items():
            counts[label] += 1
            found = run(check, *args)
            if found:
                counts[label + " failing"] += 1
                failing[f"{row.id} [{label}]"] = found
                for difference in found:
                    by_cause[cause(difference)].add(f"{row.id}[{label}]")
    lines = [f"case table: {dict(counts)}, {time.time() - start:.0f} s, {time.ctime()}", "", "== by cause (rows)"]
    for key, rows in sorted(by_cause.items(), key=lambda item: -len(item[1])):
        lines.append(f"{len(rows):4}  {key}: {' '.join(sorted(rows)[:12])}{' ...' if len(rows) > 12 else ''}")
    lines += ["", "== by row (one difference of each cause)"]
    for name, found in failing.items():
        one_of_each = list({cause(difference): difference for difference in reversed(found)}.values())[::-1]
        lines.append(f"{name} ({len(found)})")
        lines += [f"    {str(difference)[:260]}".replace("\n", " ") for difference in one_of_each[:4]]
    text = "\n".join(lines) + "\n"
    if options.out:
        with open(options.out, "w") as file:
            file.write(text)
    print(lines[0] if options.out else text)


if __name__ == "__main__":
    main()
