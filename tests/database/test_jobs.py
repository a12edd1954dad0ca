"""Background work: progress anybody can read, and an honest end whatever happens."""

import threading
import time

import pytest
from sqlalchemy import create_engine, text

from memcore.database.jobs import Jobs
from memcore.errors import InvalidInput


@pytest.fixture
def engine(database_url):
    engine = create_engine(database_url)
    yield engine
    engine.dispose()


@pytest.fixture
def jobs(engine):
    jobs = Jobs(engine)
    yield jobs
    jobs.close()


def until(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.02)


def test_progress_can_be_read_while_a_job_runs_and_its_note_when_it_is_done(jobs, engine):
    go_on = threading.Event()

    def work(report):
        report("Counting", 3, 10)
        go_on.wait(20)
        return "Counted 10"

    job = jobs.start("count", None, work)
    elsewhere = Jobs(engine)
    until(lambda: elsewhere.get(job.id).done == 3)
    seen = elsewhere.get(job.id)
    assert (seen.state, seen.note, seen.total) == ("running", "Counting", 10)
    go_on.set()
    ended = jobs.wait(job.id)
    assert (ended.state, ended.note, ended.done) == ("done", "Counted 10", 3)


def test_the_same_job_is_not_started_twice(jobs):
    go_on = threading.Event()

    def work(report):
        go_on.wait(20)
        return ""

    first = jobs.start("draw", None, work, {"seed": 1})
    assert jobs.start("draw", None, work, {"seed": 1}).id == first.id
    other = jobs.start("draw", None, work, {"seed": 2})
    assert other.id != first.id
    go_on.set()
    jobs.wait(first.id)
    again = jobs.start("draw", None, work, {"seed": 1})
    assert again.id != first.id
    assert jobs.wait(again.id).state == "done"
    jobs.wait(other.id)


def test_a_failure_says_why_without_quoting_content(jobs, caplog):
    def refuse(report):
        raise InvalidInput("neighbours is 1, outside its range from 2 to 200.")

    def break_down(report):
        raise ValueError("secret content")

    refused = jobs.wait(jobs.start("draw", None, refuse).id)
    assert refused.state == "failed"
    assert "outside its range" in refused.note
    broken = jobs.wait(jobs.start("draw", None, break_down).id)
    assert broken.state == "failed"
    assert "ValueError" in broken.note
    assert "secret" not in broken.note


def test_a_cancelled_job_stops_at_its_next_report(jobs):
    reached = threading.Event()

    def work(report):
        for i in range(10_000):
            report("Going on", i, 10_000)
            reached.set()
            time.sleep(0.01)
        return "never"

    job = jobs.start("draw", None, work)
    reached.wait(5)
    jobs.cancel(job.id)
    assert jobs.wait(job.id, 20).state == "cancelled"
    assert not jobs._threads[job.id].is_alive()


def test_a_job_whose_process_died_counts_as_lost_and_can_be_started_again(jobs, engine):
    with engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO jobs (kind, state, beat_at) "
                "VALUES ('draw', 'running', now() - interval '5 minutes')"
            )
        )
    lost = jobs.latest("draw", None)
    assert lost.state == "lost"
    started = jobs.start("draw", None, lambda report: "")
    assert started.id != lost.id
    jobs.wait(started.id)


def test_a_job_whose_connection_is_gone_counts_as_lost_at_once_however_fresh_its_beat(jobs, engine):
    with engine.begin() as connection:
        connection.execute(
            text("INSERT INTO jobs (kind, state, beat_at) VALUES ('draw', 'running', now())")
        )
    lost = jobs.latest("draw", None)
    assert lost.state == "lost"
    assert jobs.start("draw", None, lambda report: "").id != lost.id


def test_a_job_lives_on_when_the_server_ends_its_connections(fresh_database_url):
    engine = create_engine(fresh_database_url)
    jobs = Jobs(engine)
    go_on = threading.Event()

    def work(report):
        report("Going on", 1, 2)
        go_on.wait(20)
        return "survived"

    job = jobs.start("draw", None, work)
    with engine.connect() as connection:
        connection.execute(
            text(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
                "datname = current_database() AND pid <> pg_backend_pid()"
            )
        )
    engine.dispose()
    time.sleep(1.5)
    assert jobs.get(job.id).state == "running"
    assert jobs.start("draw", None, work).id == job.id
    go_on.set()
    assert jobs.wait(job.id).note == "survived"
    jobs.close()
    engine.dispose()


def test_a_job_that_ended_leaves_no_connection_and_no_lock(jobs, engine):
    jobs.wait(jobs.start("draw", None, lambda report: "").id)
    with engine.connect() as connection:
        held = connection.scalar(
            text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2")
        )
    assert held == 0


def test_closing_stops_what_runs(engine):
    jobs = Jobs(engine)

    def work(report):
        while True:
            report("Going on", 0, 0)
            time.sleep(0.01)

    job = jobs.start("draw", None, work)
    jobs.close()
    assert jobs.get(job.id).state == "cancelled"
