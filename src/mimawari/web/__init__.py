"""The pages for people: made on the server, without inline script, in Japanese and English."""
