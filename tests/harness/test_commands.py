"""How commands end."""

import pytest

from agentgym.errors import InvalidOption
from harness import commands, compare
from harness.models import PlayerQuit


def raising(fault: BaseException):
    def work() -> int:
        raise fault

    return work


def test_the_status_is_the_works_own(capsys) -> None:
    assert commands.run(lambda: 3) == 3
    assert capsys.readouterr() == ("", "")


def test_an_error_of_ours_is_said_in_its_sentence(capsys) -> None:
    assert commands.run(raising(InvalidOption("x is [1], got [2]."))) == 1
    assert capsys.readouterr() == ("", "Error: x is [1], got [2].\n")


@pytest.mark.parametrize("fault", [KeyboardInterrupt(), PlayerQuit()])
def test_stopping_has_the_shells_status(fault: BaseException, capsys) -> None:
    assert commands.run(raising(fault), stopped="Over.") == 130
    assert capsys.readouterr() == ("", "Over.\n")


def test_a_fault_of_the_code_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError):
        commands.run(raising(ZeroDivisionError()))


def test_a_comparison_can_be_stopped(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr(compare, "compare", lambda arguments: raising(KeyboardInterrupt())())
    assert compare.main(["a", "b"]) == 130
    assert capsys.readouterr().err == "Stopped.\n"
