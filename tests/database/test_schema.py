"""The migrations build what the models say."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, inspect, text
from sqlalchemy.exc import IntegrityError

from memcore.database import engine as database
from memcore.database import migrations
from memcore.database.tables import RawVector, Row
from memcore.errors import ConfigError


def test_the_migrated_schema_is_the_models_schema(fresh_database_url):
    from sqlalchemy.dialects.postgresql.base import ischema_names

    ischema_names["vector"] = RawVector
    engine = create_engine(fresh_database_url)

    def ours(thing, name, kind, *_):
        return not (kind == "table" and name == "alembic_version")

    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "include_object": ours}
        )
        differences = compare_metadata(context, Row.metadata)
    engine.dispose()
    assert differences == []


def test_the_head_that_a_warm_start_believes_is_the_newest_migration():
    script = ScriptDirectory(os.path.dirname(migrations.__file__))
    assert script.get_current_head() == migrations.HEAD


def test_several_processes_may_migrate_one_database_at_once(server):
    admin = create_engine(server("postgres"), isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text("DROP DATABASE IF EXISTS race WITH (FORCE)"))
        connection.execute(text("CREATE DATABASE race"))
    code = (
        "import sys; from memcore.database import engine as d;"
        "e = d.create(sys.argv[1]); d.prepare(e); e.dispose()"
    )

    def run(_):
        command = [sys.executable, "-c", code, server("race")]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(run, range(4)))
    assert [r.returncode for r in results] == [0] * 4, results
    engine = create_engine(server("race"))
    assert "memories" in inspect(engine).get_table_names()
    engine.dispose()
    with admin.connect() as connection:
        connection.execute(text("DROP DATABASE race WITH (FORCE)"))
    admin.dispose()


@pytest.mark.parametrize(
    "url", ["postgres://u:p@h/d", "postgresql://u:p@h/d", "postgresql+psycopg://u:p@h/d"]
)
def test_the_three_usual_spellings_of_the_address_mean_the_same(url):
    assert database.as_url(url).drivername == "postgresql+psycopg"


@pytest.mark.parametrize("url", ["mysql://u:hush@h/d", "sqlite:///x", "hush", "", "postgres"])
def test_another_address_is_refused_without_showing_its_password(url):
    with pytest.raises(ConfigError, match="DATABASE_URL") as error:
        database.as_url(url)
    assert "hush" not in str(error.value)


def test_a_vector_of_another_length_cannot_enter_a_partition(core, library, who):
    import numpy as np

    memory = core.memories.add_explicit_memory("A text with a vector", subject=who).memory
    engine = core.runtime.engine
    with pytest.raises(IntegrityError, match="dimensions"), engine.begin() as connection:
        connection.execute(
            text("UPDATE embeddings SET embedding = :v WHERE memory_id = :id"),
            {"v": np.ones(library.dimensions + 1, dtype=np.float32), "id": memory.id},
        )
