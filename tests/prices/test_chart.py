"""How a day's prices are drawn."""

from mimawari.watches.prices.cli.market import draw
from mimawari.watches.prices.figures import Figures


def figures(*prices: float) -> Figures:
    least, p25, middle, p75, most = prices
    return Figures(
        count=9, min_yen=int(least), p25_yen=p25, median_yen=middle, p75_yen=p75, max_yen=int(most)
    )


def test_a_day_is_drawn_between_the_ends_of_all() -> None:
    assert draw(figures(0, 20, 50, 80, 100), 0, 100, 11) == "··━━━◆━━━··"


def test_a_price_alone_is_a_mark_alone() -> None:
    assert draw(figures(50, 50, 50, 50, 50), 0, 100, 11) == "     ◆"
    assert draw(figures(70, 70, 70, 70, 70), 70, 70, 11) == "◆"
