"""Settings: one table of names, ranges and sources."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcore.errors import ConfigError
from memcore.settings import SPECS, from_environment, parse, resolve


def test_the_defaults_are_the_agreed_ones():
    s = resolve().settings
    gate, ranking = s.gate, s.ranking
    assert (gate.min_confidence, gate.duplicate_threshold, gate.max_extractions) == (0.7, 0.85, 3)
    assert (gate.min_length, gate.max_length, gate.sensitive_action) == (5, 2000, "reject")
    weights = (ranking.similarity_weight, ranking.confidence_weight, ranking.scope_weight)
    assert weights == (0.5, 0.3, 0.2)
    scopes = (ranking.session_priority, ranking.project_priority, ranking.user_priority)
    assert scopes == (1.0, 0.8, 0.6)
    assert (ranking.max_recall, ranking.similarity_threshold, ranking.rrf_k) == (8, None, 60)
    assert (s.extraction_interval, s.max_memories_per_extraction) == (4, 5)
    assert (s.expiration_days, s.context_token_budget, s.rerank_candidates) == (0, 1000, 30)
    assert s.enabled
    assert (s.rerank, s.query_rewrite, s.share_between_agents) == (False, False, False)


def test_blank_means_default_and_zero_means_zero():
    found = from_environment(
        {"MEMORY_MIN_CONFIDENCE": "", "MEMORY_MIN_LENGTH": "  ", "MEMORY_MAX_EXTRACTIONS": "0"}
    )
    assert found == {"max_extractions": 0}
    gate = resolve(environment=found).settings.gate
    assert (gate.min_confidence, gate.min_length, gate.max_extractions) == (0.7, 5, 0)


@pytest.mark.parametrize("value", ["abc", "nan", "inf", "-inf", "1.01", "-0.1", "0,85", "０．x"])
def test_an_unusable_variable_stops_the_start_and_is_named(value):
    with pytest.raises(ConfigError, match=r"MEMORY_DUPLICATE_THRESHOLD.*from 0 to 1"):
        from_environment({"MEMORY_DUPLICATE_THRESHOLD": value})


@pytest.mark.parametrize("value", ["5.5", "five", "", None, True, 1e400])
def test_a_count_takes_whole_numbers_only(value):
    with pytest.raises(ConfigError):
        parse("min_length", value)


def test_a_minimum_above_the_maximum_is_refused_rather_than_rejecting_everything():
    with pytest.raises(ConfigError, match=r"min_length \(3000\) is above max_length \(2000\)"):
        resolve({"min_length": 3000})


def test_weights_that_are_all_zero_are_refused():
    with pytest.raises(ConfigError, match="0"):
        resolve({"similarity_weight": 0, "confidence_weight": 0, "scope_weight": 0})


def test_the_library_wins_over_the_environment_and_that_over_calibration():
    found = resolve(
        {"min_confidence": 0.5},
        environment={"min_confidence": 0.6, "min_length": 9},
        calibrated={"duplicate_threshold": 0.96, "min_length": 1},
    )
    gate = found.settings.gate
    assert (gate.min_confidence, gate.min_length, gate.duplicate_threshold) == (0.5, 9, 0.96)
    assert [found.sources[n] for n in ("min_confidence", "min_length", "duplicate_threshold")] == [
        "library", "environment", "calibrated",
    ]  # fmt: skip
    assert found.sources["max_length"] == "default"


def test_every_setting_explains_itself_and_its_default_is_in_range():
    for spec in SPECS.values():
        assert spec.help.endswith((".", "built-in.")), spec.name
        if spec.default is not None:
            assert parse(spec.name, spec.default) == spec.default


def test_an_unknown_setting_is_refused():
    with pytest.raises(ConfigError, match="min_confidense"):
        resolve({"min_confidense": 0.5})


@given(st.sampled_from(sorted(SPECS)), st.text() | st.floats() | st.integers() | st.booleans())
def test_whatever_is_accepted_is_finite_and_in_range(name, value):
    spec = SPECS[name]
    try:
        parsed = parse(name, value)
    except ConfigError:
        return
    if isinstance(parsed, float):
        assert math.isfinite(parsed)
    if spec.low is not None:
        assert spec.low <= parsed <= spec.high
