"""New books of Google Books, page by page, mailed as a digest."""
