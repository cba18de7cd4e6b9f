"""An example watch, and the start of every new one: copy this folder and rename it.

It goes round to the pages of the counting site and keeps every number it reads.
"""

from datetime import timedelta

from mimawari.kernel.values import BreakerPolicy, Limit
from mimawari.kernel.watch import Watch
from mimawari.watches._template import sync, tables, tasks

watch = Watch(
    name="example",
    tasks=(tasks.read, tasks.note),
    limits=(Limit("example.read", count=6000, per=timedelta(hours=1)),),
    breakers={"counting": BreakerPolicy(failures=2, cool_for=timedelta(minutes=5))},
    targets=sync.list_targets,
    tables=tables.metadata,
    router="mimawari.watches._template.api:router",
)
