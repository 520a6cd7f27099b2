"""What standards and authors printed, typed in from there.

Every entry is checked by both libraries before it is written; one wrong digit stops the generator.
Hex may hold spaces.
"""

import pathlib

HERE = pathlib.Path(__file__).parent


def h(text):
    return bytes.fromhex(text.replace(" ", "").replace("\n", ""))


FIPS_197 = "FIPS 197 (2001), appendix"
SP_800_38A = "NIST SP 800-38A (2001), appendix"
GCM_SPEC = "McGrew and Viega, The Galois/Counter Mode of Operation, appendix B"
GCM_CAMELLIA = "Authors of draft-kato-ipsec-camellia-gcm, as in the test suite of GNU Nettle"
RFC_7253 = "RFC 7253, appendix A"

# SP 800-38A, appendix F: the same keys and four blocks in every example.
SP_KEYS = {
    "AES-128": h("2b7e151628aed2a6abf7158809cf4f3c"),
    "AES-192": h("8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b"),
    "AES-256": h("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4"),
}
SP_PLAINTEXT = h(
    "6bc1bee22e409f96e93d7e117393172a ae2d8a571e03ac9c9eb76fac45af8e51"
    "30c81c46a35ce411e5fbc1191a0a52ef f69f2445df4f9b17ad2b417be66c3710"
)
SP_ECB = {
    "AES-128": ("F.1.1", h(
        "3ad77bb40d7a3660a89ecaf32466ef97 f5d3d58503b9699de785895a96fdbaaf"
        "43b1cd7f598ece23881b00e3ed030688 7b0c785e27e8ad3f8223207104725dd4")),
    "AES-192": ("F.1.3", h(
        "bd334f1d6e45f25ff712a214571fa5cc 974104846d0ad3ad7734ecb3ecee4eef"
        "ef7afd2270e2e60adce0ba2face6444e 9a4b41ba738d6c72fb16691603c18e0e")),
    "AES-256": ("F.1.5", h(
        "f3eed1bdb5d2a03c064b5a7e3db181f8 591ccb10d410ed26dc5ba74a31362870"
        "b6ed21b99ca6f4f9f153e7b1beafed1d 23304b7a39f9f3ff067d8d8f9e24ecc7")),
}
SP_COUNTER = h("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")
SP_CTR = {
    "AES-128": ("F.5.1", h(
        "874d6191b620e3261bef6864990db6ce 9806f66b7970fdff8617187bb9fffdff"
        "5ae4df3edbd5d35e5b4f09020db03eab 1e031dda2fbe03d1792170a0f3009cee")),
    "AES-192": ("F.5.3", h(
        "1abc932417521ca24f2b0459fe7e6e0b 090339ec0aa6faefd5ccc2c6f4ce8e94"
        "1e36b26bd1ebc670d1bd1d665620abf7 4f78a7f6d29809585a97daec58c6b050")),
    "AES-256": ("F.5.5", h(
        "601ec313775789a5b7a7f504bbf3d228 f443e3ca4d62b59aca84e990cacaf5c5"
        "2b0930daa23de94ce87017ba2d84988d dfc9c58db67aada613c2dd08457941a6")),
}

