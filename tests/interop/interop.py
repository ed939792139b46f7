#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Interoperation with ordinary FIPS nodes.

Two nodes of the reference implementation, each in a network namespace of its own and each peered only with the relay in
a third one, talk to each other through it:

    node A (namespace a) --veth-- relay (namespace r) --veth-- node B (namespace b)

SLUICE_FIPS_BIN and SLUICE_FIPSCTL_BIN name the reference's daemon and command line; without them every check says SKIP.
SLUICED and SLUICECTL name ours. Needs root. Prints one line a check in the form of the Test Anything Protocol.
With --relay reference a node of the reference is the relay: the baseline that ours is compared with.
"""
import argparse
import atexit
import ipaddress
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "lib"))
import reference  # noqa: E402

# Keys of published test identities (link layer facts, 2.4); R is scalar 42 repeated.
NODES = {
    "a": ("0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20",
          "npub1sjlh2c3x9w7kjsqg2ay080n2lff2uvt325vpan33ke34rn8l5jcqawh57m",
          "fd69:e08d:65cc:3a6b:9c2c:2ac4:bd40:5e4b"),
    "b": ("b102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1fb0",
          "npub1tdwa4vjrjl33pcjdpf2t4p027nl86xrx24g4d3avg4vwvayr3g8qhd84le",
          "fd8e:302c:287e:b48d:6268:122f:da76:b77"),
    "r": ("42" * 32,
          "npub1y3jnatzrgjyqqtxqdwlm0ug0uxyerc6lnljrqtd75mfr20wq4vwqskmn49",
          "fd53:d228:d23:b402:40f8:2bcf:5482:9611"),
}
# What a link runs over: addresses of the nodes and of the relay, on one veth pair each.
ADDR = {"udp4": {"a": "10.77.1.1", "b": "10.77.2.1"}, "udp6": {"a": "fc77:1::1", "b": "fc77:2::1"}}
RELAY = {"udp4": {"a": "10.77.1.2", "b": "10.77.2.2"}, "udp6": {"a": "fc77:1::2", "b": "fc77:2::2"}}
PREFIX = {"udp4": 24, "udp6": 64}
MAC = {"a": "02:00:00:00:0a:01", "b": "02:00:00:00:0b:01"}
RELAY_MAC = {"a": "02:00:00:00:0a:02", "b": "02:00:00:00:0b:02"}


def endpoint(over, addr, mac, interface):
    """The address entry of a peer in FIPS's configuration."""
    if over == "eth":
        return f"      - transport: ethernet\n        addr: \"{interface}/{mac}\"\n"
    host = f"[{addr}]" if over == "udp6" else addr
    return f"      - transport: udp\n        addr: \"{host}:2121\"\n"


def peer(who, alias, entry):
    return f"  - npub: \"{NODES[who][1]}\"\n    alias: {alias}\n    addresses:\n{entry}"


def peers(entries):
    return "peers:\n" + "".join(entries) if entries else "peers: []\n"


