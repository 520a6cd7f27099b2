"""Edge cases of each suite in the JSON form of Project Wycheproof, for ../edge/*.json.

A group of type AeadTest is Wycheproof's own: one test with its result, valid or invalid. Three more
types hold a whole range in one line, because a file with each of a thousand frames would be data and
not text: EveryLength, EveryAad, EveryCounter. They carry SHA-256 of all their frames, and two octets of
it for each frame, so that the frame that differs can be named.

Valid results come from Botan and libgcrypt, which must agree; invalid ones are a valid one with a
change that an AEAD has to see.
"""

import hashlib

SEED = b"qloak edges 1"
# Every length of a frame's data up to 600; lengths around powers of two, where tables and counters
# carry; a long line frame.
LENGTHS = [(0, 600), (1023, 1025), (2015, 2017), (2047, 2049), (4062, 4066), (4079, 4081),
           (4095, 4097), (8192, 8192), (16000, 16000), (16384, 16385), (16400, 16400)]
AAD = [(0, 64), (127, 129), (255, 257), (511, 513), (600, 600), (1024, 1024), (16000, 16000)]
# First counters: carries between octets, the end of the backends' table of counters, the wrap.
COUNTERS = [(0, 3), (0xF0, 0x100), (1020, 1028), (0xFFF0, 0x10000), (0xFFFFF0, 0x1000000),
            (0x7FFFFFF8, 0x80000000), (0xFFFFFFC0, 0xFFFFFFFF)]
COUNTER_OCTETS = 1029
# Not a multiple of a block, so that no two blocks of a repeated text are equal.
TEXT_OCTETS = 251
DIGEST_OCTETS = 2
TAG_BITS = (0, 31, 32, 63, 64, 127)
TAG_LENGTHS = (0, 1, 8, 15, 16, 17)

NOTES = {
    "Ktv": ("BASIC", "A known answer at an edge: nothing, part of a block, all zeros, all ones."),
    "ModifiedTag": ("AUTH_BYPASS", "Some octets of the tag were changed."),
    "ModifiedText": ("AUTH_BYPASS", "Ciphertext, AAD or nonce are not those of the tag."),
    "TruncatedTag": ("AUTH_BYPASS", "The tag has another length than the key makes; no prefix of a "
                     "tag may pass for it (SP 800-38D, appendix B)."),
}


