# ruff: noqa: E501
"""Text that wants to steer the agent rather than tell it something. Pure: no I/O.

A memory goes into every later prompt, so an order that was planted in a document, a web page or a
chat and then remembered would be obeyed for ever. Such text is not dropped: it waits for a person.

Kinds: override (ignore what you were told), role (you are now …), reveal (show your prompt),
exfiltration (send what is said elsewhere), concealment (do not tell the user), bypass (skip the
checks), command (run this every time), trust (treat this source as right), markup (a prompt's own
delimiters). Wishes such as "always answer in Chinese" are none, and a ban on sending data away is
the opposite of one.
"""

from __future__ import annotations

import re
import unicodedata

from memcore.models import Finding

KIND = "instruction"
LONGEST = 65_536

_BEFORE = r"(?:以上|上面|上述|之前|先前|此前|前面|原有|一切|你的|系统)"
_ORDERS = r"(?:指令|指示|命令|规则|提示词?|设定|约束|限制|要求|规定|prompt)"
_SAID = r"(?:对话|聊天|会话|消息|记录|历史|上下文|内容|数据|资料|信息|密码|密钥|凭证|邮件|文件|隐私|api ?key|token|令牌)"
_AWAY = r"(?:外部|第三方|邮箱|邮件|网址|链接|服务器|地址|接口|url|https?:|webhook|[\w.]+@[\w.]+)"
_TAKEN = (
    r"(?:conversations?|chats?|messages?|history|transcripts?|context|data|files?|passwords?"
    r"|secrets?|credentials?|keys?|e-?mails?|everything|replies|answers)"
)
_RULES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern, re.IGNORECASE))
    for kind, pattern in (
        (
            "override",
            rf"(?:忽略|无视|忘记|忘掉|抛开|不要理会|不用管|不必遵守|别管|覆盖|推翻)[^。\n]{{0,6}}"
            rf"(?:{_BEFORE}[^。\n]{{0,10}}{_ORDERS}|所有[^。\n]{{0,4}}(?:指令|指示|命令|提示词?))"
            r"|\b(?:ignore|disregard|forget|override|overrule|bypass|neglect)\b[^.\n]{0,20}"
            r"\b(?:previous|prior|above|earlier|preceding|existing|system|your|these|those|all)\b"
            r"[^.\n]{0,24}\b(?:instructions?|prompts?|directives?|guidelines|rules|commands|orders"
            r"|programming|restrictions)\b"
            r"|\bnew (?:system )?instructions?:|\bsystem override\b|\badmin(?:istrator)? (?:override|mode|command)"
            r"|管理员(?:指令|补丁|模式|命令)|不要(?:透露|泄露|提及)(?:本|这条|此|该)(?:指令|规则|提示)",
        ),
        (
            "role",
            r"(?:从现在(?:起|开始)|现在起|以后)[，,]?你(?:就|将|必须|要)?(?:是|扮演|成为|变成)"
            r"|你现在(?:是|扮演|变成|进入)|(?:进入|开启|启用|切换到?)(?:开发者|越狱|上帝|调试|无限制|无审查)模式"
            r"|扮演[^。\n]{0,10}(?:没有|不受)[^。\n]{0,6}(?:限制|约束)"
            r"|\byou are (?:now|no longer)\b|\bfrom now on,? you (?:are|will|must|shall)\b"
            r"|\b(?:act|behave|respond) as (?:if you (?:are|were) )?(?:an? )?(?:unrestricted|unfiltered|dan\b"
            r"|system|admin|root)|\bpretend (?:to be|you are)\b"
            r"|\b(?:enable|enter|switch to|activate) (?:developer|debug|god|jailbreak|dan|unrestricted) mode",
        ),
        (
            "reveal",
            r"(?:输出|透露|泄露|显示|打印|复述|告诉(?:我|对方|他们)|公开|说出)[^。\n]{0,10}"
            r"(?:系统提示|系统指令|提示词|你的指令|内部指令|其他用户|别的用户|隐藏指令)"
            r"|\b(?:reveal|print|show|leak|repeat|output|disclose|display)\b[^.\n]{0,24}"
            r"\b(?:system prompt|your (?:instructions|prompt)|hidden (?:instructions|prompt)"
            r"|other users['’]?|initial prompt|developer message)",
        ),
        (
            "exfiltration",
            rf"{_SAID}[^。\n]{{0,8}}(?:发送|发到|发给|转发|抄送|密送|上传|同步|外传|传到|提交|推送)[^。\n]{{0,12}}{_AWAY}"
            rf"|(?:发送|转发|抄送|密送|上传|同步|外传|提交|推送)[^。\n]{{0,14}}{_SAID}[^。\n]{{0,6}}(?:到|给|至|往)[^。\n]{{0,12}}{_AWAY}"
            rf"|\b(?:send|forward|cc|bcc|copy|upload|post|exfiltrate|leak|transmit|mail|email)\b[^.\n]{{0,30}}"
            rf"\b{_TAKEN}\b[^\n]{{0,30}}\b(?:to|at|via|into)\b[^\n]{{0,30}}"
            r"(?:https?:|www\.|[\w.+-]+@[\w-]|\bexternal\b|\bwebhook\b|\bthird part|\baddress\b|\bserver\b|\bthe attacker\b)",
        ),
        (
            "concealment",
            r"(?:不要|别|不得|不准|切勿|无需|不能|禁止)(?:告诉|告知|通知|提醒|让|透露给|向)[^。\n]{0,4}"
            r"(?:用户|使用者|任何人|对方|主人)[^。\n]{0,6}(?:知道|知情|发现|察觉|此|这|说|提|透露|$)"
            r"|\b(?:do not|don['’]?t|never|without)\b (?:ever )?(?:tell|telling|inform|informing|notify|notifying"
            r"|mention|mentioning|reveal|revealing|alert|alerting)\b[^.\n]{0,24}\b(?:the user|users?|anyone|anybody)\b"
            r"|\bkeep (?:this|it) (?:secret|hidden) from the user\b",
        ),
        (
            "bypass",
            r"(?:跳过|绕过|绕开|关闭|禁用|停用|解除|取消)[^。\n]{0,8}"
            r"(?:身份验证|权限检查|权限校验|安全检查|安全限制|安全策略|内容过滤|审核|审查|审批|授权|校验|门控|确认步骤|二次确认|防护)"
            r"|\b(?:skip|bypass|disable|turn off|circumvent)\b[^.\n]{0,20}\b(?:authentication|authorization"
            r"|permission checks?|safety|security checks?|content filters?|moderation|confirmations?|guardrails?)\b",
        ),
        (
            "command",
            r"(?:每次|一律|自动|总是|立即|马上|直接)[^。\n]{0,12}(?:执行|运行|调用|删除|清空|转账|付款|支付)[^。\n]{0,20}"
            r"(?:rm |curl|wget|bash|sh |powershell|脚本|转账|付款|工具|所有(?:文件|数据|记忆)|全部(?:文件|数据|记忆)|数据库|账户)"
            r"|\b(?:always|every time|automatically|immediately|whenever)\b[^.\n]{0,40}"
            r"\b(?:run|execute|call|invoke|delete|wipe|transfer|pay)\b[^\n]{0,30}"
            r"(?:\brm -|\bcurl\b|\bwget\b|\bbash\b|\bpowershell\b|\ball (?:files|data|memories)\b|\bhttps?:)"
            r"|(?:每次|以后|所有|每条)[^。\n]{0,8}(?:回复|回答|消息|邮件)[^。\n]{0,8}(?:附上|加上|插入|包含|放上)[^。\n]{0,16}(?:链接|网址|https?:|广告|图片)"
            r"|\b(?:always|every|each)\b[^.\n]{0,24}\b(?:include|append|insert|add|embed)\b[^.\n]{0,24}\b(?:links?|images?|urls?|ads?)\b"
            r"|\bcurl\b[^\n]{0,80}\|\s*(?:ba)?sh\b|\brm -rf\s+[/~]",
        ),
        (
            "trust",
            r"(?:视|当|看)[作为成]+(?:可信|权威|最可靠|唯一)[^。\n]{0,6}(?:来源|信源)|(?:总是|永远|一律|务必|必须)(?:优先推荐|(?:只)?推荐[^。\n]{0,12}(?:产品|公司|品牌|链接|网站|服务))"
            r"|\b(?:treat|regard|remember|consider|trust)\b[^\n]{0,40}\bas (?:an? |the )?(?:most )?"
            r"(?:trusted|authoritative|reliable|preferred|only)\b[^.\n]{0,12}\b(?:source|authority|vendor|provider)"
            r"|\balways recommend\b[^.\n]{0,30}\b(?:first|over|instead of)\b",
        ),
        (
            "markup",
            r"<\|?(?:im_start|im_end|system|endoftext|start_header_id)\b[^>\n]{0,20}\|?>|\[/?INST\]|<</?SYS>>"
            r"|</?(?:system|assistant|instructions?|system_prompt|tool_call)\s*>"
            r"|</memories[-\w]{0,70}>|^\s{0,4}#{2,4}\s*(?:system|instructions?)\s*:?\s*$"
            r"|^\s{0,4}(?:system|系统)\s?(?:prompt|message|提示词?)?\s?[:：]\s?\S",
        ),
    )
)
_BAN = re.compile(
    r"(?:不要|不得|不能|不可|不应|不许|禁止|严禁|避免|切勿|请勿|拒绝|防止|不想|不希望|不愿|别|从不|永不"
    r"|\bnot\b|n['’]t\b|\bnever\b|\bavoid\b|\bwithout\b|\bforbid\w*|\bprohibit\w*|\brefuse\w*|\bprevents?\b)"
    r"[^。，,.;；\n]{0,24}$",
    re.IGNORECASE,
)
_BANNABLE = frozenset({"exfiltration", "command", "bypass", "reveal"})
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]")


