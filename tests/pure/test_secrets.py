"""Keys at rest."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from memcore.errors import ConfigError
from memcore.secrets import VARIABLE, Secret, Vault, masked

KEY = "sk-proj-abcdefghijklmnop9876"


def test_a_sealed_secret_opens_again_and_its_bytes_do_not_show_it(tmp_path: Path) -> None:
    vault = Vault(tmp_path, {})
    sealed = vault.seal(Secret(KEY))
    assert sealed is not None
    assert KEY.encode() not in sealed
    assert vault.open(sealed) == Secret(KEY)
    assert Vault(tmp_path, {}).open(sealed) == Secret(KEY)


def test_no_secret_is_stored_as_none(tmp_path: Path) -> None:
    assert Vault(tmp_path, {}).seal(None) is None
    assert Vault(tmp_path, {}).seal(Secret("")) is None
    assert Vault(tmp_path, {}).open(None) is None


def test_the_key_file_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    home = tmp_path / "new"
    vaults = [Vault(home, {}) for _ in range(16)]
    with ThreadPoolExecutor(8) as pool:
        sealed = list(pool.map(lambda vault: vault.seal(Secret(KEY)), vaults))
    assert [path.name for path in home.iterdir()] == ["secret.key"]
    assert (home / "secret.key").stat().st_mode & 0o777 == 0o600
    assert all(Vault(home, {}).open(s) == Secret(KEY) for s in sealed)


def test_a_key_file_others_can_read_is_refused(tmp_path: Path) -> None:
    vault = Vault(tmp_path, {})
    vault.seal(Secret(KEY))
    (tmp_path / "secret.key").chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        vault.seal(Secret(KEY))


def test_the_environment_key_wins_and_leaves_no_file(tmp_path: Path) -> None:
    key = Fernet.generate_key().decode()
    vault = Vault(tmp_path, {VARIABLE: key})
    sealed = vault.seal(Secret(KEY))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ConfigError, match="cannot be decrypted"):
        Vault(tmp_path, {}).open(sealed)


def test_rotation_keeps_secrets_readable_and_lets_the_old_key_go(tmp_path: Path) -> None:
    vault = Vault(tmp_path, {})
    sealed = vault.seal(Secret(KEY))
    assert sealed is not None
    vault.new_key()
    assert vault.open(sealed) == Secret(KEY)
    rotated = vault.rotate(sealed)
    path = tmp_path / "secret.key"
    path.write_text(path.read_text().splitlines()[0] + "\n")
    assert vault.open(rotated) == Secret(KEY)
    with pytest.raises(ConfigError):
        vault.open(sealed)


def test_rotation_from_the_environment(tmp_path: Path) -> None:
    old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    sealed = Vault(tmp_path, {VARIABLE: old}).seal(Secret(KEY))
    assert sealed is not None
    both = Vault(tmp_path, {VARIABLE: f"{new}, {old}"})
    rotated = both.rotate(sealed)
    assert Vault(tmp_path, {VARIABLE: new}).open(rotated) == Secret(KEY)
    with pytest.raises(ConfigError, match=VARIABLE):
        both.new_key()


def test_a_malformed_key_says_where_it_stands(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=VARIABLE) as caught:
        Vault(tmp_path, {VARIABLE: "my-password"}).seal(Secret(KEY))
    assert "my-password" not in str(caught.value)


def test_a_secret_shows_itself_masked_everywhere() -> None:
    secret = Secret(KEY)
    for shown in (repr(secret), str(secret), f"{secret}", repr([secret]), repr({"key": secret})):
        assert KEY not in shown
        assert "••••9876" in shown
    assert masked("short") == "••••"
    assert masked("") == ""


def test_a_secret_is_neither_pickled_nor_copied_out() -> None:
    with pytest.raises(TypeError):
        pickle.dumps(Secret(KEY))
    with pytest.raises(TypeError):
        copy.deepcopy(Secret(KEY))
