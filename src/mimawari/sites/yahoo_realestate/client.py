"""Asks the rentals site for lists and properties; how often, the caller knows."""

from mimawari.net.page import Http, Outcome, Page, Site, Verdict
from mimawari.sites.yahoo_realestate.addresses import SITE_URL, parse_detail_url, parse_list_url
from mimawari.sites.yahoo_realestate.details import parse_detail
from mimawari.sites.yahoo_realestate.lists import parse_list
from mimawari.sites.yahoo_realestate.models import ListPage, Property

BLOCK_STATUS = 500
BLOCK_WORDS = "ご覧になろうとしているページは現在表示できません".encode()


def judge(page: Page) -> Verdict | None:
    """Tell a block, which is a status together with words: either alone means something else."""
    if page.status == BLOCK_STATUS and BLOCK_WORDS in page.body:
        return Verdict(Outcome.BLOCKED, "the site shows its block page")
    return None


SITE = Site(name="yahoo_realestate", judge=judge)


async def fetch_list(http: Http, url: str, *, site_url: str = SITE_URL) -> ListPage:
    """Fetch one page of a list; an address that is none of the site's lists is refused."""
    page = await http.fetch(SITE, parse_list_url(url, site_url))
    return await http.read(parse_list, page.body, page.url)


async def fetch_detail(http: Http, url: str, *, site_url: str = SITE_URL) -> Property:
    """Fetch a property; an address that is none of the site's properties is refused."""
    detail_url, _ = parse_detail_url(url, site_url)
    page = await http.fetch(SITE, detail_url)
    return await http.read(parse_detail, page.body, page.url)
