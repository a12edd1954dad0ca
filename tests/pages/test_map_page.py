"""The Map page: what it draws, counts and changes is what the actor may see."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from memcore.core import Core
from memcore.models import Actor, Draft, Library, Scope, Status, Subject, Visibility
from pages.shared import maps
from tests.pages.conftest import Open, words

OPERATOR = Actor("operator", operator=True)


@pytest.fixture
def drawn(core: Core, library: Library) -> Library:
    """A library with a map: 18 memories of u1, four of them private project notes."""
    core.libraries.set(library.id, {"duplicate_threshold": 1.0})
    who = Subject(library.id, "u1", "p1")
    for topic in ("tea", "train"):
        for word in ("green", "black", "black slow", "late", "new", "old", "night"):
            core.memories.add(Draft(f"{topic} {word} {topic}", scope=Scope.PROJECT), subject=who)
    for word in ("one", "two", "three", "four"):
        core.memories.add(
            Draft(f"salary {word} secretword", scope=Scope.PROJECT,
                  visibility=Visibility.OWNER_ONLY), subject=who,
        )  # fmt: skip
    job = core.projection.wait(core.projection.draw(library.id))
    assert job.state == "done", job.note
    return library


def ids_of(core: Core, library: Library, part: str) -> list[str]:
    view = core.projection.view(library.id, actor=OPERATOR)
    return [i for i, text in zip(view.ids, view.texts, strict=True) if part in text]


def chart(at: object) -> str:
    """Everything the browser is sent for the charts."""
    return "".join(str(c.proto) for c in at.get("plotly_chart"))  # type: ignore[attr-defined]


def test_it_says_how_many_are_drawn_and_how_far_to_trust_it(
    core: Core, drawn: Library, open_page: Open
) -> None:
    at = open_page(core, "map")
    assert not at.exception
    said = words(at)
    assert "**18 memories**" in said
    assert "of neighbours kept, chance" in said


def test_another_user_is_sent_nothing_of_what_they_may_not_see(
    core: Core, drawn: Library, open_page: Open
) -> None:
    core.people.introduce("u2")
    core.people.join("p1", "u2", "viewer", actor=Actor("u1"))
    for panel in ("Selected", "Duplicates", "Groups", "Outliers"):
        at = open_page(core, "map", state={"frame_actor": "u2", "map_panel": panel})
        at.run()
        assert not at.exception
        said = words(at) + chart(at) + "".join(str(d.value) for d in at.dataframe)
        assert "**14 memories**" in said
        assert "secretword" not in said
        assert "salary" not in said
        assert "18" not in words(at)


def test_a_selection_is_listed_and_changed_by_id(
    core: Core, drawn: Library, open_page: Open
) -> None:
    tea = ids_of(core, drawn, "tea")
    at = open_page(core, "map", state={"map_selected": tea})
    assert "**7 selected**" in words(at)
    assert len(at.dataframe[0].value) == 7
    at.button(key="map_bulk_archived").click().run()
    assert not at.exception
    view = core.projection.view(drawn.id, actor=OPERATOR)
    archived = {i for i, s in zip(view.ids, view.statuses, strict=True) if s is Status.ARCHIVED}
    assert archived == set(tea)
    # Still the same picture: a status is a colour, not a place.
    assert view.stale == 0


def test_a_selection_is_tagged(core: Core, drawn: Library, open_page: Open) -> None:
    tea = ids_of(core, drawn, "tea")[:3]
    at = open_page(core, "map", state={"map_selected": tea, "map_tag_text": "drinks"})
    at.button(key="map_tag_add").click().run()
    assert [core.memories.get(i, actor=OPERATOR).tags for i in tea] == [("drinks",)] * 3


def test_one_selected_memory_is_shown_whole_with_its_nearest(
    core: Core, drawn: Library, open_page: Open
) -> None:
    (chosen,) = ids_of(core, drawn, "tea green")
    at = open_page(core, "map", state={"map_selected": [chosen]})
    said = words(at)
    assert "tea green tea" in said
    assert "Nearest by meaning" in said
    others = [b.key for b in at.button if str(b.key).startswith("map_near_")]
    assert others
    at.button(key=others[0]).click().run()
    assert at.session_state["map_selected"] == [others[0].removeprefix("map_near_")]


def test_near_duplicates_are_listed_and_one_can_replace_the_other(
    core: Core, drawn: Library, open_page: Open
) -> None:
    at = open_page(core, "map", state={"map_panel": "Duplicates"})
    pairs = core.projection.pairs(core.projection.pictures(drawn.id)[0].id, actor=OPERATOR)
    assert pairs
    at.slider(key="map_threshold").set_value(min(s for _, _, s in pairs) - 1e-3).run()
    keep, gone, _ = pairs[0]
    at.button(key=f"map_keep_{keep}_{gone}").click().run()
    assert not at.exception
    assert core.memories.get(gone, actor=OPERATOR).superseded_by == keep


def test_a_query_is_recalled_as_a_user_and_says_what_just_missed(
    core: Core, drawn: Library, open_page: Open
) -> None:
    at = open_page(core, "map", map_query="tea green")
    at.run()
    said = words(at)
    assert "recalled**" in said
    assert "tea green tea" in said + "".join(str(b.label) for b in at.button)
    sent = chart(at)
    assert "the query" in sent
    assert "recalled ·" in sent


def test_a_filter_draws_less_and_an_empty_one_says_so(
    core: Core, drawn: Library, open_page: Open
) -> None:
    at = open_page(core, "map", map_text="tea")
    assert "**7 of 18 memories**" in words(at)
    at = open_page(core, "map", map_text="nothing like it")
    assert "No memory matches these filters" in words(at) + "".join(
        str(s.value) for s in at.subheader
    )


def test_the_first_visit_starts_the_drawing_and_shows_its_progress(
    core: Core, library: Library, who: Subject, open_page: Open
) -> None:
    core.memories.add(Draft("Prefers oolong tea"), subject=who)
    at = open_page(core, "map")
    assert not at.exception
    job = core.projection.job(library.id)
    assert job is not None
    assert core.projection.wait(job).state == "done"
    at = open_page(core, "map")
    assert "**1 memory**" in words(at)


def test_two_pictures_are_compared_side_by_side(
    core: Core, drawn: Library, open_page: Open
) -> None:
    core.projection.wait(core.projection.draw(drawn.id, embedder="hash:32"))
    trial = next(p for p in core.projection.pictures(drawn.id) if p.origin == "trial")
    tea = ids_of(core, drawn, "tea")
    at = open_page(core, "map", state={"map_compare": trial.id, "map_selected": tea})
    assert not at.exception
    assert len(at.get("plotly_chart")) == 2
    assert "are the same in both" in words(at)
    # Linked: the selection is ringed in both.
    assert all("selected · 7" in str(c.proto) for c in at.get("plotly_chart"))


def test_every_colour_can_be_chosen(core: Core, drawn: Library, open_page: Open) -> None:
    view = core.projection.view(drawn.id, actor=OPERATOR)
    for colour in maps.COLOURS:
        traces = maps.points(view, colour, np.arange(18), zone=UTC, now=datetime.now(UTC))
        assert sum(len(t.x) for t in traces) == 18
        assert sum(int(t.name.rsplit("· ", 1)[-1]) for t in traces if "·" in t.name) == 18


def test_markup_in_a_memory_is_shown_as_it_is_written() -> None:
    said = maps.wrapped("<b>重要</b> <a href='x'>点我</a> a<br>b & c")
    assert said == "&lt;b&gt;重要&lt;/b&gt; &lt;a href='x'&gt;点我&lt;/a&gt; a&lt;br&gt;b &amp; c"


def test_a_long_memory_is_wrapped_and_cut_in_the_hover() -> None:
    for text in ("长" * 2000, "word " * 400, "x" * 2000):
        lines = maps.wrapped(text).split("<br>")
        assert all(maps._columns(line) <= 47 for line in lines)
        assert len("".join(lines)) <= 181
        assert lines[-1].endswith("…")


def test_hover_thins_out_as_points_grow_and_the_mass_carries_none(
    core: Core, drawn: Library
) -> None:
    from dataclasses import replace

    view = core.projection.view(drawn.id, actor=OPERATOR)

    def grown(times: int) -> list[str]:
        many = replace(view, titles=view.titles * times, texts=view.texts * times,
                       ids=view.ids * times)  # fmt: skip
        return maps._hover(many, np.arange(18 * times), UTC)

    assert len(maps._hover(view, np.arange(18), UTC)) == 18
    assert all("<br>" not in line for line in grown(400))
    assert grown(1200) == []


def test_a_selection_opens_in_memories_and_can_be_left_again(
    core: Core, drawn: Library, open_page: Open
) -> None:
    tea = ids_of(core, drawn, "tea")
    at = open_page(core, "memories", state={"memories_ids": tea})
    assert "7 memories selected on the map" in words(at)
    assert len(at.dataframe[0].value) == 7
    at.button(key="memories_from_map").click().run()
    assert len(at.dataframe[0].value) == 18
