"""Files people bring → records. Pure: bytes in, records out, no I/O.

JSON Lines, a JSON array (or an object that holds one), or CSV with commas, semicolons or tabs;
UTF-8 with or without a byte order mark, UTF-16, GB 18030, Big5, Shift JIS. A line that cannot be
read is reported with its number and costs no other line. Nothing is guessed from a file that ends
early.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from memcore.errors import InvalidInput
from memcore.text import clean

LARGEST = 64 * 2**20
"""Bytes of one file; larger ones are split by whoever brings them."""
MOST_RECORDS = 100_000
_CODECS = ["utf_8", "gb18030", "big5", "shift_jis", "euc_kr", "cp1252"]


@dataclass(frozen=True, slots=True)
class Record:
    line: int
    """Counted from 1, where the record begins; in a JSON array, the record's place."""
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class BadLine:
    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class Reading:
    records: tuple[Record, ...]
    bad: tuple[BadLine, ...]
    form: str
    """jsonl, json or csv."""
    encoding: str


def read(data: bytes, name: str = "") -> Reading:
    """The records of a file. `name` tells CSV from JSON where the content does not. Raises
    InvalidInput for a file that is too large, empty, in no known encoding or of no known form."""
    if len(data) > LARGEST:
        raise InvalidInput(
            f"The file has {len(data) / 2**20:.0f} MiB, but at most {LARGEST // 2**20} MiB are "
            "read at once.",
            hint="Split it into several files.",
        )
    text, encoding = decoded(data)
    stripped = text.lstrip()
    called_json = name.lower().endswith((".json", ".jsonl", ".ndjson"))
    bad: list[BadLine]
    if not stripped.rstrip("\x00"):
        raise InvalidInput("The file is empty.")
    if stripped[0] == "[" or (stripped[0] == "{" and _is_one_document(stripped)):
        records, bad = _json(stripped), []
        form = "json"
    elif stripped[0] == "{" or (stripped[0] == '"' and called_json):
        records, bad = _json_lines(text)
        form = "jsonl"
    elif called_json:
        raise InvalidInput(
            "The file is no JSON: it begins with neither { nor [.",
            hint="Write one JSON object or text a line, or a JSON array of them.",
        )
    else:
        records, bad = _csv(text)
        form = "csv"
    if len(records) > MOST_RECORDS:
        raise InvalidInput(
            f"The file has {len(records)} records, but at most {MOST_RECORDS} are read at once.",
            hint="Split it into several files.",
        )
    return Reading(records, tuple(bad), form, encoding)


def decoded(data: bytes) -> tuple[str, str]:
    """Text and the encoding it was in. A byte order mark decides, then UTF-8, then what the bytes
    look like. Raises InvalidInput."""
    for mark, codec in (
        (b"\xef\xbb\xbf", "utf-8-sig"),
        (b"\xff\xfe", "utf-16"),
        (b"\xfe\xff", "utf-16"),
    ):
        if data.startswith(mark):
            try:
                return data.decode(codec), codec
            except UnicodeDecodeError as error:
                raise InvalidInput(
                    f"The file says it is {codec}, but byte {error.start} is not."
                ) from None
    try:
        return data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        pass
    from charset_normalizer import from_bytes

    best = from_bytes(data[: 2**20], cp_isolation=_CODECS).best()
    if best is not None:
        try:
            return data.decode(best.encoding), best.encoding
        except UnicodeDecodeError:
            pass
    raise InvalidInput(
        "The file's encoding is not known.", hint="Save it as UTF-8 and bring it again."
    )


def _is_one_document(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        # Several objects a line each, or one that is broken: the lines say which.
        return "\n" not in text.strip()
    return True


def _json(text: str) -> tuple[Record, ...]:
    try:
        document = json.loads(text)
    except ValueError as error:
        line = getattr(error, "lineno", 1)
        early = text.rstrip()[-1] not in "]}"
        raise InvalidInput(
            f"The file ends early, in line {line}: it was cut off."
            if early
            else f"The file is no valid JSON: {getattr(error, 'msg', error)} in line {line}.",
            hint="Nothing was read from it. Bring the whole file, or one JSON object a line.",
        ) from None
    if isinstance(document, Mapping):
        # {"memories": […]} holds records; an object with a text of its own is one.
        lists = [
            v
            for v in document.values()
            if isinstance(v, list) and v and all(isinstance(x, (Mapping, str)) for x in v)
        ]
        is_record = any(k in document for k in ("content", "text", "memory"))
        document = max(lists, key=len) if lists and not is_record else [document]
    return tuple(
        Record(n, item if isinstance(item, Mapping) else {"content": item})
        for n, item in enumerate(document, 1)
    )


def _json_lines(text: str) -> tuple[tuple[Record, ...], list[BadLine]]:
    records, bad = [], []
    # Not splitlines: a text may hold one of Unicode's other line ends.
    for n, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            item = json.loads(line)
        except ValueError as error:
            bad.append(BadLine(n, f"It is no valid JSON: {getattr(error, 'msg', error)}."))
            continue
        if isinstance(item, (Mapping, str)):
            records.append(Record(n, item if isinstance(item, Mapping) else {"content": item}))
        else:
            bad.append(BadLine(n, "It is no JSON object."))
    return tuple(records), bad


def _csv(text: str) -> tuple[tuple[Record, ...], list[BadLine]]:
    try:
        dialect: Any = csv.Sniffer().sniff(text[:20_000], delimiters=",;\t|")
    except csv.Error:
        dialect = csv.excel
    csv.field_size_limit(LARGEST)
    rows = _rows(csv.reader(io.StringIO(text, newline=""), dialect, doublequote=True))
    header: list[str] = []
    records, bad = [], []
    for line, row in rows:
        if not any(cell.strip() for cell in row):
            continue
        if not header:
            header = [clean(cell) for cell in row]
            continue
        if len(row) > len(header):
            bad.append(BadLine(line, f"It has {len(row)} cells, but the header has {len(header)}."))
            continue
        records.append(Record(line, dict(zip(header, row, strict=False))))
    return tuple(records), bad


def _rows(reader: Any) -> Iterator[tuple[int, list[str]]]:
    while True:
        begins = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise InvalidInput(f"The file is no valid CSV: {error} in line {begins}.") from None
        yield begins, row
