"""The hash of a set of queries is the one that JavaScript gives."""

import json
import random
import shutil
import subprocess

import pytest

from mimawari.watches.books.hashing import hash_queries, short_hash

# As node has made them.
VECTORS: list[tuple[list[str], str]] = [
    ([], "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    ([""], "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    (["a"], "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"),
    (["b", "a"], "7e18f737311b2dc3b2f269dd78396b0351f14fb66efa879f768cb23181883c78"),
    (["a", "b"], "7e18f737311b2dc3b2f269dd78396b0351f14fb66efa879f768cb23181883c78"),
    (
        ["  intitle:旅  行 ", "inauthor:\u3000夏目\u3000漱石"],
        "8bb3e6bb7c74e84cf396c24b7df2ce72baec04bb33a235efb72b873712f4dc95",
    ),
    (["\ufeffa\ufeffb"], "c8687a08aa5d6ed2044328fa6a697ab8e96dc34291e8c2034ae8c38e6fcc6d65"),
    (["\x85a"], "fbfc902239e1e4c05f76fd885fac2a34d0826dd6f4b6b136a8d526cff12f5d0f"),
    (["\x1ca"], "10a716f49706c923db9f2453152cd96b939dd77189f2a1d99a55d19737de1d49"),
    (["\u180ea"], "e9796336af749febd0aa1b3cd26edde6634cc48a488c1263141e578620287993"),
    (["\xa0x\u2028y"], "887fcea6a80333c6c02ae7e79735f0edad8d811f0b61431495f796f4bf6a7c19"),
    (["\U0001f600", "\uffff"], "57f5d534d4bd26247b45d36bf590554ed4992d6610a5396f205aa43612fe7397"),
    (["A", "a"], "b63de4b18d0c7fb59fa7bd4f0626769e39bb61cce4eb6d51f7c2c23d51c010df"),
    (["a\nb", "a b"], "9f7a5681d8327860600e69fbbca79e02dcb54814a8a04ec0bf264344666b61e3"),
    (["\u200ba"], "c2977f4f0dae6b0dace9b2c0c5f9db15b107e0441c61a4c240bbdc7ff6117440"),
]
# As the hash is defined.
SCRIPT = r"""
const crypto = require('crypto');
const hash = queries => crypto.createHash('sha256').update(
  queries.map(q => q.trim().replace(/\s+/g, ' ')).sort().join('\n')).digest('hex');
console.log(JSON.stringify(JSON.parse(require('fs').readFileSync(0, 'utf8')).map(hash)));
"""
LETTERS = [
    *"\t\n\v\f\r \xa0\u1680\u180e\u2000\u200a\u200b\u2028\u2029\u202f\u205f\u3000\ufeff\x85",
    *"\x1c\x1f\x00aZ漢\uffff\ue000\U0001f600",
    *("\ud83d", "\ude00", "\ud800", "\udfff"),
]


@pytest.mark.parametrize(("queries", "digits"), VECTORS, ids=ascii)
def test_the_hash_is_that_of_the_stored_vectors(queries: list[str], digits: str) -> None:
    assert hash_queries(queries) == digits


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_hash_is_that_of_node_for_any_text() -> None:
    chance = random.Random(1)
    cases = [
        [
            "".join(chance.choices(LETTERS, k=chance.randrange(9)))
            for _ in range(chance.randrange(5))
        ]
        for _ in range(5000)
    ]
    told = subprocess.run(
        ["node", "-e", SCRIPT], input=json.dumps(cases), capture_output=True, text=True, check=True
    )
    assert json.loads(told.stdout) == [hash_queries(case) for case in cases]


def test_logs_show_the_first_sixteen_digits() -> None:
    assert short_hash(hash_queries(["a"])) == "ca978112ca1bbdca"
