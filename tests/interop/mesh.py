#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Five nodes and one tree: ours among ordinary FIPS nodes.

Five network namespaces, each node linked by veth pairs with its neighbours only, in a chain or in a ring. One of them is
ours, in the middle or at the edge; the other four are the reference's. Each node's own command line must tell the same
tree; a lookup crosses three hops; the root is killed; a parent is lost under pings; and, in a layout of two ways to the
root, the wire to our parent becomes slow, so that we take the other one, under pings.

SLUICE_FIPS_BIN, SLUICE_FIPSCTL_BIN, SLUICED, SLUICECTL as for interop.py. Needs root. One line a check (TAP).
With --relay reference a node of the reference stands in our place: the baseline.
"""
import argparse
import atexit
import hashlib
import ipaddress
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import interop
from interop import NODES, Report, introduce, sh, wait_for

# interop.py's a, b and r, and two more.
SECRETS = {"a": NODES["a"][0], "b": NODES["b"][0], "r": NODES["r"][0], "c": "c6" * 32, "d": "d4" * 32}
P = 2**256 - 2**32 - 977
G = (0x79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798,
     0x483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8)


def add(p, q):
    """Points of secp256k1; None is the point at infinity."""
    if p is None or q is None:
        return p or q
    if p[0] == q[0] and (p[1] + q[1]) % P == 0:
        return None
    m = 3 * p[0] * p[0] * pow(2 * p[1], -1, P) if p == q else (q[1] - p[1]) * pow(q[0] - p[0], -1, P)
    x = (m * m - p[0] - q[0]) % P
    return x, (m * (p[0] - x) - p[1]) % P


def npub(secret):
    """The public key's x as bech32 with prefix npub (BIP-173)."""
    k, point, base = int(secret, 16), None, G
    while k:
        point, base, k = add(point, base) if k & 1 else point, add(base, base), k >> 1
    bits = int.from_bytes(point[0].to_bytes(32, "big"), "big") << 4  # 256 bits and 4 of padding: 52 groups of 5
    data = [bits >> 5 * (51 - i) & 31 for i in range(52)]
    check = 1
    for v in [ord(c) >> 5 for c in "npub"] + [0] + [ord(c) & 31 for c in "npub"] + data + [0] * 6:
        top, check = check >> 25, (check & 0x1ffffff) << 5 ^ v
        for i, g in enumerate((0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3)):
            check ^= g if top >> i & 1 else 0
    check ^= 1
    return "npub1" + "".join("qpzry9x8gf2tvdw0s3jn54khce6mua7l"[v] for v in
                             data + [check >> 5 * (5 - i) & 31 for i in range(6)])


for _n in "cd":
    _npub = npub(SECRETS[_n])
    _x = 0
    for _c in _npub[5:57]:
        _x = _x << 5 | "qpzry9x8gf2tvdw0s3jn54khce6mua7l".index(_c)
    _addr = hashlib.sha256((_x >> 4).to_bytes(32, "big")).digest()
    NODES[_n] = (SECRETS[_n], _npub, str(ipaddress.IPv6Address(b"\xfd" + _addr[:15])))


class Mesh(interop.Lab):
    """A namespace for each node and a veth pair for each wire; nodes are known by letter. Wires in `slow` run through
    one more namespace, x, where slow_wire.py delays them."""

    def __init__(self, order, wires, slow=()):  # pylint: disable=super-init-not-called
        self.id = f"{os.getpid() % 100000:05d}"
        self.dir = tempfile.mkdtemp(prefix="sluice-mesh-")
        self.procs = {}
        self.order = order
        self.wires = wires
        self.slow = slow
        atexit.register(self.close)
        for n in order + ("x" if slow else ""):
            sh("ip", "netns", "add", self.ns(n))
            self.ip(n, "link", "set", "lo", "up")
        for i, pair in enumerate(self.wires):
            if pair not in slow:
                self.wire(i, ((pair[0], f"eth{i}"), (pair[1], f"eth{i}")))
                continue
            for end in range(2):
                self.wire(i, (("x", f"mid{i}{end}"), (pair[end], f"eth{i}")), end)
            self.set_delay(i, 0)
            self.start("x", f"slow-{i}", os.path.join(os.path.dirname(os.path.abspath(__file__)), "slow_wire.py"),
                       f"mid{i}0", f"mid{i}1", self.path(f"delay-{i}"))

    def wire(self, i, ends, which=0):
        near, far = f"v{i}{which}{self.id}", f"w{i}{which}{self.id}"
        sh("ip", "link", "add", near, "type", "veth", "peer", "name", far)
        for end, ((n, name), dev) in enumerate(zip(ends, (near, far))):
            sh("ip", "link", "set", dev, "netns", self.ns(n), "name", name)
            self.ip(n, "link", "set", name, "address", f"02:00:00:{which:02x}:{i:02x}:{end:02x}")
            sh("ip", "netns", "exec", self.ns(n), "ethtool", "-K", name, "tx", "off", "tso", "off", "gso", "off",
               "gro", "off", quiet=True)
            self.ip(n, "link", "set", name, "up")

    def set_delay(self, i, ms):
        with open(self.path(f"delay-{i}"), "w", encoding="ascii") as f:
            f.write(str(ms))

    def wire_ends(self, n):
        """(wire, my address, the other's address, the other node) of each wire of n."""
        for i, pair in enumerate(self.wires):
            if n in pair:
                mine = pair.index(n)
                yield i, f"10.78.{i}.{mine + 1}", f"10.78.{i}.{2 - mine}", pair[1 - mine]

    def cut(self, n, m):
        for i, pair in enumerate(self.wires):
            if set(pair) == {n, m}:
                self.ip(pair[0], "link", "set", f"eth{i}", "down")

    def close(self):
        self.stop_all()
        for n in self.order + ("x" if self.slow else ""):
            subprocess.run(["ip", "netns", "del", self.ns(n)], capture_output=True, check=False)
        shutil.rmtree(self.dir, ignore_errors=True)


