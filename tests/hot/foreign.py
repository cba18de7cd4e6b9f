"""Another program beside ours: redis-py, protobuf and the specification, and nothing of ours.

The definitions are §6.3.1's as they are printed, with the enum that §6.3.3 implies.
"""

from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from grpc_tools import protoc
from redis import Redis

TASKS, RESULTS = "animetop:queue:tasks", "animetop:queue:results"
DEFINITIONS = """
syntax = "proto3";

enum ItemStatus {
  ITEM_STATUS_UNSPECIFIED = 0;
  ITEM_STATUS_ON_SALE = 1;
  ITEM_STATUS_SOLD = 2;
}

message CrawlRequest {
  uint64 ip_id = 1;
  string keyword = 2;
  string task_id = 4;
  int64 created_at = 5;
  int32 retry_count = 9;
  int32 pages_on_sale = 10;
  int32 pages_sold = 11;
}

message Item {
  string source_id = 1;
  string title = 2;
  int32 price = 3;
  string image_url = 4;
  string item_url = 5;
  ItemStatus status = 6;
}

message CrawlResponse {
  uint64 ip_id = 1;
  repeated Item items = 3;
  int32 total_found = 4;
  string error_message = 5;
  string task_id = 6;
  int64 crawled_at = 7;
  int32 pages_crawled = 10;
  int32 retry_count = 11;
}
"""


def compile_messages(folder: Path) -> dict[str, Any]:
    """Compile the definitions and return the messages' classes."""
    (folder / "spec.proto").write_text(DEFINITIONS)
    out = folder / "set"
    assert protoc.main(["", f"-I{folder}", f"--descriptor_set_out={out}", "spec.proto"]) == 0
    files = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())
    pool = descriptor_pool.DescriptorPool()
    pool.Add(files.file[0])
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
        for name in ("CrawlRequest", "CrawlResponse", "Item")
    }


class Foreign:
    """A scheduler, a crawler and a pipeline as the specification has them."""

    def __init__(self, url: str, messages: dict[str, Any]) -> None:
        self.client: Any = Redis.from_url(url)
        self.messages = messages

    def read(self, name: str, text: bytes) -> Any:
        """Read a message strictly."""
        return json_format.Parse(text, self.messages[name]())

    def read_all(self) -> list[Any]:
        """Read every message in both queues and all their lists, strictly."""
        found = []
        for queue, name in ((TASKS, "CrawlRequest"), (RESULTS, "CrawlResponse")):
            for key in (queue, *self.client.scan_iter(f"{queue}:*")):
                if self.client.type(key) == b"list":
                    found += [self.read(name, text) for text in self.client.lrange(key, 0, -1)]
        return found

    def push_task(self, **fields: Any) -> None:
        """Put a task."""
        text = json_format.MessageToJson(self.messages["CrawlRequest"](**fields))
        self.client.lpush(TASKS, text)

    def pop_task(self) -> tuple[Any, bytes]:
        """Claim the next task; return it, and as it stands among those at work."""
        text = self.client.brpoplpush(TASKS, f"{TASKS}:processing", 5)
        return self.read("CrawlRequest", text), text

    def ack_task(self, text: bytes) -> int:
        """Say that a task is over; return how many messages that took out."""
        return int(self.client.lrem(f"{TASKS}:processing", 1, text))

    def push_result(self, task: Any, items: int = 1, **fields: Any) -> None:
        """Put what a task has found."""
        response, item = self.messages["CrawlResponse"], self.messages["Item"]
        found = [
            item(source_id=f"m{number}", title="figure", price=5000, status=1,
                 image_url="https://image", item_url="https://item")
            for number in range(items)
        ]  # fmt: skip
        message = response(
            ip_id=task.ip_id, task_id=task.task_id, items=found, total_found=items,
            pages_crawled=10, **fields,
        )  # fmt: skip
        self.client.lpush(RESULTS, json_format.MessageToJson(message))