class Lab:
    """Namespaces, links, processes and files of one run; everything goes away at exit."""

    def __init__(self):
        self.id = f"{os.getpid() % 100000:05d}"
        self.dir = tempfile.mkdtemp(prefix="sluice-interop-")
        self.procs = {}
        atexit.register(self.close)
        for n in "arb":
            sh("ip", "netns", "add", self.ns(n))
            self.ip(n, "link", "set", "lo", "up")
        for n in "ab":
            # The kernel's side of each pair must fill checksums in: the packet socket on the other side sees raw frames.
            near, far = f"v{n}{self.id}", f"w{n}{self.id}"
            sh("ip", "link", "add", near, "type", "veth", "peer", "name", far)
            sh("ip", "link", "set", near, "netns", self.ns(n), "name", "eth0")
            sh("ip", "link", "set", far, "netns", self.ns("r"), "name", f"eth{n}")
            for ns, dev, mac in ((n, "eth0", MAC[n]), ("r", f"eth{n}", RELAY_MAC[n])):
                self.ip(ns, "link", "set", dev, "address", mac)
                sh("ip", "netns", "exec", self.ns(ns), "ethtool", "-K", dev, "tx", "off", "tso", "off", "gso", "off",
                   "gro", "off", quiet=True)
                self.ip(ns, "link", "set", dev, "up")
            for over, prefix in PREFIX.items():
                self.ip(n, "addr", "add", f"{ADDR[over][n]}/{prefix}", "dev", "eth0",
                        *(["nodad"] if over == "udp6" else []))

    def ns(self, n):
        return f"si{self.id}{n}"

    def ip(self, n, *args):
        sh("ip", "-n", self.ns(n), *args)

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(text)
        return self.path(name)

    def run(self, n, *args, timeout=60):
        return subprocess.run(["ip", "netns", "exec", self.ns(n), *args], capture_output=True, text=True,
                              timeout=timeout, check=False)

    def start(self, n, name, *args, env=None):
        log = open(self.path(name + ".log"), "ab")
        e = dict(os.environ, **(env or {}))
        self.procs[name] = subprocess.Popen(["ip", "netns", "exec", self.ns(n), *args], stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL, env=e)
        log.close()

    def stop(self, name, sig=signal.SIGTERM):
        p = self.procs.pop(name, None)
        if p and p.poll() is None:
            p.send_signal(sig)
            try:
                p.wait(5)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()

    def stop_all(self):
        for name in list(self.procs):
            self.stop(name)

    def log_tail(self, name, lines=25):
        try:
            with open(self.path(name + ".log"), errors="replace", encoding="utf-8") as f:
                return "".join(f.readlines()[-lines:])
        except OSError:
            return ""

    def close(self):
        self.stop_all()
        for n in "arb":
            subprocess.run(["ip", "netns", "del", self.ns(n)], capture_output=True, check=False)
        shutil.rmtree(self.dir, ignore_errors=True)


def sh(*args, quiet=False):
    r = subprocess.run(args, capture_output=True, text=True, check=False)
    if r.returncode and not quiet:
        raise RuntimeError(f"{' '.join(args)}: {r.stderr.strip()}")
    return r.stdout


def fips_config(lab, n, over, dials):
    entry = endpoint(over, RELAY.get(over, {}).get(n), RELAY_MAC[n], "eth0")
    if over == "eth":
        transport = ("  ethernet:\n    interface: eth0\n    announce: false\n    listen: true\n"
                     "    accept_connections: true\n")
    else:
        transport = reference.udp("[::]" if over == "udp6" else "0.0.0.0")
    return lab.write(f"fips-{n}.yaml", reference.config(NODES[n][0], lab.path(f"fips-{n}.sock"), transport,
                                                        peers([peer("r", "relay", entry)] if dials else [])))


def relay_peers(over, dials, interface):
    return peers([peer(n, f"node-{n}", endpoint(over, ADDR.get(over, {}).get(n), MAC[n], interface(n))) for n in dials])


def relay_fips_config(lab, over, dials):
    for n in "ab":
        for o, prefix in PREFIX.items():
            lab.ip("r", "addr", "replace", f"{RELAY[o][n]}/{prefix}", "dev", f"eth{n}",
                   *(["nodad"] if o == "udp6" else []))
    if over == "eth":
        transport = "  ethernet:\n" + "".join(
            f"    {n}:\n      interface: eth{n}\n      accept_connections: true\n" for n in "ab")
    else:
        transport = reference.udp("[::]" if over == "udp6" else "0.0.0.0")
    return lab.write("relay-fips.yaml", reference.config(NODES["r"][0], lab.path("relay.sock"), transport,
                                                         relay_peers(over, dials, lambda n: f"eth{n}"), tun=False))


def relay_config(lab, over, dials):
    if over == "eth":
        transport = "  ethernet:\n" + "".join(
            f"    {n}:\n      interface: port-{n}\n      accept_connections: true\n" for n in "ab")
    else:
        transport = f"  udp:\n    bind_addr: \"{'[::]' if over == 'udp6' else '0.0.0.0'}:2121\"\n    mtu: 1280\n"
    ports = "".join(
        f"    - name: port-{n}\n      device: \"net_af_packet{i},iface=eth{n},qdisc_bypass=1\"\n"
        f"      addresses: [\"{RELAY['udp4'][n]}/24\", \"{RELAY['udp6'][n]}/64\"]\n" for i, n in enumerate("ab"))
    return lab.write("relay.yaml", f"""
node:
  identity:
    nsec: "{NODES['r'][0]}"
  control:
    socket_path: "{lab.path('relay.sock')}"
transports:
{transport}{relay_peers(over, dials, lambda n: f"port-{n}")}dataplane:
  idle_sleep_us: 50
  ports:
{ports}""")


