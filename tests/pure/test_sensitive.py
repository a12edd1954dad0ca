"""Kinds of secrets, tricks of writing, and what is only talk. Every secret here is made up."""

from __future__ import annotations

import itertools
import string
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memcore.rules import sensitive
from memcore.rules.sensitive.numbers import iban, luhn, resident_id

MIXED = "q7Zt2LwX9vKd4RbN8mHc1YpS6gJf3TaE5uQo"
HEX = "9c1f04ab77e2d35086bb41fe90ac7d12"

SECRETS = [
    ("password", "the printer's password is Walnut#52"),
    ("password", "the attic safe word is Bergamot"),
    ("password", "My passphrase is teapot lantern gravel orchid"),
    ("password", "NAS_PASSWORD='gr4pe-Fizz'"),
    ("password", "账号 nina，密码 Lemon@77"),
    ("password", "家里wifi：juzi2046"),
    ("password", "后台口令改成 Kiwi!2046 了"),
    ("password", "口令：春江花月夜"),
    ("password", "ssh in with ops / Tulip!204"),
    ("password", "Fig!2046x is my new password"),
    ("password", "el contraseña es Pera!77"),
    ("password", "curl -u lena:pl0ver77 https://api.example/v2"),
    ("pin", "my card pin is 4417"),
    ("pin", "passcode for the bike shed 7702#"),
    ("pin", "取款密码 550417"),
    ("otp", "验证码 771 204，请尽快输入"),
    ("otp", "204417 is your login code"),
    ("cvv", "卡背三位 417"),
    ("api_key", f"sk-{MIXED}"),
    ("api_key", f"天气接口的 API Key 是 {MIXED}"),
    ("token", f"ghp_{MIXED}"),
    ("token", f"Authorization: Bearer {MIXED}"),
    ("session", f"Cookie: sid={HEX}"),
    ("jwt", f"eyJhbGciOiJIUzI1NiJ9.eyJhIjoi{MIXED}.{MIXED}"),
    ("private_key", "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk"),
    ("private_key", f"钱包私钥 0x{HEX}{HEX}"),
    ("connection_string", "amqps://worker:Pl0ver!9@mq.example:5671/x"),
    ("webhook", f"https://hooks.slack.com/services/T01AB/B02CD/{MIXED[:24]}"),
    ("secret_link", f"https://app.example/reset-password/{MIXED[:20]}"),
    ("secret_link", f"https://bucket.example/f.pdf?X-Amz-Signature={HEX}"),
    ("card", "4539 1488 0343 6467"),
    ("card", "工资卡 6222 0210 0112 2333 446"),
    ("national_id", "身份证 11010519491231002X"),
    ("national_id", "SSN 219-09-9999"),
    ("passport", "护照号码 E12345678"),
    ("iban", "please wire to DE89 3704 0044 0532 0130 00"),
    ("password", "Q: admin password? A: Wa1nut!Tree"),
    ("password", "门户密码？\n答：hupo2046"),
    ("password", "| mail | nina | password Walnut_52 |"),
    ("password", "the portal password expired, so I picked Walnut#2046"),
    ("password", "I log on with password Walnut"),
    ("password", "pasword: Walnut52"),
    ("password", "RABBITPASSWORD=walnut52"),
    ("password", "deploy.rootPassword=Walnut52"),
    ("password", "psk=house-of-walnuts"),
    ("password", "口令是「芝麻开门」"),
    ("password", "密码【预发】Walnut!52"),
    ("password", "密码是大写的 W 然后 alnut"),
    ("password", "my password is capital W, then alnut and two"),
    ("password", "u: nina p: Walnut_52"),
    ("password", "CREATE USER 'x' IDENTIFIED BY 'Walnut52'"),
    ("password", "echo 'Walnut52' | sudo -S true"),
    ("password", "requests.get(url, auth=('nina', 'walnut-52'))"),
    ("password", "数据库密码改成 Oracle_9527"),
    ("otp", "the alarm code is nine four one seven"),
    ("pin", "the cellar safe opens with 9417"),
    ("pin", "press 9417 and the gate opens"),
    ("pin", "unlock my tablet with 941700"),
    ("pin", "进楼按 9417 开门"),
    ("pin", "箱子的密码锁是 941"),
    ("pin", "手机锁屏密码二零四六"),
    ("pin", "保险箱密码左两圈 12 右一圈 40"),
    ("otp", "Spotify code 941-700"),
    ("otp", "use code 941700 to sign in"),
    ("otp", "authenticator key mzxw 6ytb oi2a kvkf"),
    ("security_answer", "Security question: first pet? Answer: Pumpernickel"),
    ("security_answer", "the answer to my security question is Rosenhof"),
    ("security_answer", "密保问题的答案是 育英小学"),
    ("api_key", "词典接口 key 9c1f04ab77e2d35086bb41fe90ac7d12"),
    ("token", "令牌是 3f2b8c1e-7a44-4d19-9f0a-1c2d3e4f5a6b"),
    ("webhook", f"https://hook.eu9.example/{MIXED[:24]}"),
    ("private_key", f"MIIEvQIBADANBgkqhkiG9w0BAQEFAASC{MIXED}"),
    ("private_key", "-----BEGIN EC PRIVATE KEY----- MHcCAQEE"),
    ("card", "card 4539148803436467 04/29"),
    ("card", "我的卡号4539148803436467是新办的"),
    ("national_id", "身份证11010519491231002X已验"),
    ("national_id", "香港身份证 Z683365(5)"),
    ("national_id", "driving licence WALNU654057SM9IJ"),
    ("passport", "passport L01X00T47"),
    ("bank_account", "account no. 55779911, sort code 20-00-00"),
    ("seed_phrase", "army van defense carry jealous true garbage claim echo media make crunch"),
]

