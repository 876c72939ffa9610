"""What tokens, keys and passwords look like, in one table: most have a prefix of their own, as secret scanners know it.

A key without one, such as forty hexadecimal digits, is known by the name that stands before it.
"""

import re

_VALUE = r"['\"]?\s*[:=]\s*['\"]?"  # between a name and its value, in JSON, YAML, or a shell
PATTERNS: dict[str, str] = {
    "Hugging Face": r"\b(?:hf|api_org)_[A-Za-z0-9]{20,}",
    "GitHub": r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{30,})",
    "GitLab": r"\bgl(?:pat|ptt|rt|dt|cbt)-[\w-]{20,}",
    "OpenAI, Anthropic": r"\bsk-[A-Za-z0-9_-]{20,}",
    "AWS": rf"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{{16}}\b|(?i:aws\w*(?:secret|key)\w*){_VALUE}[A-Za-z0-9/+]{{40}}",
    "Google": r"\bAIza[\w-]{35}|\bya29\.[\w-]{20,}|\bGOCSPX-[\w-]{20,}",
    "Slack": r"\bxox[a-z]-[\w-]{10,}|\bxapp-[\w-]{10,}|hooks\.slack\.com/(?:services|workflows)/\w+",
    "Stripe": r"\b(?:sk|rk)_(?:live|test|prod)_[A-Za-z0-9]{10,}|\bwhsec_[A-Za-z0-9+/]{20,}",
    "npm": r"\bnpm_[A-Za-z0-9]{30,}|:_authToken=\S{8,}",
    "PyPI": r"\bpypi-AgE[\w-]{40,}",
    "Weights & Biases": rf"\bwandb_v\d_\w{{20,}}|(?i:w(?:and)?b\w*){_VALUE}[0-9a-f]{{40}}\b",
    "Azure": (
        r"(?i:(?:Account|SharedAccess)Key)=[A-Za-z0-9+/]{40,}={0,2}|[?&]sig=[A-Za-z0-9%+/]{40,}"
        r"|(?<![\w~.-])[\w~.]{3}\dQ~[\w~.-]{31,34}(?![\w~.-])"
        rf"|(?i:azure\w*key){_VALUE}[A-Za-z0-9]{{32,}}"
    ),
    "Telegram": r"(?<!\d)\d{8,10}:[A-Za-z0-9_-]{35}(?![\w-])",
    "Discord": r"discord(?:app)?\.com/api/webhooks/\d+/[\w-]+",
    "SendGrid": r"\bSG\.[\w-]{16,}\.[\w-]{30,}",
    "Databricks": r"\bdapi[0-9a-f]{32}",
    "DigitalOcean": r"\bdo[opr]_v1_[0-9a-f]{40,}",
    "Replicate": r"\br8_[A-Za-z0-9]{30,}",
    "Shopify": r"\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}",
    "JSON Web Token": r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*",
    "private key": r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----",
    "password in an address": r"\b[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@'\"<>]*:[^\s/@'\"<>]+@[\w.\[-]",
    "password by its name": (
        r"(?i:\b\w*(?:password|passwd|passphrase|api_?key|secret_?key|client_?secret|access_?token|auth_?token))"
        rf"{_VALUE}(?=[^\s'\",]*\d)[^\s'\",]{{8,}}"
    ),
}
_COMPILED = {name: re.compile(pattern) for name, pattern in PATTERNS.items()}


def secret_in(text: str) -> str | None:
    """Whose token, key or password a text seems to hold; None: no one's.

    >>> secret_in("see postgres://me:s3cret@host/films"), secret_in("https://hf.co/org/name"), secret_in("pad_token")
    ('password in an address', None, None)
    """
    return next((name for name, pattern in _COMPILED.items() if pattern.search(text)), None)
