"""Replies of Google Books, made up after the real ones."""

import json
from typing import Any


def make_item(**changes: Any) -> dict[str, Any]:
    """Return a volume as the API has it, with some of its fields changed; `...` takes one out."""
    fields = {
        "title": "宇宙の話をしよう",
        "subtitle": "地球の外へ",
        "authors": ["小野雅裕", "利根川初美"],
        "publisher": "SBクリエイティブ",
        "publishedDate": "2020-11-06",
        "description": "NASAの技術者と娘による\n宇宙探査のストーリー。",
        "industryIdentifiers": [
            {"type": "ISBN_10", "identifier": "4815602662"},
            {"type": "ISBN_13", "identifier": "9784815602666"},
        ],
        "pageCount": 239,
        "categories": ["Juvenile Nonfiction"],
        "imageLinks": {
            "smallThumbnail": "http://books.google.com/books/content?id=GjASzgEACAAJ&zoom=5",
            "thumbnail": "http://books.google.com/books/content?id=GjASzgEACAAJ&zoom=1",
        },
        "language": "ja",
        "infoLink": "http://books.google.co.jp/books?id=GjASzgEACAAJ&source=gbs_api",
    } | changes
    named = {name: value for name, value in fields.items() if value is not ...}
    return {"kind": "books#volume", "id": "GjASzgEACAAJ", "volumeInfo": named}


def write_volumes(*items: Any, **changes: Any) -> bytes:
    reply = {"kind": "books#volumes", "totalItems": 1000000, "items": list(items)} | changes
    return json.dumps({name: value for name, value in reply.items() if value is not ...}).encode()


def complain(code: int, message: str = "", reason: str = "", **more: Any) -> bytes:
    """Write a complaint as the API does."""
    errors = [{"message": message, "domain": "global", "reason": reason}]
    return json.dumps(
        {"error": {"code": code, "message": message, "errors": errors, **more}}
    ).encode()
