# ruff: noqa: E501
"""A confidence in numbers, words, numerals of two languages, shares and stars: one rule."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcore.extraction.confidence import read_confidence


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (None, 0.8), ("  ", 0.8), (0.42, 0.42), ("0,42", 0.42), (".42", 0.42), ("4.2e-1", 0.42),
        ("零点四二", 0.42), ("point four two", 0.42), ([0.42], 0.42), ({"score": "0.42"}, 0.42),
        (1.3, 1.0), (-0.4, 0.0), ("-7%", 0.0), (42, 0.42), ("42 %", 0.42), ("42％", 0.42),
        ("42 percent", 0.42), ("42 per cent", 0.42), ("forty-two percent", 0.42),
        ("百分之四十二", 0.42), ("百分之42", 0.42), ("百分之九十九点五", 0.995), ("42分", 0.42),
        ("七成", 0.7), ("七成半", 0.75), ("七成二", 0.72), ("7成", 0.7), ("大概七成把握", 0.7),
        ("7/8", 0.875), ("7 out of 8", 0.875), ("seven in ten", 0.7), ("nine out of ten", 0.9),
        ("四分之三", 0.75), ("three quarters", 0.75), ("half", 0.5), ("五五开", 0.5),
        ("★★★☆☆", 0.6), ("⭐⭐⭐⭐⭐", 1.0), ("0.6 - 0.8", 0.6), ("60–80%", 0.6), ("六到八成", 0.6),
        ("certain", 0.95), ("Very High", 0.95), ("HIGH", 0.9), ("mid", 0.6), ("low", 0.3),
        ("extremely low", 0.1), ("fairly confident", 0.9), ("medium-high", 0.75), ("unsure", 0.3),
        ("not very sure", 0.3), ("almost certain", 0.9), ("非常高", 0.95), ("高置信度", 0.9),
        ("较高", 0.9), ("中等", 0.6), ("中低", 0.45), ("很低", 0.1), ("没把握", 0.3),
        ("不太确定", 0.3), ("十拿九稳", 0.9), ("high (0.88)", 0.88), ("0.88 - high", 0.88),
        ("置信度：88%", 0.88), ("≈ 0.88", 0.88), ("at least 0.88", 0.88), ("88% sure", 0.88),
    ],
)  # fmt: skip
def test_a_confidence_is_read(given: Any, read: float) -> None:
    assert read_confidence(given)[0] == pytest.approx(read)


@pytest.mark.parametrize(
    "given",
    [math.nan, math.inf, "NaN", "Infinity", True, 101, 1e308, "150%", "11/10", "1/0",      "6分", "high school", "somewhere", "0.8 and 0.9", "not 90%", "1.2.3", [], [0.8, 0.9],
     "v" * 500, "高中毕业"],
)  # fmt: skip
def test_what_cannot_be_read_says_so(given: Any) -> None:
    read, note = read_confidence(given)
    assert read is None
    assert note


def test_what_was_assumed_is_noted() -> None:
    assert read_confidence(0.9) == (0.9, "")
    assert read_confidence("八成半")[1] == "confidence '八成半' read as 0.85"
    assert read_confidence("70-80%")[1] == "confidence '70-80%' read as 0.7, the lower end"


@given(
    st.one_of(
        st.text(max_size=40),
        st.floats(),
        st.integers(),
        st.text("零一二两三四五六七八九十百成半分之点%/.0123456789~- ", max_size=12),
    )
)
def test_anything_gives_a_share_of_one_or_nothing(given: Any) -> None:
    read, _ = read_confidence(given)
    assert read is None or 0 <= read <= 1
