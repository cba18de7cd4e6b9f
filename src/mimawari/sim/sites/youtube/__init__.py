"""Simulated live streams: a resolver in the place of yt-dlp, and the origin of their playlists."""
