"""Stored bytes become plain values, and nothing they name is imported or called."""

from __future__ import annotations

import json
import pickle
import sys
from typing import Any

import numpy as np
import ormsgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcore.services.checkpoints.decode import MAX_DEPTH, decode, plain_json, readable, visible


def packed(value: Any) -> bytes:
    return ormsgpack.packb(value, option=ormsgpack.OPT_NON_STR_KEYS)


def extension(code: int, body: Any) -> bytes:
    return packed(ormsgpack.Ext(code, packed(body)))


@pytest.mark.parametrize("code", range(7))
def test_a_class_a_blob_names_is_neither_imported_nor_called(
    code: int, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = tmp_path / "ran"
    (tmp_path / "planted_module.py").write_text(
        f"from pathlib import Path\nPath({str(marker)!r}).touch()\n"
        f"def act(*a, **k): Path({str(marker)!r}).touch()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    arguments: Any = {"a": 1} if code in (2, 4, 5) else ["touch"]
    found = decode("msgpack", extension(code, ["planted_module", "act", arguments, "act"]))
    assert "planted_module" not in sys.modules
    assert not marker.exists()
    if code != 6:  # an array has no class to name
        assert found.value["__type__"] == "planted_module.act"
        assert found.value["value"] == arguments
        assert found.types == ("planted_module.act",)


def test_the_blob_the_librarys_own_decoder_runs_is_only_shown(tmp_path: Any) -> None:
    marker = tmp_path / "ran"
    found = decode("msgpack", extension(1, ["os", "system", [f"touch {marker}"]]))
    assert not marker.exists()
    assert readable(found.value) == {"os.system": [f"touch {marker}"]}


def test_a_pickle_is_refused_and_its_size_shown(tmp_path: Any) -> None:
    class Bomb:
        def __reduce__(self) -> Any:
            return (open, (str(tmp_path / "ran"), "w"))

    data = pickle.dumps(Bomb())
    found = decode("pickle", data)
    assert "pickle is refused" in (found.problem or "")
    assert found.value["bytes"] == len(data)
    assert found.value["hex"] == data[:32].hex()
    assert not (tmp_path / "ran").exists()
    assert f"({len(data)} bytes)" in readable(found.value)


def test_an_unknown_extension_type_is_opaque_bytes_with_its_size() -> None:
    found = decode("msgpack", packed({"a": ormsgpack.Ext(99, b"\x01\x02\x03"), "b": 1}))
    assert found.value["b"] == 1
    assert found.value["a"] == {
        "__opaque__": "unknown extension type 99",
        "bytes": 3,
        "hex": "010203",
    }
    assert found.problem == "unknown extension type 99"


@pytest.mark.parametrize("kind", ["msgpack+aes", "json+aes"])
def test_encrypted_blobs_are_named_as_such(kind: str) -> None:
    assert decode(kind, b"....").problem == "encrypted (aes)"


def test_an_unknown_serializer_is_named() -> None:
    assert "'cbor'" in (decode("cbor", b"\x00").problem or "")


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("msgpack", b""),
        ("msgpack", b"\xdd\xff\xff\xff\xff"),
        ("msgpack", b"\x91" * 5000 + b"\xc0"),
        ("msgpack", b"\xa3\xff\xfe\xfd"),
        ("json", b"[" * 100_000),
        ("json", b"9" * 10_000),
        ("json", b"{"),
        ("json", b"\xff\xfe"),
    ],
)
def test_broken_bytes_are_a_problem_and_no_exception(kind: str, data: bytes) -> None:
    found = decode(kind, data)
    assert found.problem
    assert found.value["bytes"] == len(data)


def test_deep_nesting_ends_in_words() -> None:
    found = decode("msgpack", b"\x91" * 300 + b"\xc0")
    assert found.problem == f"nested deeper than {MAX_DEPTH}"


def test_objects_nested_in_objects_cannot_exhaust_the_stack() -> None:
    body = packed(["m", "C", 1])
    for _ in range(200):
        body = packed(["m", "C", ormsgpack.Ext(0, body)])
    found = decode("msgpack", packed(ormsgpack.Ext(0, body)))
    assert "deeper" in (found.problem or "")


