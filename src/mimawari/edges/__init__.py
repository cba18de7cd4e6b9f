"""What the edges of every watch share: the system they are given, pages, files, kept answers."""
