"""What the embedded database adds to starting PostgreSQL by hand.

    python -m benchmarks.embedded              # five rounds

Each round takes a new folder and times a cold start (initdb, database, server ready) against the
same programs run bare (initdb without syncing, then `pg_ctl -w start`); a warm start of the one
then there, against `pg_ctl -w start`; joining a server that runs; the start after kill -9. Ours
and the bare ones take turns. Medians, and the ratio to bare.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memcore.database import binaries
from memcore.database.embedded import Cluster

times: dict[str, list[float]] = defaultdict(list)


@contextmanager
def timed(name: str) -> Iterator[None]:
    begun = time.perf_counter()
    yield
    times[name].append(time.perf_counter() - begun)


def bare(folder: Path) -> None:
    data = folder / "bare"
    who = binaries.identity(data)
    programs = binaries.reachable(folder, who, print)
    data.mkdir()
    if who:
        os.chown(data, who.user, who.group)
    pg_ctl = [programs / "pg_ctl", "-D", data, "-w", "-l", data / "log"]
    start = [*pg_ctl, "-o", f"-k {data} -c listen_addresses=", "start"]
    with timed("bare cold"):
        initdb = [programs / "initdb", "-D", data, "-U", "postgres", "--no-sync", "-A", "trust"]
        binaries.run(initdb, who, data)
        binaries.run(start, who, data)
    binaries.run([*pg_ctl, "-m", "fast", "stop"], who, data)
    with timed("bare warm"):
        binaries.run(start, who, data)
    binaries.run([*pg_ctl, "-m", "fast", "stop"], who, data)


def ours(folder: Path) -> None:
    cluster = Cluster.at(folder)
    with timed("cold"):
        cluster.acquire()
    cluster.release()
    with timed("warm"):
        cluster.acquire()
    with timed("join"):
        Cluster.at(folder).ensure()
    os.kill(cluster.status().pid or 0, signal.SIGKILL)
    while cluster.status().state == "running":
        time.sleep(0.001)
    with timed("after kill -9"):
        cluster.ensure()
    with timed("stop"):
        cluster.release()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    for _ in range(parser.parse_args().rounds):
        folder = Path(tempfile.mkdtemp(prefix="mc-", dir="/tmp"))
        folder.chmod(0o755)
        bare(folder)
        ours(folder)
        shutil.rmtree(folder)
    median = {name: statistics.median(values) for name, values in times.items()}
    compared = {"cold": "bare cold", "warm": "bare warm", "after kill -9": "bare warm"}
    for name in ("cold", "warm", "join", "after kill -9", "stop"):
        beside = compared.get(name)
        ratio = f"   {median[name] / median[beside]:.2f} × {beside}" if beside else ""
        print(f"{name:14} {median[name] * 1e3:7.0f} ms{ratio}")


if __name__ == "__main__":
    main()
