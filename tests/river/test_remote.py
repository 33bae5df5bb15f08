"""Remote objects: calls, references, errors, and who waits for whom."""

from __future__ import annotations

import gc
import inspect
import os
import pickle
import signal
from typing import Any

import pytest

import sfm_kernel
from sfm_kernel import Endpoint, remote, serving
from sfm_kernel.errors import (
    DeadlockDetected,
    ProcessFailed,
    RemoteError,
    UnknownName,
)
from tests.river.bank import Account, bank, table
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("forked")


def test_names_attributes_items() -> None:
    def use(sfm: Endpoint, a: Any, b: Any) -> None:
        account = a.account
        assert (account.owner, b.account.owner, a.answer) == ("A", "B", 42)
        assert account.deposit(5, note="first") == account.balance == 15
        account.balance = 1
        assert account.balance == 1 and b.account.balance == 10
        history = account.history
        assert isinstance(history, remote.Proxy) and len(history) == 1 and history[0] == 5
        history.append(7)
        history[0] = 6
        assert list(account.history) == [6, 7] == remote.value(history)
        assert 7 in history and 8 not in history
        del history[0], account.owner
        assert list(history) == [7] and not hasattr(account, "owner") and bool(history)
        assert a.numbers["two"] == 2 and sorted(a.numbers) == ["one", "two"]
        assert a.double(21) == 42 and a.double.future(4).result() == 8

    bank(use)


def test_data_are_sent_and_objects_are_referred_to() -> None:
    def use(sfm: Endpoint, a: Any, b: Any) -> None:
        account = a.account
        assert account == a.account and account.me() == account and a.account != b.account
        assert {a.account: 1}[account.me()] == 1
        assert list(account.payments()) == [] and next(iter(a.numbers)) == "one"
        two = account.open_another()
        assert isinstance(two, remote.Proxy) and two[1] == 2
        assert a.numbers.copy() == {"one": 1, "two": 2}  # a copy of data is data
        mine = a.new(Account, "me", balance=100)
        assert mine.deposit(1) == 101 and repr(mine) == "<Account('me', balance=100) on A>"
        assert a.new(dict, x=1, self=2, what=3, operation=4, target=5)["target"] == 5
        with pytest.raises(TypeError, match="pickle"):
            remote.value(account)

    bank(use)


def test_references_show_attributes_signatures_and_docstrings() -> None:
    def use(sfm: Endpoint, a: Any, _: Any) -> None:
        assert dir(a) == ["account", "answer", "double", "meet", "numbers"]
        assert {"balance", "deposit", "history"} < {*dir(a.account)}
        deposit = a.account.deposit
        assert (
            str(inspect.signature(deposit)) == "(amount: 'float', *, note: 'str' = '') -> 'float'"
        )
        assert inspect.getdoc(deposit) == "Put money in; the new balance."
        assert (repr(a.account), repr(deposit)) == ("<account on A>", "<account.deposit on A>")
        assert repr(a.account.history) == "<account.history on A>"

    bank(use, 3)


def test_references_end_with_their_owner() -> None:
    def use(sfm: Endpoint, a: Any, _: Any) -> None:
        here = a.new(lambda: lambda: len(table()))  # asks the process itself
        before = here()
        many = [a.new(Account, number) for number in range(20)]
        again = [account.me() for account in many]
        assert here() == before + 20
        del many
        assert here() == before + 20
        del again[5:]
        gc.collect()
        assert here() == before + 5
        other = remote.connect(sfm, "A")
        kept = other.account
        assert here() == before + 6
        other.__exit__()
        wait_until(lambda: here() == before + 5)
        del kept

    bank(use)


@pytest.mark.fault
def test_references_of_the_dead_end() -> None:
    """Rank 1 refers to an object of rank 2, and is killed: rank 0 sees that the object goes."""

    def program(sfm: Endpoint) -> None:
        if sfm.rank == 2:
            remote.export(
                "accounts", lambda: sum(isinstance(found, Account) for found in table().values())
            )
            serving.serve(sfm)
        elif sfm.rank == 1:
            kept = remote.connect(sfm, 2).new(Account, 1)
            sfm.send(dest=0, kept=repr(kept))
            sfm.recv(tag="never")
        else:
            with remote.connect(sfm, 2) as there:
                sfm.recv(kept="<Account(1) on 2>")
                assert there.accounts() == 1
                os.kill(
                    next(member.pid for member in sfm.members() if member.rank == 1), signal.SIGKILL
                )
                wait_until(lambda: there.accounts() == 0)
                raise ArithmeticError("all is well")

    with pytest.raises(ProcessFailed, match=r"all is well|was killed by SIGKILL"):
        sfm_kernel.run(program, 3, timeout=100)


