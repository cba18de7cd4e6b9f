"""What watches over the process itself: its guard, its record, its restart and its presence."""
