"""Stores: keys and values that processes share."""

import threading
from datetime import timedelta

import pytest

import mindtorch_v2.distributed as dist

SHORT = timedelta(milliseconds=50)


@pytest.fixture(params=["hash", "file", "tcp", "prefix"])
def store(request, tmp_path):
    made = {
        "hash": dist.HashStore,
        "file": lambda: dist.FileStore(str(tmp_path / "store"), 1),
        "tcp": lambda: dist.TCPStore("127.0.0.1", 0, 1, True),
        "prefix": lambda: dist.PrefixStore("a", dist.HashStore()),
    }[request.param]()
    made.set_timeout(SHORT)
    return made


def test_values_are_kept(store):
    store.set("text", "ä")
    store.set("bytes", b"\x00\x01")
    assert [store.get("text"), store.get("bytes")] == ["ä".encode(), b"\x00\x01"]
    assert [store.add("n", 3), store.add("n", -5), store.get("n")] == [3, -2, b"-2"]
    store.append("text", "b")
    assert store.multi_get(["text", "bytes"]) == ["äb".encode(), b"\x00\x01"]
    assert store.check(["text", "n"])
    assert not store.check(["text", "m"])
    assert {"text", "bytes", "n"} <= set(store.list_keys())
    assert store.delete_key("n")
    assert not store.delete_key("n")


def test_a_value_is_replaced_if_it_is_the_expected_one(store):
    store.set("a", "1")
    assert store.compare_set("a", "1", "2") == b"2"
    assert store.compare_set("a", "1", "3") == b"2"
    assert store.compare_set("b", "1", "3") == b"1"
    assert not store.check(["b"])
    assert store.compare_set("b", "", "3") == b"3"


def test_a_key_that_nobody_sets_is_not_waited_for_forever(store):
    with pytest.raises(RuntimeError, match=r"(?i)timeout"):
        store.get("missing")
    with pytest.raises(RuntimeError, match=r"(?i)timeout"):
        store.wait(["missing"], SHORT)


def test_a_key_that_another_thread_sets_is_waited_for(store):
    store.set_timeout(timedelta(seconds=30))
    reader = store.clone()
    got = []
    thread = threading.Thread(target=lambda: got.append(reader.get("later")))
    thread.start()
    store.set("later", "now")
    thread.join(30)
    assert got == [b"now"]


@pytest.mark.parametrize("kind", ["hash", "tcp"])
def test_queues(kind):
    store = dist.HashStore() if kind == "hash" else dist.TCPStore("127.0.0.1", 0, 1, True)
    store.set_timeout(SHORT)
    store.queue_push("q", "1")
    store.queue_push("q", "2")
    assert [store.queue_len("q"), store.queue_pop("q"), store.queue_pop("q")] == [2, b"1", b"2"]
    with pytest.raises(dist.QueueEmptyError, match="queue is empty"):
        store.queue_pop("q", False)
    with pytest.raises(dist.DistStoreError, match=r"(?i)timeout"):
        store.queue_pop("q")


def test_the_last_process_removes_the_file(tmp_path):
    path = tmp_path / "store"
    first, second = dist.FileStore(str(path), 2), dist.FileStore(str(path), 2)
    first.set("a", "1")
    assert second.get("a") == b"1"
    del first
    assert path.exists()
    del second
    assert not path.exists()


def test_two_stores_of_a_process_can_share_a_server():
    first = dist.TCPStore("127.0.0.1", 0, 1, True, multi_tenant=True)
    second = dist.TCPStore("127.0.0.1", first.port, None, True, multi_tenant=True, wait_for_workers=False)
    first.set("a", "1")
    assert second.get("a") == b"1"


def test_a_master_that_is_not_there():
    with pytest.raises(dist.DistNetworkError, match=r"timed out after 100ms while trying to connect to \(127.0.0.1, 1\)"):
        dist.TCPStore("127.0.0.1", 1, 2, False, timedelta(milliseconds=100))


def test_workers_that_do_not_come():
    with pytest.raises(dist.DistStoreError, match="1/2 clients joined"):
        dist.TCPStore("127.0.0.1", 0, 2, True, timedelta(milliseconds=100))