class Relay:
    """Ours, or one of the reference for the baseline."""

    def __init__(self, lab, kind, over, dials):
        self.lab, self.kind = lab, kind
        if kind == "sluice":
            lab.start("r", "relay", os.environ["SLUICED"], "-c", relay_config(lab, over, dials))
        else:
            lab.start("r", "relay", os.environ["SLUICE_FIPS_BIN"], "-c", relay_fips_config(lab, over, dials))

    def show(self, what):
        if self.kind == "sluice":
            r = self.lab.run("r", os.environ["SLUICECTL"], "-s", self.lab.path("relay.sock"), "-j", "show", what)
        else:
            r = self.lab.run("r", os.environ["SLUICE_FIPSCTL_BIN"], "-s", self.lab.path("relay.sock"), "show", what)
        try:
            return json.loads(r.stdout)
        except ValueError:
            return None

    def peers_up(self):
        return sum(p.get("state", p.get("connectivity")) in ("up", "connected")
                   for p in (self.show("peers") or {}).get("peers", []))


def fips_show(lab, n, what):
    r = lab.run(n, os.environ["SLUICE_FIPSCTL_BIN"], "-s", lab.path(f"fips-{n}.sock"), "show", what)
    try:
        return json.loads(r.stdout)
    except ValueError:
        return None


def wait_for(what, timeout, fn):
    """Polls until fn() is true; returns the seconds it took, or None."""
    start = time.monotonic()
    while time.monotonic() - start < timeout:
        if fn():
            return time.monotonic() - start
        time.sleep(0.2)
    print(f"# waited {timeout} s for {what}", flush=True)
    return None


def fips_connected(lab, n):
    d = fips_show(lab, n, "peers")
    return bool(d) and any(p.get("connectivity") == "connected" and p.get("npub") == NODES["r"][1]
                           for p in d.get("peers", []))


def introduce(lab, n, other):
    """Asks n's own resolver for the other's name: that is how a FIPS node learns a key it has no peer entry for."""
    name = NODES[other][1]
    query = struct.pack(">6H", 0x5151, 0x0100, 1, 0, 0, 0)
    for label in (name, "fips"):
        query += bytes([len(label)]) + label.encode()
    query += b"\0" + struct.pack(">2H", 28, 1)
    code = ("import socket,sys;s=socket.socket(socket.AF_INET6,socket.SOCK_DGRAM);s.settimeout(3);"
            "s.sendto(bytes.fromhex(sys.argv[1]),('::1',5354));print(s.recv(512).hex())")
    r = lab.run(n, sys.executable, "-c", code, query.hex())
    return socket.inet_pton(socket.AF_INET6, NODES[other][2]).hex() in r.stdout


def ping(lab, n, other, count, interval=0.05, wait=60):
    r = lab.run(n, "ping", "-6", "-n", "-q", "-c", str(count), "-i", str(interval), "-W", "3", NODES[other][2],
                timeout=count * interval + wait)
    m = re.search(r"(\d+) packets transmitted, (\d+) received", r.stdout)
    rtt = re.search(r"= ([\d.]+)/([\d.]+)/([\d.]+)", r.stdout)
    return (int(m.group(1)), int(m.group(2)), rtt.group(2) if rtt else "-") if m else (0, 0, "-")


class Report:
    def __init__(self):
        self.n = self.failed = 0

    def ok(self, good, text):
        self.n += 1
        self.failed += not good
        print(f"{'ok' if good else 'not ok'} {self.n} - {text}", flush=True)
        return good

    def skip(self, text, why):
        self.n += 1
        print(f"ok {self.n} - {text} # SKIP {why}", flush=True)

    def end(self):
        print(f"1..{self.n}", flush=True)
        sys.exit(1 if self.failed else 0)


