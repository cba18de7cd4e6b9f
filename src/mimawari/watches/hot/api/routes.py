"""Routes of the hot watch."""

from fastapi import APIRouter

from mimawari.watches.hot.api.boards import boards_router
from mimawari.watches.hot.api.figures import figures_router
from mimawari.watches.hot.api.franchises import ips_router

router = APIRouter(prefix="/api/v1")
for part in (ips_router, figures_router, boards_router):
    router.include_router(part)
