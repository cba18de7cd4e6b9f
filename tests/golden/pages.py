"""Reduce an HTML page to lines of text, the same for the same page."""

from html.parser import HTMLParser

_BLOCKS = """
    address article aside body button caption dd details div dl dt fieldset figcaption figure footer
    form h1 h2 h3 h4 h5 h6 header html label legend li main nav ol option p pre section select
    summary svg table tbody text textarea tfoot thead title tr ul
"""
BLOCKS = frozenset(_BLOCKS.split())
"""Elements whose text is a line of its own."""
SKIPPED = frozenset(("script", "style"))
SECRET_FIELDS = frozenset(("token",))
"""Form fields whose value differs with each session."""
SHOWN = ("title", "alt", "aria-label", "placeholder")
"""Attributes that people see or hear."""
CELLS = frozenset(("td", "th"))


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[str] = []
        self.main: tuple[int, int] | None = None
        """Which lines are the page's own, and not of the frame that all pages share."""
        self._line: list[str] = []
        self._skipping = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in SKIPPED:
            self._skipping += 1
        if tag in BLOCKS:
            self.end_line()
        given = {name: value or "" for name, value in attrs}
        if tag == "main":
            self.main = (len(self.lines), len(self.lines))
        if tag in CELLS and "".join(self._line).strip():
            self._line.append(" | ")
        self._line.append(_describe(tag, given))
        said = [given[name] for name in SHOWN if given.get(name)]
        self._line.extend(f"({one}) " for one in said)

    def handle_endtag(self, tag: str) -> None:
        if tag in SKIPPED:
            self._skipping -= 1
        if tag in BLOCKS:
            self.end_line()
        if tag == "main" and self.main:
            self.main = (self.main[0], len(self.lines))

    def handle_data(self, data: str) -> None:
        if not self._skipping:
            self._line.append(data)

    def end_line(self) -> None:
        line = " ".join("".join(self._line).split())
        self._line.clear()
        if line.strip("| "):
            self.lines.append(line)


def _describe(tag: str, given: dict[str, str]) -> str:
    """Write what an element says beside its text."""
    said = ""
    match tag:
        case "a" if "href" in given:
            said = f"<{given['href']}> "
        case "form":
            said = f"[form {given.get('method', 'get')} {given.get('action', '')}]"
        case "input" | "select" | "textarea":
            said = _field(tag, given)
        case "option":
            said = f"{'*' if 'selected' in given else '-'} {given.get('value', '')}: "
        case "img" | "iframe" if "src" in given:
            said = f"[{tag} {given['src'][:200]}]"
        case "time" if "datetime" in given:
            said = f"[{given['datetime']}]"
    return said


def _field(tag: str, given: dict[str, str]) -> str:
    name = given.get("name", "")
    if name in SECRET_FIELDS:
        return f"[{name}]"
    kind = given.get("type", tag)
    value = given.get("value", "")
    checked = " checked" if "checked" in given else ""
    bounds = "".join(f" {key}={given[key]}" for key in ("min", "max", "step") if key in given)
    return f"[{kind} {name}={value!r}{bounds}{checked}]"


def read_text(html: str, *, with_frame: bool) -> list[str]:
    """Return what a page says, line by line: texts, link targets and the values of forms.

    The frame is what all pages share: navigation, tools and footer.
    """
    reader = _Text()
    reader.feed(html)
    reader.close()
    reader.end_line()
    if with_frame or reader.main is None:
        return reader.lines
    start, end = reader.main
    return [*reader.lines[:1], *reader.lines[start:end]]
