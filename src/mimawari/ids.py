"""Names for new things, in the order of their making."""

import uuid_utils


def new_id() -> str:
    """Return a name that no other process gives, sorting after the ones given before."""
    return str(uuid_utils.uuid7())
