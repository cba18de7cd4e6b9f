"""Routes of the rentals watch."""

from fastapi import APIRouter

from mimawari.watches.rentals.api.lists import lists_router
from mimawari.watches.rentals.api.properties import properties_router
from mimawari.watches.rentals.api.queue import queue_router

router = APIRouter(prefix="/api")
for part in (queue_router, lists_router, properties_router):
    router.include_router(part)
