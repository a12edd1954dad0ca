"""Commands on LangGraph threads: checkpoints list, show, diff, usage, prune, restore, archived,
delete."""

from __future__ import annotations

import argparse
import json
from datetime import UTC, datetime, timedelta
from typing import Any

from memcore.cli.output import command, document, opened, table
from memcore.errors import InvalidInput
from memcore.models import Actor
from memcore.plain import plain
from memcore.services.checkpoints import Policy
from memcore.services.checkpoints.decode import readable
from memcore.services.checkpoints.index import metadata_value
from memcore.services.checkpoints.timeline import namespace_label
from memcore.services.checkpoints.values import Checkpoint
from memcore.text import shorten

_ME = Actor("operator", operator=True)


def register(commands: Any) -> None:
    group = commands.add_parser(
        "checkpoints",
        help="Inspect, compare, archive LangGraph threads.",
        description="Inspect, compare, account for and archive the threads of LangGraph agents, in "
        "memcore's own database or the one at CHECKPOINT_DATABASE_URL.",
    )
    verbs = group.add_subparsers(metavar="VERB", required=True)

    listing = command(verbs, "list", _list, "List threads, newest activity first.")
    listing.add_argument("search", nargs="?", default="", help="thread id, or part of it")
    how = listing.add_mutually_exclusive_group()
    how.add_argument("--exact", action="store_true", help="the whole thread id")
    how.add_argument("--prefix", action="store_true", help="its beginning")
    listing.add_argument("--status", choices=["waiting", "failed", "unfinished"])
    listing.add_argument(
        "--metadata", action="append", default=[], metavar="KEY=VALUE",
        help="may be given several times; 7 and \"7\" both find either",
    )  # fmt: skip
    listing.add_argument("--active-days", type=float, help="only threads active since")
    listing.add_argument("--idle-days", type=float, help="only threads not active since")
    listing.add_argument(
        "--order", default="activity", choices=["activity", "oldest", "size", "checkpoints"]
    )
    listing.add_argument("--limit", type=int, default=50)
    listing.add_argument("--offset", type=int, default=0)

    show = command(verbs, "show", _show, "Show one checkpoint of a thread, the newest by default.")
    show.add_argument("thread_id")
    show.add_argument("checkpoint_id", nargs="?")
    show.add_argument("--ns", default="", help="subgraph namespace")
    show.add_argument("--timeline", action="store_true", help="list the checkpoints instead")

    diff = command(verbs, "diff", _diff, "Compare two checkpoints of a thread.")
    diff.add_argument("thread_id")
    diff.add_argument("before")
    diff.add_argument("after", nargs="?", help="the newest by default")
    diff.add_argument("--ns", default="", help="subgraph namespace")

    usage = command(verbs, "usage", _usage, "Bytes by thread and channel, or of one thread.")
    usage.add_argument("thread_id", nargs="?")

    prune = command(verbs, "prune", _prune, "Plan what retention removes; --apply does it.")
    prune.add_argument("--idle-days", type=float, help="archive threads without activity since")
    prune.add_argument("--keep-last", type=int, help="checkpoints to keep of each other thread")
    prune.add_argument("--max-age-days", type=float, help="remove older ones of other threads")
    prune.add_argument("--thread", action="append", help="only this thread; may be repeated")
    prune.add_argument("--apply", action="store_true", help="archive and remove, not only plan")

    restore = command(verbs, "restore", _restore, "Put archived checkpoints back.")
    restore.add_argument("archive_id")

    archived = command(verbs, "archived", _archived, "List what was archived.")
    archived.add_argument("thread_id", nargs="?")

    delete = command(verbs, "delete", _delete, "Forget a thread everywhere. Cannot be undone.")
    delete.add_argument("thread_id")
    delete.add_argument("--yes", action="store_true", required=True, help="really")