def iperf(lab, server, client, seconds):
    lab.start(server, "iperf3", "iperf3", "-6", "-s", "-1", "-B", NODES[server][2])
    time.sleep(1)
    r = lab.run(client, "iperf3", "-6", "-c", NODES[server][2], "-t", str(seconds), "-J", timeout=seconds + 60)
    lab.stop("iperf3")
    try:
        d = json.loads(r.stdout)
        return d["end"]["sum_received"]["bits_per_second"] / 1e6, d["end"]["sum_received"]["seconds"]
    except (ValueError, KeyError):
        print("# iperf3: " + (r.stdout + r.stderr)[-400:].replace("\n", " "), flush=True)
        return 0.0, 0.0


SCENARIOS = {
    # name: (what links run over, which nodes dial the relay, which nodes the relay dials, TCP runs too, kill and restart)
    "they dial us": ("udp4", "ab", "", True, False),
    "we dial them": ("udp4", "", "ab", True, False),
    "both dial": ("udp4", "ab", "ab", False, True),
    "over IPv6": ("udp6", "a", "b", False, False),
    "raw Ethernet": ("eth", "a", "b", False, False),
}


def scenario(rep, kind, name, args):
    over, fips_dials, relay_dials, tcp, restart = SCENARIOS[name]
    lab = Lab()
    try:
        relay = Relay(lab, kind, over, relay_dials)
        for n in "ab":
            lab.start(n, f"fips-{n}", os.environ["SLUICE_FIPS_BIN"], "-c", fips_config(lab, n, over, n in fips_dials))
        took = wait_for("both links", 40, lambda: all(fips_connected(lab, n) for n in "ab"))
        if not rep.ok(took is not None, f"{name}: both links up" + (f" after {took:.1f} s" if took else "")):
            for log in ("relay", "fips-a", "fips-b"):
                print("".join(f"# {log}: {line}\n" for line in lab.log_tail(log).splitlines()), flush=True)
            return
        check_tree(rep, lab, relay, kind, name)
        good = all(introduce(lab, n, o) for n, o in (("a", "b"), ("b", "a")))
        rep.ok(good, f"{name}: the nodes know each other's keys")
        # The filters take up to two ticks to pass; the reference fails a lookup at once before that.
        wait_for("first reply", 30, lambda: ping(lab, "a", "b", 1, wait=5)[1] == 1)
        for n, o in (("a", "b"), ("b", "a")):
            sent, got, rtt = ping(lab, n, o, args.pings)
            rep.ok(sent == args.pings and got == sent, f"{name}: {n} pings {o}: {got} of {sent} answered, mean {rtt} ms")
        if tcp and args.seconds:
            for server, client in (("a", "b"), ("b", "a")):
                mbps, secs = iperf(lab, server, client, args.seconds)
                rep.ok(mbps > 1 and secs > args.seconds * 0.9,
                       f"{name}: iperf3 TCP {client} to {server}: {mbps:.0f} Mbit/s over {secs:.1f} s")
        if restart:
            relay = check_restarts(rep, lab, kind, name, over, relay_dials)
        if args.soak:
            check_soak(rep, lab, relay, kind, name, args.soak)
        if kind == "sluice":
            d = relay.show("drops")
            rep.ok(bool(d) and d.get("balanced") is True, f"{name}: the relay's counters balance")
            if d:
                print("# drops: " + json.dumps({k: v for k, v in d.get("drops", {}).items() if v}), flush=True)
        if args.keep:
            print(f"# files kept in {lab.dir}; press return to end", flush=True)
            sys.stdin.readline()
    finally:
        atexit.unregister(lab.close)
        lab.close()


