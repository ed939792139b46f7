#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two nodes behind two NAT boxes, a Nostr relay and STUN servers between them; a third node that both can reach.

    host A --- NAT A ---+--- internet: relay, STUN on two addresses, node R ---+--- NAT B --- host B

Behind each host's sluiced there can be an end node (sl_endnode), on a second port.

Each host has two legs to its NAT box: sluiced's port (af_packet, no kernel address), and the kernel's for what speaks to relays.
The NAT boxes are nftables: `cone` masquerades with the port kept and lets in only what was asked for, `rebound` does the same with other
ports, `full` maps the port of sluiced statically, `symmetric` draws a random port for every destination. The Nostr relay is nostr-relay from PyPI (tests/nostr), the STUN
server tests/nat/stun_server.py. SLUICE_FIPS_BIN and SLUICE_FIPSCTL_BIN name the reference for the checks that need it. Root.
Prints one line a check in the form of the Test Anything Protocol.
"""
import atexit
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "nostr"))
import relays  # noqa: E402

NODES = {  # link layer facts, 2.4, and scalars 42 repeated, 1
    "a": ("0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20",
          "npub1sjlh2c3x9w7kjsqg2ay080n2lff2uvt325vpan33ke34rn8l5jcqawh57m"),
    "b": ("b102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1fb0",
          "npub1tdwa4vjrjl33pcjdpf2t4p027nl86xrx24g4d3avg4vwvayr3g8qhd84le"),
    "r": ("42" * 32, "npub1y3jnatzrgjyqqtxqdwlm0ug0uxyerc6lnljrqtd75mfr20wq4vwqskmn49"),
}
WAN = {"a": "203.0.113.2", "b": "203.0.113.3"}
HUB = "203.0.113.1"
HUB2 = "203.0.113.9"
NODE_R = "203.0.113.20"
GUEST = {"a": "10.5.1.1", "b": "10.6.1.1"}  # end nodes behind the hosts
HOST = {"a": "10.5.1.2", "b": "10.6.1.2"}  # sluiced's address towards them
OFF = ["tx", "off", "tso", "off", "gso", "off", "gro", "off"]
FIPS = os.environ.get("SLUICE_FIPS_BIN")
FIPSCTL = os.environ.get("SLUICE_FIPSCTL_BIN")


def sh(*args, check=True):
    r = subprocess.run(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if check and r.returncode:
        raise RuntimeError(f"{' '.join(args)}: {r.stdout.strip()}")
    return r.stdout


# What `conntrack -F` does: new rules alone leave old mappings, which live for minutes and would make any NAT a cone.
FORGET = """
import socket, struct  # 12: NETLINK_NETFILTER, 0x102: its IPCTNL_MSG_CT_DELETE
s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)
s.send(struct.pack("=IHHII", 20, 0x102, 5, 1, 0) + struct.pack("=BBH", socket.AF_INET, 0, 0))
error, = struct.unpack_from("=i", s.recv(4096), 16)
raise SystemExit(f"connections are not forgotten: error {-error}" if error else 0)
"""


class Lab:
    def __init__(self):
        self.id = f"{os.getpid() % 0xfffff:05x}"
        self.dir = tempfile.mkdtemp(prefix="sluice-nat-")
        self.processes = {}
        self.real = None
        atexit.register(self.close)
        for n in ("net", "na", "nb", "ha", "hb", "ga", "gb"):
            sh("ip", "netns", "add", self.ns(n))
            sh("ip", "-n", self.ns(n), "link", "set", "lo", "up")
        sh("ip", "-n", self.ns("net"), "link", "add", "br0", "type", "bridge")
        for address in (HUB, HUB2):
            sh("ip", "-n", self.ns("net"), "addr", "add", f"{address}/24", "dev", "br0")
        sh("ip", "-n", self.ns("net"), "link", "set", "br0", "up")
        self.pair("net", "rport", "net", "rfar", bridge="rfar")  # node R's port
        for n in "ab":
            self.pair("n" + n, "wan", "net", "to-" + n, f"{WAN[n]}/24", bridge="to-" + n)
            self.pair("n" + n, "lan", "h" + n, "port", f"10.{1 if n == 'a' else 2}.1.1/24")
            self.pair("n" + n, "mgmt", "h" + n, "eth1", f"10.{1 if n == 'a' else 2}.2.1/24",
                      far_addr=f"10.{1 if n == 'a' else 2}.2.2/24")
            self.pair("h" + n, "guest", "g" + n, "eth0", far_addr=f"{GUEST[n]}/24")
            sh("ip", "-n", self.ns("h" + n), "route", "add", "default", "via", f"10.{1 if n == 'a' else 2}.2.1")
            sh("ip", "netns", "exec", self.ns("n" + n), "sysctl", "-qw", "net.ipv4.ip_forward=1")

    def pair(self, ns, dev, far_ns, far, addr=None, far_addr=None, bridge=None):
        near_tmp, far_tmp = f"n{self.id}n", f"n{self.id}f"
        sh("ip", "link", "add", near_tmp, "type", "veth", "peer", "name", far_tmp)
        sh("ip", "link", "set", near_tmp, "netns", self.ns(ns), "name", dev)
        sh("ip", "link", "set", far_tmp, "netns", self.ns(far_ns), "name", far)
        for n, d, a in ((ns, dev, addr), (far_ns, far, far_addr)):
            sh("ip", "netns", "exec", self.ns(n), "sysctl", "-qw", f"net.ipv6.conf.{d}.disable_ipv6=1", check=False)
            sh("ip", "netns", "exec", self.ns(n), "ethtool", "-K", d, *OFF)
            if a:
                sh("ip", "-n", self.ns(n), "addr", "add", a, "dev", d)
            sh("ip", "-n", self.ns(n), "link", "set", d, "up")
        if bridge:
            sh("ip", "-n", self.ns(far_ns), "link", "set", bridge, "master", "br0")

    def ns(self, n):
        return f"snat-{n}-{self.id}"

    def path(self, name):
        return os.path.join(self.dir, name)

    def nat(self, n, kind):
        """cone, rebound, full, symmetric; the old box forgets everything."""
        lan = f"10.{1 if n == 'a' else 2}.1.2"
        how = {"cone": "masquerade", "rebound": "masquerade to :31000-31999", "symmetric": "masquerade random,fully-random", "full": "masquerade"}[kind]
        static = kind == "full"
        rules = f"""
