#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A STUN server of a few lines: answers Binding requests (RFC 8489) with XOR-MAPPED-ADDRESS on the given IPv4 addresses."""
import select
import socket
import struct
import sys

COOKIE = 0x2112A442


def answer(data, peer):
    if len(data) < 20 or data[:2] != b"\0\1" or struct.unpack("!I", data[4:8])[0] != COOKIE:
        return None
    ip = struct.unpack("!I", socket.inet_aton(peer[0]))[0] ^ COOKIE
    attribute = struct.pack("!HHBBHI", 0x0020, 8, 0, 1, peer[1] ^ (COOKIE >> 16), ip)
    return struct.pack("!HHI", 0x0101, len(attribute), COOKIE) + data[8:20] + attribute


def main():
    sockets = []
    for address in sys.argv[1:]:
        host, port = address.rsplit(":", 1)
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.bind((host, int(port)))
        sockets.append(s)
    while True:
        for s in select.select(sockets, [], [])[0]:
            data, peer = s.recvfrom(2048)
            reply = answer(data, peer)
            if reply:
                s.sendto(reply, peer)


main()
