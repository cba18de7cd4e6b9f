"""Puts frames through a filter of FFmpeg."""

from collections.abc import Iterator
from typing import Any

import av
from av.filter import Graph
from av.filter.context import FilterContext

AnyFrame = av.VideoFrame | av.AudioFrame


class Filter:
    """One filter, for frames of any size and sort."""

    def __init__(self, name: str, options: str) -> None:
        self._filter = (name, options)
        self._shape: tuple[Any, ...] = ()
        self._graph: tuple[Graph, FilterContext, FilterContext] | None = None

    def push(self, frame: AnyFrame) -> bool:
        """Put a frame in; say whether what came before it is forgotten."""
        shape = _shape(frame)
        is_other = shape != self._shape
        if is_other or self._graph is None:
            # Frames of another size or sort need another filter, which knows nothing yet.
            self._shape, self._graph = shape, self._make(frame)
        self._graph[1].push(frame)
        return is_other

    def pull(self) -> AnyFrame | None:
        """Take the next frame out, if there is one."""
        if self._graph is None:
            return None
        try:
            frame = self._graph[2].pull()
        except (av.BlockingIOError, av.EOFError):
            return None
        return frame if isinstance(frame, av.VideoFrame | av.AudioFrame) else None

    def drain(self) -> Iterator[AnyFrame]:
        """Take out all that there is."""
        while (frame := self.pull()) is not None:
            yield frame

    def _make(self, frame: AnyFrame) -> tuple[Graph, FilterContext, FilterContext]:
        """Make a filter; its graph must be kept for as long as its ends are used."""
        graph = Graph()
        time_base = frame.time_base
        if isinstance(frame, av.VideoFrame):
            source = graph.add_buffer(
                width=frame.width, height=frame.height, format=frame.format, time_base=time_base
            )
            sink = graph.add("buffersink")
        else:
            source = graph.add_abuffer(
                sample_rate=frame.sample_rate, format=frame.format, layout=frame.layout,
                time_base=time_base,
            )  # fmt: skip
            sink = graph.add("abuffersink")
        inside = graph.add(*self._filter)
        source.link_to(inside)
        inside.link_to(sink)
        graph.configure()
        return graph, source, sink


def _shape(frame: AnyFrame) -> tuple[Any, ...]:
    if isinstance(frame, av.VideoFrame):
        return frame.width, frame.height, frame.format.name
    return frame.sample_rate, frame.format.name, frame.layout.name
