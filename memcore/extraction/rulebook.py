# ruff: noqa: E501
"""The offline extractor's rules, Chinese and English: what a clause must look like, and what it
then is. Pure: no I/O. A rule's name is the evidence shown to people; docs/extraction.md prints this
table with the figures. Order matters: the first rule that matches a clause names it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from memcore.models import MemoryType, Scope


@dataclass(frozen=True, slots=True)
class Rule:
    name: str
    """Language and kind, such as `zh.preference`."""
    pattern: re.Pattern[str]
    memory_type: MemoryType
    confidence: float
    scope: Scope = Scope.USER
    says: str = ""
    """Put before a clause that has no subject of its own, instead of the speaker."""


_ADV = r"(?:也|还|都|就|更|很|最|太|真的?|其实|一直|特别|非常|比较|超级?|一般|平时|从来|从小|现在|目前|最近|基本|通常|主要|个人|这次|本次|暂时)*"
_ME = r"(?:^|[，,；;：: 、])(?:我|本人|俺|咱)(?:自己|个人)?"
_US = r"(?:(?<!关于)我们|咱们|团队|项目|公司|部门|小组|大家|全组|服务端?|系统|后端|前端|客户端|产品|仓库|平台|线上)"
_WHEN = (
    r"(?:今晚|明天|明晚|后天|大后天|下下?周[一二三四五六日天末]?|本周[一二三四五六日天末]|这周[一二三四五六日天末]|周[一二三四五六日天末]|星期[一二三四五六日天]"
    r"|下个?月(?:初|中|底)?|月底|年底|明年|今年[春夏秋冬年]\S{0,2}|(?:\d{1,2} ?|[一二三四五六七八九十]{1,2})月(?:\d{1,2} ?[日号]|初|中旬?|底|上旬|下旬)?|\d{1,2} ?[日号]|暑假|寒假|国庆|春节|五一|元旦|中秋|端午|年后)"
)
_MY = r"(?:^|[,;:] ?|\b(?:and|but|so|also|because|actually|well|btw|by the way) ,?)(?:i|we)"
_OUR = r"(?:we|our team|the team|our (?:\w+ )?(?:project|service|company|app|backend|frontend|stack|repo|database|cluster|pipeline|server|site|office|store|shop)|the (?:project|service|backend|frontend|app|system|api|build|release|database|repo))"
_WHEN_EN = (
    r"(?:tomorrow|(?:this|next|on|by|until) (?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:this|next) (?:week(?:end)?|month|year|quarter|spring|summer|fall|autumn|winter)"
    r"|(?:in|by|on|until|before) (?:january|february|march|april|may|june|july|august|september|october|november|december|q[1-4])\b(?: \d{1,2})?"
    r"|on (?:the )?\d{1,2}(?:st|nd|rd|th)|in \w+ (?:days|weeks|months))"
)


def _rule(
    name: str,
    pattern: str,
    memory_type: MemoryType,
    confidence: float,
    scope: Scope = Scope.USER,
    says: str = "",
) -> Rule:
    return Rule(name, re.compile(pattern, re.IGNORECASE), memory_type, confidence, scope, says)


T = MemoryType
RULES: tuple[Rule, ...] = (
    # ---- Chinese
    _rule("zh.allergy", rf"{_ME}{_ADV}(?:对[^，。]{{1,12}}过敏|不(?:能)?(?:吃|喝|碰)|吃不了|喝不了|忌口|吃素|只吃|有[^，。]{{0,8}}(?:糖尿病|高血压|哮喘|痛风|胃病|不耐受))", T.CONSTRAINT, 0.95),
    _rule("zh.wish", r"^(?:请|麻烦)?你?(?:以后|今后|往后|从现在起|从今以后|之后|接下来|每次(?!都有))你?[^？?我]{0,16}(?:都|请|用|别|不要|不用|只|先|再|尽量|统一|必须|叫我|给我)|^(?:回答|回复|解释|代码|输出|注释|文档|邮件)(?:时|的时候)?(?:请|都|要|尽量|一律|别|不要|用)|^[^，。？?]{0,8}(?:邮件|例句|文案|报告|标题|总结|翻译|图表|字幕|注释|回复|回答|代码|文档)(?:里|中|时)?(?:请|尽量|都|一律|统一|别|不要)[^？?]+|^(?:别|不要|少|尽量|请)[^？?，。]{0,10}(?:回答|回复|解释|啰嗦|废话|用表情|道歉|给我|叫我|称呼)|^(?:请)?(?:叫|喊|称呼)我[^，。？]{1,12}|^我(?:以后|今后|往后)都", T.PREFERENCE, 0.9, says="{who}希望"),
    _rule("zh.preference", rf"{_ME}{_ADV}(?:不|不太|不怎么|没那么)?(?:喜欢|爱(?!人|好者)|喜爱|偏好|偏爱|偏向|热爱|钟爱|倾向于?|青睐|习惯用|讨厌|厌恶|受不了|反感|不想要|宁愿|宁可|更愿意|只想要|希望你)|我(?:的)?(?:最爱|爱好|偏好|口味)", T.PREFERENCE, 0.9),
    _rule("zh.skill", rf"{_ME}{_ADV}(?:擅长|精通|熟悉|熟练|拿手|懂(?:得|一点)?|学过|掌握|能(?:流利|熟练)|[A-Za-z]{{2,}}[^，。]{{0,3}}(?:用|写|玩)得(?:最|很|比较)?(?:熟|好|多|溜)|会(?:说|写|弹|拉|唱|画|做(?:饭|菜)|修|开车|游泳|用|编程|点|一点|一些|滑|打|跳|下棋|剪|木工|手语|[A-Za-z]))|我的(?:特长|强项)是|^[A-Za-z][\w+#. ]{{0,20}}(?:用|写|玩)得(?:最|很|比较)?(?:熟|好|多|溜)", T.SKILL, 0.85),
    _rule("zh.habit", rf"(?:{_ME}{_ADV}(?:习惯|每(?:天|周|晚|月|年|个?星期|逢|次)|经常|常常|总是|总会|老是|平常|平时(?!不)|通常|一般(?:都|会|在)|周[一二三四五六日末]都|周末(?:都|会|常|喜欢)|早上都|晚上都|天天|睡前|早起|晚睡|熬夜)|^[^，。？?]{{2,10}}我(?:一般|通常|基本|从来)(?:都|不|会|只)?|^(?:周会|例会|站会|晨会|早会|月会|评审会?)(?:固定|定在|改在|是|在|都)[^？?]*|^(?:平时|每天|每周[一二三四五六日末]?|每晚|每个?星期)(?!的)[^？?]{{2,}}|^(?:平时|通常|一般|周末)(?:都|会|我|早|晚|要|上|下|去|跑|读|看|用)[^？?]*)", T.HABIT, 0.85, says="{who}"),
    _rule("zh.decision", rf"(?:{_US}|{_ME}|^|刚才?|最后|最终|会上)[^？?，。]{{0,8}}(?:决定|敲定|拍板|定下来|商定|选定|定了|确定(?:用|采用|下来|了|改)|一致同意|改(?:成|为|用|到)|换(?:成|到|用)|弃用|不再(?:用|使用|支持|维护)|采用|就用|迁到)", T.DECISION, 0.9, Scope.PROJECT, says="决定："),
    _rule("zh.progress", rf"(?:{_US}|{_ME}|^)?[^？?，。]{{0,18}}(?:(?:已经?|刚刚?|都|全部|终于|今天|昨天)[^？?，。]{{0,8}}(?:完成|做完|写完|上线|搞定|合并|修好|修复|部署|测完|迁移完|发布|交付|通过|跑通|提交)了?|[^？?，。]{{2,12}}(?:做|写|改|测|搭|画|修|跑|翻|搬|迁)完了$|完成了?\s?(?:\d+ ?%|一半|大半|[一二三四五六七八九]成)|进度(?:是|到|在|为|已|约|大概)|还剩|还差|卡在|阻塞在|等着?[^，。]{{1,8}}(?:审批|评审|接口|联调)|正在(?:做|写|开发|迁移|重构|测试|修|联调|排查|对接))", T.TASK_PROGRESS, 0.8, Scope.PROJECT),
    _rule("zh.event", rf"{_WHEN}[^？?。]{{0,16}}(?:要|想|会(?!不)|打算|计划|准备|去|有|是我|飞|出差|搬|结婚|面试|考试|手术|开会|上线|发布|截止|评审|休假|请假|体检|出发|到期|交付|回|过生日|答辩|开学|入职|离职|演出|比赛|婚礼|放假|见)|(?:{_ME}|{_US})[^？?，。]{{0,6}}(?:打算|计划|准备|预计|约了|报了|订了|预约了)[^？?。]{{2,}}", T.EVENT, 0.85),
    _rule("zh.reference", r"(?:文档|链接|地址|仓库|代码|设计稿|原型|看板|wiki|手册|教程|规范|模板|日志|账号表|会议纪要|接口说明|说明书|架构图|网盘|表格)[^？?，。]{0,14}(?:在|放在|放到|存在|位于|见|是|：|:)\s?(?:[^？?]{0,20}(?:https?://|www\.)|[^？?，。]*(?:wiki|网盘|语雀|飞书|腾讯文档|notion|confluence|figma|github|gitlab|目录|文件夹|共享盘|知识库|仓库|docs?/|/\w+))|https?://\S+", T.REFERENCE, 0.85, Scope.PROJECT),
    _rule("zh.constraint", rf"(?:{_US}|规定|规范|要求|合同|客户|合规|预算|工期|接口|提交|上线|代码|数据|密码|发布|评审|部署|测试|报销|会议)[^？?。]{{0,24}}(?:必须|务必|不得|不能|不可以?|不允许|禁止|严禁|一律|只能|不要超过|不超过|不低于|不少于|至少|最多|上限|下限|以内|之前必须|需要?先|不许|才能)|^(?:必须|务必|不得|禁止|严禁|一律|只能)[^？?]{{2,}}|(?:预算|工期|截止日?期?|期限|上限|配额|目标)(?:是|为|定在|在|到|约|大概|控制在|只有|：|:)", T.CONSTRAINT, 0.85, Scope.PROJECT),
    _rule("zh.name", r"(?:^|[，,])(?:我叫|我姓|我的名字(?:叫|是)|我是[\u4e00-\u9fffA-Za-z]{1,8}(?:，|$))", T.FACT, 0.95),
    _rule("zh.family", r"我(?:家|的)?(?:里)?(?:养了?[^？?，。]{2,10}|有[^？?，。]{0,3}[只匹][^？?，。]+|(?:有|生了)[^？?，。]{0,6}(?:猫|狗|犬|孩|儿子|女儿|娃|兔|鸟|鱼|龟|鼠|弟弟|妹妹|哥哥|姐姐|双胞胎))|我(?:的)?(?:猫|狗|女儿|儿子|孩子|老婆|妻子|太太|老公|丈夫|妈妈?|爸爸?|父母|女朋友|男朋友|哥哥?|姐姐?|弟弟?|妹妹?|室友|同事|老板|领导|朋友)(?:叫|是|在|今年|也|会|不|喜欢|对|住|做|上|刚|最)", T.FACT, 0.85),
    _rule("zh.fact", rf"{_ME}{_ADV}(?:是(?!说|想|不是|否|觉得|怕|指|问|要|来|在想|去)|住(?:在|的)?|家在|来自|出生|毕业于?|今年|从事|负责|就职|任职|在[^，。？?]{{1,16}}(?:工作|上班|上学|读|念|做|当|实习|负责|任|创业|长大|定居)|做[^，。？?]{{0,10}}(?:的|开发|设计|运营|产品|销售|测试|老师)$|属[鼠牛虎兔龙蛇马羊猴鸡狗猪]|有(?:驾照|护照|房|车|\S{{0,6}}经验|\S{{0,4}}证)|用的?(?:是|手机|电脑|系统|编辑器|键盘)|搬(?:到|去|来)|换(?:到|去|了)|调(?:到|去)|转(?:到|岗)|生日|怀孕|戴眼镜|色盲|左撇子|晕[车船机]|恐高|近视|失眠|打鼾|怕(?:黑|高|冷|热)|(?:左|右|双)?(?:耳|眼|手|腿|膝盖?|腰|胃|心脏|颈椎|听力|视力)[^，。？?]{{0,8}}(?:不好|有伤|受过伤|疼|做过|开过刀|骨折)|(?:本科|大学|硕士|研究生)(?:学|读|念)的?是?|自学|转行|学的是)|我的?(?:生日|时区|身高|体重|血型|手机|电脑|公司|专业|职业|工作|老家|故乡|母语|邮箱|团队|岗位|职位)(?:型号)?(?:是|在|为|有|叫|用)", T.FACT, 0.85),
    _rule("zh.context", rf"{_US}(?:的)?[^？?，。]{{0,8}}(?:用的?(?:是)?|使用|基于|跑在|部署在|运行在|依赖|托管在|存在|支持|分成|分为|由|叫|是(?!不是|否)|(?:一共|总共|共|有)有?\s?(?:\d|[一二三四五六七八九十两几]))[^？?]{{1,}}", T.CONTEXT, 0.8, Scope.PROJECT),
    # ---- English
    _rule("en.allergy", rf"{_MY}(?:['’]m| am)? (?:\w+ )?(?:allergic to|(?:do not|don['’]t|can['’]t|cannot|never) (?:eat|drink)|vegetarian|vegan|intolerant|diabetic|have (?:a |an )?(?:\w+ )?(?:allergy|asthma|diabetes))", T.CONSTRAINT, 0.95),
    _rule("en.wish", r"^(?:please )?(?:from now on|in (?:the )?future|going forward|always|never|don['’]t ever)\b,? ?(?:please )?(?:answer|reply|respond|use|write|keep|call|give|explain|show|avoid|start|include|format|send|ask|apologi[sz]e)|^(?:please )?(?:keep|make) (?:your |the )?(?:answers?|replies|responses|explanations?|code)\b|^(?:please )?(?:call me|address me as)\b|^(?:please )?(?:don['’]t|do not|stop) (?:use|using|apologi[sz]\w*|explain\w*|add\w*|call\w*|repeat\w*|writ\w*)", T.PREFERENCE, 0.9, says="{who} wants this: "),
    _rule("en.preference", rf"{_MY}(?:['’]d)? (?:\w+ly |also |still |just )?(?:(?:do not|don['’]t|can['’]t|cannot) )?(?:would rather|rather|(?<!['’]d )(?<!would )(?:prefer|like|love|enjoy|hate|dislike|adore|loathe|favou?r|stand)|prefer |want (?:my|the|all|short|long|code|answers)|(?:am|['’]m) (?:a fan of|into|fond of|not a fan of))\b|\bi['’]m (?:not )?(?:a (?:big |huge )?fan of|into|fond of|keen on)\b|\bmy (?:favou?rite|preference|preferred)\b", T.PREFERENCE, 0.9),
    _rule("en.skill", r"\bi (?:can (?:speak|play|write|code|cook|read|draw|sing|drive|ski|swim|sew|program|fix|repair|juggle)|know how to|am (?:good|great|fluent|experienced|proficient|skilled) (?:at|in|with)|speak|play the|have (?:\d+|\w+) years of (?:experience|\w+ experience))\b|\bi['’]m (?:\w+ )?(?:good|great|fluent|experienced|proficient|skilled) (?:at|in|with)\b|\bi know (?:python|rust|go|java|sql|c\+\+|kubernetes|excel)\b", T.SKILL, 0.85),
    _rule("en.habit", r"\b(?:i|we) (?:\w+ )?(?:usually|always|often|typically|normally|generally|tend to|regularly|never)\b|\bi['’]m used to\b|\bi (?:\w+ ){1,6}(?:every (?:day|morning|evening|night|week|weekend|month|year|monday|tuesday|wednesday|thursday|friday|saturday|sunday|other)|each (?:day|morning|evening|week)|daily|weekly|on (?:mon|tues|wednes|thurs|fri|satur|sun)days|twice a|once a|most (?:days|mornings|evenings))\b|^every (?:day|morning|evening|night|week|weekend|monday|friday|sunday)\b,? i\b", T.HABIT, 0.85),
    _rule("en.decision", rf"\b{_OUR}(?:['’]ve|['’]re| have| are| will)? ?(?:just |finally |all |now )?(?:decided|agreed|settled|chose|picked|went with|go(?:ing)? with|switch(?:ed|ing)|moved? to|migrat(?:ed|ing) to|dropp(?:ed|ing)|adopt(?:ed|ing)?|opted|standardi[sz]ed)\b|^(?:decision|decided|agreed|let['’]s (?:go with|use|switch to|settle on))\b|^final (?:call|decision)\b|^\w+(?: \w+)? is (?:out|in)$|\bi(?:['’]ve| have)? (?:finally |just )?decided (?:to|on|that|against)\b", T.DECISION, 0.9, Scope.PROJECT, says="Decided: "),
    _rule("en.progress", rf"\b(?:i|{_OUR}|the \w+(?: \w+)?)(?:['’]ve|['’]m| have| has| is| are| was| were)? ?(?:just |now |already |finally |almost |nearly |about )*(?:finished|completed|merged|deployed|shipped|released|fixed|done with|blocked (?:on|by)|stuck (?:on|at)|halfway|waiting (?:for|on)|working on|migrated|\d+ ?(?:%|percent) (?:done|complete|finished|migrated))|\b(?:\d+ ?%|\d+ percent) (?:of the|of our|done|complete|finished)", T.TASK_PROGRESS, 0.8, Scope.PROJECT),
    _rule("en.event", rf"\b(?:i|we)(?:['’]m|['’]re|['’]ll|['’]ve| am| are| will| have)? [^?.]{{0,40}}{_WHEN_EN}|\b{_WHEN_EN}\b[^?.]{{0,10}}\b(?:i|we)(?:['’]m|['’]ll|['’]re| am| are| will| have)\b|\bi(?:['’]m| am) (?:planning to|going to (?:move|visit|marry|start|fly|travel|run)|getting married|moving to|flying to|expecting)|\b(?:my|the|our) (?:\w+ )?(?:wedding|flight|exam|interview|appointment|surgery|demo|launch|release|deadline|review|meeting|concert|marathon|vacation|holiday|birthday) (?:is|was|will be|starts|begins)\b", T.EVENT, 0.85),
    _rule("en.reference", r"\b(?:docs?|documentation|link|repo(?:sitory)?|wiki|spec|design|board|runbook|guide|manual|notes|diagram|dashboard|template|logs?)\b[^?]{0,30}\b(?:is|are|lives?|sits?|can be found|at|in|on)\b[^?]{0,40}(?:https?://|www\.|\b(?:wiki|notion|confluence|figma|github|gitlab|drive|sharepoint|docs?/|folder)\b)|https?://\S+", T.REFERENCE, 0.85, Scope.PROJECT),
    _rule("en.constraint", rf"\b(?:{_OUR}|everything|every \w+|all \w+|no \w+|commits?|releases?|deploys?|deployments?|data|passwords?|the budget|budget|clients?)\b[^?.]{{0,30}}\b(?:must(?: not)?|may not|mustn['’]t|cannot|can['’]t|(?:is|are) not allowed|(?:is|are) forbidden|has to|at most|at least|no more than|not exceed|limited to|only (?:use|allow|support))\b|\b(?:the )?(?:budget|deadline|limit|quota|target|sla) (?:is|was|must|of)\b|^(?:never|no) (?:deploy|commit|merge|push|release|store)\w*\b", T.CONSTRAINT, 0.85, Scope.PROJECT),
    _rule("en.name", r"\bmy name(?:['’]s| is)\b|\bi(?:['’]m| am) (?-i:[A-Z][a-z]+)(?:$|,| from| and\b)|\bi['’]m called\b|\bi go by\b|\bcall me\b", T.FACT, 0.95),
    _rule("en.family", r"\bi (?:have|got|own|adopted|raise) (?:a|an|two|three|four|\d) (?:\w+ )?(?:dogs?|cats?|kids?|sons?|daughters?|children|brothers?|sisters?|parrots?|rabbits?|horses?|bab(?:y|ies))|\b(?:my|our) (?:\w+ )?(?:wife|husband|partner|son|daughter|kid|mom|mother|dad|father|brother|sister|roommate|boss|manager|dog|cat|girlfriend|boyfriend|best friend)(?:['’]s name)?(?: (?-i:[A-Z]\w+))? (?:is|turns|was|works|lives|likes|loves|hates|has|can|wants|goes|started|speaks)\b", T.FACT, 0.85),
    _rule("en.fact", r"\bi(?:['’]m| am) (?:an? |the |from |based |originally |living |working |studying |left-handed|colou?r-?blind|\d+ years|in (?:the )?(?:\w+ )?(?:team|department|office|finance|marketing|sales))|\bi(?:['’]ve| have)? (?:live|lived|work|worked|study|studied|grew up|was born|graduated|moved|switched|own|use|drive|teach|manage|lead|maintain|run a|joined)\b|\bi (?:have|hold) (?:a |an )?(?:\w+ ){0,2}(?:degree|license|licence|visa|certificate|allergy|passport|phd|job)\b|\bmy (?:job|birthday|time ?zone|email|phone|laptop|editor|company|team|role|title|hometown|native language|address|car|bike) (?:is|runs|uses)\b|\bmy (?:left |right |lower )?(?:knee|back|eye|ear|hand|shoulder|ankle|hip|heart|hearing|eyesight|wrist)s? (?:is|was|are|were|has|hurts?|got)\b", T.FACT, 0.85),
    _rule("en.context", rf"\b(?:{_OUR}) (?:currently |now |already )?(?:use|uses|run|runs|is|are|has|have|consists?|depends?|supports?|stores?|targets?|gets?|is hosted|is built|is written|deploys?)\b", T.CONTEXT, 0.8, Scope.PROJECT),
)  # fmt: skip

REMEMBER = re.compile(
    r"^(?:请|麻烦|对了|另外|还有|顺便)*[，, ]?(?:请?你?(?:帮我|给我|替我)?(?:记住|记一下|记下来?|记好|记着)|别忘了?|不要忘了?|备忘)(?:一下|了|这个|这件事|这点|这条)?[，,：: ]*(?P<zh>.+)"
    r"|^(?:please |also |and |ok(?:ay)? |hey )*(?:remember|note|keep in mind|don['’]?t forget|make a note|bear in mind|for the record|fyi)(?: (?:that|this))?[,: ]+(?P<en>.+)",
    re.IGNORECASE,
)
"""Somebody asks to remember: what follows is kept whatever it looks like."""

REMEMBER_AFTER = re.compile(
    r"[，,。；; ]+(?:请|麻烦|你)?(?:帮我|给我|替我)?(?:记一下|记住|记下来?|记好|记着|备忘一下)(?:这个|这点|哈|啊|吧|哦|了|一下)*[。！!~ ]*$"
    r"|[,;. ]+(?:please )?(?:remember (?:that|this|it)|keep (?:that|this) in mind|make a note(?: of (?:that|this|it))?|note (?:that|this) down|don['’]t forget(?: (?:that|this|it))?)[.!]*$",
    re.IGNORECASE,
)
"""The same, said after it."""
QUESTION = re.compile(
    r"[?？]\s*$|(?:吗|呢|么|没有呀|是不是|好不好|行不行|对不对|怎么样)[。！!~～ ]*$|^(?:怎么|为什么|为啥|什么|哪|谁|多少|几|能不能|可不可以|可以帮|是否|有没有|如何|要不要)"
    r"|^(?:how|what|why|when|where|who|which|can you|could you|would you|do you|does|did|is it|are there|should (?:i|we)|may i)\b",
    re.IGNORECASE,
)
SUPPOSED = re.compile(
    r"如果|假如|要是|假设|万一|倘若|的话|比如说?我|举个?例|好像是别人|我以为|本来想|差点"
    r"|\b(?:if (?:i|we|you|it|the|there)|suppose|imagine|what if|let['’]s say|for example|e\.g\.|used to (?!to)|i thought|would have|i wish)\b",
    re.IGNORECASE,
)
HEDGE = re.compile(
    r"可能|也许|大概(?!需要)|或许|应该是|不确定|说不定|貌似|似乎|考虑|还没想好|再看看|差不多会"
    r"|\b(?:maybe|perhaps|probably|might|not sure|i guess|i think i|possibly|considering|thinking about|kind of|sort of)\b",
    re.IGNORECASE,
)
REPORTED = re.compile(
    r"(?:网页|文章|邮件|帖子|文档|新闻|书|上面|原文|报告|评论|页面|别人|有人|他们|她|他|博客|论文)(?:里|上|中)?(?:写着?|说|讲|提到|认为|表示|建议|声称)"
    r"|\b(?:he|she|they|the (?:article|page|email|post|book|website|document|doc|blog)|someone|people|it) (?:says?|said|claims?|wrote|writes|thinks?|suggests?|mentions?|told)\b",
    re.IGNORECASE,
)
SPEECH = re.compile(
    r"[「『“\"][^」』”\"]{0,80}(?:我(?!们?公司)|\bi\b|\bmy\b)[^」』”\"]{2,}[」』”\"]", re.IGNORECASE
)
"""Words of somebody, in quotation marks."""
RETRACTED = re.compile(
    r"^(?P<all>当我没说|(?:我)?(?:开玩笑|逗你|骗你|瞎说)的?[^，,]{0,4}$|(?:just )?kidding|jk\b|forget (?:what i said|about|it|that)\b|i take (?:it|that) back|ignore (?:that|what i said))"
    r"|^(?:还是)?(?:算了吧?|不对|说错了|我?记错了|改主意了)(?:[，,。 ]|$)|^(?:(?:actually|no|wait|oh|sorry)[ ,]+)*(?:scratch that|never ?mind|i misspoke|changed my mind|i meant)\b",
    re.IGNORECASE,
)
"""Takes back what was just said. `all`: says nothing new itself."""
TASK = re.compile(
    r"(?:翻译|改写|润色|总结|概括|校对|续写|仿写|解释|分析|改成|朗读|判断)(?:一下|成\S{1,4})?[^，。]{0,8}[：:]|把(?:这|下面|以下)[^：:]{0,12}[：:]"
    r"|\b(?:translate|rewrite|rephrase|summari[sz]e|proofread|paraphrase|explain|correct|continue|classify)\b[^:]{0,30}:",
    re.IGNORECASE,
)
"""A text that is handed over to be worked on, not something said about oneself."""
THIS_TIME = re.compile(
    r"这次|本次|今天先|暂时|眼下|这一轮|当前会话|这会儿|\b(?:this time|for now|just today|in this (?:session|chat|conversation)|right now|temporarily)\b",
    re.IGNORECASE,
)
TEAM = re.compile(rf"(?:{_US})|\b(?:we|our|the (?:team|project))\b", re.IGNORECASE)
