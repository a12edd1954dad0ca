from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memcore.models import Draft, Facts, Neighbour
from memcore.rules import canonical, gate
from memcore.rules.duplicates import annotate, compare
from memcore.settings import GateSettings

SAME = [
    ("每天游泳十圈", "每天游泳 10 圈"),
    ("租金每月三千五百元", "租金每月 ３，５００ 元"),
    ("奖金 2 万元", "奖金 20000 元"),
    ("评审在四月九号", "评审在 4 月 9 日"),
    ("Review on April 9", "Review on 9 April"),
    ("Standup at 4pm", "Standup at 16:00"),
    ("覆盖率百分之八十五", "覆盖率 85%"),
    ("團隊週會用中文", "团队週会用中文"),
    ("Twelve seats are booked", "12 seats are booked"),
]
UPDATED = [
    ("交稿截止是周三", "交稿截止是周五"),
    ("Retries are capped at 4", "Retries are capped at 6"),
    ("缓存时间设为 5 分钟", "缓存时间设为 5 小时"),
    ("后端要求 Node 20.1", "后端要求 Node 20.10"),
    ("接口限流 50 req/s", "接口限流 50 requests per minute"),
    ("每周备份", "每天备份"),
    ("负责人是小高", "负责人是小许"),
    ("Rosa lives in Lisbon", "Rosa lives in Porto"),
    ("The build runs on Travis", "The build moved from Travis to Drone"),
    ("办公室在西溪", "办公室搬到滨江"),
    ("阿哲在云帆上班", "阿哲已经从云帆跳槽到星桥"),
    ("The crew uses Trello for chores", "The crew switched from Trello to Asana"),
    ("游艇是白色的", "游艇换成了蓝色"),
    ("Rosa is single", "Rosa got married last month"),
    ("乙组的打印机归财务用", "打印机从财务调到法务"),
]
DENIED = [
    ("Theo drinks wine", "Theo doesn’t drink wine"),
    ("Theo drinks wine", "Theo doesn't drink wine"),
    ("Theo drinks wine", "Theo no longer drinks wine"),
    ("周末可以值班", "周末禁止值班"),
    ("吃海鲜", "不再吃海鲜"),
    ("喜欢狗", "讨厌狗"),
    ("偏好深色界面", "偏好浅色界面"),
    ("The cache is enabled", "The cache is disabled"),
    ("正在服用铁剂", "2031-02-03 停止服用铁剂"),
]
APART = [
    ("阿哲带小伦", "小伦带阿哲"),
    ("Nils reports to Vera", "Vera reports to Nils"),
    ("网关依赖账户服务", "账户服务依赖网关"),
    ("会写 C", "会写 C++"),
    ("在学 R", "在学 Rust"),
    ("Knows Java", "Knows JavaScript"),
    ("第二章写完了", "第五章写完了"),
    ("ticket 81 is closed", "ticket 82 is closed"),
    ("前台不再用纸质登记，改为扫码", "食堂不再用餐票，改为刷脸"),
    ("Ida likes figs", "Otto likes figs"),
    ("Mail service runs on port 9100", "Chat service runs on port 9200"),
    ("宁波仓库有 30 人", "嘉兴仓库有 45 人"),
    ("体检日是 3 月 2 日", "妻子的体检日是 4 月 9 日"),
    ("User drinks coffee", "User's wife does not drink coffee"),
    ("包裹 3301 已签收", "包裹 3412 已签收"),
    ("Parcel 3301 was lost", "Parcel 3412 was lost"),
    ("首页用深色", "帮助页用浅色"),
    ("2 月 3 日跑了 6 公里", "2 月 4 日跑了 7 公里"),
]
NO_CONFLICT = [
    ("文档持续补充", "文档不断补充"),
    ("无论冷热都游泳", "冷热都游泳"),
    ("不同仓库用同一份规范", "各仓库用同一份规范"),
    ("不仅会做饭", "会做饭"),
    ("不过敏", "不抽烟"),
    ("Speaks not only Dutch", "Speaks Dutch"),
    ("喜欢喝拿铁", "喜欢喝拿铁，不加糖"),
    ("Likes tea", "Likes tea without milk"),
    ("讨厌早会", "不喜欢早会"),
]
# Another word for the same: no guard objects.
REWORDED = [
    ("爱喝普洱", "喜欢喝普洱"),
    ("User enjoys rowing", "The user likes rowing"),
    ("Rosa lives in Porto", "Rosa's home is in Porto"),
    ("接口使用 JSON", "接口采用 JSON"),
    ("家住宁波市鄞州区", "住在宁波鄞州区"),
    ("文档必须写示例", "文档一定要写示例"),
]


