"""Tags on many memories at once."""

import pytest

from memcore.errors import InvalidInput
from memcore.models import Actor, Draft

ME = Actor("u1")


def test_many_are_tagged_in_one_act_and_one_undo_takes_it_back(core, who):
    ids = [
        core.memories.add(Draft(said, tags=("old",)), subject=who).memory.id
        for said in ("Prefers oolong tea", "Travels by night train")
    ]
    changed = core.memories.tag(ids, add=[" new ", "old"], remove=["gone"], actor=ME)
    assert set(changed.done) == set(ids)
    assert [core.memories.get(i, actor=ME).tags for i in ids] == [("old", "new")] * 2
    core.memories.undo(changed.batch_id, actor=ME)
    assert [core.memories.get(i, actor=ME).tags for i in ids] == [("old",)] * 2


def test_another_persons_memory_is_refused_and_the_rest_is_tagged(core, who):
    mine = core.memories.add(Draft("Prefers oolong tea"), subject=who).memory.id
    missing = "00000000-0000-0000-0000-000000000000"
    changed = core.memories.tag([mine, missing], add=["x"], actor=ME)
    assert changed.done == (mine,)
    assert "no such memory" in changed.refused[missing]
    with pytest.raises(InvalidInput, match="no tag"):
        core.memories.tag([mine], add=["  "], actor=ME)