def peers_of(mesh, n):
    """Who dials whom: the first of each wire."""
    entries = [interop.peer(other, f"node-{other}", interop.endpoint("udp4", far, None, None))
               for i, _, far, other in mesh.wire_ends(n) if mesh.wires[i][0] == n]
    return interop.peers(entries)


def start(mesh, n, ours):
    socket = mesh.path(f"fips-{n}.sock")
    head = f'node:\n  identity:\n    nsec: "{SECRETS[n]}"\n  control:\n    socket_path: "{socket}"\n'
    if mesh.slow:  # a change of parent within seconds, by the keys that all nodes have
        head += "  tree:\n    hold_down_secs: 2\n    reeval_interval_secs: 5\n"
    if ours:
        ports = "".join(f"    - name: port-{i}\n      device: \"net_af_packet{i},iface=eth{i},qdisc_bypass=1\"\n"
                        f"      addresses: [\"{mine}/24\"]\n" for i, mine, _, _ in mesh.wire_ends(n))
        text = (head + "transports:\n  udp:\n    bind_addr: \"0.0.0.0:2121\"\n    mtu: 1280\n" + peers_of(mesh, n) +
                "dataplane:\n  idle_sleep_us: 50\n  ports:\n" + ports)
        mesh.start(n, f"node-{n}", os.environ["SLUICED"], "-c", mesh.write(f"{n}.yaml", text))
        return
    for i, mine, _, _ in mesh.wire_ends(n):
        mesh.ip(n, "addr", "replace", f"{mine}/24", "dev", f"eth{i}")
    text = (head + "tun:\n  enabled: true\n  name: fips0\n  mtu: 1280\ndns:\n  enabled: true\n  bind_addr: \"::1\"\n"
            "  port: 5354\ntransports:\n  udp:\n    bind_addr: \"0.0.0.0:2121\"\n" + peers_of(mesh, n))
    mesh.start(n, f"node-{n}", os.environ["SLUICE_FIPS_BIN"], "-c", mesh.write(f"{n}.yaml", text))