def _list(arguments: argparse.Namespace) -> int:
    match = "exact" if arguments.exact else "prefix" if arguments.prefix else "contains"
    with opened() as core:
        page = core.checkpoints.threads(
            arguments.search,
            actor=_ME,
            match=match,
            metadata=_metadata(arguments.metadata),
            status=arguments.status,
            since=_days_ago(arguments.active_days),
            until=_days_ago(arguments.idle_days),
            order=arguments.order,
            limit=arguments.limit,
            offset=arguments.offset,
        )
    if arguments.json:
        document(page)
        return 0
    table(
        ("thread", "status", "nodes", "step", "checkpoints", "bytes", "last activity"),
        (
            (t.thread_id, t.status, ", ".join(t.nodes), t.step, t.checkpoints, t.octets,
             t.last_activity)
            for t in page.threads
        ),
    )  # fmt: skip
    if arguments.search:
        there = "a thread of exactly this id exists" if page.exact else "no thread has exactly it"
        print(f"compared as {page.match}; {there}")
    print(f"{len(page.threads)} of {page.total} in {page.source.where}")
    return 0


def _days_ago(days: float | None) -> datetime | None:
    if days is None:
        return None
    if not 0 <= days <= 36_500:
        raise InvalidInput(f"The days are {days}, but take a number from 0 to 36500.")
    return datetime.now(UTC) - timedelta(days=days)


