"""The case table, row by row: real torch says what is right."""
import pytest
from cases import CASES
from checks import execution_modes, verify, verify_dtypes, verify_errors, verify_mode


def _rows(chosen):
    return pytest.mark.parametrize("row", [pytest.param(row, id=row.id) for row in CASES if chosen(row)])


def _report(found):
    assert not found, "\n" + "\n".join(map(str, found[:40]))


def test_rows_have_distinct_names():
    names = [row.id for row in CASES]
    assert len(names) == len(set(names))


@_rows(lambda row: row.samples)
def test_row(oracle, subject, row):
    """Forward, method, in-place, `out=`, gradient, double gradient, vmap."""
    _report(verify(oracle, subject, row))


@_rows(lambda row: row.errors)
def test_errors(oracle, subject, row, record_property):
    """Bad calls raise torch's exception class."""
    found, words = verify_errors(oracle, subject, row)
    for theirs, ours in words:
        record_property("message", f"{row.id}\n    torch: {theirs[:200]}\n    ours:  {ours[:200]}")
    _report(found)


@_rows(lambda row: row.dtypes)
def test_dtypes(oracle, subject, row):
    """Every dtype: torch's result and result dtype, or torch's error class."""
    _report(verify_dtypes(oracle, subject, row))


@_rows(lambda row: row.samples and row.values)
def test_modes(subject, row):
    """All ways of execution give the same results and gradients."""
    _report(verify_mode(subject, row, execution_modes(subject)))
