"""Orders to the simulated world: which requests go wrong, how, how often and for how long."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from mimawari.errors import BadInput, NotFound
from mimawari.kernel.clock import Mark
from mimawari.kernel.ports import Clock
from mimawari.sim.chance import Chance, chance_of
from mimawari.text import clean, one_line

EVERY_PART = "*"
MOST_ORDERS = 200
MOST_TEXT = 1_000_000
MOST_TIMES = 10**9
DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Rule:
    """What a mode's parameter may be."""

    default: Any
    least: float = 0
    most: float = MOST_TIMES
    among: tuple[Any, ...] = ()

    def read(self, name: str, value: Any) -> Any:
        """Return the value if it is one that the parameter may have."""
        if self.among:
            if type(value) is not type(self.default) or value not in self.among:
                raise BadInput(f"{name} is one of {', '.join(map(str, self.among))}")
            return value
        match self.default:
            case bool():
                return _read_bool(name, value)
            case str():
                return _read_text(name, value)
            case _:
                return _read_number(name, value, self)


MODES: Mapping[str, Mapping[str, Rule]] = MappingProxyType(
    {
        "blocked": {},
        "challenge": {"code": Rule(403, among=(403, 503))},
        "status": {
            "code": Rule(500, 200, 599),
            "body": Rule(""),
            "type": Rule("text/plain; charset=utf-8"),
        },
        "rate_limited": {"retry_after": Rule(60, 0, DAY_S * 30), "date": Rule(default=False)},
        "gone": {},
        "slow": {"delay_s": Rule(5.0, 0, DAY_S)},
        "drip": {},
        "endless": {},
        "bomb": {
            "kind": Rule("gzip", among=("gzip", "br", "stacked", "plain")),
            "size_mib": Rule(256, 1, 65_536),
        },
        "empty": {},
        "changed_layout": {},
        "garbage": {"size": Rule(65_536, 1, 16 * 1024 * 1024)},
        "wrong_length": {"missing": Rule(1000, 1, 10**9)},
        "reset": {},
        "redirect": {
            "url": Rule(""),
            "loop": Rule(default=False),
            "code": Rule(302, among=(301, 302, 303, 307, 308)),
        },
        "not_modified": {},
        "encoding": {
            "kind": Rule("shift_jis", among=("shift_jis", "nul", "surrogates", "escapes"))
        },
        "nested": {
            "depth": Rule(200_000, 1, 2_000_000),
            "kind": Rule("html", among=("html", "json")),
        },
        "article": {},
    }
)
LIMITS: Mapping[str, Rule] = MappingProxyType(
    {
        "times": Rule(1, 1, MOST_TIMES),
        "for_s": Rule(1.0, 0.001, DAY_S * 3650),
        "share": Rule(1.0, 0.0, 1.0),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What shall become of some requests to a part."""

    id: int
    part: str
    path: str
    do: str
    times: int | None
    for_s: float | None
    share: float
    how: Mapping[str, Any]
    placed: Mark

    def describe(self, used: int) -> dict[str, Any]:
        """Tell the order as it was given, and how often it was applied."""
        limits = {"times": self.times, "for_s": self.for_s, "share": self.share}
        names = {"id": self.id, "part": self.part, "path": self.path, "do": self.do}
        return {**names, **self.how, **limits, "used": used}

    def covers(self, part: str, path: str) -> bool:
        """Say whether it is about a part's path; what a page loads must be named to be meant."""
        if self.part not in {EVERY_PART, part} or not path.startswith(self.path):
            return False
        return is_plumbing(self.path) or not is_plumbing(path)


def is_plumbing(path: str) -> bool:
    """Say whether a path is one that a page loads, or robots.txt, and nobody watches."""
    return path.startswith("/_") or path == "/robots.txt"


class Orders:
    """The orders in force; the first that covers a request and whose chance comes up applies."""

    def __init__(self, clock: Clock, seed: int, parts: Sequence[str]) -> None:
        self._clock = clock
        self._seed = seed
        self._parts = (EVERY_PART, *parts)
        self._numbers = itertools.count(1)
        self._orders: dict[int, Order] = {}
        self._used: dict[int, int] = {}
        self._chances: dict[int, Chance] = {}

    def add(self, given: Any) -> dict[str, Any]:
        """Put an order in force, or say what is wrong with it."""
        if not isinstance(given, dict):
            raise BadInput('an order is an object like {"part": "market", "do": "blocked"}')
        self._drop_ended()
        if len(self._orders) >= MOST_ORDERS:
            raise BadInput(f"there are {MOST_ORDERS} orders already; remove some first")
        order = self._parse(given)
        self._orders[order.id] = order
        self._used[order.id] = 0
        self._chances[order.id] = chance_of(self._seed, "order", order.id)
        return order.describe(0)

    def list(self) -> list[dict[str, Any]]:
        """List the orders in force, oldest first."""
        self._drop_ended()
        return [order.describe(self._used[order.id]) for order in self._orders.values()]

    def remove(self, order_id: int) -> None:
        """End one order."""
        if order_id not in self._orders:
            raise NotFound(f"there is no order {order_id}")
        self._forget(order_id)

    def clear(self) -> int:
        """End all orders, and say how many there were."""
        count = len(self.list())
        for order_id in tuple(self._orders):
            self._forget(order_id)
        return count

    def find(self, part: str, path: str) -> Order | None:
        """Find the order that applies to a request, and count it as applied once more."""
        self._drop_ended()
        for order in self._orders.values():
            if order.covers(part, path) and self._chances[order.id].random() < order.share:
                self._used[order.id] += 1
                return order
        return None

    def _parse(self, given: dict[str, Any]) -> Order:
        do, part = given.get("do"), given.get("part", EVERY_PART)
        if not isinstance(do, str) or do not in MODES:
            raise BadInput(f"do is one of {', '.join(MODES)}")
        if part not in self._parts:
            raise BadInput(f"part is one of {', '.join(self._parts)}")
        rules = MODES[do]
        if unknown := given.keys() - {*rules, *LIMITS, "do", "part", "path"}:
            raise BadInput(f"{do} knows no {one_line(', '.join(map(str, unknown)), most=200)}")
        how = {name: rule.read(name, given.get(name, rule.default)) for name, rule in rules.items()}
        limits = {name: LIMITS[name].read(name, given[name]) for name in LIMITS if name in given}
        path = _read_text("path", given.get("path", ""))
        if path and not path.startswith("/"):
            raise BadInput("path begins with a /")
        if do == "status" and not (how["type"].isascii() and how["type"].isprintable()):
            raise BadInput("type is plain text like text/html; charset=utf-8")
        if do == "redirect" and not how["url"] and not how["loop"]:
            raise BadInput('a redirect needs a url, or "loop": true')
        return Order(
            id=next(self._numbers),
            part=part,
            path=path,
            do=do,
            times=limits.get("times"),
            for_s=limits.get("for_s"),
            share=limits.get("share", 1.0),
            how=MappingProxyType(how),
            placed=self._clock.mark(),
        )

    def _drop_ended(self) -> None:
        mark = self._clock.mark()
        for order in tuple(self._orders.values()):
            age = mark.elapsed_since(order.placed).total_seconds()
            is_over = order.for_s is not None and age >= order.for_s
            if is_over or (order.times is not None and self._used[order.id] >= order.times):
                self._forget(order.id)

    def _forget(self, order_id: int) -> None:
        del self._orders[order_id], self._used[order_id], self._chances[order_id]


def _read_bool(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise BadInput(f"{name} is true or false")
    return value


def _read_text(name: str, value: Any) -> str:
    if not isinstance(value, str) or len(value) > MOST_TEXT:
        raise BadInput(f"{name} is a text of at most {MOST_TEXT} letters")
    return clean(value)


def _read_number(name: str, value: Any, rule: Rule) -> float:
    is_whole = isinstance(rule.default, int)
    wanted = "a whole number" if is_whole else "a number"
    kinds = (int,) if is_whole else (int, float)
    if type(value) not in kinds or (isinstance(value, float) and not math.isfinite(value)):
        raise BadInput(f"{name} is {wanted}")
    if not rule.least <= value <= rule.most:
        raise BadInput(f"{name} is {wanted} from {rule.least:g} to {rule.most:g}")
    return float(value) if not is_whole else int(value)
