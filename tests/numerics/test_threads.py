"""Blocks shared out to threads."""

import threading

import pytest

from shapedp.numerics.threads import cores, each


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_item_is_worked_on_once(threads):
    seen = []
    each(range(1000), lambda: seen.append, threads)
    assert sorted(seen) == list(range(1000))
    assert threads > 1 or seen == list(range(1000))


def test_workers_are_made_in_their_own_threads(monkeypatch):
    monkeypatch.setattr("shapedp.numerics.threads.cores", lambda: 3)
    made = set()

    def worker():
        made.add(threading.get_ident())
        return lambda item: None

    each(range(100), worker, 3)
    assert len(made) >= 1
    assert threading.get_ident() not in made


@pytest.mark.parametrize("threads", [1, 4])
def test_the_first_error_stops_the_others(threads):
    done = []

    def work(item):
        if item == 3:
            raise ValueError("item 3")
        done.append(item)

    with pytest.raises(ValueError, match="item 3"):
        each(iter(range(10**6)), lambda: work, threads)
    assert len(done) < 10**6 - 1


def test_there_is_a_core():
    assert cores() >= 1
