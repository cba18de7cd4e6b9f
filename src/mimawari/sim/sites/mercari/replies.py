"""The bodies that the simulated market's API sends: the real keys, made-up values."""

from datetime import UTC, datetime
from typing import Any
from zlib import crc32

from mimawari.sim.sites.mercari.items import CATEGORIES, ROOT_CATEGORY
from mimawari.sim.sites.mercari.lives import Goods, Item, Kind, Status
from mimawari.sim.sites.mercari.market import likes

CONDITIONS = {
    1: ("新品、未使用", "新品で購入し、一度も使用していない"),
    2: ("未使用に近い", "数回使用し、あまり使用感がない"),
    3: ("目立った傷や汚れなし", "よく見ないとわからないレベルの傷や汚れがある"),
    4: ("やや傷や汚れあり", "中古感とわかる傷や汚れがある"),
    5: ("傷や汚れあり", "中古感や傷、汚れが大きい"),
}
SHOPS = ("ほしあかり商店", "グッズの蔵", "二十日堂", "推し活デパート", "おもちゃ箱2号店")
GUIDE = {"title": "取引ガイド", "url": "/guide"}
DESCRIPTION = "ご覧いただきありがとうございます。\n{title}\n素人保管です。即購入OKです。"
FROM_AREA = {"id": 13, "name": "東京都"}


def seller_id(goods: Goods) -> int:
    """Tell the number of an item's seller; a shop has none."""
    return 0 if goods.kind is Kind.SHOPS else 900_000_000 + goods.seller


def shop_of(goods: Goods) -> tuple[str, str]:
    """Tell the id and the name of the shop that sells an item."""
    number = goods.seller % len(SHOPS)
    return f"2JSimShop{number:013d}", SHOPS[number]


def image_path(goods: Goods) -> str:
    """Return the path of an item's picture."""
    return f"/_image/thumb/item/webp/{goods.id}_1.jpg?{goods.created}"


def search_entry(item: Item, address: str) -> dict[str, Any]:
    """Write an item as search replies hold it: numbers are strings."""
    goods = item.goods
    is_shop = goods.kind is Kind.SHOPS
    shop_id, shop_name = shop_of(goods)
    picture = address + image_path(goods)
    return {
        "id": goods.id,
        "sellerId": str(seller_id(goods)),
        "buyerId": "" if item.status is Status.ON_SALE or is_shop else str(_buyer(goods)),
        "status": f"ITEM_STATUS_{item.status.upper()}",
        "name": goods.title,
        "price": str(item.price_yen),
        "created": str(goods.created),
        "updated": str(item.updated),
        "thumbnails": [picture],
        "itemType": "ITEM_TYPE_BEYOND" if is_shop else "ITEM_TYPE_MERCARI",
        "itemConditionId": str(goods.condition_id),
        "shippingPayerId": "0" if is_shop else "2",
        "itemSizes": [],
        "itemBrand": None,
        "itemPromotions": [],
        "shopName": shop_name if is_shop else "",
        "itemSize": None,
        "shippingMethodId": "0" if is_shop else "14",
        "categoryId": str(goods.category_id),
        "isNoPrice": goods.kind is Kind.NO_PRICE,
        "title": "",
        "isLiked": False,
        "photos": [{"uri": picture}],
        "auction": _bidding(item) if goods.kind is Kind.AUCTION else None,
        "shop": {"id": shop_id} if is_shop else None,
        "attributes": [],
    }