flush ruleset
table ip nat {{
  chain pre {{ type nat hook prerouting priority -100;
    {f'iifname "wan" udp dport 2121 dnat to {lan}:2121' if static else ''}
  }}
  chain post {{ type nat hook postrouting priority 100;
    {f'oifname "wan" ip saddr {lan} udp sport 2121 snat to {WAN[n]}:2121' if static else ''}
    oifname "wan" ip protocol udp {how}
    oifname "wan" masquerade
  }}
}}
table ip filter {{
  chain input {{ type filter hook input priority 0;
    iifname "wan" ct state new drop
  }}
  chain forward {{ type filter hook forward priority 0;
    iifname "wan" ct state new ct status dnat accept
    iifname "wan" ct state new drop
  }}
}}
"""
        with open(self.path("nft"), "w", encoding="ascii") as f:
            f.write(rules)
        sh("ip", "netns", "exec", self.ns("n" + n), "nft", "-f", self.path("nft"))
        sh("ip", "netns", "exec", self.ns("n" + n), sys.executable, "-c", FORGET)

    def start(self, name, n, *args):
        with open(self.path(name + ".log"), "ab") as log:
            self.processes[name] = subprocess.Popen(["ip", "netns", "exec", self.ns(n), *args], stdin=subprocess.DEVNULL,
                                                    stdout=log, stderr=log)

    def stop(self, name):
        p = self.processes.pop(name, None)
        if p and p.poll() is None:
            p.send_signal(signal.SIGTERM)
            try:
                p.wait(8)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()

    def log(self, name):
        try:
            with open(self.path(name + ".log"), errors="replace", encoding="utf-8") as f:
                return f.read()
        except OSError:
            return ""

    def close(self):
        for name in list(self.processes):
            self.stop(name)
        if self.real:
            self.real.stop()
        for n in ("ga", "gb", "ha", "hb", "na", "nb", "net"):
            sh("ip", "netns", "del", self.ns(n), check=False)
        if os.environ.get("SLUICE_NAT_KEEP"):
            print("# kept:", self.dir)
        else:
            shutil.rmtree(self.dir, ignore_errors=True)
        atexit.unregister(self.close)

    # --- nodes ------------------------------------------------------------------------------------------------------

    def rendezvous(self, enabled=True):
        """An offer that nobody heard (relays keep none) is given up after 20 s here, not 120."""
        if not enabled:
            return ""
        url = f"ws://{HUB}:{self.real.port}"
        return f"""  rendezvous:
    nostr:
      enabled: true
      advert_relays: ["{url}"]
      dm_relays: ["{url}"]
      stun_servers: ["stun:{HUB}:3478", "stun:{HUB2}:3478"]
      signal_ttl_secs: 20
