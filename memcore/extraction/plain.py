# ruff: noqa: E501
"""What no rule of the rulebook names: does a clause still say something to keep, and of what kind?

Pure: no I/O. People state most things plainly ("做安卓的，七年了", "three twelves a week"), in more
words than any list holds. So here the question is turned round: a statement is kept unless it is
passing talk (a request for now, a reaction, a mood, something about the agent or a stranger), and
only when it is anchored in something: the speaker or their team, a number, a date, a name, a duty.
What such a clause is found by is less telling than a rule, so its confidence is lower.
"""

from __future__ import annotations

import re
from dataclasses import replace

from memcore.extraction.retell import with_subject
from memcore.extraction.rulebook import Rule
from memcore.extraction.speech import KIN_EN as _KIN_EN
from memcore.models import MemoryType, Scope

CONFIDENCE = 0.75
"""Above the usual gate, below every named rule."""
WEAK = 0.65
"""Where nothing but the speaker anchors it: below the usual gate, for a person to see."""
SHORTEST_ZH = 5
SHORTEST_EN = 3
"""Characters, and words, below which nothing is said."""


def _any(*parts: str) -> re.Pattern[str]:
    return re.compile("|".join(parts), re.IGNORECASE)


_STANDING_ZH = r"以后|今后|往后|每次|一律|一概|统一|始终|永远|默认|凡是|都(?:要|得|用|按|写|给|带)|别|不要|不用|禁止|甭|少(?!儿)|尽量|只(?:用|要|能|写|看|收|吃|喝)"
_STANDING_EN = r"\b(?:always|never|every time|from now on|by default|only|no|don['’]t|do not|not|avoid|skip|stop|keep|stick to|leave out|must|nothing|brief(?:ly)?|short|simple|plain|in (?:simple|plain|thousands|metric|bold|formal|british|american|\w+ (?:english|spelling|style|format|units))|too)\b"
_STANDING = re.compile(f"{_STANDING_ZH}|{_STANDING_EN}", re.IGNORECASE)
_ASKED_FOR = _any(
    # A thing to do now.
    r"^(?:那|就|再|先|快|来|请|麻烦|你|能|可以|今天|这次|另外|顺便|接着|继续)*(?:帮(?:我|忙|一下)|给我|替我|教我|陪我|告诉|推荐|介绍|分享|讲|说说|写|列|翻译|解释|分析|总结|润色|看看|看下|查|想想|想[一三两几]|试试|生成|画|算一?下|再来|换一?个|继续)",
    r"(?:帮我|给我|替我|教教?我|告诉我|请教|求(?:推荐|助|问|解)|我想(?:问|请|让你|听|知道|了解|要一|和你|跟你|找|看看)|想(?:问|请教|听听)|(?:发|看|说|讲|改|试|聊|查)一下$|[^我]{0,12}呗$|大家看|(?:需要|想要|想看|来)[一几][份个篇段些])",
    r"^(?:(?:please|now|then|ok|okay|and|just|so|also|hey)[ ,]+)*(?:write|tell|give|show|explain|translate|summari[sz]e|list|suggest|recommend|help|find|make|create|draft|check|fix|look|let me|let['’]s (?:see|talk|chat|start)|go on|continue|try|do|describe|generate|compare|rewrite|proofread|play|sing|draw|calculate|convert|remind|read)\b",
    r"\bi(?:['’]d| would)? (?:like|want|need|love) (?:it|this|that|you|some|help|an?|to (?:know|ask|hear|talk|chat|learn more|see|get|understand|find))\b|\b(?:can|could|will|would) you\b|\bany (?:ideas?|tips|thoughts|recommendations?|suggestions?|advice)\b|^(?:dinner|lunch|a |an |something )[^.]*please",
)
_REACTION = _any(
    r"哈哈|呵呵|嘿嘿|嘻嘻|哎呀|笑死|太逗|我去|卧槽|天哪|恭喜|加油|再见|拜拜|晚安|早上好|下午好|晚上好|谢谢|多谢|感谢|辛苦|不客气|没关系|开玩笑|随便问|瞎说|逗你|闹着玩|真的假的|有意思|有道理|听起来|看来",
    r"^(?:好|好的|好吧|行|嗯|哦|是的|是啊|对|对啊|可以|当然|不错|挺好|真好|太好了|没有|还没|目前没有?)[，,！!。~～ ]*$|^(?:哇|唉|呜|啊|噢|喔|嗨|你好|您好|在吗)",
    r"\b(?:lol|lmao|haha+|hehe|omg|ugh|wow|just kidding|jk|thanks|thank you|congrats|good (?:idea|point|night|morning|luck)|sounds (?:good|great|like|fun)|see you|bye|goodbye|welcome|never mind|no worries|(?:great|nice) (?:to|chatting|talking))\b",
    r"^(?:yeah|yep|yes|nah|no|ok|okay|cool|nice|great|awesome|sure|right|true|exactly|perfect|lovely|awful|funny|hi|hello|hey|hmm+|well|good|fine|agreed)\b[ ,.!]*(?:$|(?:that|it|this|you|do|to|the old)\b)",
)
PLEASANTRY = _any(
    r"再见|拜拜|回头见|明天见|(?:下次|改天|回头)再聊|[和跟与向给问对](?:你|您)(?!们)[^，。]{0,6}(?:聊|分享|说|讲|问|谈|咨询|请教|推荐|介绍|道)|来(?:找你|聊天)|很?高兴(?:认识|见到|遇到)|你(?:可以|能)?随时",
    r"^(?:i|we)(?: \w+)? \w+ (?:it|that|this|them|those|you)(?: (?:too|so much|a lot|all))?$",
    r"\b(?:see you|talk to you|bye|goodbye|nice to meet|feel free|way to go|keep it up|keep going|good luck|well done|long time no|take care|(?:chat|talk|share|speak)\w*(?: \w+){0,2} with you|(?:ask|tell|show|wish) you|congratulations?|good job|thanks?|proud of you|for you\b|kudos|you got this|you rock)\b",
)
"""Between two who talk, not about anything."""
_PROMISE = _any(
    r"(?:我|一定|也|就)?(?:会|要|将|想)(?:尝试|试|考虑|注意|认真|好好|努力|继续|坚持(?:下去)?$|去看看|去试|多(?:加|进行|练)|按照|听取|记住|慢慢)|试着|我(?:不知道|不清楚|不太?确定|没有?想过|也觉得|想知道)|最近(?:发生|遇到|感觉|有些)|(?:遇到|有)了?一?些(?:问题|困难|烦恼|困惑)|还有(?:一个|个)问题",
    r"\bi(?:['’]ll| will| am going to|['’]m (?:gonna|going to)|['’]m looking forward|['’]m (?:planning|willing|trying) to (?:stay|keep|be|do|try|see|find))(?: (?:definitely|certainly|try|surely|also|just|keep|carefully|seriously))* ?(?:try|consider|keep|give|do|check|look|take|let|be|think|remember|make|practice|read|work|pay|continue|follow|find|see|need|go|get|prepare|explore|learn)\b(?! (?:to|back to|the|my|a|an) (?-i:[A-Z]))(?![^.]*\d)",
    r"\b(?:can['’]t wait|look(?:ing)? forward|gotta|gonna|let['’]s|i (?:don['’]t|do not) (?:know|understand)|i appreciate|i (?:should|could|can|might|may|need to|have to|must|won['’]t)\b(?![^.]*(?:\d|\bnot\b|eat|drink))|we (?:can|should|could|both|all|need to|must|learn|have to)\b(?![^.]*\d)|i wanted to|i want to (?:share|talk|ask|chat|know|discuss|thank|try|do|be|make|find|keep)|would love to|i['’]d (?:love|like) to)\b",
)
_FELT = re.compile(
    r"^(?:it['’]?s|sounds?|looks?|glad|wish|love (?:it|that|the|your|how)|must be|gotta|hope|happy|excited|can['’]t wait|so (?:glad|happy|proud|cool|true|excited)|such an?|what an?|how|absolutely|totally|definitely|always (?:good|nice|great|staying)|really|just|nothing (?:like|beats|better)|(?-i:[A-Z]\w+ing) [^.]* (?:is|was|has|must|can|makes?)|together)\b|\b(?:so|really|very|truly|super|pretty) (?:inspiring|rewarding|cool|awesome|amazing|powerful|special|proud|great|nice|fun|important|captivating|touching|true|good|beautiful|helpful|thankful|grateful|happy)\b",
    re.IGNORECASE,
)
"""What something is like, said by nobody in particular."""
_MOOD = _any(
    r"(?:今天|昨天|昨晚|昨儿|今早|今晚|刚才?|刚刚|这会儿|现在|中午|有点儿?|好|真|太|超)[^，。]{0,8}(?:累|困|饿|渴|爽|烦|热死|冷死|堵死?|开心|高兴|难过|无聊|忙死|梦见|郁闷|生气|崩溃|无语|紧张|幸福|美味|好吃|精彩|感人|漂亮)",
    r"^(?:今天|现在)(?:是|已经是|都)(?:个|周|星期|第|美好|晴)|又到了|(?:今天|昨天|外面)[^，。]{0,6}(?:天气|下雨|下雪|刮风|晴|阴|堵车)|睡不着了|要?去(?:睡|休息|吃饭|洗澡)了?|(?:觉得|感觉|感到|认为|个人觉得|希望(?!你)|相信|期待|听(?:他|她|你)的)",
    r"\b(?:i['’]?m|i am|i was|i feel|i felt|feeling)(?: (?:so|very|really|a bit|just|still|not|all|too|pretty|such|quite|also))* (?:tired|hungry|bored|sleepy|exhausted|happy|sad|excited|glad|sorry|sure|stressed|nervous|fine|ok|okay|good|great|proud|grateful|thankful|curious|jealous|amazed|impressed|inspired|lucky|blessed|there|here|down|like)\b",
    r"\bi(?: (?:just|really|also|still|do))* (?:hope|guess|bet|reckon|suppose|wonder|think|believe|thought|feel|imagine|wish|agree|see|understand|know (?:what|how|that|you|it)|mean)\b|\bi(?:['’]ll| will) (?:try|consider|keep|give|do|check|look|take|let|be)\b",
    r"^today is (?:a|an|mon|tues|wednes|thurs|fri|satur|sun)|\bthe weather\b|\b(?:idk|dunno|no idea|thinking out loud|so (?:far so good|tired|cute|fun|cool)|what a)\b|\b(?:had|having) (?:a |such a )?(?:\w+ )?(?:great|good|nice|wonderful|amazing|bad|rough|lovely|fun|blast) ?(?:time|day|week)?\b",
)
UNDECIDED = re.compile(
    r"没想好|没(?:有)?决定|没定下来|\b(?:not (?:yet )?decided|undecided|have(?:n['’]t| not) decided)\b",
    re.IGNORECASE,
)
_UNSETTLED = _any(
    r"再说吧|再看吧|之前说的|刚才说的|前面说的|这次先|今天先|先凑合",
    r"\b(?:we['’]ll see|this time|for now)\b",
)
_TO_AGENT = _any(
    r"你(?!们)(?:的|上次|刚|说|讲|推荐|给|真|很|太|也|都|知道|懂|能|会|是|有|喜欢|吃|好|怎么|提到|觉得|们|想|可以|对|这|最近|现在)",
    r"^(?:you|your|you['’](?:re|ve|ll|d)|thank|as you)\b(?! must)|\b(?:do|did|have|are|were) you\b|\b(?:you|your) (?:said|mentioned|suggest\w*|recommend\w*|advice|told|know|can|should|think|idea|help|too)\b",
)
_STRANGER = _any(
    r"^(?:隔壁|邻居|网友|网上|有个|有些|有的人|有人|某|路人|人家|新闻|听说|据说|抖音|微博|小红书|知乎|朋友圈|昨天看|那个?谁|辅导员|谁)",
    r"(?:上说|说是|听说|据说|网传|传言)",
    r"^(?:(?:the |my |our |a )?(?:neighbou?r(?:['’]s|s)?|guy|stranger)|someone|somebody|some people|people|reddit|twitter|apparently|rumou?r|a (?:guy|friend of a friend))\b",
)
_POINTING = _any(
    # Half a sentence: "when I was there".
    r"(?:的时候|[^其集空手]中|[^小当同及准定]时|来说)$",
    r"^(?:这|那|上面|上述|下面|前面|它|此)(?!周|个?月|年|天|次|学期|季度|边|个?(?:项目|功能|版本|迭代|店|团队|公司))",
    r"^(?:that|this|it|those|these|which|so (?:it|that))\b(?! (?:week|month|year|quarter|project|release|sprint|team|semester))",
)
PRONOUN = re.compile(
    r"^(?:而且|但是?|不过|因为|所以|另外|还有)?(?:他|她|它)(?:们|的)?(?!说|讲|觉得)|^(?:and |but |also |so )?(?:he|she|they|his|her|their)(?:['’](?:s|re|ve|ll|d))?\b(?! (?:said|says|think|thought))",
    re.IGNORECASE,
)
"""Begins with somebody who was named before."""
_AUTHORITY = re.compile(
    r"^(?:[\u4e00-\u9fff]{0,3}[总工导]|老板|领导|上级|客户|甲方|医生|大夫|导师|老师|经理|法务|财务|组长|主管|mentor|校方|学校|房东|我妈|我爸)[^，。]{0,3}(?:说|让|要求|叫|规定|通知|交代|批|不让|不许|想要)"
    r"|\b(?:the |my |our )?(?:boss|client|doctor|advisor|auditors?|legal|management|ceo|cto|landlord|teacher|supervisor|dietitian|physio|dentist|vet)s? (?:says?|said|wants?|insists?|told|asked|requires?)\b",
    re.IGNORECASE,
)
"""Whose word binds the speaker, so that a report of it is no hearsay."""