def _metadata(pairs: list[str]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for pair in pairs:
        key, found, value = pair.partition("=")
        if not found:
            raise InvalidInput(f"--metadata is {pair!r}, but takes KEY=VALUE.")
        out[key] = metadata_value(value)
    return out


def _show(arguments: argparse.Namespace) -> int:
    with opened() as core:
        if arguments.timeline:
            line = core.checkpoints.timeline(arguments.thread_id, actor=_ME)
            if arguments.json:
                document({**plain(line), "forks": line.forks, "namespaces": line.namespaces})
                return 0
            table(
                ("checkpoint", "graph", "step", "source", "by", "status", "bytes", "at"),
                (
                    (s.checkpoint_id, namespace_label(s.checkpoint_ns), s.step, s.source,
                     ", ".join(s.nodes), s.status, s.octets, s.created_at)
                    for s in line.steps
                ),
            )  # fmt: skip
            return 0
        found = core.checkpoints.checkpoint(
            arguments.thread_id,
            arguments.checkpoint_id,
            actor=_ME,
            checkpoint_ns=arguments.ns,
        )
    if arguments.json:
        document({**plain(found), "state": found.state, "tool_states": found.tool_states})
    else:
        _print(found)
    return 0


def _print(found: Checkpoint) -> None:
    print(f"{found.thread_id} · {found.checkpoint_id} · step {found.step} · {found.status}")
    for finding in found.diagnosis:
        print(f"{finding.level}: {finding.title}. {finding.detail}")
    for message in found.messages:
        print(f"[{message.role}] {shorten(message.text, 500)}")
        for call in message.tool_calls:
            print(f"    → {call.name}({json.dumps(readable(call.args), ensure_ascii=False)}) "
                  f"{call.status}")  # fmt: skip
    for call in found.pending_tool_calls:
        since = f" since {call.since:%Y-%m-%d %H:%M UTC}" if call.since else ""
        print(f"{call.status}{since}: {call.name} {json.dumps(readable(call.args))}")
    for interrupt in found.interrupts:
        print(f"waits at {interrupt.node}: {json.dumps(readable(interrupt.value))}")
    print(json.dumps(readable(found.state), ensure_ascii=False, indent=2))


def _diff(arguments: argparse.Namespace) -> int:
    with opened() as core:
        found = core.checkpoints.diff(
            arguments.thread_id,
            arguments.before,
            arguments.after,
            actor=_ME,
            checkpoint_ns=arguments.ns,
        )
    if arguments.json:
        document(found)
        return 0
    for sign, messages in (("+", found.messages_added), ("-", found.messages_removed)):
        for message in messages:
            print(f"{sign} [{message.role}] {shorten(message.text, 500)}")
    for before, after in found.messages_edited:
        print(f"~ [{after.role}] {shorten(before.text, 200)} → {shorten(after.text, 200)}")
    table(
        ("path", "change", "before", "after"),
        ((c.path, c.kind, json.dumps(readable(c.before), ensure_ascii=False),
          json.dumps(readable(c.after), ensure_ascii=False)) for c in found.changes),
    )  # fmt: skip
    return 0


def _usage(arguments: argparse.Namespace) -> int:
    with opened() as core:
        found = core.checkpoints.usage(arguments.thread_id, actor=_ME)
    if arguments.json:
        document({**plain(found), "total": found.total})
        return 0
    print(f"{found.total:,} bytes in {found.checkpoints:,} checkpoints of {found.threads:,} "
          f"threads; newest states: {found.live_octets:,}; left behind: {found.orphan_octets:,}; "
          f"on disk: {found.disk_octets:,}")  # fmt: skip
    table(
        ("channel", "bytes", "versions", "in newest state"),
        ((c.name, c.octets, c.versions, c.live_octets) for c in found.channels),
    )
    if found.freed:
        print()
        table(
            ("keeping the newest", "frees bytes", "of", "checkpoints that go"),
            ((f.keep_last, f.octets, found.total, f.checkpoints) for f in found.freed),
        )
    if found.by_thread:
        print()
        table(
            ("thread", "bytes", "in newest state"),
            ((t.name, t.octets, t.live_octets) for t in found.by_thread),
        )
    return 0


def _prune(arguments: argparse.Namespace) -> int:
    policy = Policy(
        arguments.idle_days,
        arguments.keep_last,
        arguments.max_age_days,
        tuple(arguments.thread) if arguments.thread else None,
    )
    with opened() as core:
        plan = core.checkpoints.plan_prune(policy, actor=_ME)
        report = core.checkpoints.prune(plan, actor=_ME) if arguments.apply else None
    totals = {"checkpoints": plan.checkpoints, "octets": plan.octets}
    if arguments.json:
        document({"applied": report is not None, "plan": {**plain(plan), **totals},
                  "report": {**plain(report), "plan": None} if report else None})  # fmt: skip
        return 1 if report and report.skipped else 0
    table(
        ("thread", "rule", "goes", "of", "bytes", "held back", "newest"),
        (
            (t.thread_id, t.rule, len(t.dropped), t.checkpoints, t.octets,
             ", ".join(sorted({k.reason for k in t.kept})), t.newest)
            for t in plan.threads
        ),
    )  # fmt: skip
    print(f"{plan.checkpoints:,} checkpoints, {plan.octets:,} bytes of {plan.examined:,} threads "
          f"in {plan.source.where}")  # fmt: skip
    if report is None:
        print("Nothing was changed. Add --apply to archive and remove them.")
        return 0
    print(f"Archived and removed {report.checkpoints:,} checkpoints of {report.threads:,} threads; "
          f"{report.octets:,} bytes became {report.archived_octets:,}.")  # fmt: skip
    for thread_id, why in report.skipped:
        print(f"skipped {thread_id}: {why}")
    return 1 if report.skipped else 0


def _restore(arguments: argparse.Namespace) -> int:
    with opened() as core:
        done = core.checkpoints.restore(arguments.archive_id, actor=_ME)
    if arguments.json:
        document(done)
    else:
        print(f"{done.thread_id}: {done.checkpoints} checkpoints, {done.blobs} blobs and "
              f"{done.writes} writes are back")  # fmt: skip
    return 0


def _archived(arguments: argparse.Namespace) -> int:
    with opened() as core:
        found = core.checkpoints.archived(arguments.thread_id, actor=_ME)
    if arguments.json:
        document(found)
    else:
        table(
            ("id", "thread", "at", "rule", "checkpoints", "bytes", "compressed", "restored"),
            ((a.id, a.thread_id, a.at, a.reason, a.checkpoints, a.octets, a.stored_octets,
              a.restored_at) for a in found),
        )  # fmt: skip
    return 0


def _delete(arguments: argparse.Namespace) -> int:
    with opened() as core:
        done = core.checkpoints.delete_thread(arguments.thread_id, actor=_ME)
    if arguments.json:
        document(done)
    else:
        print(f"{done.thread_id}: {done.checkpoints} checkpoints, {done.blobs} blobs, "
              f"{done.writes} writes, {done.archived} archive entries and {done.snapshots} "
              "snapshots are gone")  # fmt: skip
    return 0
