"""What changed between two checkpoints."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from memcore.services.checkpoints.diff import compare
from memcore.services.checkpoints.values import Change


def changes(before: Any, after: Any) -> list[tuple[str, str]]:
    return [(c.path, c.kind) for c in compare(before, after)]


def test_a_changed_todo_is_named_by_its_place() -> None:
    before = {"todos": [{"content": "a", "status": "pending"}, {"content": "b", "status": "x"}]}
    after = {"todos": [{"content": "a", "status": "done"}, {"content": "b", "status": "x"}]}
    assert list(compare(before, after)) == [Change("todos[0].status", "changed", "pending", "done")]


def test_things_with_ids_are_matched_by_id_not_by_place() -> None:
    before = [{"id": "1", "v": 1}, {"id": "2", "v": 2}]
    after = [{"id": "2", "v": 3}, {"id": "3", "v": 4}]
    assert changes(before, after) == [
        ("[0]", "removed"),
        ("[0].v", "changed"),
        ("[1]", "added"),
    ]


def test_an_item_put_in_front_is_one_addition() -> None:
    assert changes([1, 2, 3], [0, 1, 2, 3]) == [("[0]", "added")]


def test_a_long_list_is_compared_in_time() -> None:
    before = list(range(20_000))
    assert changes(before, [*before[:500], "new", *before[500:]]) == [("[500]", "added")]


def test_true_is_not_one() -> None:
    assert changes({"a": 1}, {"a": True}) == [("a", "changed")]


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda x: st.lists(x, max_size=5) | st.dictionaries(st.text(max_size=3), x, max_size=5),
    max_leaves=20,
)


@given(_json, _json)
def test_no_change_means_equal_and_equal_means_no_change(before: Any, after: Any) -> None:
    same = json.dumps(before, sort_keys=True) == json.dumps(after, sort_keys=True)
    assert (not list(compare(before, after))) == same
