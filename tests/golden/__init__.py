"""Golden data: old databases of all engines, and the responses of the program from them."""
