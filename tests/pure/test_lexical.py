from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcore.rules import lexical


def score(query: str, text: str, scope: list[str] | None = None) -> float:
    """Keyword match of `text` for `query` when `scope` is all that is stored."""
    stored = [lexical.index_terms(t) for t in (scope or [text])]
    terms = lexical.query_terms(query)
    containing = {t: sum(t in s for s in stored) for t in terms}
    weights = lexical.weigh(terms, len(stored), containing)
    return lexical.coverage(set(terms) & set(lexical.index_terms(text)), weights)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("账单", "上个月的账单服务改名叫青松"),
        ("青松", "上个月的账单服务改名叫青松"),
        ("账单 服务", "上个月的账单服务改名叫青松"),
        ("松", "上个月的账单服务改名叫青松"),
        ("迁移", "迁移 MySQL 到 8"),
        ("mysql", "迁移 MySQL 到 8"),
        ("RUN", "She was running every day"),
        ("ticket QX-31", "Ticket qx-31 is closed"),
        ("ｑｘ－３１", "Ticket QX-31 is closed"),
        ("max_recall", "set max_recall to 12"),
        ("recall", "set maxRecall to 12"),
        ("カレー", "昨日カレーを食べました"),
        ("김치", "저는 김치를 좋아해요"),
        ("c++", "Prefers C++ to C"),
        ("café", "Meets at the cafe\u0301 on Mondays"),
        ("studies", "A study of birds"),
    ],
)
def test_a_query_finds_the_text_that_has_its_words(query: str, text: str) -> None:
    assert score(query, text) > 0.1


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("按批发布", "晚饭吃了饺子"),
        ("天空", "今天很忙，空调坏了"),
        ("what is it", "It is what it was"),
        ("", "anything"),
        ("!?…", "anything"),
        ("cat", "concatenate"),
    ],
)
def test_a_query_does_not_find_a_text_without_its_words(query: str, text: str) -> None:
    assert score(query, text) == 0


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    scope = ["green tea", "green grass", "green door", "black tea leaf", "green hat"]
    assert score("green tea", "black tea leaf", scope) > score("green tea", "green hat", scope)


def test_one_of_many_words_stays_a_poor_match_even_when_it_is_the_best() -> None:
    assert score("quarterly budget review in Lisbon", "Lisbon is sunny") < 0.5
    assert score("Lisbon", "Lisbon is sunny") > 0.8


def test_grammar_is_asked_for_only_when_there_is_nothing_else() -> None:
    assert set(lexical.query_terms("我喜欢的茶馆")) == {"喜欢", "茶馆"}
    assert lexical.query_terms("我的") == ("我的",)


@given(st.text(max_size=300))
def test_any_text_can_be_indexed_and_asked_for(text: str) -> None:
    terms = lexical.index_terms(text)
    assert all(t and len(t) <= lexical.LONGEST_TERM and t == t.strip() for t in terms)
    assert len(lexical.query_terms(text)) <= lexical.MOST_QUERY_TERMS
    assert all("\x00" not in t for t in terms)


@given(st.text(min_size=1, max_size=60), st.lists(st.text(max_size=60), max_size=5))
def test_a_match_is_between_zero_and_one(query: str, texts: list[str]) -> None:
    scope = [query, *texts]
    for text in scope:
        assert 0 <= score(query, text, scope) <= 1
