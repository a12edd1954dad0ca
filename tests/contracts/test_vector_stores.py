"""One contract, every vector store: each promise of `memcore.vectors.VectorStore` on each backend.

Elasticsearch runs against the server MEMCORE_TEST_ES_URL names, else against an emulator of its
REST interface (tests/elastic.py)."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from sqlalchemy import create_engine, select, text
from sqlalchemy.dialects.postgresql import insert

from memcore.database import engine as database
from memcore.database import queries
from memcore.database.tables import CollectionRow, LibraryRow, MemoryRow, UserRow
from memcore.errors import InvalidVector, MemcoreError
from memcore.models import MemoryType, Scope, Status
from memcore.vectors import Match, Record, VectorStore, Where
from memcore.vectors.inmemory import InMemoryStore
from tests.elastic import elastic

D = 8


class Backend:
    """`open(name)` opens a collection by name; `note(records)` does what must come before."""

    def __init__(
        self,
        open: Callable[..., VectorStore],
        note: Callable[[Sequence[Record]], None] = lambda _: None,
        *,
        keeps: bool = True,
    ) -> None:
        self.open = open
        self.note = note
        self.keeps = keeps


@pytest.fixture(scope="module")
def main_database(server: Callable[[str], str]) -> Iterator[Any]:
    name = f"c{uuid.uuid4().hex}"
    admin = create_engine(server("postgres"), isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name} TEMPLATE memcore"))
    engine = database.create(server(name))
    yield engine
    engine.dispose()
    with admin.connect() as connection:
        connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    admin.dispose()


def pgvector(engine: Any) -> Backend:
    from memcore.vectors.pgvector import PgVectorStore

    collections: dict[str, int] = {}
    with engine.begin() as connection:
        connection.execute(insert(UserRow).values(id="u").on_conflict_do_nothing())
        library = connection.execute(
            insert(LibraryRow)
            .values(name=uuid.uuid4().hex, embedder="hash:8", dimensions=D)
            .returning(LibraryRow.id)
        ).scalar_one()

    def open(name: str = "a", dimensions: int = D) -> VectorStore:
        with engine.begin() as connection:
            known = select(CollectionRow.id).where(CollectionRow.id == collections.get(name))
            if connection.scalar(known) is None:
                collections[name] = queries.create_collection(
                    connection, library, "hash:8", dimensions
                )
        return PgVectorStore(engine, collections[name], dimensions)

    def note(records: Sequence[Record]) -> None:
        rows = [
            {
                "id": r.id, "library_id": library, "user_id": "u", "created_by": "u",
                "scope": r.scope, "scope_id": r.scope_id, "status": r.status,
                "memory_type": MemoryType.FACT, "content": "x", "content_hash": r.id,
            }
            for r in records
        ]  # fmt: skip
        statement = insert(MemoryRow).values(rows)
        with engine.begin() as connection:
            connection.execute(
                statement.on_conflict_do_update(
                    index_elements=[MemoryRow.id],
                    set_={n: statement.excluded[n] for n in ("scope", "scope_id", "status")},
                )
            )

    return Backend(open, note)


def pgvector_elsewhere(engine: Any) -> Backend:
    from memcore.vectors.pgvector_elsewhere import PgVectorElsewhereStore

    prefix = f"v{uuid.uuid4().hex[:8]}"
    return Backend(
        lambda name="a", dimensions=D: PgVectorElsewhereStore(
            engine, f"{prefix}_{name}", dimensions
        )
    )


@pytest.fixture(scope="module")
def milvus_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, str]]:
    from memcore.vectors.milvus import connect

    uri = str(tmp_path_factory.mktemp("milvus") / "m.db")
    client = connect(uri)
    yield client, uri
    client.close()


@pytest.fixture(scope="module")
def elastic_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from memcore.vectors.elasticsearch import connect

    try:
        with elastic(tmp_path_factory.mktemp("elastic")) as url:
            client = connect(url)
            yield client
            client.close()
    except RuntimeError as reason:
        pytest.skip(f"Elasticsearch: {reason}")


@pytest.fixture(params=["pgvector", "pgvector_elsewhere", "inmemory", "milvus", "elasticsearch"])
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    prefix = f"t{uuid.uuid4().hex[:8]}"
    opened: dict[str, VectorStore] = {}

    def kept(open: Callable[[str, int], VectorStore]) -> Backend:
        def remembering(name: str = "a", dimensions: int = D) -> VectorStore:
            opened[name] = open(f"{prefix}_{name}", dimensions)
            return opened[name]

        return Backend(remembering)

    match request.param:
        case "pgvector":
            yield pgvector(request.getfixturevalue("main_database"))
        case "pgvector_elsewhere":
            yield pgvector_elsewhere(request.getfixturevalue("main_database"))
        case "inmemory":
            yield Backend(lambda name="a", dimensions=D: InMemoryStore(dimensions), keeps=False)
        case "milvus":
            from memcore.vectors.milvus import MilvusStore

            client, uri = request.getfixturevalue("milvus_client")
            yield kept(lambda name, dimensions: MilvusStore(client, uri, name, dimensions))
        case "elasticsearch":
            from memcore.vectors.elasticsearch import ElasticsearchStore

            client = request.getfixturevalue("elastic_client")
            yield kept(lambda name, dimensions: ElasticsearchStore(client, name, dimensions))
    for store in opened.values():
        store.drop()


def _id(i: int) -> str:
    return f"00000000-0000-4000-8000-{i:012d}"


def record(i: int, vector: Any = None, **fields: Any) -> Record:
    if vector is None:
        vector = np.random.default_rng(i).normal(size=D)
    fields = {"scope": Scope.USER, "scope_id": "u1", "content_hash": f"h{i}"} | fields
    return Record(_id(i), np.asarray(vector, dtype=np.float32), **fields)


def put(backend: Backend, store: VectorStore, records: Sequence[Record]) -> None:
    backend.note(records)
    store.upsert(records)


AXES = np.eye(D, dtype=np.float32)


def test_what_was_written_is_found_at_once(backend: Backend) -> None:
    store = backend.open()
    for i in range(5):
        put(backend, store, [record(i)])
        assert store.query(record(i).vector, 1)[0].id == _id(i)
        assert store.count() == i + 1


def test_similarity_is_the_cosine_to_four_digits(backend: Backend) -> None:
    store = backend.open()
    records = [record(i) for i in range(50)]
    records.append(record(50, record(7).vector * 250))
    records.append(record(51, -record(7).vector * 0.01))
    put(backend, store, records)
    asked = record(7).vector * 3
    found = {match.id: match.similarity for match in store.query(asked, 100)}
    assert len(found) == len(records)
    for r in records:
        cosine = float(r.vector @ asked / np.linalg.norm(r.vector) / np.linalg.norm(asked))
        assert found[r.id] == pytest.approx(cosine, abs=1e-4)


def test_the_nearest_come_first_and_ties_go_by_id(backend: Backend) -> None:
    store = backend.open()
    put(backend, store, [record(i, AXES[0]) for i in (9, 3, 7, 1)] + [record(5, AXES[0] + AXES[1])])
    found = [match.id for match in store.query(AXES[0], 10)]
    assert found == [_id(i) for i in (1, 3, 7, 9, 5)]
    assert [match.id for match in store.query(AXES[0], 2)] == [_id(1), _id(3)]


def test_the_filter_comes_before_the_limit(backend: Backend) -> None:
    store = backend.open()
    near = [record(i, AXES[0] + 0.01 * AXES[i % D]) for i in range(200)]
    far = [record(1000 + i, AXES[1] + 0.1 * AXES[i + 2], scope_id="u2") for i in range(3)]
    put(backend, store, near + far)
    found = store.query(AXES[0], 3, Where(scopes=((Scope.USER, "u2"),)))
    assert {match.id for match in found} == {r.id for r in far}


def test_scopes_statuses_and_ids_filter_together(backend: Backend) -> None:
    store = backend.open()
    put(backend, store, [
        record(1), record(2, scope=Scope.PROJECT), record(3, scope_id="u2"),
        record(4, status=Status.ARCHIVED), record(5, scope=Scope.PROJECT, scope_id="p1"),
    ])  # fmt: skip

    def ids(**where: Any) -> set[int]:
        filter = Where(**where)
        found = {int(match.id[-3:]) for match in store.query(record(1).vector, 10, filter)}
        assert store.count(filter) == len(found)
        return found

    mine = ((Scope.USER, "u1"), (Scope.PROJECT, "p1"))
    assert ids() == {1, 2, 3, 4, 5}
    assert ids(scopes=mine) == {1, 4, 5}
    assert ids(scopes=mine, statuses=(Status.ACTIVE,)) == {1, 5}
    assert ids(scopes=mine, ids=(_id(1), _id(2), _id(4))) == {1, 4}
    assert ids(statuses=(Status.ARCHIVED, Status.ACTIVE)) == {1, 2, 3, 4, 5}


@pytest.mark.parametrize("where", [{"scopes": ()}, {"statuses": ()}, {"ids": ()}])
def test_an_empty_choice_matches_nothing(backend: Backend, where: dict[str, Any]) -> None:
    store = backend.open()
    put(backend, store, [record(1)])
    assert store.query(record(1).vector, 5, Where(**where)) == []
    assert store.count(Where(**where)) == 0


@pytest.mark.parametrize(
    "scope_id", ['a"b', "a' OR 1=1 --", "空间\n记忆", "x" * 40_000, "a\\", "{ids}", "%s", "ü:u1"]
)
def test_no_scope_id_breaks_out_of_the_filter(backend: Backend, scope_id: str) -> None:
    store = backend.open()
    put(backend, store, [record(1, scope_id=scope_id), record(2)])
    found = store.query(record(2).vector, 5, Where(scopes=((Scope.USER, scope_id),)))
    assert [match.id for match in found] == [_id(1)]


def test_a_k_beyond_the_collection_returns_all(backend: Backend) -> None:
    store = backend.open()
    put(backend, store, [record(i) for i in range(7)])
    assert len(store.query(AXES[0], 5000)) == 7
    assert store.query(AXES[0], 0) == []


def test_an_empty_collection_answers_with_nothing(backend: Backend) -> None:
    store = backend.open()
    assert store.query(AXES[0], 5) == []
    assert store.count() == 0
    assert store.fetch([_id(1)]) == {}
    assert store.ids() == set()


def test_upsert_replaces_vector_and_fields(backend: Backend) -> None:
    store = backend.open()
    put(backend, store, [record(1, AXES[0]), record(2, AXES[1])])
    put(backend, store, [record(1, AXES[2], scope_id="u9")])
    assert store.count() == 2
    assert store.query(AXES[2], 1)[0] == Match(_id(1), pytest.approx(1, abs=1e-4))
    assert store.count(Where(scopes=((Scope.USER, "u9"),))) == 1
    assert np.allclose(store.fetch([_id(1)])[_id(1)], AXES[2], atol=1e-6)


def test_unknown_ids_are_ignored(backend: Backend) -> None:
    store = backend.open()
    put(backend, store, [record(1)])
    store.delete([_id(1), _id(77)])
    store.delete([_id(77)])
    store.delete([])
    store.upsert([])
    assert store.fetch([_id(1), _id(77)]) == {}
    assert store.count() == 0


def test_a_deleted_vector_is_gone_from_every_path(backend: Backend) -> None:
    store = backend.open()
    put(backend, store, [record(1), record(2)])
    store.delete([_id(1)])
    assert [match.id for match in store.query(record(1).vector, 5)] == [_id(2)]
    assert store.ids() == {_id(2)}


def test_vectors_come_back_as_they_were_put(backend: Backend) -> None:
    store = backend.open()
    records = [record(i) for i in range(4)]
    put(backend, store, records)
    back = store.fetch([r.id for r in records])
    for r in records:
        assert back[r.id].dtype == np.float32
        assert np.allclose(back[r.id], r.vector, atol=1e-5)


BAD = {
    "too short": np.ones(D - 1),
    "too long": np.ones(D + 1),
    "zero": np.zeros(D),
    "nearly zero": np.full(D, 1e-9),
    "nan": np.array([np.nan] + [1.0] * (D - 1)),
    "infinite": np.array([np.inf] + [1.0] * (D - 1)),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_vector_is_refused_and_nothing_of_its_batch_is_kept(
    backend: Backend, what: str
) -> None:
    store = backend.open()
    with pytest.raises(InvalidVector):
        store.upsert([record(1), record(2, BAD[what])])
    with pytest.raises(InvalidVector):
        store.query(BAD[what].astype(np.float32), 3)
    assert store.count() == 0


def test_a_refused_length_says_both_numbers(backend: Backend) -> None:
    with pytest.raises(InvalidVector, match=r"12 dimensions.*holds 8"):
        backend.open().upsert([record(1, np.ones(12))])


def test_collections_do_not_see_each_other(backend: Backend) -> None:
    first, second = backend.open("a"), backend.open("b")
    put(backend, first, [record(1)])
    put(backend, second, [record(2)])
    assert first.ids() == {_id(1)}
    assert [match.id for match in second.query(record(1).vector, 5)] == [_id(2)]
    second.delete([_id(1)])
    assert first.count() == 1


def test_collections_may_differ_in_dimensions(backend: Backend) -> None:
    small, large = backend.open("a"), backend.open("b", 3072)
    put(backend, small, [record(1)])
    wide = np.random.default_rng(0).normal(size=3072)
    put(backend, large, [record(2, wide)])
    assert large.query(wide.astype(np.float32), 1)[0].similarity == pytest.approx(1, abs=1e-4)
    assert small.count() == 1


def test_reopening_keeps_what_was_there(backend: Backend) -> None:
    if not backend.keeps:
        assert backend.open().count() == 0
        return
    store = backend.open()
    put(backend, store, [record(i) for i in range(3)])
    store.close()
    again = backend.open()
    assert again.count() == 3
    assert again.query(record(2).vector, 1)[0].id == _id(2)


def test_reopening_with_other_dimensions_is_refused(backend: Backend) -> None:
    store = backend.open()
    put(backend, store, [record(1)])
    if not backend.keeps:
        return
    with pytest.raises(MemcoreError):
        backend.open("a", D + 1).upsert([record(2, np.ones(D))])
    assert store.count() == 1


def test_eight_threads_share_one_store(backend: Backend) -> None:
    store = backend.open()
    backend.note([record(i) for i in range(64)])

    def work(thread: int) -> None:
        for i in range(thread * 8, thread * 8 + 8):
            store.upsert([record(i)])
            assert store.query(record(i).vector, 1)[0].id == _id(i)
            if i % 4 == 3:
                store.delete([_id(i)])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert store.count() == 48
    assert len(store.ids()) == 48


def test_a_thousand_vectors_in_one_call(backend: Backend) -> None:
    store = backend.open()
    records = [record(i) for i in range(1200)]
    put(backend, store, records)
    assert store.count() == 1200
    assert len(store.ids()) == 1200
    assert len(store.fetch([r.id for r in records])) == 1200
    exact = np.array([r.vector / np.linalg.norm(r.vector) for r in records])
    asked = record(3000).vector
    order = np.argsort(-(exact @ (asked / np.linalg.norm(asked))))[:10]
    assert [match.id for match in store.query(asked, 10)] == [_id(int(i)) for i in order]


def test_a_dropped_collection_starts_empty(backend: Backend) -> None:
    store = backend.open("c")
    put(backend, store, [record(1)])
    store.drop()
    assert backend.open("c").count() == 0