TALK = [
    "She resets her password every spring",
    "Password rules: 14 characters, one symbol",
    "password: string | None = None",
    "密码至少 12 位，区分大小写",
    "密码由系统随机生成",
    "验证码 60 秒后可以重发",
    "The seed phrase has 24 words",
    "uses JWT tokens with RS256",
    "token budget is 8000",
    "api_key = os.environ['WEATHER_KEY']",
    "API_KEY=<your key>",
    "postgres://app:${DB_PASSWORD}@db/app",
    "GPIO pin 4417 is free",
    "error code 204417",
    "the key is to start early",
    "primary key is user_id_2046",
    "commit 9c1f04ab77e2d35086bb41fe90ac7d1255aa01c3",
    "request 3f2b8c1e-7a44-4d19-9f0a-1c2d3e4f5a6b",
    "order 4539-1488-0343-6468",
    "订单号 6222021001122333449 已发货",
    "ISBN 9787111544937",
    "lat 39.904211, lng 116.407395",
    "e = 2.718281828459045",
    "phone +86 139 1234 5678",
    "wei.lin@example.com",
    "bypass the cache with ?fresh=1",
    "-----BEGIN PRIVATE KEY----- is how such a file begins",
    "wifi: 5GHz is faster",
    "the shop opens with 1200 visitors",
    "The safe opens at 9:30",
    "answer to question 4 is B",
    "暗号行动是一部电影",
    "password: required|min:8|confirmed",
    "PASSWORD_MIN_LENGTH=12",
    "password_reset_timeout=3600",
    "AKIAIOSFODNN7EXAMPLE",
    "用户的会员卡号是 88001234",
    "Pass `eager=True` to load it",
    "wants to pass that on to others",
    "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABt5xT5LVMR3vwzQ3uRQ5hDSxk0ttvYSlvUEpMOKME a@b",
    "integrity sha384-oqVuAfXRKap7fdgcCY5uykM6R9GqQ8K5uxy9rx7HNQlGYl1kPzQho1wx4JwY8wCa",
    "对象 key 是 uploads/2046/a.png",
    "两个一起，左转 200 米再右转 50 米",
]


@pytest.mark.parametrize(("kind", "text"), SECRETS)
def test_a_secret_is_found_and_named_by_kind(kind: str, text: str) -> None:
    assert kind in [f.kind for f in sensitive.find(text)]


