"""Profiles from memories: deterministic, current, lossless."""

import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcore.errors import InvalidInput
from memcore.models import Memory, MemoryType, Scope, Status, Visibility
from memcore.rules.aggregation import (
    aggregate,
    field_text,
    field_value,
    language_tag,
    patched,
)
from memcore.text import content_hash

BASE = Memory(
    id="0", content="", title="", tags=(), memory_type=MemoryType.FACT, scope=Scope.USER,
    scope_id="u1", confidence=0.8, relevance=0.8, visibility=Visibility.MEMBERS,
    status=Status.ACTIVE, library_id="l", user_id="u1", created_by="u1", source="explicit",
    content_hash="", created_at=datetime(2026, 1, 1, tzinfo=UTC),
    updated_at=datetime(2026, 1, 1, tzinfo=UTC),
)  # fmt: skip


def memories(*contents, **fields):
    return [
        replace(
            BASE, id=f"m{n}", content=c, content_hash=content_hash(c),
            created_at=BASE.created_at + timedelta(days=n), **fields,
        )
        for n, c in enumerate(contents)
    ]  # fmt: skip


def test_a_value_said_three_times_appears_once_with_all_its_memories():
    statements, counts = aggregate(memories("Is called Alan", "is called Alan.", "Is  called Alan"))
    assert [s.content for s in statements] == ["Is called Alan"]
    assert statements[0].also == ("m1", "m2")
    assert counts[MemoryType.FACT] == 3


def test_the_order_of_the_input_changes_nothing():
    pool = memories("Rides to work", "Drinks oolong tea", "Rides  to work.", "Sings in a choir")
    expected = aggregate(pool)
    assert all(aggregate(p) == expected for p in itertools.permutations(pool))


def test_what_must_be_minded_comes_first():
    pool = memories("Likes short answers", memory_type=MemoryType.PREFERENCE) + [
        replace(BASE, id="c", content="Never deploys on Fridays", memory_type=MemoryType.CONSTRAINT)
    ]
    assert [s.memory_type for s in aggregate(pool)[0]] == ["constraint", "preference"]


def test_content_is_kept_to_the_last_character():
    text = 'Returns {"code": 0} on success; see `docs/api.md` <b>now</b> & here ' + "x" * 600
    assert aggregate(memories(text))[0][0].content == text


def test_a_patch_touches_only_its_fields_and_none_stays_different_from_missing():
    before = {"job": "engineer", "areas": [], "note": None}
    after = patched(before, {"job": "designer", "decisions": [{"what": "use PG", "why": "rows"}]})
    assert after == {
        "job": "designer", "areas": [], "note": None,
        "decisions": [{"what": "use PG", "why": "rows"}],
    }  # fmt: skip
    assert patched(after, {}, ["note"]).keys() == {"job", "areas", "decisions"}
    assert before["job"] == "engineer"


@pytest.mark.parametrize(
    ("written", "tag"),
    [("zh-CN", "zh-CN"), ("zh_cn", "zh-CN"), ('"de"', "de"), ("中文", "zh"), ("", None),
     ("  ", None), (None, None), ("zh-hans-cn", "zh-Hans-CN"),
     ("English", "en"), ("es-419", "es-419")],
)  # fmt: skip
def test_a_language_is_stored_as_its_tag(written, tag):
    assert language_tag(written) == tag
    assert patched({}, {"language": written}) == {"language": tag}


@pytest.mark.parametrize("written", ["klingonese", "zh-CN-x-$", "1", "a"])
def test_what_is_no_language_is_refused_at_the_input(written):
    with pytest.raises(InvalidInput, match="no language"):
        language_tag(written)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(json_values)
def test_a_field_comes_back_as_it_was_from_the_form_a_person_edits(value):
    assert field_value(field_text(value)) == value
    assert type(field_value(field_text(value))) is type(value)
