#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Paths that become narrow without a word: larger packets vanish, nobody sends ICMP. Prints TAP.

    node A --- relay --- narrow place --- node B

The narrow place is a rule of nftables in B's namespace, which drops UDP over IP packets above a size as they come in; it comes and goes
while everything runs. ours: end nodes of ours, a relay of ours. reference: a node of the reference (SLUICE_FIPS_BIN)
behind the narrow place. Needs root.
"""
import os
import re
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tools", "lib"))
import lab  # noqa: E402
import reference  # noqa: E402
import tap  # noqa: E402

BUILD = os.environ.get("SLUICE_BUILD") or os.path.join(os.getcwd(), "build-release")
UP = 30
NARROW = 1200  # IP bytes
FMP = NARROW - 28
FIPS = os.environ.get("SLUICE_FIPS_BIN")


rep = tap.Report()


def narrow(stage, n, size, family=4):
    """Everything above size bytes of IP vanishes on its way into n; 0: nothing does."""
    rules = "flush ruleset\n"
    if size:
        rules += (f"table inet narrow {{ chain in {{ type filter hook input priority 0; "
                  f"meta nfproto ipv{family} meta l4proto udp meta length > {size} drop\n}}\n}}\n")
    with open(stage.path("nft"), "w", encoding="ascii") as f:
        f.write(rules)
    r = stage.run(n, "nft", "-f", stage.path("nft"))
    if r.returncode:
        raise lab.LabError(r.stdout + r.stderr)


def path_to(stage, n):
    """The row of node n on the relay's page of path MTUs."""
    for p in (stage.show("mtu") or {}).get("paths", []):
        if p["npub"] == lab.NODES[n][1]:
            return p
    return {}


def latest(p, key):
    return p.lines[-1].get(key, 0) if p.lines else 0


def logs(*processes):
    return [f"{p.name}: {line}" for p in processes for line in p.log(15)]


def lines_about(relay, what):
    return [line for line in relay.log(400) if re.search(what, line)]


def confirmed(stage, n, mtu):
    row = path_to(stage, n)
    return row.get("mtu") == mtu and row.get("state") == "confirmed"


def ours(family, size, floor_case=False):
    what = f"IPv{family}, a path of {size} bytes"
    head = 28 if family == 4 else 48
    fmp = size - head
    with lab.Lab(BUILD) as stage:
        relay = stage.relay(family=family, udp_mtu=1280)
        lab.wait_for(lambda: not relay.alive() or stage.show("status"), UP)
        nodes = {n: stage.end_node(n, family=family, seconds=0, rate=200, size=1208, every_ms=200, extra=("--mix", "--follow-mtu"))
                 for n in "ab"}
        rep.ok(lab.wait_for(lambda: latest(nodes["a"], "large") > 100 and latest(nodes["b"], "large") > 100, UP) is not None,
               f"{what}: at first the largest packets pass, both ways", *logs(relay, *nodes.values()))
        rep.ok(lab.wait_for(lambda: confirmed(stage, "a", 1280) and confirmed(stage, "b", 1280), UP) is not None,
               f"{what}: probes confirm 1280 bytes to both", stage.show("mtu"))
        narrow(stage, "b", size, family)
        start, small = time.monotonic(), latest(nodes["b"], "received")
        large = latest(nodes["b"], "large")
        took = lab.wait_for(lambda: path_to(stage, "b").get("mtu", 1280) < 1280 or (floor_case and path_to(stage, "b").get(
            "reason", "").endswith("smaller ones too")), UP)
        rep.ok(took is not None, f"{what}: the relay has found out" + (f" after {took:.1f} s" if took else ""),
               stage.show("mtu"), *logs(relay, *nodes.values()))
        if floor_case:
            row = path_to(stage, "b")
            rep.ok(row.get("mtu") == row.get("floor") == 1232, f"{what}: it is not taken as less than IPv6 allows", row)
            lab.wait_for(lambda: False, 15)
            said = lines_about(relay, r"smaller ones too")
            rep.ok(len(said) == 1 and "arning" in said[0] or len(said) == 1 and "WARN" in said[0].upper(),
                   f"{what}: and a warning says so, once", *said, *logs(relay))
            return
        lost = 100 * (time.monotonic() - start)
        passed = lab.wait_for(lambda: latest(nodes["b"], "large") > large + lost / 2 + 200, UP)
        rep.ok(passed is not None, f"{what}: large payloads pass again, at {latest(nodes['a'], 'size') + 72} bytes a packet",
               nodes["b"].lines[-1], *logs(relay))
        rep.ok(latest(nodes["a"], "too_big") > 0 and latest(nodes["a"], "told_mtu") <= fmp,
               f"{what}: A was told by MtuExceeded: {latest(nodes['a'], 'told_mtu')} bytes", nodes["a"].lines[-1])
        lab.wait_for(lambda: path_to(stage, "b").get("state") == "confirmed", UP)
        row = path_to(stage, "b")
        rep.ok(fmp - 8 <= row.get("mtu", 0) <= fmp and row.get("reason") == "larger packets are lost" and row.get("since_secs", 99) < 60,
               f"{what}: sluicectl show mtu says {row.get('mtu')} bytes, since when and why", row)
        rep.ok(lab.wait_for(lambda: latest(nodes["b"], "path_mtu") == row.get("mtu"), UP) is not None,
               f"{what}: datagrams carry it as their path MTU", nodes["b"].lines[-1])
        rep.ok(latest(nodes["b"], "received") - small > 100 * (time.monotonic() - start) * 0.9,
               f"{what}: small payloads passed all the time", nodes["b"].lines[-1])
        rep.ok(path_to(stage, "a").get("mtu") == 1280 and latest(nodes["a"], "lost") == 0,
               f"{what}: the way to A is as it was, nothing was lost on it", path_to(stage, "a"), nodes["a"].lines[-1])
        narrow(stage, "b", 0)
        took = lab.wait_for(lambda: confirmed(stage, "b", 1280), 90)
        rep.ok(took is not None, f"{what}: when it is wide again the size comes back" + (f", after {took:.1f} s" if took else ""),
               path_to(stage, "b"), *logs(relay))
        said = lines_about(relay, r"packets of up to")
        rep.ok(len(said) == 2, f"{what}: the log has one line for each change", *said)


