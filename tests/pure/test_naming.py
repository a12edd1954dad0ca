"""Groups of memories are named by what sets them apart."""

from memcore.rules.naming import distinguishing

TEA = [f"{kind} tea in the kitchen" for kind in ("oolong", "green", "black", "mint", "iced")]
TRAINS = [f"the {kind} train to the coast" for kind in ("night", "slow", "early", "late", "full")]


def test_a_group_is_named_by_what_the_others_do_not_say():
    names = distinguishing(TEA + TRAINS, [0] * 5 + [1] * 5)
    assert set(names[0][:2]) == {"tea", "kitchen"}
    assert set(names[1][:2]) == {"train", "coast"}


def test_stop_words_and_grammar_name_nothing():
    names = distinguishing(["this is the one", "that was the one"] * 3, [0] * 6)
    assert not {"the", "this", "was"} & set(names[0])
    (words,) = distinguishing(["我们在这里的会议", "我们在那里的会议"] * 3, [0] * 6).values()
    assert words == ("会议",)


def test_chinese_words_are_whole_and_do_not_repeat_each_other():
    texts = [f"{day}检查接口文档" for day in ("周一", "周二", "周三", "周四", "周五")]
    texts += ["林夏爱喝乌龙茶", "给浩然买乌龙茶", "乌龙茶放在柜子里", "下午泡乌龙茶"]
    texts += ["乌龙茶喝完了"]
    names = distinguishing(texts, [0] * 5 + [1] * 5)
    assert "接口文档" in names[0] or "检查接口" in names[0]
    assert not {"口文", "口文档"} & set(names[0])
    assert any("乌龙茶" in word for word in names[1])


def test_words_are_shown_as_they_are_written_mostly():
    names = distinguishing(["PostgreSQL indexes", "an index in PostgreSQL", "PostgreSQL index"],
                           [0, 0, 0])  # fmt: skip
    assert "PostgreSQL" in names[0]
    assert len([w for w in names[0] if w.lower().startswith("index")]) == 1


def test_what_is_in_no_group_gets_no_name_and_an_empty_group_of_texts_none_either():
    assert distinguishing(["a lonely text"], [-1]) == {}
    assert distinguishing(["", "   "], [0, 0]) == {0: ()}
    assert distinguishing([], []) == {}


def test_names_do_not_depend_on_the_order_of_texts():
    one = distinguishing(TEA + TRAINS, [0] * 5 + [1] * 5)
    other = distinguishing(TRAINS[::-1] + TEA[::-1], [1] * 5 + [0] * 5)
    assert one == other