_ORGANISATION_ZH = r"我们|咱们|团队|项目|公司|我司|单位|部门|组里|店里?|甲方|客户|老板|领导|仓库|环境|系统|接口|合同|论文|版本|代码|数据|脚本|需求|迭代|流程|会议|站会|监控|告警|报告|交付|服务|预算|工期|房租|方案|功能|初稿|模板|字段"
_NUMBER_ZH = r"\d|[一二两三四五六七八九十百千万半几]+ ?(?:个|位|岁|年|月|天|周|点|号|块|元|万|千|百|次|遍|亩|桌|级|公里|斤|度|分钟|小时|页|份|人|口|版|期|档|楼|间|套|台|只|条|片|杯|成)"
_TIME_ZH = r"每[天周月年次晚逢]|天天|周[一二三四五六日末]|星期|早上|晚上|中午|下午|凌晨|晚饭|睡前|下周|下个?月|本周|月底|年底|明年|今年|明天|后天|国庆|春节|暑假|寒假|单周|双周|以前|之前|将来|接下来|下一步|目前|现在|一直|从小|短期"
_DUTY_ZH = r"必须|务必|应该?|需要|得(?!到|了|很|有点|比较)|不能|不得|不可|不许|不准|只能|只|别|不要|不用|禁止|坚决|一律|统一|尽量|最好|超|以内|以下|以上|截止|要(?!是|么)"
_SELF_ZH = r"我|本人|咱|俺|老伴|闺女|娃|孩子|对象|老婆|老公|爸|妈|儿子|女儿|腰|膝盖|血压|血糖|眼睛|胃|颈椎|过敏|导师"
_NAME_ZH = r"[A-Za-z][A-Za-z0-9+#.]{1,}|[「《“‘\"][^」》”’\"]{1,30}[」》”’\"]"
_ANCHOR_ZH = re.compile(
    "|".join((_SELF_ZH, _ORGANISATION_ZH, _NUMBER_ZH, _TIME_ZH, _DUTY_ZH, _NAME_ZH))
)
_DATE_EN = r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b(?! be)|\b(?:next|this|every) (?:\w+ )?(?:week|month|year|quarter|summer|winter|spring|autumn|fall|night|day|morning|evening)\b|\b\d{1,2}(?:st|nd|rd|th)\b"
_ANCHOR_EN = re.compile(
    rf"\b(?:i|i['’]\w+|im|my|me|we|we['’]\w+|our|us|mine|ours)\b|\d|{_DATE_EN}"
    r"|\b(?:must|has to|have to|needs? to|only|never|always|no|nothing|don['’]t|avoid|skip|use|due|deadline)\b"
    r"|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty|thirty|forty|fifty|sixty|half|dozen|hundreds?|thousands?)\b"
    r"|(?-i:(?<=\S )[A-Z][\w.+#-]+)|https?://",
    re.IGNORECASE,
)

