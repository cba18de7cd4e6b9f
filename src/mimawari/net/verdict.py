"""Tells what a reply is: by status, headers, title and selectors together.

A bare word in the text decides nothing: a page may well be an article about CAPTCHAs.
"""

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from selectolax.lexbor import LexborHTMLParser

from mimawari.errors import Invalid
from mimawari.net.html import parse_html
from mimawari.net.page import Outcome, Page, Verdict

LONGEST_HOLD = timedelta(days=7)
"""However far away a Retry-After is, we look again after this long."""

GONE = frozenset({404, 410})
REFUSED = frozenset({401, 402, 403, 407, 418, 451})
LATER = frozenset({408, 421, 423, 425})
RATE_LIMITED = 429
NOT_MODIFIED = 304

# A challenge is as large as a letter; what is larger is a page.
MOST_CHALLENGE = 256 * 1024
LEAST_TEXT = 200

TITLES = (
    "just a moment",
    "attention required! | cloudflare",
    "access denied",
    "ddos-guard",
    "しばらくお待ちください",
    "please wait... | cloudflare",
    "one more step",
    "security check",
    "are you a robot",
    "human verification",
    "pardon our interruption",
)
SELECTORS = (
    "#cf-challenge-running",
    "#challenge-form",
    "#challenge-stage",
    "#challenge-error-text",
    "form[action*='__cf_chl']",
    "script[src*='/cdn-cgi/challenge-platform/']",
    ".ray_id",
    ".attack-box",
    "#cf-please-wait",
    "#challenge-spinner",
    "#trk_jschal_js",
    "#turnstile-wrapper",
    ".lds-ring",
    ".cf-error-title",
    "#cf-error-details",
    ".cf-error-code",
    "input[name='cf-turnstile-response']",
    "iframe[src*='challenges.cloudflare.com']",
    "div#infoDiv0 a[href*='//www.google.com/policies/terms/']",
    "#captcha-form",
    "#px-captcha",
    "iframe[src*='captcha-delivery.com']",
    "script[src*='captcha-delivery.com']",
)
# The whole of such a page is one frame that holds the challenge.
FRAMES = ("iframe[src*='_Incapsula_Resource']", "iframe[src*='captcha-delivery.com']")
_HINTS = tuple(
    hint.encode()
    for hint in (
        "cf-", "challenge", "turnstile", "lds-ring", "ray_id", "attack-box", "trk_jschal",
        "infoDiv0", "captcha", "_Incapsula_",
    )
)  # fmt: skip


def judge(page: Page) -> Verdict:
    """Tell what a reply is, whatever its status."""
    status = page.status
    if status == NOT_MODIFIED:
        return Verdict(Outcome.NOT_MODIFIED, "not modified")
    if status in GONE:
        return Verdict(Outcome.GONE, f"the site answered {status}")
    if status == RATE_LIMITED:
        return Verdict(Outcome.RATE_LIMITED, "the site answered 429: too many requests")
    if status in REFUSED:
        return Verdict(Outcome.BLOCKED, f"the site answered {status}")
    if sign := challenge_in(page):
        return Verdict(Outcome.BLOCKED, f"a challenge in place of the page ({sign})")
    return _judge_unblocked(page)


def _judge_unblocked(page: Page) -> Verdict:
    status = page.status
    if status >= 500 or status in LATER:  # noqa: PLR2004 - where the server's faults begin
        return Verdict(Outcome.TRANSIENT, f"the site answered {status}")
    if not 200 <= status < 300:  # noqa: PLR2004 - the statuses that bring a page
        return Verdict(Outcome.DRIFT, f"the site answered {status}, which we do not expect")
    if not page.body.strip():
        return Verdict(Outcome.EMPTY, "the reply is empty")
    return Verdict(Outcome.OK)


def challenge_in(page: Page) -> str | None:
    """Name the signs of a challenge on a page; None if it is none."""
    if page.headers.get("cf-mitigated", "").strip().lower() == "challenge":
        return "cf-mitigated: challenge"
    if not may_hold_challenge(page):
        return None
    try:
        tree = parse_html(page.body)
    except Invalid:
        # Nobody builds a challenge out of bounds; the page's own reader will refuse it.
        return None
    selector = next((one for one in SELECTORS if tree.css_first(one)), None)
    title = _title(tree)
    if selector and (page.status == 503 or title.startswith(TITLES)):  # noqa: PLR2004
        return f"title {title!r}, {selector}"
    frame = next((one for one in FRAMES if tree.css_first(one)), None)
    if frame and len(tree.text(strip=True)) < LEAST_TEXT:
        return f"nothing but {frame}"
    return None


def may_hold_challenge(page: Page) -> bool:
    """Tell whether a page is worth a closer look; few are."""
    if len(page.body) > MOST_CHALLENGE or b"<" not in page.body[:1024]:
        return False
    return any(hint in page.body for hint in _HINTS)


def _title(tree: LexborHTMLParser) -> str:
    title = tree.css_first("title")
    return " ".join(title.text().split()).lower() if title else ""


def parse_retry_after(text: str | None, now: datetime) -> datetime | None:
    """Read seconds or a date; what is neither, or past, says nothing."""
    if text is None:
        return None
    text = text.strip()
    if text.isascii() and text.isdecimal():
        at = now + timedelta(seconds=min(int(text[:12]), LONGEST_HOLD.total_seconds()))
    else:
        try:
            said = parsedate_to_datetime(text)
        except (ValueError, OverflowError):
            return None
        # A date without a zone is one of UTC, as HTTP has no other.
        at = said if said.tzinfo else said.replace(tzinfo=UTC)
    return min(at, now + LONGEST_HOLD).astimezone(UTC) if at > now else None
