"""The search page on the demo world: what it says is what recall said, and sliders cost nothing."""

from __future__ import annotations

import re
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from memcore.core import Core
from memcore.models import Actor, Library, Subject
from memcore.services.memories import MemoryService
from tests.pages.conftest import Open, words

OPERATOR = Actor("operator", operator=True)
QUERY = "How long is a reservation held?"


@pytest.fixture
def library(demo_core: Core) -> Library:
    return next(x for x in demo_core.libraries.all() if x.name == "Lantern team")


@pytest.fixture
def searched(demo_core: Core, open_page: Open, library: Library) -> AppTest:
    at = open_page(
        demo_core, "search", frame_library=library.name, search_query=QUERY,
        search_user="mira", search_project="lantern",
    )  # fmt: skip
    assert not at.exception
    return at


def slider(at: AppTest, name: str) -> Any:
    return next(s for s in at.slider if s.key and s.key.startswith(f"search_{name}_"))


def test_a_link_with_a_query_shows_its_hits_in_the_order_of_recall(
    searched: AppTest, demo_core: Core, library: Library
) -> None:
    result = demo_core.memories.recall(QUERY, subject=Subject(library.id, "mira", "lantern"))
    said = words(searched).replace("\\", "")
    places = [said.index(f"**{n}.** {h.memory.content}") for n, h in enumerate(result.hits, 1)]
    assert places == sorted(places)
    assert str(result.documents) in [m.value for m in searched.metric]


def test_the_terms_shown_add_up_to_the_score_shown(searched: AppTest) -> None:
    lines = [c.value for c in searched.caption if "confidence" in c.value and "= **" in c.value]
    assert len(lines) >= 8
    for line in lines:
        parts = [float(x) for x in re.findall(r"(\d\.\d{3}) \(", line)]
        total = float(re.search(r"= \*\*(\d\.\d{3})\*\*", line)[1])  # type: ignore[index]
        assert round(sum(parts), 3) == total


def test_moving_a_slider_ranks_again_without_reading(
    searched: AppTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: object, **__: object) -> None:
        raise AssertionError("the recall was made again")

    monkeypatch.setattr(MemoryService, "recall", read)
    slider(searched, "confidence_weight").set_value(1.0)
    slider(searched, "max_recall").set_value(3).run()
    assert not searched.exception
    assert "lost" in words(searched)
    assert not searched.button(key="search_save").disabled


def test_saving_shows_the_difference_first_and_writes_only_that(
    searched: AppTest, demo_core: Core, library: Library
) -> None:
    slider(searched, "max_recall").set_value(3).run()
    assert demo_core.libraries.settings(library.id).settings.ranking.max_recall == 8
    searched.button(key="search_save").click().run()
    assert "max recall from 8 to 3" in words(searched)
    assert demo_core.libraries.settings(library.id).settings.ranking.max_recall == 8
    searched.button(key="search_save_confirmed").click().run()
    assert demo_core.libraries.get(library.id).overrides["max_recall"] == 3
    assert set(demo_core.libraries.get(library.id).overrides) - set(library.overrides) == {
        "max_recall"
    }


def test_looking_counts_nothing_as_use(
    searched: AppTest, demo_core: Core, library: Library
) -> None:
    before = demo_core.memories.recall(QUERY, subject=Subject(library.id, "mira", "lantern"))
    searched.button(key="search_go").click().run()
    after = demo_core.memories.recall(QUERY, subject=Subject(library.id, "mira", "lantern"))
    assert [h.memory for h in before.hits] == [h.memory for h in after.hits]


def test_a_hit_marked_wrong_is_an_evaluation_case(
    searched: AppTest, demo_core: Core, library: Library
) -> None:
    mark = next(f for f in searched.feedback if f.key.startswith("search_judge_"))
    memory_id = mark.key.removeprefix("search_judge_")
    mark.set_value(0).run()
    assert demo_core.recalls.judgements(library.id, QUERY, actor=OPERATOR) == {memory_id: False}


def test_absence_is_explained_with_every_step_and_the_least_change(searched: AppTest) -> None:
    said = words(searched)
    assert "Smallest single change" in said
    steps = next(d.value for d in searched.dataframe if "outcome" in d.value)
    assert list(steps["outcome"])[-1] == ["stopped here"]
    assert list(steps["step"])[-1] == "Place"


def test_a_blank_query_shows_the_newest_and_says_so(
    demo_core: Core, open_page: Open, library: Library
) -> None:
    at = open_page(demo_core, "search", frame_library=library.name, search_user="mira")
    assert "nothing was searched" in words(at)
    assert not at.exception


def test_someone_else_sees_only_what_they_may(
    demo_core: Core, open_page: Open, library: Library
) -> None:
    at = open_page(
        demo_core, "search", frame_library=library.name, frame_actor="tomas", search_query=QUERY
    )
    assert not at.exception
    assert at.selectbox(key="search_user").options == ["tomas"]


def test_the_agents_recalls_are_replayed_under_the_sliders(searched: AppTest) -> None:
    assert "**0 of " in words(searched)
    weight = next(s for s in searched.slider if s.key.startswith("search_log_similarity_weight"))
    weight.set_value(0.0).run()
    assert "**0 of " not in words(searched)


def test_the_prompt_is_the_one_an_agent_gets(searched: AppTest, demo_core: Core) -> None:
    shown = searched.code[0].value
    assert re.search(r"<memories-[0-9a-f]+>", shown)
    assert "A reservation is held" in shown
    assert any("of 1,000" in m.value for m in searched.metric)