class Edges:
    """The file of one suite. `both` asks both libraries."""

    def __init__(self, both, suite, cipher, mode, key_octets):
        self.both, self.suite, self.cipher, self.mode = both, suite, cipher, mode
        self.key_octets = key_octets
        libraries = "Botan and libgcrypt, which agree on each answer"
        self.oracle = "the definition" if cipher == "none" else libraries

    def octets(self, field, count):
        text = b"|".join((SEED, self.suite.encode(), field.encode()))
        return hashlib.shake_256(text).digest(count)

    def seal(self, key, iv, aad, msg, tag=16):
        return self.both.seal(self.cipher, self.mode, key, iv, aad, msg, tag)

    def key(self, field):
        return self.octets(field + " key", self.key_octets)

    def aead(self):
        groups = [self.single(16)]
        if self.mode == "GCM":
            groups.append(self.single(8))
        groups.append(self.every_length(lambda key, iv, aad, msg: b"".join(
            self.seal(key, iv, aad, msg)), 128))
        groups.append(self.every_aad())
        return self.file(groups)

    def hazmat(self, function, counters=False):
        """`function(key, counter block, data)`; a suite without tag and AAD."""
        groups = [self.every_length(
            lambda key, iv, _, msg: function(key, iv + (1).to_bytes(4, "big"), msg), 0)]
        if counters:
            groups.append(self.every_counter())
        return self.file(groups)

    def file(self, groups):
        count = 0
        for group in groups:
            count += len(group["tests"]) if "tests" in group else of(group["ranges"])
        used = {flag for group in groups for test in group.get("tests", []) for flag in test["flags"]}
        return {
            "algorithm": self.suite,
            "schema": "aead_test_schema_v1.json and the types of vectors/README.md",
            "header": [
                f"Edge cases of {self.suite}, written by vectors/generate/generate.py.",
                f"Oracle: {self.oracle}.",
            ],
            "notes": {
                flag: {"bugType": kind, "description": text}
                for flag, (kind, text) in NOTES.items() if flag in used
            },
            "numberOfTests": count,
            "testGroups": groups,
        }

    def group(self, kind, tag_bits):
        return {"type": kind, "ivSize": 96, "keySize": 8 * self.key_octets, "tagSize": tag_bits}

    def every_length(self, function, tag_bits):
        key, iv = self.key("lengths"), self.octets("lengths iv", 12)
        aad = self.octets("lengths aad", 20) if tag_bits else b""
        text = self.octets("lengths msg", TEXT_OCTETS)
        frames = [function(key, numbered(iv, n), aad, repeated(text, n)) for n in each(LENGTHS)]
        return self.group("EveryLength", tag_bits) | {
            "key": key.hex(), "iv": iv.hex(), "aad": aad.hex(), "msg": text.hex(),
            "ranges": LENGTHS,
        } | digests(frames)

    def every_aad(self):
        key, iv, msg = self.key("aad"), self.octets("aad iv", 12), self.octets("aad msg", 21)
        text = self.octets("aad aad", TEXT_OCTETS)
        frames = [
            b"".join(self.seal(key, numbered(iv, n), repeated(text, n), msg)) for n in each(AAD)]
        return self.group("EveryAad", 128) | {
            "key": key.hex(), "iv": iv.hex(), "aad": text.hex(), "msg": msg.hex(),
            "ranges": AAD,
        } | digests(frames)

    def every_counter(self):
        """The key stream by definition, block by block (SP 800-38A, 6.5) with the increment of
        SP 800-38D, 6.2: the last 32 bits wrap and leave the nonce alone."""
        key, iv = self.key("counters"), self.octets("counters iv", 12)
        text = self.octets("counters msg", TEXT_OCTETS)
        msg = repeated(text, COUNTER_OCTETS)
        blocks = -(-len(msg) // 16)

        def stream(first):
            counters = [(first + n) % (1 << 32) for n in range(blocks)]
            return self.both.block(
                self.cipher, key, b"".join(iv + c.to_bytes(4, "big") for c in counters))

        frames = [bytes(a ^ b for a, b in zip(msg, stream(first))) for first in each(COUNTERS)]
        return self.group("EveryCounter", 0) | {
            "key": key.hex(), "iv": iv.hex(), "aad": "", "msg": text.hex(),
            "msgOctets": COUNTER_OCTETS, "ranges": COUNTERS,
        } | digests(frames)

    def single(self, tag_octets):
        tests = []

        def add(comment, flag, key, iv, aad, msg, ct, tag, valid):
            tests.append({
                "tcId": len(tests) + 1, "comment": comment, "flags": [flag], "key": key.hex(),
                "iv": iv.hex(), "aad": aad.hex(), "msg": msg.hex(), "ct": ct.hex(),
                "tag": tag.hex(), "result": "valid" if valid else "invalid",
            })

        key, iv = self.key(f"tag {tag_octets}"), self.octets(f"tag {tag_octets} iv", 12)
        for comment, k, n, aad, msg in (
            ("nothing at all", key, iv, b"", b""),
            ("AAD alone", key, iv, b"\x01" * 20, b""),
            ("one octet", key, iv, b"", b"\xa5"),
            ("zeros", bytes(len(key)), bytes(12), bytes(16), bytes(32)),
            ("ones", b"\xff" * len(key), b"\xff" * 12, b"\xff" * 17, b"\xff" * 31),
        ):
            add(comment, "Ktv", k, n, aad, msg, *self.seal(k, n, aad, msg, tag_octets), True)

        aad, msg = self.octets("base aad", 5), self.octets("base msg", 18)
        ct, tag = self.seal(key, iv, aad, msg, tag_octets)
        add("what the following change", "Ktv", key, iv, aad, msg, ct, tag, True)

        def wrong(comment, flag, iv=iv, aad=aad, ct=ct, tag=tag):
            add(comment, flag, key, iv, aad, msg, ct, tag, False)

        for bit in (bit for bit in TAG_BITS if bit < 8 * tag_octets):
            wrong(f"bit {bit} of the tag", "ModifiedTag", tag=flipped(tag, bit))
        wrong("last bit of the tag", "ModifiedTag", tag=flipped(tag, 8 * tag_octets - 8))
        wrong("each bit of the tag", "ModifiedTag", tag=bytes(255 ^ octet for octet in tag))
        wrong("tag of zeros", "ModifiedTag", tag=bytes(tag_octets))
        wrong("tag of another frame", "ModifiedTag",
              tag=self.seal(key, numbered(iv, 1), aad, msg, tag_octets)[1])
        for count in (count for count in TAG_LENGTHS if count != tag_octets):
            whole = tag if tag_octets == 16 else self.seal(key, iv, aad, msg)[1]
            wrong(f"tag of {count} octets", "TruncatedTag", tag=(whole + b"\0")[:count])
        group = self.group("AeadTest", 8 * tag_octets) | {"tests": tests}
        if tag_octets < 16:
            # What is not the tag goes into it in the same way whatever its length.
            return group
        wrong("first bit of ct", "ModifiedText", ct=flipped(ct, 7))
        wrong("last bit of ct", "ModifiedText", ct=flipped(ct, 8 * len(ct) - 8))
        wrong("ct cut", "ModifiedText", ct=ct[:-1])
        wrong("ct longer by a zero", "ModifiedText", ct=ct + b"\0")
        wrong("no ct", "ModifiedText", ct=b"")
        wrong("first bit of aad", "ModifiedText", aad=flipped(aad, 7))
        wrong("aad cut", "ModifiedText", aad=aad[:-1])
        wrong("aad longer by a zero", "ModifiedText", aad=aad + b"\0")
        wrong("first bit of iv", "ModifiedText", iv=flipped(iv, 7))
        wrong("last bit of iv", "ModifiedText", iv=flipped(iv, 88))
        return group


def each(ranges):
    """Every number of ranges, both ends included."""
    return (n for first, last in ranges for n in range(first, last + 1))


def of(ranges):
    return sum(1 for _ in each(ranges))


def numbered(iv, number):
    """The frame's nonce: its number stands in the last three octets."""
    return iv[:9] + number.to_bytes(3, "big")


def repeated(text, count):
    return (text * (count // len(text) + 1))[:count]


def digests(frames):
    """Of each frame and of all, one behind the other."""
    each_one = [hashlib.sha256(frame).hexdigest()[: 2 * DIGEST_OCTETS] for frame in frames]
    return {"digests": "".join(each_one), "sha256": hashlib.sha256(b"".join(frames)).hexdigest()}


def flipped(octets, bit):
    """Bit 0 is the lowest of the first octet, as in Wycheproof."""
    return octets[: bit // 8] + bytes([octets[bit // 8] ^ 1 << bit % 8]) + octets[bit // 8 + 1 :]
