#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Nodes that find each other on a link, by multicast DNS, with no peer configured anywhere: TAP.

    lan_test.py ours | reference

    a node (namespace a, eth0) --veth, the data plane's port-- sluiced (namespace r)

Needs root. SLUICE_BUILD names the build directory; `reference` needs SLUICE_FIPS_BIN too.
"""
import json
import os
import random
import socket
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tools", "lib"))
import lab  # noqa: E402
import reference  # noqa: E402

BUILD = os.environ.get("SLUICE_BUILD") or os.path.join(os.getcwd(), "build-release")
FIPS = os.environ.get("SLUICE_FIPS_BIN")
GROUP = "224.0.0.251"
count = {"n": 0, "failed": 0}


def ok(good, what, *why):
    count["n"] += 1
    count["failed"] += not good
    for line in () if good else why:
        print("# " + str(line)[:1500], flush=True)
    print(f"{'ok' if good else 'not ok'} {count['n']} - {what}", flush=True)
    return good


def note(text):
    print("# " + text, flush=True)


# --- multicast DNS of our own making, to be sent by a stranger of the link -----------------------------------------------

def name(text):
    return b"".join(bytes([len(x)]) + x.encode() for x in text.split(".")) + b"\0"


def record(owner, kind, data, ttl=4500):
    return name(owner) + struct.pack("!HHIH", kind, 1, ttl, len(data)) + data


def response(npub, addr, port=2121, scope="fips-overlay-v1", ttl=4500):
    instance = f"x-{npub[5:21]}._fips._udp.local"
    txt = b"".join(bytes([len(t)]) + t.encode() for t in (f"npub={npub}", f"scope={scope}", "v=1"))
    records = [record("_fips._udp.local", 12, name(instance), ttl),
               record(instance, 33, struct.pack("!HHH", 0, 0, port) + name("h-" + npub[5:21] + ".local"), ttl),
               record(instance, 16, txt, ttl),
               record("h-" + npub[5:21] + ".local", 1, socket.inet_aton(addr), ttl)]
    return struct.pack("!HHHHHH", 0, 0x8400, 0, len(records), 0, 0) + b"".join(records)


CHARSET = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"


def npub_of(key):
    """NIP-19 (bech32) of 32 bytes."""
    def polymod(values):
        c = 1
        for v in values:
            top = c >> 25
            c = (c & 0x1ffffff) << 5 ^ v
            for i, g in enumerate((0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3)):
                c ^= g if top >> i & 1 else 0
        return c
    bits = int.from_bytes(key, "big") << 4
    data = [bits >> 5 * (51 - i) & 31 for i in range(52)]
    expand = [ord(c) >> 5 for c in "npub"] + [0] + [ord(c) & 31 for c in "npub"]
    check = polymod(expand + data + [0] * 6) ^ 1
    return "npub1" + "".join(CHARSET[d] for d in data + [check >> 5 * (5 - i) & 31 for i in range(6)])


def is_point(x):
    p = 2**256 - 2**32 - 977
    y2 = (pow(x, 3, p) + 7) % p
    return 0 < x < p and pow(y2, (p - 1) // 2, p) == 1


def keys(n):
    while n:
        k = random.randbytes(32)
        if is_point(int.from_bytes(k, "big")):
            n -= 1
            yield npub_of(k)


def stranger(stage, messages, source="192.0.2.1", pause=0.0):
    """Sends messages (bytes) to the group from namespace a."""
    path = stage.path("messages")
    with open(path, "w", encoding="ascii") as f:
        f.write("".join(m.hex() + "\n" for m in messages))
    code = ("import socket, time\n"
            "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
            "s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
            "s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)\n"
            f"s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton('{source}'))\n"
            f"s.bind(('{source}', 5353))\n"
            f"for line in open('{path}'):\n"
            f"    s.sendto(bytes.fromhex(line), ('{GROUP}', 5353))\n"
            f"    time.sleep({pause})\n")
    lab.sh("ip", "netns", "exec", stage.ns("a"), sys.executable, "-c", code)


# --- nodes ---------------------------------------------------------------------------------------------------------------

def ours(stage, who, ns, iface, addr, lan="enabled: true", udp="", ethernet=""):
    path = stage.path(who + ".yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"""node:
  identity: {{ nsec: "{lab.NODES[who][0]}" }}
  control: {{ socket_path: "{stage.path(who + '.sock')}" }}
  retry: {{ base_interval_secs: 1 }}
  rate_limit: {{ handshake_timeout_secs: 4 }}
  heartbeat_interval_secs: 2
  link_dead_timeout_secs: 6
  rendezvous:
    lan: {{ {lan} }}
transports:
  {f'ethernet: {{ interface: port, beacon_interval_secs: 10{ethernet} }}' if ethernet else
   f'udp: {{ bind_addr: "0.0.0.0:2121"{udp} }}'}
