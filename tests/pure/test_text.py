"""The one cleaner and the one normalisation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcore.text import clean, clean_tree, content_hash, normalise, shorten


@given(st.text())
def test_cleaned_text_can_be_stored_and_cleaning_again_changes_nothing(text):
    cleaned = clean(text)
    assert clean(cleaned) == cleaned
    assert "\x00" not in cleaned
    cleaned.encode()


@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_texts_that_normalise_alike_hash_alike(text):
    assert content_hash(text) == content_hash(f"  {text} ".upper().lower().upper()) or (
        normalise(text) != normalise(f"  {text} ".upper().lower().upper())
    )
    assert normalise(normalise(text)) == normalise(text)


@pytest.mark.parametrize(
    "variant",
    ["prefers vs code", "Prefers  VS Code ", "Ｐｒｅｆｅｒｓ　ＶＳ　Ｃｏｄｅ", "Prefers VS Code.",
     "Prefers\u200b VS Code", "\ufeffPrefers VS\nCode"],
)  # fmt: skip
def test_case_space_width_and_a_final_stop_do_not_make_another_statement(variant):
    assert content_hash(variant) == content_hash("Prefers VS Code")


@pytest.mark.parametrize(
    ("one", "other"),
    [("uses C", "uses C++"), ("port 8501", "port 8510"), ("-5 °C", "5 °C"), ("不吃辣", "吃辣")],
)
def test_a_difference_that_matters_is_kept(one, other):
    assert content_hash(one) != content_hash(other)


def test_direction_overrides_and_zero_width_characters_are_taken_out():
    assert clean("pay \u202eevil\u202c now\u2066") == "pay evil now"
    assert clean("  嗯 \u200b\u200b ") == "嗯"


def test_line_breaks_tabs_and_joined_emoji_stay():
    assert clean("one\r\ntwo\tthree") == "one\ntwo\tthree"
    assert clean("👩\u200d👧 day") == "👩\u200d👧 day"


def test_a_tree_is_cleaned_at_every_depth_keys_included():
    tree = {"k\x00": ["v\x00", {"n": 1, "x": "\ud800"}]}
    assert clean_tree(tree) == {"k": ["v", {"n": 1, "x": "\ufffd"}]}


def test_shortened_text_is_one_line_and_shows_the_cut():
    assert shorten("a\nb  c") == "a b c"
    assert shorten("x" * 100, 10) == "x" * 9 + "…"