def with_reference():
    """An unmodified node answers the probes: found by the check each minute, since nothing large is under way."""
    what = "the reference behind a path of 1200 bytes"
    with lab.Lab(BUILD) as stage:
        relay = stage.relay(dials="b")
        lab.wait_for(lambda: not relay.alive() or stage.show("status"), UP)
        with open(stage.path("fips.yaml"), "w", encoding="utf-8") as f:
            f.write(reference.config(lab.NODES["b"][0], stage.path("fips.sock"), reference.udp(), tun=False))
        fips = stage.start("fips", "b", [FIPS, "-c", stage.path("fips.yaml")])
        rep.ok(lab.wait_for(lambda: confirmed(stage, "b", 1280), UP) is not None, f"{what}: at first it confirms 1280 bytes",
               stage.show("mtu"), *logs(relay, fips))
        narrow(stage, "b", NARROW)
        took = lab.wait_for(lambda: path_to(stage, "b").get("mtu", 1280) < 1280, 80)
        rep.ok(took is not None, f"{what}: the relay has found out" + (f" after {took:.1f} s, with no traffic" if took else ""),
               path_to(stage, "b"), *logs(relay))
        lab.wait_for(lambda: path_to(stage, "b").get("state") == "confirmed", UP)
        row = path_to(stage, "b")
        rep.ok(FMP - 8 <= row.get("mtu", 0) <= FMP and row.get("reason") == "larger packets are lost",
               f"{what}: {row.get('mtu')} bytes of {FMP}", row)
        rep.ok(any(link.get("npub") == lab.NODES["b"][1] for link in (stage.show("links") or {}).get("links", [])),
               f"{what}: the link stays up", stage.show("links"))
        narrow(stage, "b", 0)
        took = lab.wait_for(lambda: confirmed(stage, "b", 1280), 90)
        rep.ok(took is not None, f"{what}: when it is wide again the size comes back" + (f", after {took:.1f} s" if took else ""),
               path_to(stage, "b"), *logs(relay))


def main():
    what = "paths that become narrow"
    only = sys.argv[1:] or ["ours", "reference"]
    lab.install()
    if os.geteuid() != 0:
        rep.skip(what, "needs root")
        rep.end()
    if "ours" in only:
        ours(4, NARROW)
        ours(6, 1290)
        ours(6, 1250, floor_case=True)
    if "reference" in only:
        if not FIPS:
            rep.skip(f"{what}, with the reference", "SLUICE_FIPS_BIN is not set")
        else:
            with_reference()
    rep.end()


main()