NAMES = re.compile(
    r"(?<![\w.])[A-Z][a-z]+|叫[\u4e00-\u9fffA-Za-z]|[猫狗鸟兔鱼]|\b(?:dog|cat|puppy|kitten|horse|parrot|greyhound)\b"
)
"""Somebody or something a pronoun may stand for."""

T = MemoryType
_WISHES_ZH = r"^(?:那|但|不过|而且|你|您|所以|另外|还有|给我|推荐|给)*[^我，。]{0,14}(?:别|不要|不用|甭|尽量|往[^，]{1,8}靠|一律|避开|避免|大点|简单些?|简洁|详细|[^，]{1,4}[一]?点儿?$|写清楚|按[^，]{1,12}(?:给|写|发|来)|给(?:完整|出|全)|用[^，]{1,14}(?:的那种|版本?|格式|拼写|单位|全名|步骤)|抬头|落款|标题|叫我|行程|提醒)"
_WISHES_EN = r"^(?:(?:please|and|but|so|also|just|ok|the)[ ,]+)*(?:no|skip|use|keep|avoid|don['’]t|do not|stop|leave|stick|put|format|report|cite|quote|number|spell|never|always|only|nothing|short|long|brief|plain|bullet|go easy|be|loosen|tone|say|answer|reply|respond|treat|assume|write|explain|give|make|speak|talk)\b"
_MANNER_EN = r"\bplease (?:don['’]t|keep|use|avoid|explain|stop|skip|be|no|only|never)\b|\bno need (?:to|for)\b|\byou(?:['’]re| are) (?:being )?too\b|\bskip the\b|\bleave (?:that|those|them|it) out\b"
_WISH_ZH = re.compile(_WISHES_ZH)
_KINDS: tuple[tuple[str, str, MemoryType, Scope], ...] = (
    # ---- Chinese; the first that fits.
    ("zh.plain.reference", r"(?:在|放|丢|存|见|挂|传)(?:到|在|了|于)?[^，。]{0,12}(?:[/\\]|「|目录|文件夹|盘|知识库|群文件|书签|语雀|飞书|wiki)|https?://|(?:模板|手册|文档|体例|规范|版本?)[^，。]{0,6}(?:用|按|以)[^，。]{0,8}(?:版|为准)", T.REFERENCE, Scope.PROJECT),
    ("zh.plain.wish", _WISHES_ZH, T.PREFERENCE, Scope.USER),
    ("zh.plain.constraint", r"必须|务必|不得|不能|不可|不许|不准|只能|禁止|得(?:先|带|有|控制|打印|[^，到了很]{1,8}(?:才|前|后|上|成|做))|要求|规定|要附|上限|下限|超过?\d|不超|以内|才(?:报|能|行)|先[^，]{1,8}再|截止|预算|爬不了|吃不了|碰不了|碰|低盐|按[^，]{1,10}来|窗口", T.CONSTRAINT, Scope.PROJECT),
    ("zh.plain.progress", r"\d+ ?%|完了|完成|搞定|跑通|卡(?:在|住)|还没|没定|已经|付了|点头|过了$|剩|下一步|接下来|进行到|一半|正在|排期|大概周|能联调|改了[^，]{1,4}版|跟到|差异|弄的", T.TASK_PROGRESS, Scope.PROJECT),
    ("zh.plain.decision", r"(?:定|改|换|停|弃|拍|选|砍|放|推迟|延|挪|升|降|合并|走)(?:的|成|到|为|在|掉|了|给)|不做了?|先不|就(?:用|走|按)|只做|不会?(?:升级|换|改|上)|集中做|还是[^，]{2,10}吧$", T.DECISION, Scope.PROJECT),
    ("zh.plain.event", r"(?:下周|下个?月|本?周[一二三四五六日末]|月底|年底|明年|明天|后天|国庆|春节|暑假|寒假|\d+ ?月|\d+ ?[号日]|[一二三四五六七八九十]+月|今年)[^，。]{0,16}(?:要|去|考|送|开|到|约|报|定|交|办|答辩|婚|疫苗|面试|截止|上线|印|打算|备战|目标|想|试)|备战|想(?:去|保研|考)|打算|计划|约的?是|旅行|(?:送审|答辩|考试|面试|体检|疫苗|到期)|(?:去|看|买|参加|学|吃|做|读|听|搬|换)(?:完|到|会)?了", T.EVENT, Scope.USER),
    ("zh.plain.skill", r"(?:不会|会(?!议|员|话|计)|能|懂|学|考)[^，。]{0,8}(?:过|级|证|弹|唱|游|骑|手语|琴|画|写|说|修|开|编|做)|还行|没问题|零基础|入门|精通|不在行|用不惯", T.SKILL, Scope.USER),
    ("zh.plain.habit", r"每[天周月年晚次逢]|天天|一[天周月年][一二两三四五六七八九十\d]+|单周|双周|轮到|从来|一般|通常|平时|反正[^，]{0,3}只|(?:周|早|晚)[^，]{0,6}各|频率|饭后|睡前|点半?(?:起|睡|以后|之前)|雷打不动", T.HABIT, Scope.USER),
    ("zh.plain.preference", r"喜欢|爱|讨厌|受不了|抗拒|怕|烦|宁|社恐|偏|坚决|最好|希望|不碰|不吃|不喝|只(?:喝|吃|用|看|要)", T.PREFERENCE, Scope.USER),
    ("zh.plain.context", r"用的|跑在|部署|基于|升到|环境|系统|架构|组里|团队|项目|仓库|接口|负责人|我们|咱们|我司|公司|单位", T.CONTEXT, Scope.PROJECT),
    ("zh.plain.fact", r"", T.FACT, Scope.USER),
    # ---- English
    ("en.plain.reference", r"\b(?:is|are|lives?|sits?|in|at|under|on|see|kept)\b[^.]{0,30}(?:\w+/\w+|> \w+|\b(?:notion|confluence|drive|dropbox|sharepoint|wiki|folder|repo|github|gitlab|figma|jira|trello|airtable)\b)|https?://", T.REFERENCE, Scope.PROJECT),
    ("en.plain.wish", _WISHES_EN, T.PREFERENCE, Scope.USER),
    ("en.plain.manner", _MANNER_EN, T.PREFERENCE, Scope.USER),
    ("en.plain.event", rf"(?:{_DATE_EN})[^.]{{0,30}}$|\b(?:off to|going (?:back )?to|booked|heading|flying|travelling|moving|visiting|getting|aiming|saving|trying to|pushed to|wants? [^.]{{1,20}} by)\b|\bi(?:['’]ve| have)?(?: \w+)? (?:went|visited|saw|watched|met|attended|bought|joined|finished|tried|took|passed|applied|signed|spent|adopted|cooked|made|started|won|lost|ran|performed|graduated)\b", T.EVENT, Scope.USER),
    ("en.plain.constraint", r"\b(?:must|has to|have to|needs? (?:to|\w+ (?:approvals?|sign))|can['’]t|cannot|only|at least|at most|no more|stay under|under \d|max(?:imum)?|min(?:imum)?|limit|required?|non-negotiable|allowed|before (?:we|merge|release)|due|deadline|by the \d|is out|are out|full stop|not (?:to|an option)|term|for \w+ years|keep kosher|halal|gluten|doctor)\b", T.CONSTRAINT, Scope.PROJECT),
    ("en.plain.progress", r"\d+ ?%|\d+k words|\b(?:stuck|blocked|waiting (?:on|for)|done|finished|ready|remaining|cut over|in progress|halfway|half the|underway|labelled|pending|so far|behind schedule|already \w+ed)\b", T.TASK_PROGRESS, Scope.PROJECT),
    ("en.plain.decision", r"\b(?:staying on|going with|went with|instead|switch\w*|killing|kill|drop\w*|settled|we['’]re (?:not )?(?:doing|using|keeping|staying)|going to be|from here on|agreed|overkill|it is)\b|\bthen$", T.DECISION, Scope.PROJECT),
    ("en.plain.skill", r"\b(?:code in|play(?:ed|s)?|learn(?:ed|t|ing)|hopeless at|bad at|terrible at|good at|rusty|fluent|confuses? me|beginner|self-taught|sight-read|certified|speak)\b", T.SKILL, Scope.USER),
    ("en.plain.habit", r"\b(?:every|most (?:nights|days|mornings|weekends)|twice|once a|a week|a day|nights|mornings|weekends|mondays|tuesdays|wednesdays|thursdays|fridays|saturdays|sundays|usually|often|always|never|in bed by|at \d ?(?:am|pm)?|my own)\b", T.HABIT, Scope.USER),
    ("en.plain.preference", r"\b(?:like|love|hate|can['’]t stand|prefer|enjoy|fan of|don['’]t (?:do|eat|drink|fly|use|watch)|(?:really|mostly|super|so|not|big) (?:into|keen)|['’]m into|useless to me|rather|favou?rite)\b", T.PREFERENCE, Scope.USER),
    ("en.plain.context", r"^(?:[\w']+ ){0,3}(?:we|our|we['’]\w+)\b", T.CONTEXT, Scope.PROJECT),
    ("en.plain.fact", r"", T.FACT, Scope.USER),
)  # fmt: skip
_FIRM_ZH = re.compile(
    "|".join((_SELF_ZH.removeprefix("我|"), _ORGANISATION_ZH, _NUMBER_ZH, _NAME_ZH))
    + "|过(?:敏|级|证)|住|叫|来自|毕业|工作|上班|职业|专业|用的"
)
_FIRM_EN = re.compile(
    rf"\\d|{_DATE_EN}|(?-i:(?<=\\S )[A-Z][\\w.+#-]+)|\\b(?:{_KIN_EN})s?\\b"
    r"|\b(?:years?|my (?!own)\w+|our \w+|live|work|job|own|drive|have (?:an?|two|three|no)|name|born|from|called|using|i['’]m an?|i am an?|i['’]?ve no|go by|agent)\b",
    re.IGNORECASE,
)
"""More than the speaker alone: a number, name, date, relation, possession or place."""
_CURT = re.compile(
    r"^(?:no(?! (?:problem|worries|idea|way|doubt|rush|thanks|kidding|clue|need))|short(?:er)?|brief|fewer|less|plain|simple|bullet) \w+(?: \w+)?$",
    re.IGNORECASE,
)
"""A wish in two words: "No emojis"."""
_SAYS = {"zh.plain.wish": "{who}希望", "en.plain.wish": "{who} wants this: "}
RULES: tuple[Rule, ...] = tuple(
    Rule(name, re.compile(pattern, re.IGNORECASE), kind, CONFIDENCE, scope, _SAYS.get(name, ""))
    for name, pattern, kind, scope in _KINDS
)


