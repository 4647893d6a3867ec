"""Futures: values and exceptions that come later."""

import threading

import pytest

from mindtorch_v2.futures import Future, collect_all, wait_all


def complete(value):
    future = Future()
    future.set_result(value)
    return future


def test_a_value_comes_once():
    future = Future()
    assert not future.done()
    with pytest.raises(RuntimeError, match="not complete"):
        future.value()
    future.set_result(3)
    assert (future.done(), future.value(), future.wait()) == (True, 3, 3)
    with pytest.raises(RuntimeError, match="completed once"):
        future.set_result(4)


def test_waiting_for_another_thread():
    future, waiting, found = Future(), threading.Event(), []

    def wait():
        waiting.set()
        found.append(future.wait())

    thread = threading.Thread(target=wait)
    thread.start()
    waiting.wait()
    future.set_result("x")
    thread.join()
    assert found == ["x"]


def test_exceptions():
    future = Future()
    with pytest.raises(AssertionError, match="not an Exception"):
        future.set_exception(3)
    future.set_exception(KeyError("k"))
    for ask in (future.wait, future.value):
        with pytest.raises(KeyError):
            ask()


def test_callbacks_run_in_order_with_the_future(capsys):
    future, seen = Future(), []
    future.add_done_callback(lambda f: seen.append(("first", f.value())))
    chained = future.then(lambda f: f.value() + 1).then(lambda f: f.value() * 10)
    future.add_done_callback(lambda f: 1 / 0)
    future.set_result(1)
    future.add_done_callback(lambda f: seen.append(("late", f.value())))
    assert seen == [("first", 1), ("late", 1)]
    assert chained.wait() == 20
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_a_chained_callback_that_fails():
    with pytest.raises(RuntimeError, match="when running the callback: ZeroDivisionError"):
        complete(1).then(lambda f: 1 / 0).wait()
    with pytest.raises(TypeError, match="must be callable"):
        complete(1).then(3)


def test_all_of_several():
    one, other = Future(), Future()
    both = collect_all([one, other])
    one.set_result(1)
    assert not both.done()
    other.set_result(2)
    assert [f.value() for f in both.wait()] == [1, 2] == wait_all([one, other])
    assert collect_all([]).wait() == []


def test_one_of_several_fails():
    one, other = Future(), Future()
    both = collect_all([one, other])
    one.set_exception(KeyError("k"))
    assert not both.done()
    other.set_result(2)
    with pytest.raises(KeyError):
        both.wait()


def test_no_device_is_waited_for():
    assert Future(devices=[]).done() is False
    with pytest.raises(RuntimeError, match="waits for no device"):
        Future(devices=["cuda:0"])