def item_reply(item: Item, address: str) -> dict[str, Any]:
    """Write an item as its own reply holds it: numbers are numbers."""
    goods = item.goods
    picture = address + image_path(goods)
    category = _category(goods.category_id)
    condition, detail = CONDITIONS[goods.condition_id]
    entry = {
        "id": goods.id,
        "seller": _seller(goods),
        "buyer": {"region_code": "", "link": GUIDE},
        "status": str(item.status),
        "name": goods.title,
        "price": item.price_yen,
        "description": DESCRIPTION.format(title=goods.title),
        "photos": [picture],
        "photo_paths": [f"photos/{goods.id}_1.jpg"],
        "thumbnails": [picture],
        "item_category": category,
        "item_category_ntiers": category,
        "parent_categories_ntiers": _parents(goods.category_id),
        "item_condition": {"id": goods.condition_id, "name": condition, "subname": detail},
        "colors": [],
        **_shipping(),
        "num_likes": likes(item),
        "num_comments": 0,
        "registered_prices_count": 0,
        "comments": [],
        "updated": item.updated,
        "created": goods.created,
        "pager_id": crc32(goods.id.encode()),
        "liked": False,
        "checksum": f"{crc32(goods.title.encode()):032x}",
        **_flags(),
        "meta_title": goods.title,
        "meta_subtitle": condition,
    }
    if goods.kind is Kind.AUCTION:
        entry["auction_info"] = _auction(item)
    return {"result": "OK", "data": entry, "meta": {}}


def shops_reply(item: Item, address: str) -> dict[str, Any]:
    """Write a shop's product as its own reply holds it."""
    goods = item.goods
    picture = address + image_path(goods)
    is_sold = item.status is Status.SOLD_OUT
    return {
        "name": goods.id,
        "displayName": goods.title,
        "productTags": ["sold_out"] if is_sold else [],
        "thumbnail": picture,
        "price": str(item.price_yen),
        "createTime": _zulu(goods.created),
        "updateTime": _zulu(item.updated),
        "attributes": [],
        "isBlockedShop": False,
        "productDetail": {
            "shop": _shop(goods, picture),
            "photos": [picture],
            "description": DESCRIPTION.format(title=goods.title),
            "categories": _shop_categories(goods.category_id),
            "brand": None,
            "condition": {"displayName": CONDITIONS[goods.condition_id][0], "description": ""},
            **_shop_shipping(),
            "promotions": [],
            "productStats": {
                "productId": goods.id,
                "score": 0,
                "reviewCount": 0,
                "likesCount": likes(item),
            },
            "timeSaleDetails": None,
            "variants": [_variant(goods, "0" if is_sold else "3")],
            **dict.fromkeys(NEVER_SET),
        },
    }


NEVER_SET = (
    "shippingFeeConfig",
    "variationGrouping",
    "buyerPromotion",
    "followPromotion",
    "lastPurchasedDateTime",
    "realCardReward",
    "mercardCampaign",
    "seoMetadata",
    "productPreOrder",
    "shippingFeeCalculationConfiguration",
)