def test_arguments() -> None:
    def use(sfm: Endpoint, a: Any, b: Any) -> None:
        assert a.account.pay(b.account, 3) == 13 == b.account.balance and a.account.balance == 7
        assert a.account.pay(a.account, 2) == 7  # it is itself there
        b.account.keep(a.account)  # longer than the call
        assert b.account.whose() == "A"
        b.account.keep([a.account, {"x": a.account}][0])
        assert b.account.whose() == "A"
        mine = Account("home")
        assert a.account.pay(remote.ref(mine), 5) == 5 == mine.balance  # A calls here
        with pytest.raises(RemoteError, match=r"lock.*remote\.ref\(x\)") as failure:
            a.account.pay(mine, 5)
        sentence = "on 'A' was not called: argument 1, a Account, cannot be sent: TypeError"
        assert sentence in str(failure.value)
        a.account.keep(mine := remote.ref(mine))
        b.account.keep(None)
        a.account.keep(None)

    bank(use)


def test_calls_in_a_circle() -> None:
    """A process that waits serves calls that are made on behalf of its own call."""

    def use(sfm: Endpoint, a: Any, b: Any, c: Any) -> None:
        of_a, of_b, of_c = a.account, b.account, c.account
        assert of_a.pass_on(of_b, of_a, 1) == 11  # A → B → A
        assert of_a.pass_on(of_b, of_c, 1) == 11
        assert of_c.pass_on(of_b, of_c, 1) == 12
        home = Account("home")
        assert of_a.pass_on(of_b, remote.ref(home), 4) == 4 == home.balance  # home → A → B → home
        assert of_b.pass_on(remote.ref(home), of_a, 2) == 13

    bank(use, 4)


def test_calls_that_wait_for_each_other_are_told() -> None:
    """The two processes serve nobody, and each begins its call by itself."""

    def program(sfm: Endpoint) -> None:
        with remote.connect(sfm, 1 - (sfm.rank or 0)) as other:
            sfm.wait_for(0, 1)
            print(other.account.balance)

    with pytest.raises(ProcessFailed) as failure:
        sfm_kernel.run(program, 2, names=["A", "B"], detect=True, timeout=100)
    error = str(failure.value)
    assert DeadlockDetected.__name__ in error
    assert "A is in account on B and waits for B" in error


def test_errors() -> None:
    def use(sfm: Endpoint, a: Any, _: Any) -> None:
        account = a.account
        with pytest.raises(ValueError, match="an amount is positive, not -5") as failure:
            account.deposit(-5)
        cause = str(failure.value.__cause__)
        assert isinstance(failure.value.__cause__, RemoteError)
        assert cause.startswith("account.deposit(-5) raised on 'A':\nTraceback")
        assert "in deposit" in cause and cause.endswith("an amount is positive, not -5")
        with pytest.raises(ValueError, match="not -1"):
            account.deposit.future(-1).result()
        assert isinstance(account.deposit.future(-1).exception(), ValueError)
        with pytest.raises(
            AttributeError, match=r"'A' has no 'acount'. Known names: account, .*mean 'acc"
        ):
            a.acount  # noqa: B018
        with pytest.raises(AttributeError, match=r"the Account has no 'deposti'.*mean 'deposit'"):
            account.deposti(3)
        with pytest.raises(AttributeError, match="keeps '_secret' for itself"):
            account._secret  # noqa: B018
        with pytest.raises(TypeError, match="amount"):
            account.deposit()
        with pytest.raises(TypeError, match="has no len"):
            len(account)
        with pytest.raises(AttributeError, match=r"remote\.export"):
            a.answer = 43

        def odd() -> None:
            class Odd(Exception):
                def __init__(self, one: int, two: int) -> None:
                    super().__init__(f"odd {one} {two}")

            raise Odd(1, 2)

        with pytest.raises(RemoteError, match=r"odd\(\) raised on 'A'(?s:.*)Odd: odd 1 2"):
            a.new(odd)
        with pytest.raises(RemoteError, match=r"raised on 'A'(?s:.*)SystemExit"):
            a.new(exit)
        assert account.deposit(1) == 11  # and it serves on

    bank(use)


def test_nobody_of_that_name() -> None:
    def use(sfm: Endpoint, *_: Any) -> None:
        with pytest.raises(UnknownName, match="no process is named 'X'"):
            remote.connect(sfm, "X")

    bank(use, 2)


def test_a_reference_in_a_message_of_ones_own() -> None:
    """The receiver refers to the same object, though it has never connected."""

    def program(sfm: Endpoint) -> Any:
        if sfm.rank == 2:
            account = sfm.recv(tag="look").account
            return account.deposit(5), account.owner
        if sfm.rank == 1:
            remote.export("account", Account("A"))
            serving.serve(sfm)
            return None
        with remote.connect(sfm, "A") as a:
            sfm.send(dest="B", tag="look", account=a.account)
            wait_until(lambda: a.account.balance == 5)
        return None

    assert sfm_kernel.run(program, 3, names=["home", "A", "B"], timeout=100)[2] == (5, "A")


def test_a_reference_that_nobody_can_follow() -> None:
    def use(sfm: Endpoint, a: Any, _: Any) -> bytes:
        return pickle.dumps(a.account)

    data = bank(use)
    with pytest.raises(
        sfm_kernel.SFMError, match="a reference to account on 'A' needs an endpoint"
    ):
        pickle.loads(data)
