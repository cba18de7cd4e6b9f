"""Everything that talks to the web, politely and within bounds."""