def _zulu(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def _buyer(goods: Goods) -> int:
    return 700_000_000 + crc32(goods.id.encode()) % 99_999_999


def _bidding(item: Item) -> dict[str, Any]:
    return {
        "id": str(crc32(item.goods.id.encode())),
        "bidDeadline": _zulu(item.goods.deadline),
        "totalBid": str(item.bids),
        "highestBid": str(item.price_yen),
    }


def _auction(item: Item) -> dict[str, Any]:
    return {
        "id": str(crc32(item.goods.id.encode())),
        "start_time": item.goods.created,
        "expected_end_time": item.goods.deadline,
        "total_bids": item.bids,
        "initial_price": item.goods.first_price_yen,
        "highest_bid": item.price_yen,
        "state": "STATE_BIDDING" if item.bids else "STATE_NO_BID",
        "auction_type": "AUCTION_TYPE_NORMAL",
    }


def _seller(goods: Goods) -> dict[str, Any]:
    joined = 1_500_000_000 + goods.seller * 86_400
    ratings = goods.seller * 7 % 400
    return {
        "id": seller_id(goods),
        "name": f"出品者{goods.seller}",
        "photo_url": "",
        "photo_thumbnail_url": "",
        "register_sms_confirmation": "yes",
        "register_sms_confirmation_at": str(datetime.fromtimestamp(joined, UTC))[:19],
        "region_code": "",
        "created": joined,
        "num_sell_items": goods.seller % 90 + 1,
        "ratings": {"good": ratings, "normal": 0, "bad": 0},
        "num_ratings": ratings,
        "score": ratings,
        "is_official": False,
        "quick_shipper": False,
        "is_followable": True,
        "is_blocked": False,
        "is_inactive": False,
        "star_rating_score": 5,
    }


def _category(category_id: int) -> dict[str, Any]:
    category = CATEGORIES[category_id]
    return {
        "id": category.id,
        "name": category.name,
        "display_order": 1,
        "parent_category_id": category.parent_id,
        "parent_category_name": category.parent_name,
        "root_category_id": ROOT_CATEGORY[0],
        "root_category_name": ROOT_CATEGORY[1],
        "brand_group_id": 0,
    }


def _parents(category_id: int) -> list[dict[str, Any]]:
    category = CATEGORIES[category_id]
    above = (ROOT_CATEGORY, (category.parent_id, category.parent_name))
    return [{"id": number, "name": name, "display_order": 0} for number, name in above]


def _shipping() -> dict[str, Any]:
    fees = ("id", "fee", "icon_id", "pickup_fee", "shipping_fee", "total_fee")
    return {
        "shipping_payer": {"id": 2, "name": "送料込み(出品者負担)", "code": "seller"},
        "shipping_method": {"id": 14, "name": "らくらく便", "is_deprecated": "no"},
        "shipping_from_area": FROM_AREA,
        "shipping_duration": {"id": 2, "name": "2~3日で発送", "min_days": 2, "max_days": 3},
        "shipping_class": {**dict.fromkeys(fees, 0), "is_pickup": False},
    }


def _flags() -> dict[str, Any]:
    return {
        "is_dynamic_shipping_fee": False,
        "application_attributes": {},
        "is_shop_item": "no",
        "hash_tags": [],
        "is_anonymous_shipping": True,
        "is_web_visible": True,
        "is_offerable": False,
        "is_organizational_user": False,
        "organizational_user_status": "",
        "is_stock_item": False,
        "is_cancelable": True,
        "shipped_by_worker": False,
        "additional_services": [],
        "has_additional_service": False,
        "has_like_list": False,
        "is_offerable_v2": True,
        "item_attributes": [],
        "is_dismissed": False,
        "photo_descriptions": [""],
        "is_degraded": False,
    }


def _shop(goods: Goods, picture: str) -> dict[str, Any]:
    shop_id, shop_name = shop_of(goods)
    return {
        "name": shop_id,
        "displayName": shop_name,
        "thumbnail": picture,
        "shopStats": {"shopId": shop_id, "score": 5, "reviewCount": str(goods.seller)},
        "allowDirectMessage": True,
        "shopItems": [],
        "isInboundXb": False,
        "badges": [],
        "hasApprovedBrandScreening": False,
        "alwaysShowStock": False,
        "isOwner": False,
        "enableMultiplePurchase": False,
    }


def _shop_categories(category_id: int) -> list[dict[str, Any]]:
    category, root = CATEGORIES[category_id], str(ROOT_CATEGORY[0])
    rows = (
        (category.id, category.name, category.parent_id, False),
        (category.parent_id, category.parent_name, ROOT_CATEGORY[0], True),
    )
    return [
        {
            "categoryId": str(number),
            "displayName": name,
            "parentId": str(parent_id),
            "rootId": root,
            "hasChild": has_child,
        }
        for number, name, parent_id, has_child in rows
    ]


def _shop_shipping() -> dict[str, Any]:
    return {
        "shippingMethod": {
            "shippingMethodId": "1",
            "displayName": "未定(出品者が手配)",
            "isAnonymous": False,
        },
        "shippingPayer": {
            "shippingPayerId": "1",
            "displayName": "送料込み(出品者負担)",
            "code": "SELLER",
        },
        "shippingDuration": {
            "shippingDurationId": "2",
            "displayName": "2〜3日で発送",
            "minDays": 2,
            "maxDays": 3,
        },
        "shippingFromArea": {"shippingAreaCode": "jp13", "displayName": "東京都"},
    }


def _variant(goods: Goods, quantity: str) -> dict[str, Any]:
    return {
        "variantId": goods.id[::-1],
        "displayName": "",
        "quantity": quantity,
        "size": "",
        "attributes": [],
        "maxQuantityPerOrder": 1,
    }
