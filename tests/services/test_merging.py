"""Two memories that say the same: one stays, the other names it, and undo brings it back."""

import pytest

from memcore.errors import IllegalTransition, InvalidInput
from memcore.models import Actor, Draft, Scope, Status, Visibility

ME = Actor("u1")


@pytest.fixture
def add(core, who):
    def one(text, **fields):
        # Tests of merging must not depend on what the gate takes for a duplicate.
        return core.memories.add(Draft(text, **fields), subject=who).memory.id

    return one


def test_one_memory_stands_for_another_and_the_other_says_so(core, add, who):
    keep, gone = add("The shop opens at nine"), add("Opening hours start in the morning")
    changed = core.memories.supersede([gone], keep, actor=ME)
    assert changed.done == (gone,)
    after = core.memories.get(gone, actor=ME)
    assert (after.status, after.superseded_by) == (Status.SUPERSEDED, keep)
    assert core.memories.get(keep, actor=ME).status is Status.ACTIVE


def test_merging_takes_over_tags_and_confidence_and_one_undo_takes_all_of_it_back(core, add):
    keep = add("The shop opens at nine", tags=("shop",), confidence=0.75)
    gone = add("Opening hours start in the morning", tags=("hours", "shop"), confidence=0.95)
    changed = core.memories.supersede([gone], keep, actor=ME, merge=True)
    kept = core.memories.get(keep, actor=ME)
    assert kept.tags == ("shop", "hours")
    assert kept.confidence == 0.95
    assert core.memories.undo(changed.batch_id, actor=ME).refused == {}
    assert core.memories.get(gone, actor=ME).status is Status.ACTIVE
    back = core.memories.get(keep, actor=ME)
    assert (back.tags, back.confidence) == (("shop",), 0.75)


def test_nobody_loses_a_memory_to_one_they_cannot_recall(core, add):
    mine = add("The shop opens at nine", visibility=Visibility.OWNER_ONLY)
    ours = add("Opening hours start in the morning", scope=Scope.PROJECT)
    changed = core.memories.supersede([ours], mine, actor=ME)
    assert changed.done == ()
    assert "not recalled by the same people" in changed.refused[ours]
    assert core.memories.get(ours, actor=ME).status is Status.ACTIVE


def test_what_is_not_active_can_neither_stay_nor_be_replaced(core, add):
    keep, gone = add("The shop opens at nine"), add("Opening hours start in the morning")
    with pytest.raises(InvalidInput, match="by itself"):
        core.memories.supersede([keep], keep, actor=ME)
    core.memories.change_status(gone, Status.ARCHIVED, actor=ME)
    assert "archived" in core.memories.supersede([gone], keep, actor=ME).refused[gone]
    with pytest.raises(IllegalTransition, match="would not be recalled"):
        core.memories.supersede([keep], gone, actor=ME)
