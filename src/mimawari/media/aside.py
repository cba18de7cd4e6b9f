"""Names a decoder without loading it: it is large, and only the process that decodes needs it."""

from mimawari.media.findings import Findings, Look


def analyse(body: bytes, header: bytes, look: Look) -> Findings:
    """Look and listen into a segment, as `segment.analyse` does."""
    from mimawari.media import segment  # noqa: PLC0415 - see above

    return segment.analyse(body, header, look)