@pytest.mark.parametrize("text", TALK)
def test_talk_about_secrets_and_ordinary_numbers_are_let_through(text: str) -> None:
    assert sensitive.find(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        "p\u200ba\u200bssword: Walnut#52",
        "ｐａｓｓｗｏｒｄ：Ｗａｌｎｕｔ５２",
        "pаsswоrd is Walnut#52",
        "p a s s w o r d : w a l n u t 5 2",
        "p-a-s-s-w-o-r-d: Walnut#52",
        "𝐩𝐚𝐬𝐬𝐰𝐨𝐫𝐝 is Walnut#52",
        "密\u2060码：Walnut52",
        "密 码 是 Walnut52",
        "密碼：Walnut52",
        "４５３９　１４８８　０３４３　６４６７",
        "4539\u200b1488\u200b0343\u200b6467", f"s\u00adk-{MIXED}",
    ],
)  # fmt: skip
def test_tricks_of_writing_hide_nothing_and_spans_lie_in_the_text_itself(text: str) -> None:
    (found,) = sensitive.find(text)
    masked = sensitive.mask(text, [found])
    for piece in ("Walnut", "walnut", "Ｗａｌ", "w a l", "6467", "６４６７", MIXED[:8]):
        assert piece not in masked
    assert text[: found.start] == masked[: found.start]


@pytest.mark.parametrize(("_", "text"), SECRETS)
def test_masking_is_final_and_offsets_of_a_redacted_text_name_its_masks(_: str, text: str) -> None:
    masked, found = sensitive.redact(text)
    assert sensitive.find(masked) == ()
    for f in found:
        assert masked[f.start : f.end] == f.masked


def test_an_address_keeps_all_but_its_secret() -> None:
    told = (
        "库地址 amqp://ops:Wint3rPassx@10.0.0.7:5672/v，单次链接 https://s.example/secret/4k2mmz81"
    )
    masked, found = sensitive.redact(told)
    assert [f.kind for f in found] == ["connection_string", "secret_link"]
    assert "@10.0.0.7:5672/v，单次链接 https://s.example/secret/[" in masked


def test_check_digits_decide() -> None:
    assert luhn("4539148803436467")
    assert not luhn("4539148803436468")
    assert resident_id("11010519491231002X")
    assert not resident_id("110105194912310021")
    assert iban("DE89370400440532013000")
    assert not iban("DE88370400440532013000")


def test_a_secret_beyond_the_window_and_across_its_edge_is_found() -> None:
    filler = "die Katze schläft. " * 4000
    for at in (10, 65_536 - 12, 65_536 + 500, 70_000):
        text = filler[:at] + " password: Walnut#52 " + filler[at : at + 3000]
        (found,) = sensitive.find(text)
        assert text[found.start : found.end] == "Walnut#52"
    key = "-----BEGIN RSA PRIVATE KEY-----\n" + (MIXED + "\n") * 3000
    (whole,) = sensitive.find("x " * 20 + key)
    assert whole.end - whole.start > 100_000


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_read_and_masks_once(text: str) -> None:
    found = sensitive.find(text)
    assert all(0 <= f.start < f.end <= len(text) for f in found)
    assert all(a.end <= b.start for a, b in itertools.pairwise(found))


@pytest.mark.parametrize(
    "piece",
    ["password is ", "密码是", "a" * 50, "1 ", "key=aA1.", "a b ", "http://a:b", "eyJ",
     "-----BEGIN ", "abandon ", "token_", "/a/b/", '"', "1-1-", "卡号 6222 ", string.printable,
     "my code 1", "密码 123 ", "answer to my security ", "the phone opens ", "left 1 ",
     "two one ", "login a/b1C "],
)  # fmt: skip
def test_the_worst_texts_cost_in_proportion_to_their_length(piece: str) -> None:
    """Quadratic reading would take a hundred times as long for ten times the text."""

    def seconds(text: str) -> float:
        started = time.process_time()
        sensitive.find(text)
        return time.process_time() - started

    short = min(seconds((piece * 2000)[:2000]) for _ in range(3))
    long = seconds((piece * 20_000)[:20_000])
    assert long < max(40 * short, 0.2)
    assert short < 0.1  # some milliseconds on an idle machine
