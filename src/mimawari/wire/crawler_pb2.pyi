from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ItemStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ITEM_STATUS_UNSPECIFIED: _ClassVar[ItemStatus]
    ITEM_STATUS_ON_SALE: _ClassVar[ItemStatus]
    ITEM_STATUS_SOLD: _ClassVar[ItemStatus]
ITEM_STATUS_UNSPECIFIED: ItemStatus
ITEM_STATUS_ON_SALE: ItemStatus
ITEM_STATUS_SOLD: ItemStatus

class CrawlRequest(_message.Message):
    __slots__ = ("ip_id", "keyword", "task_id", "created_at", "retry_count", "pages_on_sale", "pages_sold")
    IP_ID_FIELD_NUMBER: _ClassVar[int]
    KEYWORD_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    RETRY_COUNT_FIELD_NUMBER: _ClassVar[int]
    PAGES_ON_SALE_FIELD_NUMBER: _ClassVar[int]
    PAGES_SOLD_FIELD_NUMBER: _ClassVar[int]
    ip_id: int
    keyword: str
    task_id: str
    created_at: int
    retry_count: int
    pages_on_sale: int
    pages_sold: int
    def __init__(self, ip_id: _Optional[int] = ..., keyword: _Optional[str] = ..., task_id: _Optional[str] = ..., created_at: _Optional[int] = ..., retry_count: _Optional[int] = ..., pages_on_sale: _Optional[int] = ..., pages_sold: _Optional[int] = ...) -> None: ...

class Item(_message.Message):
    __slots__ = ("source_id", "title", "price", "image_url", "item_url", "status")
    SOURCE_ID_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    PRICE_FIELD_NUMBER: _ClassVar[int]
    IMAGE_URL_FIELD_NUMBER: _ClassVar[int]
    ITEM_URL_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    source_id: str
    title: str
    price: int
    image_url: str
    item_url: str
    status: ItemStatus
    def __init__(self, source_id: _Optional[str] = ..., title: _Optional[str] = ..., price: _Optional[int] = ..., image_url: _Optional[str] = ..., item_url: _Optional[str] = ..., status: _Optional[_Union[ItemStatus, str]] = ...) -> None: ...

class CrawlResponse(_message.Message):
    __slots__ = ("ip_id", "items", "total_found", "error_message", "task_id", "crawled_at", "pages_crawled", "retry_count")
    IP_ID_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FOUND_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    CRAWLED_AT_FIELD_NUMBER: _ClassVar[int]
    PAGES_CRAWLED_FIELD_NUMBER: _ClassVar[int]
    RETRY_COUNT_FIELD_NUMBER: _ClassVar[int]
    ip_id: int
    items: _containers.RepeatedCompositeFieldContainer[Item]
    total_found: int
    error_message: str
    task_id: str
    crawled_at: int
    pages_crawled: int
    retry_count: int
    def __init__(self, ip_id: _Optional[int] = ..., items: _Optional[_Iterable[_Union[Item, _Mapping]]] = ..., total_found: _Optional[int] = ..., error_message: _Optional[str] = ..., task_id: _Optional[str] = ..., crawled_at: _Optional[int] = ..., pages_crawled: _Optional[int] = ..., retry_count: _Optional[int] = ...) -> None: ...