# cipher: (source, name, key, plaintext, ciphertext)
BLOCKS = [
    ("AES-128", f"{FIPS_197} B", "cipher example",
     h("2b7e151628aed2a6abf7158809cf4f3c"), h("3243f6a8885a308d313198a2e0370734"),
     h("3925841d02dc09fbdc118597196a0b32")),
    ("AES-128", f"{FIPS_197} C.1", "example",
     bytes(range(16)), h("00112233445566778899aabbccddeeff"),
     h("69c4e0d86a7b0430d8cdb78070b4c55a")),
    ("AES-192", f"{FIPS_197} C.2", "example",
     bytes(range(24)), h("00112233445566778899aabbccddeeff"),
     h("dda97ca4864cdfe06eaf70a0ec0d7191")),
    ("AES-256", f"{FIPS_197} C.3", "example",
     bytes(range(32)), h("00112233445566778899aabbccddeeff"),
     h("8ea2b7ca516745bfeafc49904b496089")),
    ("Camellia-128", "RFC 3713, appendix A", "128-bit key",
     h("0123456789abcdeffedcba9876543210"), h("0123456789abcdeffedcba9876543210"),
     h("67673138549669730857065648eabe43")),
    ("Camellia-192", "RFC 3713, appendix A", "192-bit key",
     h("0123456789abcdeffedcba98765432100011223344556677"),
     h("0123456789abcdeffedcba9876543210"), h("b4993401b3e996f84ee5cee7d79b09b9")),
    ("Camellia-256", "RFC 3713, appendix A", "256-bit key",
     h("0123456789abcdeffedcba987654321000112233445566778899aabbccddeeff"),
     h("0123456789abcdeffedcba9876543210"), h("9acc237dff16d76c20ef7c919e3a7509")),
    # Printed there as KEY=80..00 and CT=abed..0819: that file writes octet strings from the last
    # octet to the first. NESSIE, Botan, libgcrypt and we write them from the first.
    ("Serpent-256", "Serpent submission to AES, ecb_vk.txt, octets reversed", "KEYSIZE=256, I=1",
     h("8000000000000000000000000000000000000000000000000000000000000000")[::-1], bytes(16),
     h("abed96e766bf28cbc0ebd21a82ef0819")[::-1]),
]

# cipher, source, name, key, start, [(times, result)]: the result of enciphering again and again.
ITERATED_BLOCKS = [
    ("Serpent-256", "NESSIE", "set 1, vector 0", bytes([0x80]) + bytes(31), bytes(16),
     [(100, h("739e0148971fd975b585eafdbd659e2c")), (1000, h("befd00e0d6e27e56951dc6614440d286"))]),
    ("Serpent-256", "NESSIE", "set 4, vector 0", bytes(range(32)),
     h("00112233445566778899aabbccddeeff"),
     [(100, h("8bf56992354f3f1a0f4e49dcba82cbc0")), (1000, h("9b1d8b34845df9bfd36aaad0cda1c8fe"))]),
]

SINGLE = b"Single block msg"
OCTETS_32, OCTETS_36 = bytes(range(32)), bytes(range(36))
# RFC 3686, 6 and RFC 5528, 4.1 share keys, nonces and IVs.
# number, key, nonce || IV, plaintext, AES ciphertext, Camellia ciphertext
RFC_CTR = [
    (1, h("ae6852f8121067cc4bf7a5765577f39e"), h("00000030 0000000000000000"), SINGLE,
     h("e4095d4fb7a7b3792d6175a3261311b8"), h("d09dc29a8214619a20877c76db1f0b3f")),
    (2, h("7e24067817fae0d743d6ce1f32539163"), h("006cb6db c0543b59da48d90b"), OCTETS_32,
     h("5104a106168a72d9790d41ee8edad388eb2e1efc46da57c8fce630df9141be28"),
     h("dbf3c78dc08396d4da7c907765bbcb442b8e8e0f31f0dca72c7417e35360e048")),
    (3, h("7691be035e5020a8ac6e618529f9a0dc"), h("00e0017b 27777f3f4a1786f0"), OCTETS_36,
     h("c1cf48a89f2ffdd9cf4652e9efdb72d74540a42bde6d7836d59a5ceaaef3105325b2072f"),
     h("b19d1fcdcb75eb882f849ce24d85cf739ce64b2b5c9d73f14f2d5d9dce9889cddf508696")),
    (4, h("16af5b145fc9f579c175f93e3bfb0eed863d06ccfdb78515"), h("00000048 36733c147d6d93cb"),
     SINGLE, h("4b55384fe259c9c84e7935a003cbe928"), h("2379399e8a8d2b2b16702fc78b9e9696")),
    (5, h("7c5cb2401b3dc33c19e7340819e0f69c678c3db8e6f6a91a"), h("0096b03b 020c6eadc2cb500d"),
     OCTETS_32, h("453243fc609b23327edfaafa7131cd9f8490701c5ad4a79cfc1fe0ff42f4fb00"),
     h("7def34f7a5d0e415674b7ffcae67c75dd018b86ff23051e056392a99f35a4ced")),
    (6, h("02bf391ee8ecb159b959617b0965279bf59b60a786d3e0fe"), h("0007bdfd 5cbd60278dcc0912"),
     OCTETS_36, h("96893fc55e5c722f540b7dd1ddf7e758d288bc95c69165884536c811662f2188abee0935"),
     h("5710e556e1487a20b5ac0e73f19e4e7876f37fdc91b1ef4d4dade8e666a64d0ed557ab57")),
    (7, h("776beff2851db06f4c8a0542c8696f6c6a81af1eec96b4d37fc1d689e6c1c104"),
     h("00000060 db5672c97aa8f0b2"), SINGLE, h("145ad01dbf824ec7560863dc71e3e0c0"),
     h("3401f9c8247effcebd6994714c1bbb11")),
    (8, h("f6d66d6bd52d59bb0796365879eff886c66dd51a5b6a99744b50590c87a23884"),
     h("00faac24 c1585ef15a43d875"), OCTETS_32,
     h("f05e231b3894612c49ee000b804eb2a9b8306b508f839d6a5530831d9344af1c"),
     h("d6c30392246f7808a83c2b22a8839e45e51cd48a1cdf406ebc9cc2d3ab834108")),
    (9, h("ff7a617ce69148e4f1726e2f43581de2aa62d9f805532edff1eed687fb54153d"),
     h("001cc5b7 51a51d70a1c11148"), OCTETS_36,
     h("eb6c52821d0bbbf7ce7594462aca4faab407df866569fd07f48cc0b583d6071f1ec0e6b8"),
     h("a4da23fce6a5ffaa6d64ae9a0652a42cd161a34b65f9679f75c01f101f71276f15ef0d8d")),
]