def passing(clause: str, *, pronoun: bool = False) -> str:
    """Why `clause` is nothing to keep: a reaction, request, pleasantry, promise, feeling, mood,
    unsettled, agent, stranger or pointing;
    empty: it may be. `pronoun`: it is known whom a pronoun means."""
    standing = bool(_STANDING.search(clause))
    for why, pattern in (
        ("reaction", _REACTION),
        ("request", None if standing else _ASKED_FOR),
        ("pleasantry", PLEASANTRY),
        ("promise", _PROMISE),
        ("feeling", _FELT),
        ("mood", _MOOD),
        ("unsettled", _UNSETTLED),
        ("agent", None if standing else _TO_AGENT),
        ("stranger", None if _AUTHORITY.search(clause) else _STRANGER),
        ("pointing", None if pronoun else _POINTING),
        ("pointing", None if pronoun else PRONOUN),
    ):
        if pattern is not None and pattern.search(clause):
            return why
    return ""


def anchored(clause: str, *, chinese: bool) -> bool:
    """Does it name something that a memory can stand on?"""
    if chinese:
        anchor = (
            _ANCHOR_ZH.search(clause) or _WISH_ZH.search(clause) or with_subject(clause) != clause
        )
        return len(clause) >= SHORTEST_ZH and bool(anchor)
    if _CURT.search(clause):
        return True
    anchor = _ANCHOR_EN.search(clause) or with_subject(clause) != clause
    return len(clause.split()) >= SHORTEST_EN and bool(anchor)


def kind(clause: str, *, chinese: bool) -> Rule | None:
    """The kind of statement `clause` plainly makes; None when there is nothing to keep."""
    if passing(clause) or not anchored(clause, chinese=chinese):
        return None
    language = "zh" if chinese else "en"
    found = next(r for r in RULES if r.name.startswith(language) and r.pattern.search(clause))
    told = _FIRM_ZH if chinese else _FIRM_EN
    firm = not found.name.endswith((".fact", ".context")) or told.search(clause)
    return found if firm else replace(found, confidence=WEAK)


def authority(sentence: str) -> bool:
    """Does `sentence` report what somebody decided who may?"""
    return bool(_AUTHORITY.search(sentence))
