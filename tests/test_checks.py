"""torch._check and its kin, beside real torch."""
import pytest

NAMES = ("_check", "_check_index", "_check_value", "_check_type", "_check_not_implemented", "_check_tensor_all")


@pytest.mark.parametrize("name", NAMES)
def test_outcomes(subject, oracle, name):
    def facts(torch):
        out = []
        for args in (True,), (False,), (False, lambda: "why"), (False, "why"), (False, lambda: 3), (1,), (torch.tensor(True),), (torch.tensor([True, False]),), \
                (torch.tensor([True, False]), lambda: "why"), (torch.tensor(1),):
            try:
                out.append(getattr(torch, name)(*args))
            except Exception as error:
                out.append((type(error).__name__, str(error)))
        return out
    assert facts(subject) == facts(oracle)


def test_errors_of_the_callers_choice(subject, oracle):
    def facts(torch):
        out = []
        for name, cond in ("_check_with", False), ("_check_with", True), ("_check_with", 1), ("_check_tensor_all_with", torch.tensor([True, False])), \
                ("_check_tensor_all_with", torch.tensor([True])), ("_check_tensor_all_with", True):
            for kind in KeyError, UserWarning, BaseException:
                for message in None, "why", lambda: "why":
                    try:
                        out.append(getattr(torch, name)(kind, cond, message))
                    except Exception as error:
                        out.append((type(error).__name__, str(error)))
        return out
    assert facts(subject) == facts(oracle)