@pytest.mark.parametrize(("old", "new"), SAME)
def test_another_writing_of_the_same_value_is_the_same_statement(old: str, new: str) -> None:
    assert compare(old, new).relation == "same"


@pytest.mark.parametrize(("old", "new"), UPDATED)
def test_a_changed_value_or_name_is_an_update(old: str, new: str) -> None:
    assert compare(old, new).relation == "update"


@pytest.mark.parametrize(("old", "new"), DENIED)
def test_a_flipped_polarity_is_a_conflict_in_both_directions(old: str, new: str) -> None:
    assert compare(old, new).relation == "conflict"
    if "停止" not in new and "longer" not in new:
        assert compare(new, old).relation == "conflict"


@pytest.mark.parametrize(("old", "new"), APART)
def test_other_subjects_roles_items_and_terms_stay_apart(old: str, new: str) -> None:
    assert compare(old, new).relation == "distinct"


@pytest.mark.parametrize(("old", "new"), NO_CONFLICT)
def test_a_negation_inside_a_word_or_an_added_clause_denies_nothing(old: str, new: str) -> None:
    assert compare(old, new).relation not in ("conflict", "update")


@pytest.mark.parametrize(("old", "new"), REWORDED)
def test_another_word_for_the_same_objects_to_nothing(old: str, new: str) -> None:
    assert compare(old, new).relation in ("same", "covered", "reworded")


def test_a_clause_that_is_added_extends_also_with_a_number() -> None:
    assert compare("会划船", "会划船，练了十年").relation == "extended"


def test_reasons_quote_what_was_written() -> None:
    assert "“Monday” became “Tuesday”" in compare("Gym on Monday", "Gym on Tuesday").reason
    assert "“周一” became “周二”" in compare("健身在周一", "健身在周二").reason
    assert "last month" in compare("Went to Oslo", "Went to Oslo last month").reason


def test_neighbours_carry_their_comparison() -> None:
    (one,) = annotate("吃海鲜", [Neighbour("m1", "不吃海鲜", 0.9)])
    assert (one.relation, one.memory_id) == ("conflict", "m1")
    assert one.reason.endswith(".")


def test_what_is_too_far_off_for_any_verdict_is_not_compared_but_for_the_two_nearest() -> None:
    texts = ["交稿截止是周三", "茶壶是蓝色的", "交稿截止是周二", "交稿截止是周一", "交稿截止是周五"]
    near = [
        Neighbour(f"m{i}", text, similarity)
        for i, (text, similarity) in enumerate(zip(texts, (0.9, 0.8, 0.75, 0.39, 0.2), strict=True))
    ]
    new = "交稿截止是周四"
    threshold = GateSettings().duplicate_threshold
    some = annotate(new, near, gate.near_floor(threshold))
    assert [bool(n.relation) for n in some] == [True, True, True, False, False]
    far = [Neighbour("m5", "茶壶是蓝色的", 0.3), Neighbour("m6", "交稿截止是週四", 0.2)]
    assert [n.relation for n in annotate(new, far, 0.4)] == ["distinct", "same"]
    for limit in (threshold, 0.95):
        asked = GateSettings(duplicate_threshold=limit)
        verdicts = {
            gate.judge(Draft(new), Facts(new, 0.9, found, 0, True, ()), asked)
            for found in (some, annotate(new, near))
        }
        assert len(verdicts) == 1


@pytest.mark.parametrize(
    ("numeral", "value"),
    [("十", 10), ("十二", 12), ("二十", 20), ("一百零五", 105), ("三千五", 3500), ("两万", 20000),
     ("二〇三一", 2031), ("一亿二千万", 120_000_000), ("三点五", 3.5), ("点", None)],
)  # fmt: skip
def test_chinese_numerals_are_read(numeral: str, value: float | None) -> None:
    assert canonical.chinese_number(numeral) == value


@settings(max_examples=150, deadline=None)
@given(a=st.text(max_size=60), b=st.text(max_size=60))
def test_any_two_texts_compare_and_a_text_is_the_same_as_itself(a: str, b: str) -> None:
    assert compare(a, b).relation in {
        "same", "covered", "reworded", "extended", "update", "conflict", "distinct",
    }  # fmt: skip
    assert compare(a, a).relation == "same"


def test_threads_share_the_script_converter() -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda n: canonical.simplified(f"偏好簡潔代碼{n}"), range(400)))
    assert found == [f"偏好简洁代码{n}" for n in range(400)]


def test_a_pair_of_long_texts_is_compared_in_little_time() -> None:
    long = "接口在周三上午九点部署到三号机房，负责人不再是小王。Deploys aren't frozen. " * 25
    started = time.process_time()
    compare(long[:2000], long[7:2007])
    assert time.process_time() - started < 0.25