GCM_KEY = h("feffe9928665731c6d6a8f9467308308")
GCM_NONCE = h("cafebabefacedbaddecaf888")
GCM_AAD = h("feedfacedeadbeeffeedfacedeadbeefabaddad2")
GCM_DATA = h(
    "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
    "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255"
)


def _gcm_case(number, bits, what, ciphertext, tag):
    key = {128: GCM_KEY, 192: GCM_KEY + GCM_KEY[:8], 256: GCM_KEY + GCM_KEY}[bits]
    key, nonce, aad, data = {
        "empty": (bytes(bits // 8), bytes(12), b"", b""),
        "zeros": (bytes(bits // 8), bytes(12), b"", bytes(16)),
        "data": (key, GCM_NONCE, b"", GCM_DATA),
        "aad": (key, GCM_NONCE, GCM_AAD, GCM_DATA[:60]),
    }[what]
    return f"test case {number}", key, nonce, aad, data, h(ciphertext), h(tag)


G128 = ("42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e"
        "21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091")
G192 = ("3980ca0b3c00e841eb06fac4872a2757859e1ceaa6efd984628593b40ca1e19c"
        "7d773d00c144c525ac619d18c84a3f4718e2448b2fe324d9ccda2710")
G256 = ("522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
        "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662")
C128 = ("d0d94a13b632f337a0cc9955b94fa020c815f903aab12f1efaf2fe9d90f729a6"
        "cccbfa986ef2ff2c33de418d9a2529091cf18fe652c1cfde13f82606")
C256 = ("ad142c11579dd95e41f3c1f324dabc255864d920f1b65759d8f560d4948d4477"
        "58dfdcf77aa9f62581c7ff572a037f810cb1a9c4b3ca6ed638179b77")

# cipher, mode, source, (name, key, nonce, aad, plaintext, ciphertext, tag).
# Cases with a nonce of other than 96 bits are left out: no suite of ours has one.
SEALED = [
    ("AES-128", "GCM", GCM_SPEC, _gcm_case(1, 128, "empty", "", "58e2fccefa7e3061367f1d57a4e7455a")),
    ("AES-128", "GCM", GCM_SPEC, _gcm_case(2, 128, "zeros", "0388dace60b6a392f328c2b971b2fe78", "ab6e47d42cec13bdf53a67b21257bddf")),
    ("AES-128", "GCM", GCM_SPEC, _gcm_case(3, 128, "data", G128 + "473f5985", "4d5c2af327cd64a62cf35abd2ba6fab4")),
    ("AES-128", "GCM", GCM_SPEC, _gcm_case(4, 128, "aad", G128, "5bc94fbc3221a5db94fae95ae7121a47")),
    ("AES-192", "GCM", GCM_SPEC, _gcm_case(7, 192, "empty", "", "cd33b28ac773f74ba00ed1f312572435")),
    ("AES-192", "GCM", GCM_SPEC, _gcm_case(8, 192, "zeros", "98e7247c07f0fe411c267e4384b0f600", "2ff58d80033927ab8ef4d4587514f0fb")),
    ("AES-192", "GCM", GCM_SPEC, _gcm_case(9, 192, "data", G192 + "acade256", "9924a7c8587336bfb118024db8674a14")),
    ("AES-192", "GCM", GCM_SPEC, _gcm_case(10, 192, "aad", G192, "2519498e80f1478f37ba55bd6d27618c")),
    ("AES-256", "GCM", GCM_SPEC, _gcm_case(13, 256, "empty", "", "530f8afbc74536b9a963b4f1c4cb738b")),
    ("AES-256", "GCM", GCM_SPEC, _gcm_case(14, 256, "zeros", "cea7403d4d606b6e074ec5d3baf39d18", "d0d1c8a799996bf0265b98b5d48ab919")),
    ("AES-256", "GCM", GCM_SPEC, _gcm_case(15, 256, "data", G256 + "898015ad", "b094dac5d93471bdec1a502270e3cc6c")),
    ("AES-256", "GCM", GCM_SPEC, _gcm_case(16, 256, "aad", G256, "76fc6ece0f4e1768cddf8853bb2d551b")),
    ("Camellia-128", "GCM", GCM_CAMELLIA, _gcm_case(1, 128, "empty", "", "f5574acc3148dfcb9015200631024df9")),
    ("Camellia-128", "GCM", GCM_CAMELLIA, _gcm_case(3, 128, "data", C128 + "14bab815", "86e318012dd8329dc9dae6a170f61b24")),
    ("Camellia-256", "GCM", GCM_CAMELLIA, _gcm_case(16, 256, "aad", C256, "4e4b178d8fe26fdc95e2e7246dd94bec")),
]

OCB_NONCE = h("bbaa9988776655443322 11")
# last octet of the nonce, octets of AAD, octets of plaintext, ciphertext || tag
_OCB = [
    (0x00, 0, 0, "785407bfffc8ad9edcc5520ac9111ee6"),
    (0x01, 8, 8, "6820b3657b6f615a5725bda0d3b4eb3a257c9af1f8f03009"),
    (0x02, 8, 0, "81017f8203f081277152fade694a0a00"),
    (0x03, 0, 8, "45dd69f8f5aae72414054cd1f35d82760b2cd00d2f99bfa9"),
    (0x04, 16, 16, "571d535b60b277188be5147170a9a22c3ad7a4ff3835b8c5701c1ccec8fc3358"),
    (0x05, 16, 0, "8cf761b6902ef764462ad86498ca6b97"),
    (0x06, 0, 16, "5ce88ec2e0692706a915c00aeb8b2396f40e1c743f52436bdf06d8fa1eca343d"),
    (0x07, 24, 24, "1ca2207308c87c010756104d8840ce1952f09673a448a122c92c62241051f57356d7f3c90bb0e07f"),
    (0x08, 24, 0, "6dc225a071fc1b9f7c69f93b0f1e10de"),
    (0x09, 0, 24, "221bd0de7fa6fe993eccd769460a0af2d6cded0c395b1c3ce725f32494b9f914d85c0b1eb38357ff"),
    (0x0A, 32, 32, "bd6f6c496201c69296c11efd138a467abd3c707924b964deaffc40319af5a48540fbba186c5553c68ad9f592a79a4240"),
    (0x0B, 32, 0, "fe80690bee8a485d11f32965bc9d2a32"),
    (0x0C, 0, 32, "2942bfc773bda23cabc6acfd9bfd5835bd300f0973792ef46040c53f1432bcdfb5e1dde3bc18a5f840b52e653444d5df"),
    (0x0D, 40, 40, "d5ca91748410c1751ff8a2f618255b68a0a12e093ff454606e59f9c1d0ddc54b65e8628e568bad7aed07ba06a4a69483a7035490c5769e60"),
    (0x0E, 40, 0, "c5cd9d1850c141e358649994ee701b68"),
    (0x0F, 0, 40, "4412923493c57d5de0d700f753cce0d1d2d95060122e9f15a5ddbfc5787e50b5cc55ee507bcb084e479ad363ac366b95a98ca5f3000b1479"),
]
for _last, _aad, _data, _out in _OCB:
    SEALED.append(("AES-128", "OCB", RFC_7253, (
        f"sample with nonce ..{_last:02X}", bytes(range(16)), OCB_NONCE + bytes([_last]),
        bytes(range(_aad)), bytes(range(_data)), h(_out)[:-16], h(_out)[-16:])))

SEALED.append(("ChaCha20", "Poly1305", "RFC 8439, 2.8.2", (
    "example", bytes(range(0x80, 0xA0)), h("070000004041424344454647"),
    h("50515253c0c1c2c3c4c5c6c7"),
    b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, "
    b"sunscreen would be it.",
    h("d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d6"
      "3dbea45e8ca9671282fafb69da92728b1a71de0a9e060b2905d6a5b67ecd3b36"
      "92ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc"
      "3ff4def08e4b7a9de576d26586cec64b6116"),
    h("1ae10b594f09e26a7e902ecbd0600691"))))
SEALED.append(("ChaCha20", "Poly1305", "RFC 8439, A.5", (
    "decryption", h("1c9240a5eb55d38af333888604f6b5f0473917c1402b80099dca5cbc207075c0"),
    h("000000000102030405060708"), h("f33388860000000000004e91"),
    "Internet-Drafts are draft documents valid for a maximum of six months and may be updated, "
    "replaced, or obsoleted by other documents at any time. It is inappropriate to use "
    "Internet-Drafts as reference material or to cite them other than as /\u201cwork in "
    "progress./\u201d".encode(),
    h("64a0861575861af460f062c79be643bd5e805cfd345cf389f108670ac76c8cb2"
      "4c6cfc18755d43eea09ee94e382d26b0bdb7b73c321b0100d4f03b7f355894cf"
      "332f830e710b97ce98c8a84abd0b948114ad176e008d33bd60f982b1ff37c855"
      "9797a06ef4f0ef61c186324e2b3506383606907b6a7c02b0f9f6157b53c867e4"
      "b9166c767b804d46a59b5216cde7a4e99040c5a40433225ee282a1b0a06c523e"
      "af4534d7f83fa1155b0047718cbc546a0d072b04b3564eea1b422273f548271a"
      "0bb2316053fa76991955ebd63159434ecebb4e466dae5a1073a6727627097a10"
      "49e617d91d361094fa68f0ff77987130305beaba2eda04df997b714d6c6f2c29"
      "a6ad5cb4022b02709b"),
    h("eead9d67890cbb22392336fea1851f38"))))

# RFC 7253, appendix A: the result of its loop over all lengths, TAGLEN 128.
OCB_LOOP = {
    "AES-128": h("67e944d23256c5e0b6c61fa22fdf1ea2"),
    "AES-192": h("f673f2c3e7174aae7bae986ca9f29e17"),
    "AES-256": h("d90eb8e9c977c88b79dd793d7ffa161c"),
}


def nessie():
    """cipher, name, key, plaintext, ciphertext of each line in published/nessie-*.txt."""
    for path in sorted((HERE / "published").glob("nessie-*.txt")):
        for line in path.read_text().splitlines():
            if line and not line.startswith("#"):
                cipher, name, *octets = (field.strip() for field in line.split("|"))
                group, vector = name.split(".")
                yield cipher, f"set {group}, vector {vector}", *map(h, octets)
