"""Working memory: what an agent holds in mind during one call. In this process, gone afterwards.

    with WorkingMemory() as mind:
        mind.todo("recall", "answer")
        ...
        seen = mind.snapshot()

Tools that run inside the call find it with `current()` and write down what they did.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any

from memcore.text import shorten

_CURRENT: ContextVar[WorkingMemory | None] = ContextVar("working_memory", default=None)


@dataclass(frozen=True, slots=True)
class ToDo:
    what: str
    done: bool = False


@dataclass(frozen=True, slots=True)
class ToolUse:
    name: str
    arguments: str
    result: str
    """Shortened; empty while it runs."""
    ms: float


@dataclass(frozen=True, slots=True)
class Working:
    """Working memory at one moment."""

    todo: tuple[ToDo, ...] = ()
    tools: tuple[ToolUse, ...] = ()
    thoughts: tuple[str, ...] = ()


class WorkingMemory:
    """One call's. Not shared between calls; entering it makes it the current one."""

    def __init__(self) -> None:
        self._todo: list[ToDo] = []
        self._tools: list[ToolUse] = []
        self._thoughts: list[str] = []
        self._token: Any = None

    def todo(self, *what: str) -> None:
        """Things to do in this call, in order."""
        self._todo += [ToDo(w) for w in what]

    def done(self, what: str) -> None:
        self._todo = [replace(t, done=True) if t.what == what else t for t in self._todo]

    def think(self, thought: str) -> None:
        self._thoughts.append(thought)

    @contextmanager
    def tool(self, name: str, arguments: object = "") -> Iterator[list[str]]:
        """A tool call around the block; what is appended to the list is its result."""
        started = time.perf_counter()
        result: list[str] = []
        try:
            yield result
        except Exception as error:
            result.append(f"{type(error).__name__}: {error}")
            raise
        finally:
            spent = (time.perf_counter() - started) * 1e3
            said = shorten(" ".join(result), 300)
            self._tools.append(ToolUse(name, shorten(str(arguments), 300), said, spent))

    def snapshot(self) -> Working:
        return Working(tuple(self._todo), tuple(self._tools), tuple(self._thoughts))

    def __enter__(self) -> WorkingMemory:
        self._token = _CURRENT.set(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _CURRENT.reset(self._token)
        self._todo, self._tools, self._thoughts = [], [], []


def current() -> WorkingMemory | None:
    """The working memory of the call this code runs in; None outside of one."""
    return _CURRENT.get()


@contextmanager
def noted(name: str, arguments: object) -> Iterator[list[str]]:
    """A tool call around the block, written down where a call's working memory is there."""
    mind = current()
    if mind is None:
        yield []
        return
    with mind.tool(name, arguments) as result:
        yield result