class Place:
    """A layout with ours (or the baseline's node) in it, all started."""

    def __init__(self, rep, kind, name, order, ring, slow=()):
        self.rep, self.kind, self.name, self.ring = rep, kind, name, ring
        wires = list(zip(order, order[1:])) + ([(order[-1], order[0])] if ring is True else [])
        self.mesh = Mesh(order, wires if isinstance(ring, bool) else ring, slow)
        self.alive = list(order)
        for n in order:
            start(self.mesh, n, self.is_ours(n))

    def is_ours(self, n):
        return n == "r" and self.kind == "sluice"

    def show(self, n, what):
        socket = self.mesh.path(f"fips-{n}.sock")
        if self.is_ours(n):
            r = self.mesh.run(n, os.environ["SLUICECTL"], "-s", socket, "-j", "show", what)
        else:
            r = self.mesh.run(n, os.environ["SLUICE_FIPSCTL_BIN"], "-s", socket, "show", what)
        try:
            return json.loads(r.stdout)
        except ValueError:
            return None

    def trees(self):
        found = {n: self.show(n, "tree") for n in self.alive}
        return found if all(found.values()) else None

    def expected_links(self, n):
        return sum(other in self.alive for _, _, _, other in self.mesh.wire_ends(n))

    def agreed(self):
        """All name the smallest address as root, and everyone's peers show the coordinates the peer itself shows."""
        trees = self.trees()
        if not trees:
            return False
        me = {n: own_addr(t) for n, t in trees.items()}
        if not all(me.values()):
            return False
        root = min(me.values())
        by_addr = {a: n for n, a in me.items()}
        for n, t in trees.items():
            if t.get("root") != root or t.get("depth") != len(coords(t)) - 1 or coords(t)[0] != me[n]:
                return False
            seen = {p.get("node_addr"): p for p in t.get("peers", [])}
            if sum(a in by_addr for a in seen) != self.expected_links(n):
                return False
            for a, p in seen.items():
                # Our page tells depth and root of a peer, the reference's its coordinates too.
                if a in by_addr and (p.get("root") != root or p.get("depth") != trees[by_addr[a]].get("depth") or
                                     ("coords" in p and coords(p) != coords(trees[by_addr[a]]))):
                    return False
        return True

    def tree_text(self):
        t = self.trees() or {}
        return ", ".join(f"{n} depth {t[n].get('depth')}" for n in self.alive if n in t)

    def check(self, good, text):
        return self.rep.ok(good, f"{self.name}: {text}")

    def wait_agreed(self, what, timeout):
        took = wait_for(what, timeout, self.agreed)
        good = self.check(took is not None, f"{what}: root, depth and coordinates agree" +
                          (f" after {took:.1f} s ({self.tree_text()})" if took is not None else ""))
        if not good:
            for n, t in (self.trees() or {}).items():
                print(f"# {n}: {json.dumps(t)}", flush=True)
            for n in self.alive:
                if not self.show(n, "tree"):
                    print("".join(f"# {n}: {l}\n" for l in self.mesh.log_tail(f"node-{n}").splitlines()), flush=True)
        return good

    def root(self):
        trees = self.trees()
        me = {own_addr(t): n for n, t in trees.items()}
        return me[min(me)]

    def close(self):
        atexit.unregister(self.mesh.close)
        self.mesh.close()


def coords(t):
    c = t.get("coords") or t.get("my_coords") or []
    return [x.get("node_addr", x.get("addr")) if isinstance(x, dict) else x for x in c]


def own_addr(t):
    return t.get("my_node_addr") or t.get("node_addr") or t.get("self") or (coords(t) or [None])[0]


def pings(mesh, n, other, count, interval):
    """Answers; -1 when ping could not run."""
    r = mesh.run(n, "ping", "-6", "-n", "-q", "-c", str(count), "-i", str(interval), "-W", "2", NODES[other][2],
                 timeout=count * interval + 60)
    m = re.search(r"(\d+) packets transmitted, (\d+) received", r.stdout)
    return int(m.group(2)) if m else -1


def know(mesh, x, y, timeout=40):
    """x and y learn each other's keys, and a first answer comes."""
    both = all(introduce(mesh, n, o) for n, o in ((x, y), (y, x)))
    return both and wait_for("first answer", timeout, lambda: pings(mesh, x, y, 1, 1) == 1) is not None


def lookup_and_pings(place, x, y, what):
    place.check(know(place.mesh, x, y), f"{what}: {x} finds {y} by a lookup")
    got = pings(place.mesh, x, y, 50, 0.05)
    place.check(got == 50, f"{what}: {got} of 50 pings answered")


def run_layout(rep, kind, name, order, ring, ends):
    baseline = None
    if ring and kind == "sluice":
        place = Place(rep, "reference", f"{name} (baseline: the reference in our place)", order, ring)
        try:
            if place.wait_agreed("one tree", 60) and know(place.mesh, *ends):
                baseline = parent_switch(place, ends, None)
        finally:
            place.close()
    place = Place(rep, kind, name, order, ring)
    try:
        if not place.wait_agreed("one tree", 60):
            return
        lookup_and_pings(place, *ends, f"{ends[0]} to {ends[1]}")
        if ring:
            parent_switch(place, ends, baseline)
        kill_root(place)
        if kind == "sluice":
            drops = place.show("r", "drops") or {}
            place.check(drops.get("balanced") is True, "the relay's counters balance")
    finally:
        place.close()


def kill_root(place):
    """The root is killed without a word. Healed: all others agree again, each part of a chain for itself."""
    root = place.root()
    place.mesh.stop(f"node-{root}", signal.SIGKILL)
    order = place.mesh.order
    at = order.index(root)
    parts = [order[at + 1:] + order[:at]] if place.ring else [p for p in (order[:at], order[at + 1:]) if p]
    for part in parts:
        place.alive = list(part)
        place.wait_agreed(f"root {root} killed, {part} left", 100)