"""

    def peers(self, n, nat, static):
        out = ""
        for other in nat:
            out += (f"  - npub: \"{NODES[other][1]}\"\n    alias: node-{other}\n    via_nostr: true\n    addresses:\n"
                    "      - transport: udp\n        addr: \"nat\"\n")
        for other in static:
            out += (f"  - npub: \"{NODES[other][1]}\"\n    alias: node-{other}\n    addresses:\n"
                    f"      - transport: udp\n        addr: \"{NODE_R}:2121\"\n")
        return "peers:\n" + out if out else "peers: []\n"

    def sluiced(self, n, nat="", static="", mtu=1280, guest=False, dead_s=30):
        port, ip, gw = ("rport", f"{NODE_R}/24", None) if n == "r" else (
            "port", f"10.{1 if n == 'a' else 2}.1.2/24", f"10.{1 if n == 'a' else 2}.1.1")
        cpus = sorted(os.sched_getaffinity(0))
        route = f"\n      routes:\n        - {{to: default, via: {gw}}}" if gw else ""
        text = f"""node:
  identity:
    nsec: "{NODES[n][0]}"
  control:
    socket_path: "{self.path(n + '.sock')}"
  retry:
    base_interval_secs: 5
  heartbeat_interval_secs: {min(10, dead_s // 3)}
  link_dead_timeout_secs: {dead_s}
{self.rendezvous(n != 'r')}transports:
  udp:
    bind_addr: "0.0.0.0:2121"
    mtu: {mtu}
{'    advertise_on_nostr: true' if n != 'r' else ''}
{self.peers(n, nat, static)}dataplane:
  idle_sleep_us: 100
  lcores: {{control: {cpus[0]}, workers: [{cpus[-1]}]}}
  ports:
    - name: port0
      device: "net_af_packet0,iface={port},qdisc_bypass=1,blocksz=65536,framesz=2048,framecnt=1024"
      addresses: ["{ip}"]{route}
"""
        if guest:
            text += f"""    - name: port1
      device: "net_af_packet1,iface=guest,qdisc_bypass=1,blocksz=65536,framesz=2048,framecnt=1024"
      addresses: ["{HOST[n]}/24"]
"""
        with open(self.path(n + ".yaml"), "w", encoding="utf-8") as f:
            f.write(text)
        self.start("sluiced-" + n, "net" if n == "r" else "h" + n, os.environ["SLUICED"], "-c", self.path(n + ".yaml"))

    def fips(self, n, nat="", static="", mtu=1280):
        """The reference behind NAT n, on the kernel's leg."""
        text = f"""node:
  identity:
    nsec: "{NODES[n][0]}"
  log_level: debug
  control:
    socket_path: "{self.path(n + '.sock')}"
{self.rendezvous()}tun: {{enabled: false}}
dns: {{enabled: false}}
transports:
  udp:
    bind_addr: "0.0.0.0:2121"
    mtu: {mtu}
    advertise_on_nostr: true
{self.peers(n, nat, static)}"""
        with open(self.path(n + ".fips.yaml"), "w", encoding="utf-8") as f:
            f.write(text)
        self.start("fips-" + n, "h" + n, FIPS, "-c", self.path(n + ".fips.yaml"))

    def show(self, n, what):
        try:
            r = subprocess.run([os.environ["SLUICECTL"], "-s", self.path(n + ".sock"), "-j", "show", what], capture_output=True,
                               text=True, timeout=8, check=False)
            return json.loads(r.stdout)
        except (ValueError, subprocess.TimeoutExpired):
            return None

    def fips_peers(self, n):
        r = subprocess.run([FIPSCTL, "-s", self.path(n + ".sock"), "show", "peers"], capture_output=True, text=True, timeout=8,
                           check=False)
        return r.stdout


def wait(fn, timeout):
    start = time.monotonic()
    while time.monotonic() - start < timeout:
        v = fn()
        if v:
            return time.monotonic() - start
        time.sleep(0.25)
    return None


count = failed = 0


def check(ok, what, detail=""):
    global count, failed
    count += 1
    failed += not ok
    print(f"{'ok' if ok else 'not ok'} {count} - {what}", flush=True)
    if not ok and detail:
        for line in detail.splitlines()[:4] + detail.splitlines()[4:][-30:]:
            print("#", line, flush=True)


def skip(what, why):
    global count
    count += 1
    print(f"ok {count} - {what} # SKIP {why}", flush=True)


def traversal(lab, n, other):
    """The row of node `other` on n's page, and the page."""
    page = lab.show(n, "traversal") or {}
    page = page.get("data", page)
    for p in page.get("peers", []):
        if p["npub"] == NODES[other][1]:
            return p, page
    return {}, page


def linked(lab, n, other):
    page = lab.show(n, "peers") or {}
    page = page.get("data", page)
    for p in page.get("peers", []):
        if p.get("npub") == NODES[other][1]:
            return p.get("state") in ("up", "connected", "active")
    return False


def stop_nodes(lab):
    for name in list(lab.processes):
        if name != "stun":
            lab.stop(name)
    for n in "abr":
        for suffix in (".log",):
            for kind in ("sluiced-", "fips-"):
                try:
                    os.remove(lab.path(kind + n + suffix))
                except OSError:
                    pass


def open_between(lab, what, a, b, kind_a, kind_b):
    """a, b: 'sluiced' or 'fips'; A asks for B."""
    stop_nodes(lab)
    lab.nat("a", kind_a)
    lab.nat("b", kind_b)
    getattr(lab, b)("b", mtu=1320)
    getattr(lab, a)("a", nat="b", mtu=1320)

    def up():
        one = linked(lab, "a", "b") if a == "sluiced" else "node-b" in lab.fips_peers("a")
        return one and (linked(lab, "b", "a") if b == "sluiced" else NODES["a"][1] in lab.fips_peers("b"))
    took = wait(up, 75)
    ours = "a" if a == "sluiced" else "b"
    row, page = traversal(lab, ours, "b" if ours == "a" else "a")
    check(took is not None, f"{what}: the link is up" + (f" after {took:.1f} s" if took else ""),
          json.dumps(row) + "\n" + json.dumps(page.get("outside", {})) + "\n" + lab.log(f"{a}-a")[-2500:] + "\n" +
          lab.log(f"{b}-b")[-2500:])
    if took is None:
        return
    links = lab.show(ours, "tree") or {}
    mtus = [p["mtu"] for p in links.get("peers", []) if p.get("mtu")]
    if mtus:
        check(mtus == [1320], f"{what}: the punched path has the MTU of the transport", json.dumps(links))
    far = WAN["b" if ours == "a" else "a"]
    check(wait(lambda: traversal(lab, ours, "b" if ours == "a" else "a")[0].get("state") == "up", 5) is not None and
          (traversal(lab, ours, "b" if ours == "a" else "a")[0].get("path") or "").startswith(far + ":"),
          f"{what}: sluicectl show traversal says up, by a path to {far}", json.dumps(row))


def rebinds(lab, kind_b, how):
    """The box in front of A forgets its mappings and makes others: A is found again where it is then. how: what is expected."""
    what = f"the NAT in front of A rebinds, B behind a {kind_b} one"
    stop_nodes(lab)
    lab.nat("a", "cone")
    lab.nat("b", kind_b)
    lab.sluiced("b", dead_s=12)
    lab.sluiced("a", nat="b", dead_s=12)

    def heard(n, other):
        page = lab.show(n, "peers") or {}
        for p in page.get("data", page).get("peers", []):
            if p.get("npub") == NODES[other][1] and p.get("state") in ("up", "connected", "active"):
                return p.get("transport_addr") or ""
        return ""
    if wait(lambda: heard("a", "b") and heard("b", "a"), 75) is None:
        check(False, f"{what}: the link is up", lab.log("sluiced-a")[-2500:] + lab.log("sluiced-b")[-2500:])
        return
    before = heard("b", "a")
    time.sleep(2)
    ups = lab.log("sluiced-b").count("] up: ") + lab.log("sluiced-b").count(" up: ")
    lab.nat("a", "rebound")
    took = wait(lambda: heard("b", "a") not in ("", before) and heard("a", "b"), 90)
    again = lab.log("sluiced-b").count("] up: ") + lab.log("sluiced-b").count(" up: ") - ups
    check(took is not None and 31000 <= int(heard("b", "a").rsplit(":", 1)[1]) <= 31999,
          f"{what}: found again" + (f" after {took:.1f} s, at {heard('b', 'a')}, before {before}" if took else ""),
          lab.log("sluiced-a")[-2500:] + lab.log("sluiced-b")[-2500:])
    check((again == 0) == (how == "same link"), f"{what}: {'it is the same link' if how == 'same link' else 'by a new traversal'}",
          lab.log("sluiced-b")[-2500:])


def mesh_instead(lab, a="sluiced", b="sluiced"):
    """Symmetric boxes on both sides: no direct path, and the mesh through node R instead. a, b: 'sluiced' or 'fips'."""
    kinds = {"a": a, "b": b}
    what = "symmetric to symmetric" + {("sluiced", "fips"): ", B is the reference's", ("fips", "sluiced"): ", A is the reference's"}.get(
        (a, b), "")
    ours = [n for n in "ab" if kinds[n] == "sluiced"]

    def has(n, other):
        return linked(lab, n, other) if kinds[n] == "sluiced" else NODES[other][1] in lab.fips_peers(n)
    stop_nodes(lab)
    lab.nat("a", "symmetric")
    lab.nat("b", "symmetric")
    lab.sluiced("r")
    asks = ours[0]
    for n in "ba":
        more = {"guest": True} if a == b == "sluiced" else {}
        getattr(lab, kinds[n])(n, nat=("b" if n == "a" else "a") if n == asks or kinds[n] == "fips" else "", static="r", **more)
    other = "b" if asks == "a" else "a"
    logs = "".join(lab.log(f"{kinds[n]}-{n}")[-1500:] for n in "ab")
    took = wait(lambda: has("a", "r") and has("b", "r"), 60)
    check(took is not None, f"{what}: both reach the mesh through node R", logs)
    took = wait(lambda: traversal(lab, asks, other)[0].get("failures", 0) >= 1, 60)
    row, page = traversal(lab, asks, other)
    check(took is not None and row.get("last_error") == "no probe came through" and row.get("next_attempt_secs") is not None,
          f"{what}: no probe comes through; error and next try are shown", json.dumps(row) + "\n" + lab.log("sluiced-" + asks)[-2500:] + lab.log("sluiced-" + other)[-2500:])
    check(page.get("outside", {}).get("nat") == "symmetric", f"{what}: our own NAT is known as symmetric",
          json.dumps(page.get("outside", {})))
    said = re.findall(rf"no direct path to node-{other}[:,] .*", lab.log("sluiced-" + asks))
    check(len(said) == 1 and "goes through the mesh" in said[0], f"{what}: the log says once that the mesh is used",
          lab.log("sluiced-" + asks)[-2500:])

    def roots():
        return {(lab.show(n, "tree") or {}).get("root") or (lab.show(n, "status") or {}).get("root") for n in ours + ["r"]}
    wait(lambda: len(roots()) == 1 and None not in roots(), 20)
    check(len(roots()) == 1 and None not in roots(), f"{what}: {', '.join(n.upper() for n in ours)} and R are one tree", str(roots()))
    check(not has("a", "b") and not has("b", "a"), f"{what}: there is no link between A and B")
    if a == b == "sluiced":
        payload_between_guests(lab)
        check(not linked(lab, "a", "b"), f"{what}: nor is there one afterwards")


def payload_between_guests(lab):
    """End nodes behind A and B send numbered payloads to each other: guest - A - NAT - R - NAT - B - guest."""
    keys = [line.split() for line in sh(os.environ["SL_SWARM"], "--nodes", "2", "--key", "9000", "--keys").splitlines()]
    for n, own, other in (("a", 0, 1), ("b", 1, 0)):
        lab.start("guest-" + n, "g" + n, os.environ["SL_ENDNODE"], "--secret", keys[own][0], "--bind", f"{GUEST[n]}:2121",
                  "--peer", f"{NODES[n][1]}@{HOST[n]}:2121", "--partner", keys[other][1], "--rate", "200", "--size", "256",
                  "--seconds", "10", "--mtu", "1280", "--far")

    def finals():
        out = {}
        for n in "ab":
            for line in lab.log("guest-" + n).splitlines():
                if line.startswith('{"final":true'):
                    out[n] = json.loads(line)
        return out if len(out) == 2 else None
    wait(finals, 60)
    f = finals() or {}
    logs = lab.log("guest-a")[-800:] + lab.log("guest-b")[-800:] + lab.log("sluiced-r")[-800:]
    for x, y in ("ab", "ba"):
        sent, got = f.get(x, {}).get("sent", 0), f.get(y, {}).get("received", 0)
        check(sent >= 1900 and got == sent and f[y]["corrupted"] == f[y]["duplicated"] == 0,
              f"symmetric to symmetric: payloads from behind {x.upper()} to behind {y.upper()}, through the mesh: {got} of {sent}", logs)


def main():
    if os.geteuid() != 0:
        skip("NAT traversal in namespaces", "needs root")
        print("1..1")
        return 0
    why = relays.unavailable()
    if why:
        skip("NAT traversal in namespaces", "no Nostr relay program: " + why)
        print("1..1")
        return 0
    only = sys.argv[1:]
    lab = Lab()
    lab.real = relays.Real(lab.dir, "relay", bind=HUB, port=7777, prefix=("ip", "netns", "exec", lab.ns("net")))
    lab.real.start()
    lab.real.wait(90)
    lab.start("stun", "net", sys.executable, os.path.join(HERE, "stun_server.py"), f"{HUB}:3478", f"{HUB2}:3478")
    if not only or "ours" in only:
        open_between(lab, "cone to cone", "sluiced", "sluiced", "cone", "cone")
        open_between(lab, "full cone to symmetric", "sluiced", "sluiced", "full", "symmetric")
    if not only or "rebind" in only:
        rebinds(lab, "full", "same link")
        rebinds(lab, "cone", "new link")
    if not only or "mesh" in only:
        mesh_instead(lab)
    for name, a, b in (("our relay asks the reference", "sluiced", "fips"), ("the reference asks our relay", "fips", "sluiced")):
        if only and "reference" not in only:
            continue
        if not FIPS or not FIPSCTL:
            skip(f"cone to cone and symmetric to symmetric, {name}", "SLUICE_FIPS_BIN and SLUICE_FIPSCTL_BIN are not set")
        else:
            open_between(lab, f"cone to cone, {name}", a, b, "cone", "cone")
            mesh_instead(lab, a, b)
    stop_nodes(lab)
    lab.close()
    print(f"1..{count}")
    return 1 if failed else 0


sys.exit(main())
