"""What people call the targets that programs name by id."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mimawari.kernel.ports import Reader

if TYPE_CHECKING:
    from mimawari.kernel.watch import Watches


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """Where the names of a watch's targets stand."""

    member: str
    """How its targets are named by programs: a pattern, with their id as its first group."""
    names: Any
    """A query of each one's `id` and `name`."""
    parse_id: Callable[[str], int | str] = int

    async def find(self, reader: Reader, members: Iterable[str]) -> Mapping[str, str]:
        """Find what people call some targets; one nobody knows is left out."""
        column = self.names.selected_columns.id
        matches = ((member, re.fullmatch(self.member, member)) for member in members)
        ids = {member: self.parse_id(match[1]) for member, match in matches if match}
        if not ids:
            return {}
        rows = await reader.execute(self.names.where(column.in_(set(ids.values()))))
        names = {row.id: row.name for row in rows if row.name}
        return {member: names[one] for member, one in ids.items() if one in names}


async def find_names(reader: Reader, watches: "Watches", members: Iterable[str]) -> dict[str, str]:
    """Find what people call some targets of all watches, with one query a kind of them."""
    wanted = set(members)
    found: dict[str, str] = {}
    for naming in (one for watch in watches.all for one in watch.naming):
        found |= await naming.find(reader, wanted)
    return found