peers: []
dataplane:
  idle_sleep_us: 50
  lcores: {{ control: {stage.other_cpus[0]}, workers: [{stage.worker_cpu}] }}
  ports:
    - name: port
      device: "net_af_packet0,iface={iface},qdisc_bypass=1,blocksz=65536,framesz=2048,framecnt=2048"
      addresses: ["{addr}/24", "2001:db8:a::{who and ord(who[0]):x}/64"]
""")
    return stage.start(who, ns, [stage.program("app", "sluiced", "sluiced"), "-c", path], nice=-5)


def show(stage, who, page, table=False):
    r = subprocess.run([stage.program("app", "sluicectl", "sluicectl"), "-s", stage.path(who + ".sock")] +
                       ([] if table else ["-j"]) + ["show", page], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10,
                       check=False)
    if table:
        return r.stdout
    try:
        return json.loads(r.stdout)
    except ValueError:
        return {}


def row(stage, who, page, npub):
    for x in show(stage, who, page).get("links" if page == "links" else "found", []):
        if x["npub"] == npub:
            return x
    return {}


def linked(stage, who, whom, direction=None):
    link = row(stage, who, "links", lab.NODES[whom][1])
    return link.get("state") == "up" and (direction is None or link.get("direction") == direction)


def counters(stage, who):
    return show(stage, who, "counters").get("found") or {}


def check_ours():
    what = "mDNS, two of ours"
    with lab.Lab(BUILD) as stage:
        r = ours(stage, "r", "r", "eth-a", "192.0.2.2")
        s = ours(stage, "s", "a", "eth0", "192.0.2.9")
        start = time.monotonic()
        took = lab.wait_for(lambda: linked(stage, "r", "s") and linked(stage, "s", "r"), 30)
        ok(took is not None, f"{what}: linked, with no peer configured", show(stage, "r", "found"), counters(stage, "r"), *r.log(), *s.log())
        note(f"both started to link up: {time.monotonic() - start:.1f} s")
        one = row(stage, "r", "found", lab.NODES["s"][1])
        ok(one.get("source") == "mdns" and "192.0.2.9:2121" in one.get("addresses", []), f"{what}: the page says where it was found", one)
        check_strangers(stage, r, what)
        s.stop()
        gone = lab.wait_for(lambda: not linked(stage, "r", "s"), 20)
        ok(gone is not None, f"{what}: one goes", show(stage, "r", "links"))
        s = ours(stage, "s", "a", "eth0", "192.0.2.9")
        ok(lab.wait_for(lambda: linked(stage, "r", "s"), 40) is not None, f"{what}: it comes back and is found again",
           show(stage, "r", "found"), *r.log())
        s.stop()
        s = ours(stage, "s", "a", "eth0", "192.0.2.9", lan="enabled: true, scope: another")
        before = counters(stage, "r").get("mdns_other_scope", 0)
        ok(lab.wait_for(lambda: counters(stage, "r").get("mdns_other_scope", 0) > before, 20) is not None and not linked(stage, "r", "s"),
           f"{what}: another scope is left alone", counters(stage, "r"))
        s.stop()
        ok((r.stop() or 9) < 3, f"{what}: ends in order", *r.log())


def check_strangers(stage, r, what):
    """What a stranger of the link can do: invent nodes, name far ones, send noise."""
    far = next(keys(1))
    stranger(stage, [response(far, "203.0.113.7"), response(far, "192.0.2.255"), response(far, "192.0.2.2"),
                     response(far, "192.0.2.7", port=0)], pause=0.05)
    c = lab.wait_for(lambda: counters(stage, "r").get("mdns_no_address", 0) >= 4, 5)
    ok(c is not None and not row(stage, "r", "found", far), f"{what}: addresses that are not on the link, broadcast, our own: not taken",
       counters(stage, "r"))
    other = next(keys(1))
    stranger(stage, [response(other, "192.0.2.7")])
    ok(lab.wait_for(lambda: row(stage, "r", "found", other).get("failures", 0) >= 1, 20) is not None,
       f"{what}: a node that does not answer is waited for with growing pauses", row(stage, "r", "found", other))
    stranger(stage, [response(other, "192.0.2.7", ttl=0)])
    ok(lab.wait_for(lambda: not row(stage, "r", "found", other), 5) is not None, f"{what}: its good-bye is heard",
       row(stage, "r", "found", other))
    invented = [response(k, f"192.0.2.{20 + i % 200}") for i, k in enumerate(keys(2000))]
    before = counters(stage, "r")
    start = time.monotonic()
    stranger(stage, invented + [random.randbytes(random.randrange(1400)) for _ in range(3000)] + invented)
    took = time.monotonic() - start
    time.sleep(1)
    c, found, status = counters(stage, "r"), show(stage, "r", "found"), show(stage, "r", "status")
    unlinked = [x for x in found.get("found", []) if x["state"] != "linked"]
    ok(len(unlinked) <= 64 and c["found_full"] + c["mdns_limited"] > 1000, f"{what}: of 2000 invented nodes 64 are remembered",
       len(unlinked), c)
    ok(c["found_dialled"] - before["found_dialled"] <= 32 + 2 * (took + 3), f"{what}: and a few are dialled", c)
    ok(linked(stage, "r", "s"), f"{what}: the true link stays up", show(stage, "r", "links"))
    note(f"7000 messages in {took:.1f} s: {c['mdns_limited'] - before['mdns_limited']} not looked at, "
         f"{c['found_dialled'] - before['found_dialled']} dials; control's longest turn {status.get('longest_turn_cpu_us')} us of CPU")
    for line in show(stage, "r", "found", table=True).splitlines()[:9]:
        note(line[:200])
    lines = [x for x in r.log(400) if "found npub" in x]
    ok(len(lines) < 60, f"{what}: the log is not flooded", len(lines), *lines[-3:])
    note(lines[0][:160] if lines else "no line about found nodes")


def fips(stage, lan="enabled: true", udp="", ethernet=""):
    with open(stage.path("fips.yaml"), "w", encoding="utf-8") as f:
        f.write(reference.config(lab.NODES["a"][0], stage.path("fips.sock"),
                                 f"  ethernet: {{ interface: eth0, beacon_interval_secs: 10{ethernet} }}\n" if ethernet else
                                 reference.udp(more=udp),
                                 node=f"  rendezvous: {{ lan: {{ {lan} }} }}\n", tun=False))
    return stage.start("fips", "a", [FIPS, "-c", stage.path("fips.yaml")])


def check_reference():
    what = "mDNS, the reference"
    with lab.Lab(BUILD) as stage:
        # It finds us: nobody can dial it.
        r = ours(stage, "r", "r", "eth-a", "192.0.2.2")
        f = fips(stage, udp=", outbound_only: true")
        took = lab.wait_for(lambda: linked(stage, "r", "a", "inbound"), 45)
        ok(took is not None, f"{what} finds us and dials", show(stage, "r", "links"), counters(stage, "r"), *r.log(), *f.log(30))
        note(f"both started to link up: {took or 0:.1f} s")
        f.stop()
        r.stop()
        # We find it: we tell nobody where we are.
        f = fips(stage)
        r = ours(stage, "r", "r", "eth-a", "192.0.2.2", udp=", outbound_only: true")
        took = lab.wait_for(lambda: linked(stage, "r", "a", "outbound"), 45)
        ok(took is not None, f"{what} is found by us, and dialled", show(stage, "r", "found"), counters(stage, "r"), *r.log(), *f.log(30))
        note(f"both started to link up: {took or 0:.1f} s; {json.dumps(row(stage, 'r', 'found', lab.NODES['a'][1]))}")
        r.stop()
        # Both at once, and a scope of one's own on either side.
        r = ours(stage, "r", "r", "eth-a", "192.0.2.2")
        took = lab.wait_for(lambda: linked(stage, "r", "a"), 45)
        ok(took is not None, f"{what}: both dial, one link", show(stage, "r", "links"), counters(stage, "r"), *r.log(), *f.log(30))
        f.stop()
        r.stop()
        f = fips(stage, lan="enabled: true, scope: house")
        r = ours(stage, "r", "r", "eth-a", "192.0.2.2", lan="enabled: true, scope: house")
        took = lab.wait_for(lambda: linked(stage, "r", "a"), 45)
        ok(took is not None, f"{what}: in a scope that both name", counters(stage, "r"), *r.log(), *f.log(30))
        for line in show(stage, "r", "found", table=True).splitlines():
            note(line[:200])
        f.stop()
        r.stop()
        check_beacons(stage)


def check_beacons(stage):
    """Raw Ethernet instead: no addresses anywhere."""
    what = "beacons, the reference"
    f = fips(stage, "enabled: false", ethernet=", announce: true, accept_connections: true")
    r = ours(stage, "r", "r", "eth-a", "192.0.2.2", lan="enabled: false", ethernet=", auto_connect: true")
    took = lab.wait_for(lambda: linked(stage, "r", "a", "outbound"), 45)
    ok(took is not None and row(stage, "r", "found", lab.NODES["a"][1]).get("source") == "beacon", f"{what} is heard by us, and dialled",
       show(stage, "r", "found"), *r.log(), *f.log(30))
    note(f"both started to link up: {took or 0:.1f} s")
    f.stop()
    r.stop()
    f = fips(stage, "enabled: false", ethernet=", auto_connect: true")
    r = ours(stage, "r", "r", "eth-a", "192.0.2.2", lan="enabled: false", ethernet=", announce: true, accept_connections: true")
    took = lab.wait_for(lambda: linked(stage, "r", "a", "inbound"), 45)
    ok(took is not None, f"{what} hears ours, and dials", show(stage, "r", "links"), *r.log(), *f.log(30))
    note(f"both started to link up: {took or 0:.1f} s")


def main():
    what = sys.argv[1]
    why = "needs root" if os.geteuid() else None
    if not why and what == "reference" and not FIPS:
        why = "SLUICE_FIPS_BIN is not set"
    lab.install()
    if why:
        count["n"] += 1
        print(f"ok 1 - mDNS, {what} # SKIP {why}")
    else:
        {"ours": check_ours, "reference": check_reference}[what]()
    print(f"1..{count['n']}")
    return 1 if count["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
