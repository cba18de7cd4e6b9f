"""What other programs read and write: messages by their published definitions."""