def parent_switch(place, ends, baseline):
    """200 pings through r while it loses the wire to its parent; how many were lost."""
    trees = place.trees()
    me = {own_addr(t): n for n, t in trees.items()}
    path = coords(trees["r"])
    result = []
    thread = threading.Thread(target=lambda: result.append(pings(place.mesh, *ends, 200, 0.3)))
    thread.start()
    time.sleep(3)
    place.mesh.cut("r", me[path[1]])
    thread.join()
    lost = 200 - max(result[0], 0) if result else 200
    print(f"# {place.name}: {lost} of 200 pings lost while r lost its parent {me[path[1]]}", flush=True)
    if baseline is not None:
        place.check(lost <= baseline, f"parent lost: {lost} of 200 pings lost, {baseline} with the reference in our place")
    for i, pair in enumerate(place.mesh.wires):
        if "r" in pair:
            place.mesh.ip(pair[0], "link", "set", f"eth{i}", "up")
    if baseline is not None:
        place.wait_agreed("the wire is back", 120)
    return lost


# c is the root; r is between c and b, with two ways to c, one over a and one over d.
DIAMOND = [("c", "a"), ("c", "d"), ("a", "r"), ("d", "r"), ("r", "b")]


def slow_parent(rep, kind):
    """200 pings between b and c while r's wire to its parent becomes slow and r takes the other one. How many were lost;
    None if r did not change its parent."""
    who = "ours" if kind == "sluice" else "the reference"
    place = Place(rep, kind, f"two ways to the root, {who} between them", "cadrb", DIAMOND, [("a", "r"), ("d", "r")])
    try:
        if not place.wait_agreed("one tree", 60):
            return None
        mesh, me = place.mesh, {own_addr(t): n for n, t in place.trees().items()}
        if not place.check(know(mesh, "b", "c"), "b finds c by a lookup"):
            return None
        # Quiet links measure each other a few times first.
        time.sleep(5)
        old = me[coords(place.show("r", "tree"))[1]]
        result = []
        thread = threading.Thread(target=lambda: result.append(pings(mesh, "b", "c", 200, 0.15)))
        thread.start()
        time.sleep(2)
        mesh.set_delay(DIAMOND.index((old, "r")), 150)
        took = wait_for("another parent", 25, lambda: me.get(coords(place.show("r", "tree"))[1]) not in (old, None))
        thread.join()
        lost = 200 - max(result[0], 0) if result else 200
        print(f"# {place.name}: {lost} of 200 pings lost; " + ("no change of parent" if took is None else
              f"from {old} to the other parent {took:.1f} s after the wire became slow"), flush=True)
        place.check(took is not None, "a slow parent is left for a fast one")
        place.wait_agreed("after the change", 30)
        return None if took is None else lost
    finally:
        place.close()


def slow_parents(rep, kind, times):
    """Ours and the reference in our place, in turns."""
    lost = {"reference": [], "sluice": []}
    for _ in range(times):
        for k in ("reference", "sluice") if kind == "sluice" else ("reference",):
            lost[k].append(slow_parent(rep, k))
    print("# pings lost of 200 during a change of parent: " +
          "; ".join(f"{'ours' if k == 'sluice' else k} {v}" for k, v in lost.items() if v), flush=True)
    if kind == "sluice":
        good = None not in lost["reference"] + lost["sluice"] and sum(lost["sluice"]) <= sum(lost["reference"])
        rep.ok(good, f"change of parent: ours lost {sum(x or 0 for x in lost['sluice'])} of {200 * times} pings, the "
               f"reference in our place {sum(x or 0 for x in lost['reference'])}")


# Order along the chain or ring, and whose pings cross it. r is ours; c has the smallest address.
LAYOUTS = {
    "chain, ours in the middle": ("acrdb", False, "ab"),
    "chain, ours at the edge": ("acdbr", False, "ab"),
    "ring, ours between the root and b": ("crbda", True, "cb"),
}


def missing_tools(args):
    for var in ("SLUICE_FIPS_BIN", "SLUICE_FIPSCTL_BIN"):
        if not os.access(os.environ.get(var, ""), os.X_OK):
            return f"{var} does not name the reference's program"
    if os.geteuid() != 0:
        return "needs root for network namespaces"
    if args.relay == "sluice" and not all(os.environ.get(v) for v in ("SLUICED", "SLUICECTL")):
        return "SLUICED and SLUICECTL do not name our programs"
    for tool in ("ip", "ethtool", "ping"):
        if not shutil.which(tool):
            return f"{tool} is not installed"
    return None


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--relay", choices=("sluice", "reference"), default="sluice")
    ap.add_argument("--layout", choices=[*LAYOUTS, "two ways"], action="append")
    ap.add_argument("--times", type=int, default=1, help="of the layout with two ways to the root, each")
    args = ap.parse_args()
    rep = Report()
    missing = missing_tools(args)
    for name in args.layout or [*LAYOUTS, "two ways"]:
        if missing:
            rep.skip(name, missing)
        elif name == "two ways":
            slow_parents(rep, args.relay, args.times)
        else:
            run_layout(rep, args.relay, name, *LAYOUTS[name])
    rep.end()


if __name__ == "__main__":
    sys.exit(main())
