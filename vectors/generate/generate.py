#!/usr/bin/env python3
"""Writes ../block, ../suite, ../edge and the self-test's table of the cipher crate.

Each vector is computed by Botan and by libgcrypt. When they differ, or differ from what was
published, nothing is written and the exit status is 1. No clock and no randomness: the inputs
of generated vectors come from SHAKE-256 of the seed below, so the files come out the same.

  apt-get install libbotan-2-19 libgcrypt20 python3
  python3 vectors/generate/generate.py            write
  python3 vectors/generate/generate.py --check    exit 1 if the files would change
"""

import hashlib
import json
import pathlib
import sys

import published
from edges import Edges
from libraries import Both, Disagreement

ROOT = pathlib.Path(__file__).resolve().parent.parent
SELF_TEST = ROOT.parent / "crates" / "qloak-cipher" / "src" / "selftest" / "answers.rs"
SEED = b"qloak vectors 1"

BITS = {"AES": (128, 192, 256), "Camellia": (128, 192, 256), "Serpent": (128, 192, 256)}
CIPHERS = {f"{name}-{bits}": bits // 8 for name, sizes in BITS.items() for bits in sizes}
# Octets of data around every edge: none, one, a block and its neighbours, the 8 or 32 blocks that a
# backend may take at once and their neighbours, a long frame.
DATA_OCTETS = (0, 1, 15, 16, 17, 31, 32, 64, 100, 127, 128, 129, 512, 529, 1420)
# Octets of AAD: none, addresses, and a SecTAG without and with SCI behind them.
AAD_OCTETS = (0, 12, 16, 20, 28)
PON_DATA_OCTETS = (0, 20, 60)

both = Both()
GENERATED = "Generated; Botan and libgcrypt agree"


def octets(suite, vector, field, count):
    text = b"|".join((SEED, suite.encode(), str(vector).encode(), field.encode()))
    return hashlib.shake_256(text).digest(count)


def expect(what, computed, printed):
    if computed != printed:
        raise Disagreement(f"{what}: printed {printed.hex()}, both libraries say {computed.hex()}")


def block_file(cipher):
    vectors, iterated = [], []

    def add(source, name, key, plaintext, ciphertext):
        expect(f"{source}, {name}", both.block(cipher, key, plaintext), ciphertext)
        expect(f"{source}, {name}, back", both.block(cipher, key, ciphertext, True), plaintext)
        vectors.append({
            "source": source, "name": name, "key": key.hex(),
            "plaintext": plaintext.hex(), "ciphertext": ciphertext.hex(),
        })

    for its, source, name, key, plaintext, ciphertext in published.BLOCKS:
        if its == cipher:
            add(source, name, key, plaintext, ciphertext)
    if cipher in published.SP_ECB:
        clause, ciphertext = published.SP_ECB[cipher]
        for n in range(4):
            part = slice(16 * n, 16 * n + 16)
            add(f"{published.SP_800_38A} {clause}", f"block {n + 1}", published.SP_KEYS[cipher],
                published.SP_PLAINTEXT[part], ciphertext[part])
    for its, name, key, plaintext, ciphertext in published.nessie():
        if its == cipher:
            add("NESSIE", name, key, plaintext, ciphertext)
    for its, source, name, key, start, results in published.ITERATED_BLOCKS:
        if its != cipher:
            continue
        for times, result in results:
            value = start
            for _ in range(times):
                value = both.block(cipher, key, value)
            expect(f"{source}, {name}, {times} times", value, result)
            iterated.append({
                "source": source, "name": name, "key": key.hex(), "plaintext": start.hex(),
                "times": times, "ciphertext": result.hex(),
            })
    return {"cipher": cipher, "vectors": vectors, "iterated": iterated}


def loop(cipher, mode, key_octets):
    """The loop of RFC 7253, appendix A, with any AEAD in OCB's place."""
    seal = lambda n, aad, data: b"".join(
        both.seal(cipher, mode, key, n.to_bytes(12, "big"), aad, data))
    key = bytes(key_octets - 1) + bytes([128])
    out = b""
    for i in range(128):
        out += seal(3 * i + 1, bytes(i), bytes(i))
        out += seal(3 * i + 2, b"", bytes(i))
        out += seal(3 * i + 3, bytes(i), b"")
    return seal(385, out, b"")


def sealed_vector(source, name, key, nonce, aad, plaintext, ciphertext, tag):
    return {
        "source": source, "name": name, "key": key.hex(), "nonce": nonce.hex(), "aad": aad.hex(),
        "plaintext": plaintext.hex(), "ciphertext": ciphertext.hex(), "tag": tag.hex(),
    }


def aead_file(suite, cipher, mode, key_octets):
    vectors = []

    def make(name, nonce, aad_octets, data_octets, tag_octets=16):
        number = len(vectors)
        key = octets(suite, number, "key", key_octets)
        aad = octets(suite, number, "aad", aad_octets)
        plaintext = octets(suite, number, "plaintext", data_octets)
        ciphertext, tag = both.seal(cipher, mode, key, nonce, aad, plaintext, tag_octets)
        vectors.append(
            sealed_vector(GENERATED, name, key, nonce, aad, plaintext, ciphertext, tag))

    def nonce():
        return octets(suite, len(vectors), "nonce", 12)

    for its, mode_, source, (name, key, n, aad, plaintext, ciphertext, tag) in published.SEALED:
        if (its, mode_) == (cipher, mode):
            out, made = both.seal(cipher, mode, key, n, aad, plaintext)
            expect(f"{source}, {name}", out + made, ciphertext + tag)
            vectors.append(sealed_vector(source, name, key, n, aad, plaintext, ciphertext, tag))
    for n, data in enumerate(DATA_OCTETS):
        aad = AAD_OCTETS[n % len(AAD_OCTETS)]
        make(f"{data} octets of data, {aad} of AAD", nonce(), aad, data)
    for aad in AAD_OCTETS:
        make(f"33 octets of data, {aad} of AAD", nonce(), aad, 33)
    make("a whole frame of AAD, no data", nonce(), 600, 0)
    # The last six bits of an OCB nonce shift; every suite may meet these nonces.
    for name, last in (("ends in 00", 0x00), ("ends in 3F", 0x3F), ("ends in FF", 0xFF)):
        make(f"nonce {name}", nonce()[:11] + bytes([last]), 28, 46)
    make("nonce of zeros", bytes(12), 28, 46)
    make("nonce of ones", bytes([0xFF]) * 12, 28, 46)
    if mode == "GCM":
        for data in PON_DATA_OCTETS:
            make(f"PON: 64-bit tag, {data} octets of data", nonce(), 20, data, 8)

    result = loop(cipher, mode, key_octets)
    source = f"{GENERATED}; the loop of {published.RFC_7253}"
    if mode == "OCB" and cipher in published.OCB_LOOP:
        expect(f"{published.RFC_7253}, loop", result, published.OCB_LOOP[cipher])
        source = published.RFC_7253
    return {
        "suite": suite, "cipher": cipher, "mode": mode, "vectors": vectors,
        "loop": {"source": source, "result": result.hex()},
    }


def ctr_file(suite, cipher, key_octets):
    vectors = []

    def add(source, name, key, nonce, counter, plaintext, printed=None):
        block = nonce + counter.to_bytes(4, "big")
        ciphertext = both.ctr(cipher, key, block, plaintext)
        if printed is not None:
            expect(f"{source}, {name}", ciphertext, printed)
        vectors.append({
            "source": source, "name": name, "key": key.hex(), "nonce": nonce.hex(),
            "counter": counter, "plaintext": plaintext.hex(), "ciphertext": ciphertext.hex(),
        })

    for number, key, nonce, plaintext, aes, camellia in published.RFC_CTR:
        if len(key) != key_octets:
            continue
        if cipher.startswith("AES"):
            add("RFC 3686, 6", f"test vector {number}", key, nonce, 1, plaintext, aes)
        elif cipher.startswith("Camellia"):
            add("RFC 5528, 4.1", f"TV {number}", key, nonce, 1, plaintext, camellia)
    if cipher in published.SP_CTR:
        clause, ciphertext = published.SP_CTR[cipher]
        counter = int.from_bytes(published.SP_COUNTER[12:], "big")
        add(f"{published.SP_800_38A} {clause}", "example", published.SP_KEYS[cipher],
            published.SP_COUNTER[:12], counter, published.SP_PLAINTEXT, ciphertext)
    for data in DATA_OCTETS:
        number = len(vectors)
        add(GENERATED, f"{data} octets", octets(suite, number, "key", key_octets),
            octets(suite, number, "nonce", 12), 1, octets(suite, number, "plaintext", data))
    return {"suite": suite, "cipher": cipher, "mode": "CTR", "vectors": vectors}


def own_file(suite, cipher, mode, definition, function):
    """XOR, plain and raw block: our own definitions, computed from them."""
    vectors = []
    for data in DATA_OCTETS:
        number = len(vectors)
        key = octets(suite, number, "key", 32)
        plaintext = octets(suite, number, "plaintext", data)
        vectors.append({
            "source": definition, "name": f"{data} octets", "key": key.hex(),
            "nonce": octets(suite, number, "nonce", 12).hex(),
            "plaintext": plaintext.hex(), "ciphertext": function(key, plaintext).hex(),
        })
    if mode == "raw block":
        clause, ciphertext = published.SP_ECB["AES-256"]
        vectors.insert(0, {
            "source": f"{published.SP_800_38A} {clause}", "name": "example",
            "key": published.SP_KEYS["AES-256"].hex(), "nonce": bytes(12).hex(),
            "plaintext": published.SP_PLAINTEXT.hex(), "ciphertext": ciphertext.hex(),
        })
        expect("raw block", function(published.SP_KEYS["AES-256"], published.SP_PLAINTEXT), ciphertext)
    return {"suite": suite, "cipher": cipher, "mode": mode, "vectors": vectors}


def xor(key, plaintext):
    return bytes(octet ^ key[i % 32] for i, octet in enumerate(plaintext))


def plain(_, plaintext):
    return plaintext


def raw_block(key, plaintext):
    whole = len(plaintext) // 16 * 16
    return both.block("AES-256", key, plaintext[:whole]) + plaintext[whole:]


def everything():
    """Path and content of each file."""
    files = {}
    for cipher, key_octets in CIPHERS.items():
        stem = cipher.lower()
        files[f"block/{stem}.json"] = block_file(cipher)
        for mode in ("GCM", "OCB"):
            suite = f"{stem}-{mode.lower()}"
            files[f"suite/{suite}.json"] = aead_file(suite, cipher, mode, key_octets)
        files[f"suite/{stem}-ctr.json"] = ctr_file(f"{stem}-ctr", cipher, key_octets)
    name = "chacha20-poly1305"
    files[f"suite/{name}.json"] = aead_file(name, "ChaCha20", "Poly1305", 32)
    files["suite/xor.json"] = own_file(
        "xor", "none", "XOR", "By definition: the key repeated over the data", xor)
    files["suite/plain.json"] = own_file(
        "plain", "none", "plain", "By definition: the data", plain)
    files["suite/raw-block-aes-256.json"] = own_file(
        "raw-block-aes-256", "AES-256", "raw block",
        "Whole blocks: Botan and libgcrypt agree; the tail: by definition, unchanged", raw_block)
    return files


def edges():
    """Path and content of each file of edge cases."""
    files = {}

    for cipher, key_octets in CIPHERS.items():
        stem = cipher.lower()
        for mode in ("GCM", "OCB"):
            suite = f"{stem}-{mode.lower()}"
            files[f"edge/{suite}.json"] = Edges(both, suite, cipher, mode, key_octets).aead()
        counter = lambda key, block, data, cipher=cipher: both.ctr(cipher, key, block, data)
        suite = f"{stem}-ctr"
        files[f"edge/{suite}.json"] = Edges(both, suite, cipher, "CTR", key_octets).hazmat(
            counter, counters=True)
    name = "chacha20-poly1305"
    files[f"edge/{name}.json"] = Edges(both, name, "ChaCha20", "Poly1305", 32).aead()
    for name, cipher, function in (
        ("xor", "none", xor), ("plain", "none", plain), ("raw-block-aes-256", "AES-256", raw_block),
    ):
        files[f"edge/{name}.json"] = Edges(both, name, cipher, name, 32).hazmat(
            lambda key, _, data, function=function: function(key, data))
    return files


def as_wycheproof(content):
    """One test a line, and a group that is a whole range on one line too."""
    lines = ["{"]
    for key, value in content.items():
        if key != "testGroups":
            lines.append(f"  {json.dumps(key)}: {json.dumps(value)},")
    lines.append('  "testGroups": [')
    for group in content["testGroups"]:
        comma = "" if group is content["testGroups"][-1] else ","
        tests = group.get("tests")
        if tests is None:
            lines.append(f"    {json.dumps(group)}{comma}")
            continue
        head = {key: value for key, value in group.items() if key != "tests"}
        lines.append(f'    {json.dumps(head)[:-1]}, "tests": [')
        lines += [f"      {json.dumps(t)}{'' if t is tests[-1] else ','}" for t in tests]
        lines.append(f"    ]}}{comma}")
    return "\n".join(lines + ["  ]", "}", ""])


def as_json(content):
    """One vector a line: a diff shows which vector changed."""
    lines = ["{", '  "format": 1,']
    keys = list(content)
    for key in keys:
        comma = "" if key == keys[-1] else ","
        value = content[key]
        if isinstance(value, list) and value:
            lines.append(f"  {json.dumps(key)}: [")
            lines += [f"    {json.dumps(v)}{',' if v is not value[-1] else ''}" for v in value]
            lines.append(f"  ]{comma}")
        else:
            lines.append(f"  {json.dumps(key)}: {json.dumps(value)}{comma}")
    return "\n".join(lines + ["}", ""])


def as_rust(files):
    """The self-test's table: of each suite one vector that was published, where one has AAD (in an
    AEAD) and a tail of under a block, and one that fills a backend's lanes and has a tail."""
    lines = [
        "//! Known answers for the self-test. Written by vectors/generate/generate.py from the files",
        "//! in vectors/suite; do not edit.",
        "",
        "use super::Answer;",
        "",
        "/// The answers, in the order of the files' names.",
        "#[rustfmt::skip]",
        "pub(super) static ANSWERS: &[Answer] = &[",
    ]
    for path in sorted(p for p in files if p.startswith("suite/")):
        content = files[path]
        vectors = content["vectors"]
        printed = [
            v for v in vectors
            if not v["source"].startswith((GENERATED, "By definition", "Whole blocks"))
            and v["plaintext"] and v.get("counter", 1) == 1 and v.get("aad", "..")
        ]
        printed.sort(key=lambda v: (len(v["plaintext"]) % 32 != 0, len(v["plaintext"])))
        wide = [v for v in vectors if v["name"].startswith("529 octets")]
        for v in printed[-1:] + wide:
            lines.append(f"    // {v['source']}: {v['name']}.")
            fields = ", ".join(
                f'{field}: "{v.get(field, "")}"'
                for field in ("key", "nonce", "aad", "plaintext", "ciphertext", "tag")
            )
            lines.append(f'    Answer {{ suite: "{content["suite"]}", {fields} }},')
    return "\n".join(lines + ["];", ""])


def main():
    try:
        files, edge_files = everything(), edges()
    except Disagreement as error:
        sys.exit(f"nothing was written: {error}")
    texts = {ROOT / path: as_json(content) for path, content in files.items()}
    texts |= {ROOT / path: as_wycheproof(content) for path, content in edge_files.items()}
    texts[SELF_TEST] = as_rust(files)
    changed = [p for p, text in texts.items() if not p.exists() or p.read_text() != text]
    print(f"{' and '.join(both.versions)} agree on {len(texts)} files; {len(changed)} change")
    if "--check" in sys.argv[1:]:
        for path in changed:
            print(f"  would change: {path}")
        sys.exit(1 if changed else 0)
    for path in changed:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(texts[path])


if __name__ == "__main__":
    main()
