"""Site, rules, sync: a task reads like what the watch is asked to do."""

from datetime import timedelta

from mimawari.kernel.context import Context
from mimawari.kernel.job import Job, NewJob
from mimawari.kernel.watch import task
from mimawari.sites import counting
from mimawari.watches._template import rules, sync
from mimawari.watches._template.models import Reading


@task(
    "example.read", lease="30s", backoff="5s 15s 1m 5m", attempts=20, concurrency=8, site="counting"
)
async def read(job: Job, ctx: Context) -> None:
    """Read one page and keep its number."""
    await ctx.limit("example.read", caller="worker")
    page = await counting.fetch_page(ctx.http, job.args["url"])
    async with ctx.commit(job) as tx:
        name = job.args["page"]
        grown = rules.has_grown(await sync.find_number(tx, name), page.number)
        now = ctx.clock.now()
        await sync.save_reading(tx, job, Reading(name, page.number, now))
        tx.put(NewJob(kind="example.note", args={"parent_id": job.id}))
        tx.move(f"example:{name}", str(page.number))
        if grown:
            body = {"page": name, "number": page.number, "job_id": job.id}
            tx.emit(name, "example.grown", body, destination="log:")
        if job.target is not None:
            every = timedelta(seconds=job.args.get("every_s", 60))
            tx.next_run(now + rules.next_every(every, grown=grown), "interval")


@task("example.note", lease="30s", backoff="5s 15s 1m", attempts=20, concurrency=8)
async def note(job: Job, ctx: Context) -> None:
    """Note that a page was read."""
    async with ctx.commit(job) as tx:
        await sync.save_note(tx, job)
