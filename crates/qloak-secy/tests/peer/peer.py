"""The other end of the line, by other people: scapy's MACsec layer over the `cryptography` package.

Reads one JSON document from standard input, writes one to standard output:

    {"sak", "salt", "ssci", "sci", "an", "xpn", "open": [{"pn", "frame"}], "protect": [{"pn", "frame"}]}
    {"opened": [frame], "protected": [frame]}

Octets are hex. "open" are line frames that Qloak protected; "protect" are client frames that Qloak
shall open when they come back. scapy is an external tool of the test, never part of the product.
"""

import json
import sys

from scapy.contrib.macsec import MACsec, MACsecSA
from scapy.layers.l2 import Ether


def association(job, pn):
    """A fresh association: scapy takes the upper half of an extended PN from its own counter."""
    extended = {}
    if job["xpn"]:
        extended = {"xpn_en": True, "ssci": job["ssci"], "salt": bytes.fromhex(job["salt"])}
    return MACsecSA(
        sci=bytes.fromhex(job["sci"]),
        an=job["an"],
        pn=pn,
        key=bytes.fromhex(job["sak"]),
        icvlen=16,
        encrypt=True,
        send_sci=True,
        **extended,
    )


def opened(job, line):
    frame = Ether(bytes.fromhex(line["frame"]))
    assert frame[MACsec].AN == job["an"], "scapy reads another AN"
    assert frame[MACsec].PN == line["pn"] & 0xFFFFFFFF, "scapy reads another PN"
    sa = association(job, line["pn"])
    return bytes(sa.decap(sa.decrypt(frame))).hex()


def protected(job, client):
    sa = association(job, client["pn"])
    return bytes(sa.encrypt(sa.encap(Ether(bytes.fromhex(client["frame"]))))).hex()


def main():
    job = json.load(sys.stdin)
    answer = {
        "opened": [opened(job, line) for line in job["open"]],
        "protected": [protected(job, client) for client in job["protect"]],
    }
    json.dump(answer, sys.stdout)


main()
