"""Two independent cipher libraries behind one small interface.

Botan (C++, BSD-2) through its C FFI and libgcrypt (C, LGPL) through its own interface, both by
ctypes, so that nothing is compiled. Neither shares code with RustCrypto or AWS-LC, which the
product runs.

A library has three methods, all on bytes:
  block(cipher, key, data, decrypt=False)            each 16 octets alone
  ctr(cipher, key, counter_block, data)              128-bit big-endian counter
  seal(cipher, mode, key, nonce, aad, data, tag)     -> (ciphertext, tag); mode GCM, OCB, Poly1305
`cipher` is a name such as AES-128, Camellia-192, Serpent-256 or ChaCha20.
"""

import ctypes


def _buffer(data):
    return (ctypes.c_char * max(len(data), 1)).from_buffer_copy(data or b"\0")


class Botan:
    """libbotan-2-dev (FFI, botan/ffi.h)."""

    def __init__(self):
        self.lib = ctypes.CDLL("libbotan-2.so.19")
        self.lib.botan_version_string.restype = ctypes.c_char_p
        self.version = self.lib.botan_version_string().decode()

    @staticmethod
    def _name(cipher):
        return "Serpent" if cipher.startswith("Serpent") else cipher

    def _check(self, code, what):
        if code != 0:
            raise RuntimeError(f"Botan: {what}: error {code}")

    def _mode(self, name, key, nonce, aad, data, extra):
        handle = ctypes.c_void_p()
        lib, size = self.lib, ctypes.c_size_t
        self._check(lib.botan_cipher_init(ctypes.byref(handle), name.encode(), 0), name)
        try:
            self._check(lib.botan_cipher_set_key(handle, _buffer(key), size(len(key))), "key")
            if aad is not None:
                self._check(
                    lib.botan_cipher_set_associated_data(handle, _buffer(aad), size(len(aad))),
                    "aad",
                )
            self._check(lib.botan_cipher_start(handle, _buffer(nonce), size(len(nonce))), "nonce")
            out = ctypes.create_string_buffer(len(data) + extra + 1)
            written, consumed = size(), size()
            self._check(
                lib.botan_cipher_update(
                    handle, ctypes.c_uint32(1), out, size(len(data) + extra),
                    ctypes.byref(written), _buffer(data), size(len(data)), ctypes.byref(consumed),
                ),
                "update",
            )
            if consumed.value != len(data) or written.value != len(data) + extra:
                raise RuntimeError("Botan: data were left over")
            return out.raw[: written.value]
        finally:
            lib.botan_cipher_destroy(handle)

    def block(self, cipher, key, data, decrypt=False):
        handle = ctypes.c_void_p()
        lib, size = self.lib, ctypes.c_size_t
        name = self._name(cipher).encode()
        self._check(lib.botan_block_cipher_init(ctypes.byref(handle), name), cipher)
        try:
            self._check(lib.botan_block_cipher_set_key(handle, _buffer(key), size(len(key))), "key")
            out = ctypes.create_string_buffer(len(data) + 1)
            work = lib.botan_block_cipher_decrypt_blocks if decrypt else lib.botan_block_cipher_encrypt_blocks
            self._check(work(handle, _buffer(data), out, size(len(data) // 16)), "blocks")
            return out.raw[: len(data)]
        finally:
            lib.botan_block_cipher_destroy(handle)

    def ctr(self, cipher, key, counter_block, data):
        return self._mode(f"CTR-BE({self._name(cipher)})", key, counter_block, None, data, 0)

    def seal(self, cipher, mode, key, nonce, aad, data, tag):
        if mode == "Poly1305":
            name = "ChaCha20Poly1305"
        else:
            name = f"{self._name(cipher)}/{mode}({tag})"
        both = self._mode(name, key, nonce, aad, data, tag)
        return both[: len(data)], both[len(data) :]


class Libgcrypt:
    """libgcrypt20-dev (gcrypt.h)."""

    CIPHERS = {
        "AES-128": 7, "AES-192": 8, "AES-256": 9,
        "Serpent-128": 304, "Serpent-192": 305, "Serpent-256": 306,
        "Camellia-128": 310, "Camellia-192": 311, "Camellia-256": 312,
        "ChaCha20": 316,
    }
    MODES = {"ECB": 1, "CTR": 6, "GCM": 9, "Poly1305": 10, "OCB": 11}
    SET_TAGLEN, FINALIZE = 75, 5

    def __init__(self):
        self.lib = ctypes.CDLL("libgcrypt.so.20")
        self.lib.gcry_check_version.restype = ctypes.c_char_p
        self.version = "libgcrypt " + self.lib.gcry_check_version(None).decode()

    def _check(self, code, what):
        if code != 0:
            raise RuntimeError(f"libgcrypt: {what}: error {code & 0xFFFF}")

    def _open(self, cipher, mode, key):
        handle = ctypes.c_void_p()
        code = self.lib.gcry_cipher_open(
            ctypes.byref(handle), self.CIPHERS[cipher], self.MODES[mode], 0
        )
        self._check(code, f"{cipher} {mode}")
        self._check(
            self.lib.gcry_cipher_setkey(handle, _buffer(key), ctypes.c_size_t(len(key))), "key"
        )
        return handle

    def _run(self, handle, data, decrypt=False):
        size = ctypes.c_size_t
        out = ctypes.create_string_buffer(len(data) + 1)
        work = self.lib.gcry_cipher_decrypt if decrypt else self.lib.gcry_cipher_encrypt
        self._check(
            work(handle, out, size(len(data)), _buffer(data), size(len(data))), "data"
        )
        return out.raw[: len(data)]

    def block(self, cipher, key, data, decrypt=False):
        handle = self._open(cipher, "ECB", key)
        try:
            return self._run(handle, data, decrypt)
        finally:
            self.lib.gcry_cipher_close(handle)

    def ctr(self, cipher, key, counter_block, data):
        handle = self._open(cipher, "CTR", key)
        try:
            size = ctypes.c_size_t
            self._check(
                self.lib.gcry_cipher_setctr(handle, _buffer(counter_block), size(16)), "counter"
            )
            return self._run(handle, data)
        finally:
            self.lib.gcry_cipher_close(handle)

    def seal(self, cipher, mode, key, nonce, aad, data, tag):
        handle = self._open(cipher, mode, key)
        lib, size = self.lib, ctypes.c_size_t
        try:
            if mode == "OCB":
                octets = ctypes.c_int(tag)
                code = lib.gcry_cipher_ctl(
                    handle, self.SET_TAGLEN, ctypes.byref(octets), size(ctypes.sizeof(octets))
                )
                self._check(code, "tag length")
            self._check(lib.gcry_cipher_setiv(handle, _buffer(nonce), size(len(nonce))), "nonce")
            self._check(lib.gcry_cipher_authenticate(handle, _buffer(aad), size(len(aad))), "aad")
            self._check(lib.gcry_cipher_ctl(handle, self.FINALIZE, None, size(0)), "final")
            ciphertext = self._run(handle, data)
            out = ctypes.create_string_buffer(16)
            # A short GCM tag is the front of the long one (SP 800-38D, 7.1).
            self._check(lib.gcry_cipher_gettag(handle, out, size(tag)), "tag")
            return ciphertext, out.raw[:tag]
        finally:
            lib.gcry_cipher_close(handle)


class Disagreement(Exception):
    """The two libraries differ, or differ from what was published. Nothing may be written."""


class Both:
    """Asks both libraries and returns what they agree on."""

    def __init__(self):
        self.libraries = [Botan(), Libgcrypt()]
        self.versions = [library.version for library in self.libraries]

    def _ask(self, what, call):
        first, second = (call(library) for library in self.libraries)
        if first != second:
            raise Disagreement(f"{what}: {self.versions[0]} and {self.versions[1]} differ")
        return first

    def block(self, cipher, key, data, decrypt=False):
        return self._ask(cipher, lambda l: l.block(cipher, key, data, decrypt))

    def ctr(self, cipher, key, counter_block, data):
        return self._ask(f"{cipher} CTR", lambda l: l.ctr(cipher, key, counter_block, data))

    def seal(self, cipher, mode, key, nonce, aad, data, tag=16):
        return self._ask(
            f"{cipher} {mode}", lambda l: l.seal(cipher, mode, key, nonce, aad, data, tag)
        )
