#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A wire with a delay, for kernels without netem: frames from one interface leave by the other.

slow_wire.py IF1 IF2 FILE: FILE holds the delay in milliseconds, each way; it is read again twice a second.
"""
import collections
import os
import select
import socket
import sys
import time

ETH_P_ALL = 3
PACKET_OUTGOING = 4


def delay_s(path, last):
    try:
        with open(path, encoding="ascii") as f:
            return float(f.read()) / 1000
    except (OSError, ValueError):
        return last


def main():
    sockets = []
    for name in sys.argv[1:3]:
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        s.bind((name, 0))
        s.setblocking(False)
        sockets.append(s)
    other = {sockets[0]: sockets[1], sockets[1]: sockets[0]}
    queue = collections.deque()  # (when, to, frame): one delay for all, so first come, first served
    delay, read_at = 0.0, 0.0
    while True:
        now = time.monotonic()
        if now >= read_at:
            delay, read_at = delay_s(sys.argv[3], delay), now + 0.5
        while queue and queue[0][0] <= now:
            _, to, frame = queue.popleft()
            try:
                to.send(frame)
            except OSError:
                pass
        wait = min([read_at] + ([queue[0][0]] if queue else [])) - now
        for s in select.select(sockets, [], [], max(wait, 0))[0]:
            try:
                frame, addr = s.recvfrom(65536)
            except OSError:
                continue
            if addr[2] != PACKET_OUTGOING:
                queue.append((time.monotonic() + delay, other[s], frame))


if __name__ == "__main__":
    if len(sys.argv) != 4 or os.geteuid() != 0:
        sys.exit(__doc__)
    main()
