"""Libraries and Admin: cards that count, settings with their sources, acts with their undo."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from memcore.core import Core
from memcore.embeddings.hashing import HashEmbedder
from memcore.errors import EndpointError
from memcore.models import Library, Subject
from memcore.settings import SPECS
from pages.shared import library_settings, messages, reads
from tests.pages.conftest import Open, words


def opened(open_page: Open, core: Core, library: Library, **params: str):
    return open_page(core, "libraries", library=library.id, **params)


def test_a_card_counts_and_names_what_its_library_is(
    core: Core, library: Library, open_page: Open
) -> None:
    who = Subject(library.id, "u1")
    core.memories.add_explicit_memory("Prefers oolong tea in the morning", subject=who)
    core.memories.add_explicit_memory("no", subject=who)
    core.libraries.create("second shelf", embedder="hash:32", overrides={"enabled": False})
    core.libraries.create_agent("Desk", library_id=library.id)
    at = open_page(core, "libraries")
    assert not at.exception
    text = words(at)
    assert "2 libraries" in text
    for said in ("hash\\:64", "64 dimensions", "pgvector", "similarity threshold off", "Desk",
                 "disabled", "unbound", "just now"):  # fmt: skip
        assert said in text, said
    values = [(m.label, m.value) for m in at.metric]
    assert ("Memories", "1") in values
    assert ("Gate pass rate", "50%") in values
    assert ("Max recall", "8") in values


def test_search_narrows_by_name_and_says_how_many_there_are(
    core: Core, library: Library, open_page: Open
) -> None:
    core.libraries.create("second shelf", embedder="hash:32")
    at = open_page(core, "libraries")
    at.text_input(key="libraries_search").set_value("SHELF").run()
    assert "1 of 2 libraries" in words(at)
    assert "second shelf" in words(at)
    at.text_input(key="libraries_search").set_value("nothing like it").run()
    assert not at.exception
    assert "0 of 2 libraries" in words(at)


def test_every_setting_has_its_field_its_explanation_and_its_source(
    core: Core, library: Library, open_page: Open
) -> None:
    at = opened(open_page, core, library)
    assert not at.exception
    keys = {w.key for kind in ("number_input", "selectbox", "text_input", "text_area")
            for w in at.get(kind)}  # fmt: skip
    text = words(at)
    for name, spec in SPECS.items():
        if name == "enabled":
            continue
        assert library_settings.key_of(library, name) in keys, name
        assert messages.plain(spec.help) in text, name
    assert "calibrated" in text


def test_a_change_is_shown_before_it_is_saved_and_can_be_undone(
    core: Core, library: Library, open_page: Open
) -> None:
    at = opened(open_page, core, library)
    at.number_input(key=library_settings.key_of(library, "max_recall")).set_value(3).run()
    assert "1 changed, not saved yet" in words(at)
    assert core.libraries.settings(library.id).settings.ranking.max_recall == 8
    at.button(key="libraries_save").click().run()
    assert not at.exception
    assert core.libraries.settings(library.id).settings.ranking.max_recall == 3
    assert "set here" in words(at)
    (undo,) = [b for b in at.button if (b.key or "").startswith("frame_undo_")]
    undo.click().run()
    assert core.libraries.settings(library.id).settings.ranking.max_recall == 8


def test_settings_that_contradict_each_other_are_refused_in_words(
    core: Core, library: Library, open_page: Open
) -> None:
    at = opened(open_page, core, library)
    at.number_input(key=library_settings.key_of(library, "min_length")).set_value(3000).run()
    at.button(key="libraries_save").click().run()
    assert any("min\\_length" in e.value for e in at.error)
    assert dict(core.libraries.get(library.id).overrides) == {}


def test_what_is_saved_elsewhere_meanwhile_is_told_and_costs_no_edit(
    core: Core, library: Library, open_page: Open
) -> None:
    at = opened(open_page, core, library)
    here = {n: library_settings.key_of(library, n) for n in ("max_recall", "min_length")}
    at.number_input(key=here["max_recall"]).set_value(3).run()
    # Another tab sets one that is edited here, and one that is not.
    core.libraries.set(library.id, {"max_recall": 12, "min_length": 9})
    at.button(key="libraries_save").click().run()
    assert not at.exception
    assert any("max\\_recall" in e.value and "elsewhere" in e.value for e in at.error)
    assert dict(core.libraries.get(library.id).overrides) == {"max_recall": 12, "min_length": 9}
    (told,) = [w for w in at.warning if "Saved elsewhere" in (w.title or "")]
    assert "**max recall** is 12 now; you entered 3" in told.value
    assert "**min length** is 9 now" in told.value
    assert at.number_input(key=here["max_recall"]).value == 3
    assert at.number_input(key=here["min_length"]).value == 9
    at.button(key="libraries_save").click().run()
    assert dict(core.libraries.get(library.id).overrides) == {"max_recall": 3, "min_length": 9}
    assert not at.warning


def test_a_form_without_edits_follows_what_is_saved_elsewhere(
    core: Core, library: Library, open_page: Open
) -> None:
    at = opened(open_page, core, library)
    core.libraries.set(library.id, {"max_recall": 12})
    reads.forget()
    at.run()
    assert at.number_input(key=library_settings.key_of(library, "max_recall")).value == 12
    assert not at.warning
    assert "Nothing is changed yet" in words(at)


def test_blank_goes_back_to_the_default(core: Core, library: Library, open_page: Open) -> None:
    core.libraries.set(library.id, {"max_recall": 3})
    at = opened(open_page, core, library)
    field = at.number_input(key=library_settings.key_of(library, "max_recall"))
    assert field.value == 3
    field.set_value(None).run()
    at.button(key="libraries_save").click().run()
    assert dict(core.libraries.get(library.id).overrides) == {}


def test_someone_who_is_no_operator_reads_and_does_not_change(
    core: Core, library: Library, open_page: Open
) -> None:
    core.memories.add_explicit_memory("Likes quinces a lot", subject=Subject(library.id, "u1"))
    at = opened(open_page, core, library, frame_actor="u1")
    assert not at.exception
    assert at.number_input(key=library_settings.key_of(library, "max_recall")).disabled
    assert not [b for b in at.button if b.key == "libraries_save"]


@pytest.mark.parametrize("tab", ["bar_chart: Statistics", "model_training: Embedder and store",
                                 "monitor_heart: Health"])  # fmt: skip
def test_each_tab_of_the_demo_library_opens(demo_core: Core, open_page: Open, tab: str) -> None:
    (library, *_) = demo_core.libraries.all()
    at = open_page(
        demo_core, "libraries", library=library.id,
        state={"libraries_open_tabs": f":material/{tab}"},
    )  # fmt: skip
    assert not at.exception
    assert not at.error
    if "Health" in tab:
        assert "Every memory has its vector" in "".join(s.value for s in at.success)
    if "Statistics" in tab:
        assert "Most used by agents" in words(at)
    if "Embedder" in tab:
        assert "What the duplicate threshold does here" in words(at)


def test_admin_shows_keys_masked_and_stores_that_are_down(
    core: Core, library: Library, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memcore.models import Actor

    monkeypatch.setenv("MEMCORE_ALLOWED_ENDPOINTS", "127.0.0.1:9")
    boss = Actor("operator", operator=True)
    endpoint = core.endpoints.create(
        "far", actor=boss, base_url="http://127.0.0.1:9", model="m", key="sk-1234567890abcd"
    )
    store = core.stores.create("away", kind="pgvector", address="postgresql://u@127.0.0.1:9/v")
    at = open_page(core, "admin")
    assert not at.exception
    assert "••••abcd" in words(at)
    assert "1234567890" not in words(at)
    at.button(key=f"admin_endpoint_{endpoint.id}_test").click().run(timeout=60)
    assert any("cannot be reached" in e.value for e in at.error)
    at.button(key=f"admin_store_{store.id}_test").click().run()
    assert any("away" in e.value or "127" in e.value for e in at.error[1:])
    assert not at.exception


def test_a_sweep_from_the_admin_page_says_what_it_did(
    core: Core, library: Library, open_page: Open
) -> None:
    at = open_page(core, "admin")
    at.button(key="admin_sweep").click().run()
    assert not at.exception
    assert not at.error


def test_library_pages_hold_no_page_longer_than_it_should() -> None:
    for page in ("libraries", "admin"):
        lines = (Path(__file__).parents[2] / "pages" / f"{page}.py").read_text().count("\n")
        assert lines <= 150, page


def test_a_re_embedding_that_stopped_is_said_and_goes_on_at_a_press(
    core: Core, library: Library, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    who = Subject(library.id, "u1")
    core.memories.add_explicit_memory("Prefers oolong tea in the morning", subject=who)
    embed = HashEmbedder.embed_documents

    def broken(self: HashEmbedder, texts: Sequence[str]) -> Any:
        if self.dimensions == 128:
            raise EndpointError("The endpoint failed.")
        return embed(self, texts)

    monkeypatch.setattr(HashEmbedder, "embed_documents", broken)
    core.runtime.jobs.wait(core.libraries.change_embedder(library.id, "hash:128").id)
    assert "re-embedding stopped" in words(open_page(core, "libraries"))
    at = open_page(
        core, "libraries", library=library.id,
        state={"libraries_open_tabs": ":material/model_training: Embedder and store"},
    )  # fmt: skip
    monkeypatch.setattr(HashEmbedder, "embed_documents", embed)
    at.button(key="libraries_go_on").click().run()
    assert not at.exception
    job = core.libraries.job(library.id)
    assert job is not None
    core.runtime.jobs.wait(job.id)
    assert core.libraries.get(library.id).dimensions == 128