def test_json_constructors_are_shown_by_name() -> None:
    envelope = {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "HumanMessage"],
        "kwargs": {"content": "hello"},
    }
    found = decode("json", json.dumps({"m": envelope}).encode())
    assert found.value["m"] == {
        "__type__": "langchain.schema.messages.HumanMessage",
        "value": {"content": "hello"},
    }


def test_an_array_is_shown_by_shape_and_first_values() -> None:
    array = np.arange(12, dtype="<f4").reshape(3, 4)
    found = decode("msgpack", extension(6, [array.dtype.str, array.shape, "C", array.tobytes()]))
    assert found.value["value"]["shape"] == [3, 4]
    assert found.value["value"]["bytes"] == 48
    assert found.value["value"]["first"] == [0, 1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("dtype", ["O", "V8", "i4,(2)i4", "__import__('os')", "f99"])
def test_an_array_of_anything_but_numbers_is_not_read(dtype: str) -> None:
    found = decode("msgpack", extension(6, [dtype, [1], "C", b"\x00" * 8]))
    assert found.value.get("__opaque__") or found.value["value"]["first"] == []


def test_an_empty_array_is_an_array() -> None:
    array = np.array([], dtype="<f8")
    found = decode("msgpack", extension(6, [array.dtype.str, array.shape, "C", array.tobytes()]))
    assert found.value["value"] == {"dtype": "<f8", "shape": [0], "bytes": 0, "first": []}


@pytest.mark.parametrize(
    "stored",
    [
        {"__type__": "os.system", "value": "x"},
        {"__opaque__": "pickle is refused"},
        {"__bytes__": "many"},
        {"__type__": "langgraph.checkpoint.serde.types._DeltaSnapshot", "value": 1},
    ],
)
def test_a_mapping_cannot_pass_for_an_object_or_for_what_was_refused(stored: Any) -> None:
    for found in (decode("msgpack", packed(stored)), plain_json(stored)):
        assert found.types == ()
        assert set(found.value) == {f"{k}_" if k.startswith("__") else k for k in stored}
        assert readable(found.value) == found.value


def test_what_was_declared_secret_is_masked() -> None:
    key = ormsgpack.Ext(0, packed(["pydantic.types", "SecretStr", "s3cret"]))
    found = decode("msgpack", packed({"key": key}))
    assert readable(found.value) == {"key": "••• · pydantic.types.SecretStr"}
    assert "s3cret" not in json.dumps(found.value)


def test_nul_and_hidden_characters_are_made_visible() -> None:
    assert visible("abc\x00def") == "abc␀def"
    assert visible("safe\u202etxt.exe") == "safe⟨U+202E⟩txt.exe"
    assert visible("a\ud800b") == "a\ufffdb"
    assert visible("line\n\ttab") == "line\n\ttab"
    assert decode("msgpack", packed({"k\x00": "v\x00"})).value == {"k␀": "v␀"}


def test_simple_objects_read_on_one_line() -> None:
    found = decode("msgpack", extension(3, ["datetime", "datetime", "2026-05-04", "fromisoformat"]))
    assert readable(found.value) == "2026-05-04 · datetime.datetime"


@given(st.sampled_from(["msgpack", "json", "bytes", "null", "pickle", "x+aes"]), st.binary())
def test_no_bytes_whatever_raise_and_the_result_is_json(kind: str, data: bytes) -> None:
    json.dumps(decode(kind, data).value, allow_nan=False)


_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(),
    lambda x: st.lists(x, max_size=4) | st.dictionaries(st.text(), x, max_size=4),
)


@given(_json)
def test_plain_values_come_back_as_they_were_but_for_hidden_characters(value: Any) -> None:
    def shown(x: Any) -> Any:
        if isinstance(x, str):
            return visible(x)
        if isinstance(x, list):
            return [shown(i) for i in x]
        if isinstance(x, dict):
            return {visible(k): shown(v) for k, v in x.items()}
        return x

    assert decode("msgpack", packed(value)).value == shown(value)
