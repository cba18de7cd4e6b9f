"""Routes of the prices watch."""

from fastapi import APIRouter

from mimawari.watches.prices.api.crawls import crawl_router
from mimawari.watches.prices.api.market import market_router
from mimawari.watches.prices.api.products import products_router

router = APIRouter(prefix="/api")
for part in (products_router, crawl_router, market_router):
    router.include_router(part)
