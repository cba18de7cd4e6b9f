"""What people call targets, in their language."""

from collections.abc import Iterable, Mapping

from mimawari.kernel import naming
from mimawari.web.visit import Visit


async def find_names(visit: Visit, members: Iterable[str]) -> Mapping[str, str]:
    """Find what people call some targets; one nobody knows is left out."""
    wanted = set(members)
    said = {one: visit.words.maybe("member", one) for one in wanted}
    known = {one: name for one, name in said.items() if name != one}
    async with visit.system.store.read() as reader:
        return known | await naming.find_names(reader, visit.system.watches, wanted)