def check_restarts(rep, lab, kind, name, over, relay_dials):
    """
    Kills and starts the relay, then a node. Links come back by themselves in both cases, traffic with the second: a
    node of the reference drops what it knew of its partner's place when its root goes, and with the session to it still
    established does not look it up again (routing facts, section 7), whoever the relay is.
    """
    def back(what, who, fn):
        took = wait_for(what, 60, fn)
        rep.ok(took is not None, f"{name}: {who} killed and started: {what} back" +
               (f" after {took:.1f} s" if took is not None else ""))

    lab.stop("relay", signal.SIGKILL)
    time.sleep(1)
    relay = Relay(lab, kind, over, relay_dials)
    back("both links are", "relay", lambda: relay.peers_up() == 2 and all(fips_connected(lab, n) for n in "ab"))
    lab.stop("fips-b", signal.SIGKILL)
    time.sleep(1)
    lab.start("b", "fips-b", os.environ["SLUICE_FIPS_BIN"], "-c", lab.path("fips-b.yaml"))
    introduced = [False]

    def traffic():
        introduced[0] = introduced[0] or introduce(lab, "b", "a")
        return introduced[0] and ping(lab, "b", "a", 1, wait=5)[1] == 1

    back("traffic is", "node b", traffic)
    return relay


def check_soak(rep, lab, relay, kind, name, seconds):
    """Pings for longer than a key lives: the rekeys of either side lose nothing."""
    sent, got, rtt = ping(lab, "a", "b", seconds * 20, 0.05, wait=120 + seconds / 4)
    rep.ok(sent == seconds * 20 and got == sent, f"{name}: {seconds} s of pings: {got} of {sent} answered, mean {rtt} ms")
    if kind == "sluice":
        rekeys = [p.get("rekeys", 0) for p in (relay.show("links") or {}).get("links", [])]
        rep.ok(seconds < 150 or (rekeys and min(rekeys) > 0), f"{name}: rekeys on each link: {rekeys}")


def check_tree(rep, lab, relay, kind, name):
    """Everyone's own command line tells one tree: B's and A's root is the smallest address of the three."""
    addr = {n: ipaddress.ip_address(NODES[n][2]).packed[1:].hex() for n in NODES}  # 15 of 16 bytes
    root = min(addr.values())

    def agree():
        trees = {n: fips_show(lab, n, "tree") for n in "ab"}
        if not all(trees.values()) or any(t.get("root", "")[:30] != root for t in trees.values()):
            return False
        if kind != "sluice":
            return True
        ours = relay.show("tree")
        if not ours or ours.get("root", "")[:30] != root:
            return False
        # The relay stands in both nodes' peer tables with the coordinates it says it has.
        for n in "ab":
            seen = [p for p in trees[n].get("peers", []) if p.get("node_addr", "")[:30] == addr["r"]]
            if not seen or seen[0].get("coords") != ours.get("coords"):
                return False
        return True

    took = wait_for("one tree", 20, agree)
    rep.ok(took is not None, f"{name}: root, depth and coordinates agree" + (f" after {took:.1f} s" if took else ""))
    if took is None:
        for n in "ab":
            print(f"# {n}: {json.dumps(fips_show(lab, n, 'tree'))}", flush=True)
        print(f"# relay: {json.dumps(relay.show('tree'))}", flush=True)


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--relay", choices=("sluice", "reference"), default="sluice")
    ap.add_argument("--pings", type=int, default=100)
    ap.add_argument("--seconds", type=int, default=10, help="of each iperf3 run, 0 = none")
    ap.add_argument("--scenario", choices=SCENARIOS, action="append")
    ap.add_argument("--soak", type=int, default=0, metavar="SECONDS", help="of pings at the end, over 150 to see rekeys")
    ap.add_argument("--keep", action="store_true", help="wait before taking the namespaces down")
    args = ap.parse_args()
    rep = Report()
    names = args.scenario or list(SCENARIOS)
    missing = None
    for var in ("SLUICE_FIPS_BIN", "SLUICE_FIPSCTL_BIN"):
        if not os.access(os.environ.get(var, ""), os.X_OK):
            missing = f"{var} does not name the reference's program"
            break
    if not missing and os.geteuid() != 0:
        missing = "needs root for network namespaces"
    if not missing and args.relay == "sluice" and not all(os.environ.get(v) for v in ("SLUICED", "SLUICECTL")):
        missing = "SLUICED and SLUICECTL do not name our programs"
    for tool in ("ip", "ethtool", "ping", "iperf3"):
        if not missing and not shutil.which(tool):
            missing = f"{tool} is not installed"
    for name in names:
        if missing:
            rep.skip(f"{name}: interop with the reference", missing)
        else:
            scenario(rep, args.relay, name, args)
    rep.end()


if __name__ == "__main__":
    main()
