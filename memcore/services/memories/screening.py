"""Every text that comes in by any write path goes through here first: cleaned, and without secrets.

What is judged, embedded, hashed, logged and stored is the masked text alone; the secret itself goes
no further than this module. Titles, tags, categories and attributes are screened like the content.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from memcore.errors import InvalidInput
from memcore.models import Draft, Finding
from memcore.rules import instructions, sensitive
from memcore.text import clean, clean_tree


@dataclass(frozen=True, slots=True)
class Screened:
    draft: Draft
    """Every text cleaned, every secret masked."""
    found: tuple[Finding, ...]
    """Secrets by field, then what reads like an order; offsets into the masked text."""

    @property
    def secrets(self) -> tuple[Finding, ...]:
        return tuple(f for f in self.found if f.kind != instructions.KIND)


def screened(draft: Draft) -> Screened:
    """`draft` as it may go on. Raises InvalidInput for a confidence that is not a number from 0
    to 1."""
    found: list[Finding] = []

    def masked(where: str) -> Callable[[str], str]:
        def screen(text: str) -> str:
            text, some = sensitive.redact(clean(text))
            found.extend(replace(f, where=where) for f in some)
            return text

        return screen

    content = masked("content")(draft.content)
    attributes = _tree(clean_tree(dict(draft.attributes)), masked("attributes"))
    assert isinstance(attributes, dict)
    tags = (masked("tags")(t) for t in sensitive.outside(draft.tags, clean(draft.content), content))
    draft = replace(
        draft,
        content=content,
        confidence=_confidence(draft.confidence),
        title=masked("title")(draft.title),
        tags=tuple(dict.fromkeys(t for t in tags if t)),
        category=masked("category")(draft.category),
        attributes=attributes,
    )
    return Screened(draft, (*found, *instructions.find(content)))


def without_secrets(values: Mapping[str, Any]) -> None:
    """For an edit, which has no verdict to carry a finding. Raises InvalidInput naming field and
    kind, never the secret."""
    for name, value in values.items():

        def refuse(text: str, name: str = name) -> str:
            if some := sensitive.find(text):
                raise InvalidInput(
                    f"The {name} has a secret in it: {sensitive.KINDS[some[0].kind]}.",
                    hint="Take it out; secrets are never stored.",
                )
            return text

        _tree(value, refuse)


def _confidence(value: Any) -> float:
    try:
        confidence = float(value)
    except (TypeError, ValueError):
        raise InvalidInput(f"Confidence is {value!r}, but takes a number from 0 to 1.") from None
    if not 0 <= confidence <= 1:
        raise InvalidInput(f"Confidence is {confidence}, outside its range from 0 to 1.")
    return confidence


def _tree(value: Any, screen: Callable[[str], str]) -> Any:
    """`value` (JSON-like) with every string in it screened. A pair "password": "x" is read as one
    text, because neither half is a secret alone."""
    if isinstance(value, str):
        return screen(value)
    if isinstance(value, dict):
        out = {}
        for key, inner in value.items():
            key = screen(str(key))
            if isinstance(inner, str):
                pair = screen(f"{key}: {inner}")
                inner = pair.removeprefix(f"{key}: ")
                out[key] = inner
            else:
                out[key] = _tree(inner, screen)
        return out
    if isinstance(value, (list, tuple)):
        return [_tree(v, screen) for v in value]
    return value
