"""Prints the known answers of crates/qloak-keys/src/derive/tests.rs, from hmac and hashlib alone."""
import hmac, hashlib
def extract(ikm): return hmac.new(bytes(64), ikm, hashlib.sha512).digest()
def expand(prk, info, n):
    out, t, i = b"", b"", 1
    while len(out) < n:
        t = hmac.new(prk, t + info + bytes([i]), hashlib.sha512).digest(); out += t; i += 1
    return out[:n]
def derive(key, label, ctx, n):
    info = b"qloak 1 " + b"".join(len(p).to_bytes(2,"big") + p for p in [label, *ctx])
    return expand(extract(key), info, n)
def mac(k, m): return hmac.new(k, m, hashlib.sha256).hexdigest()
key = bytes([7])*32
sci = bytes.fromhex("02514c00000a0001")
m = derive(key, b"sak", [sci, bytes.fromhex("0080c20001000004"), (32).to_bytes(8,"big")], 44)
print("SAK", m[:32].hex()); print("SALT", m[32:].hex())
ctx = [b"node-a", b"node-b", bytes([1])*16, bytes([2])*16]
print("TAG", derive(key, b"control tag", ctx, 8).hex())
print("FORWARD", mac(derive(key, b"control forward", ctx, 32), b"sync"))
print("PROOF", mac(derive(key, b"ready", [], 32), sci + bytes([2]) + (4).to_bytes(8,"big") + bytes([9])*16 + (3).to_bytes(8,"big")))