def find(text: str) -> tuple[Finding, ...]:
    """The spans that steer, in order; `masked` names the kind. Offsets are into `text`."""
    if len(text) > LONGEST:
        text = text[:LONGEST]
    view, offsets = _folded(text)
    found: list[Finding] = []
    for kind, rule in _RULES:
        for match in rule.finditer(view):
            if kind in _BANNABLE and _banned(view, match):
                continue
            start, end = offsets[match.start()], offsets[match.end() - 1] + 1
            found.append(Finding(KIND, start, end, kind))
    return tuple(sorted(found, key=lambda f: (f.start, f.end)))


def _banned(view: str, match: re.Match[str]) -> bool:
    """Does the sentence forbid what it names? The ban may stand before it or inside it."""
    clause = view[max(0, match.start() - 40) : match.start()]
    return bool(_BAN.search(clause)) or bool(
        re.search(r"不要|不得|不能|禁止|严禁|切勿|请勿|\bnever\b|\bnot\b", match.group())
    )


def _folded(text: str) -> tuple[str, list[int]]:
    """`text` as the rules read it (NFKC, nothing invisible, no space between ideographs) and, for
    each of its characters, where it stood."""
    out: list[str] = []
    offsets: list[int] = []
    for at, char in enumerate(text):
        if _INVISIBLE.match(char):
            continue
        if char in " \t\u3000" and out and "\u4e00" <= out[-1] <= "\u9fff":
            following = text[at + 1 : at + 2]
            if "\u4e00" <= following <= "\u9fff":
                continue
        for piece in unicodedata.normalize("NFKC", char):
            out.append(piece)
            offsets.append(at)
    return "".join(out), offsets
