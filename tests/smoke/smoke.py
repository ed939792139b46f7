#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The real daemon, the real command line and real end nodes in network namespaces. Prints TAP.

    smoke.py access | config | udp | recovery | moves | again | mtu | soak | strangers | chain | access | ports

Needs root except for config. SLUICE_BUILD names the build directory.
"""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "lib"))
import lab  # noqa: E402
import tap  # noqa: E402

BUILD = os.environ.get("SLUICE_BUILD") or os.path.join(os.getcwd(), "build-release")
RATE = 2000
UP = 20  # seconds that a link may take to come up


rep = tap.Report()


def logs(*processes):
    return [f"{p.name}: {line}" for p in processes for line in p.log(15)]


# --- configuration -------------------------------------------------------------------------------------------------

GOOD = """node:
  identity:
    nsec: "4242424242424242424242424242424242424242424242424242424242424242"
transports:
  udp:
    bind_addr: "0.0.0.0:2121"
dataplane:
  ports:
    - name: p0
      device: "net_null0"
      addresses: ["192.0.2.2/24"]
"""
BAD = {
    "an unknown key": (GOOD.replace("  udp:\n", "  udp:\n    mtux: 1\n"), 6),
    "a bad value": (GOOD + "  burst: many\n", 12),
    "a key twice": (GOOD.replace("    bind_addr", "    mtu: 1280\n    mtu: 1290\n    bind_addr"), 7),
    "broken YAML": (GOOD + "  lcores: [\n", None),
    "a bad address": (GOOD.replace("192.0.2.2/24", "192.0.2.2/33"), 11),
    "a bad key": (GOOD.replace('nsec: "42', 'nsec: "4g'), 3),
}


def sluiced(*args, timeout=10):
    return subprocess.run([os.path.join(BUILD, "app", "sluiced", "sluiced"), *args], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=timeout, check=False)


def config():
    with tempfile.TemporaryDirectory(prefix="sluice-smoke-") as folder:
        path = os.path.join(folder, "relay.yaml")

        def write(text):
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)

        write(GOOD)
        r = sluiced("--check", path)
        rep.ok(r.returncode == 0 and "2121" in r.stdout and "4242424242" not in r.stdout,
               "--check prints the effective configuration, without the secret", r.returncode, r.stdout, r.stderr)
        for what, (text, line) in BAD.items():
            write(text)
            for how in (["--check", path], ["-c", path]):
                r = sluiced(*how)
                errors = r.stderr.strip().splitlines()
                where = f"{path}:{line}:" if line else f"{path}:"
                rep.ok(r.returncode == 2 and len(errors) == 1 and where in errors[0],
                       f"{what} with {how[0]}: status 2 and one line that names the place",
                       f"status {r.returncode}, wanted {where}", *errors)
        r = sluiced("-c", os.path.join(folder, "absent.yaml"))
        errors = r.stderr.strip().splitlines()
        rep.ok(r.returncode == 2 and len(errors) == 1 and "absent.yaml" in errors[0],
               "a missing file: status 2 and one line", r.returncode, *errors)
        r = sluiced("--nonsense")
        rep.ok(r.returncode == 2, "an unknown option: status 2", r.returncode, r.stderr)


# --- traffic -------------------------------------------------------------------------------------------------------

def relay_up(stage, **kw):
    p = stage.relay(**kw)
    lab.wait_for(lambda: not p.alive() or stage.show("status"), UP)
    return p


def running(*nodes):
    return all((p.last() or {}).get("state") == "running" for p in nodes)


def balanced(stage, what):
    # A look in the middle of a worker's burst may not add up; one of a few must.
    for _ in range(10):
        page = stage.show("drops")
        if page and page.get("balanced"):
            break
        time.sleep(0.05)
    rep.ok(bool(page) and page.get("balanced") is True, f"{what}: the relay's counters balance", json.dumps(page))
    return page or {}


def whole(what, a, b, tx, rx):
    """Everything that one end says it sent has come to the other, once."""
    rep.ok(bool(tx) and bool(rx) and tx["sent"] > 0 and tx["sent"] == rx["received"] and not rx["duplicated"] and
           not rx["corrupted"] and not rx["foreign"],
           f"{what}: {a} to {b}: {rx and rx['received']} of {tx and tx['sent']} arrived intact, p50 {rx and rx['p50_us']} us",
           json.dumps(tx), json.dumps(rx))


def traffic(family, relay_dials):
    what = f"IPv{family}, {'we dial' if relay_dials else 'they dial'}"
    with lab.Lab(BUILD) as stage:
        relay = relay_up(stage, family=family, dials="ab" if relay_dials else "")
        nodes = {n: stage.end_node(n, family=family, dials=not relay_dials, seconds=3, rate=RATE) for n in "ab"}
        took = lab.wait_for(lambda: running(*nodes.values()), UP)
        if not rep.ok(took is not None, f"{what}: both links up" + (f" after {took:.1f} s" if took else ""),
                      *logs(relay, *nodes.values())):
            return
        lab.wait_for(lambda: not any(p.alive() for p in nodes.values()), 15)
        ends = {n: p.final for n, p in nodes.items()}
        whole(what, "A", "B", ends["a"], ends["b"])
        whole(what, "B", "A", ends["b"], ends["a"])
        if not relay_dials:
            # The first hello is given to the links before they have a key; what is sent later, the announce of the link that
            # has come up, does not overtake it and so waits behind it.
            waited = [(e or {}).get("counters", {}) for e in ends.values()]
            rep.ok(all(c.get("waited", 0) >= 1 and not c.get("waited_dropped") for c in waited) and
                   not any(e["reordered"] for e in ends.values()),
                   f"{what}: frames waited for the key of each link and went out in their turn", json.dumps(waited))
        page = balanced(stage, what)
        drops = {k: v for k, v in (page.get("drops") or {}).items() if v}
        print(f"# drops: {drops}", flush=True)
        for page in ("status", "peers", "links", "tree", "filters", "routes", "ports", "workers"):
            if stage.show(page) is None:
                rep.ok(False, f"{what}: sluicectl -j show {page}", *logs(relay))
        took = relay.stop(wait=5)
        rep.ok(took is not None and took < 2 and relay.child.returncode == 0,
               f"{what}: SIGTERM ends the daemon within 2 s" + (f": {took:.2f} s" if took else ""),
               f"status {relay.child.returncode}", *logs(relay))


def udp():
    for family in (4, 6):
        for relay_dials in (False, True):
            traffic(family, relay_dials)


# --- recovery ------------------------------------------------------------------------------------------------------

def flowing(nodes, since, seconds=1.0):
    """Both ends have received after `since` for a while."""
    def grows(p):
        lines = [l for l in list(p.lines) if l["at"] > since and l["received"] > 0 and l["state"] == "running"]
        return len(lines) >= 2 and lines[-1]["received"] > lines[0]["received"] and \
            lines[-1]["at"] - lines[0]["at"] >= seconds
    return all(grows(p) for p in nodes)


def recover(what, relay_dials, victim, dead_ms=30000, limit=45):
    """kill -9 and start again; the time is the longest silence that an end which lived on has seen."""
    with lab.Lab(BUILD) as stage:
        kw = {"dials": "ab" if relay_dials else "",
              "extra_node": f"  link_dead_timeout_secs: {dead_ms // 1000}\n  heartbeat_interval_secs: {max(dead_ms // 3000, 1)}\n"}
        relay = relay_up(stage, **kw)
        node = {n: stage.end_node(n, dials=not relay_dials, seconds=0, rate=RATE, dead_ms=dead_ms, every_ms=200)
                for n in "ab"}
        if lab.wait_for(lambda: running(*node.values()) and flowing(node.values(), 0), UP) is None:
            rep.ok(False, f"{what}: both links up", *logs(relay, *node.values()))
            return
        killed = time.monotonic()
        if victim == "relay":
            relay.child.kill()
            relay.stop(signal.SIGKILL)
            relay = relay_up(stage, name="sluiced-again", **kw)
            watch = node["b"]
        else:
            node[victim].child.kill()
            node[victim].stop(signal.SIGKILL)
            node[victim] = stage.end_node(victim, dials=not relay_dials, seconds=0, rate=RATE, dead_ms=dead_ms,
                                          every_ms=200, name=f"node-{victim}-again")
            watch = node["b" if victim == "a" else "a"]
        back = lab.wait_for(lambda: flowing(node.values(), killed), limit)
        gap = (watch.last() or {}).get("longest_gap_ms", 0)
        rep.ok(back is not None and gap > 0,
               f"{what}: traffic is back by itself" + (f" after {gap / 1000:.2f} s" if back is not None else ""),
               json.dumps([p.last() for p in node.values()]), *logs(relay, *node.values()))
        # What flows after that flows without loss.
        before = {n: dict(p.last()) for n, p in node.items()}
        time.sleep(1)
        for n, p in node.items():
            rep.ok(p.last()["lost"] == before[n]["lost"] and p.last()["corrupted"] == 0,
                   f"{what}: nothing is lost at {n.upper()} afterwards", json.dumps([before[n], p.last()]))
        balanced(stage, what)


def disconnect():
    """SIGTERM tells the peers: they know within a second, not after the dead timeout."""
    what = "SIGTERM says goodbye"
    with lab.Lab(BUILD) as stage:
        relay = relay_up(stage)
        node = {n: stage.end_node(n, seconds=0, rate=RATE, every_ms=100) for n in "ab"}
        if lab.wait_for(lambda: running(*node.values()), UP) is None:
            rep.ok(False, f"{what}: both links up", *logs(relay, *node.values()))
            return
        took = relay.stop(wait=5)
        rep.ok(took is not None and took < 2, f"{what}: the daemon left after {took or 0:.2f} s under traffic", *logs(relay))
        told = lab.wait_for(lambda: all(p.last()["links_lost"] == 1 for p in node.values()), 1.5)
        rep.ok(told is not None, f"{what}: both peers heard it", json.dumps([p.last() for p in node.values()]))
        relay = relay_up(stage, name="sluiced-again")
        since = time.monotonic()
        back = lab.wait_for(lambda: flowing(node.values(), since), 45)
        gap = node["b"].last()["longest_gap_ms"]
        rep.ok(back is not None, f"{what}: and they came back after {gap / 1000:.1f} s", *logs(relay, *node.values()))


def recovery():
    recover("end node A killed and restarted, they dial", False, "a")
    # Nothing on the wire tells a relay that a node it dialled has forgotten it: the dead timeout does, then it redials.
    recover("end node B killed and restarted, we dial (dead after 5 s)", True, "b", dead_ms=5000)
    recover("relay killed and restarted, we dial", True, "relay")
    recover("relay killed and restarted, they dial (dead after 5 s)", False, "relay", dead_ms=5000)
    disconnect()


# --- moves, and links that have to be made again ---------------------------------------------------------------------

def gap_s(nodes):
    return max((p.last() or {}).get("longest_gap_ms", 0) for p in nodes) / 1000


def moved(what, move, move_to, sig=signal.SIGUSR1, prepare=None, **kw):
    """Node A goes on in the same process at another address, towards another of the relay's."""
    with lab.Lab(BUILD) as stage:
        if prepare:
            kw["extra_ports"] = prepare(stage)
        relay = relay_up(stage, **kw)
        node = {"a": stage.end_node("a", seconds=0, rate=RATE, every_ms=100, extra=("--move", move, "--move-to", move_to)),
                "b": stage.end_node("b", seconds=0, rate=RATE, every_ms=100)}
        if lab.wait_for(lambda: running(*node.values()) and flowing(node.values(), 0), UP) is None:
            rep.ok(False, f"{what}: both links up", *logs(relay, *node.values()))
            return
        at = time.monotonic()
        node["a"].child.send_signal(sig)
        back = lab.wait_for(lambda: flowing(node.values(), at + 0.1), 45)
        counters = (stage.show("counters") or {}).get("link") or {}
        peers = {p["npub"]: p for p in (stage.show("peers") or {}).get("peers") or []}
        where = peers.get(lab.NODES["a"][1], {}).get("transport_addr")
        rep.ok(back is not None and where == move,
               f"{what}: traffic goes on after {gap_s(node.values()):.2f} s, at {where}",
               json.dumps([p.last() for p in node.values()]), json.dumps(counters), *logs(relay, *node.values()))
        rep.ok(counters.get("link_dead") == 0 and counters.get("link_up") == 2 and (sig != signal.SIGUSR1 or
                                                                                   counters.get("roamed") == 1),
               f"{what}: the relay's links stayed up", json.dumps(counters))
        balanced(stage, what)


def third_port(stage):
    """Another way from node A to the relay; the port's entry for its configuration."""
    near, far = f"slc{stage.id}n", f"slc{stage.id}f"
    lab.sh("ip", "link", "add", near, "type", "veth", "peer", "name", far)
    lab.sh("ip", "link", "set", near, "netns", stage.ns("a"), "name", "eth1")
    lab.sh("ip", "link", "set", far, "netns", stage.ns("r"), "name", "eth-c")
    for ns, dev in (("a", "eth1"), ("r", "eth-c")):
        lab.sh("ip", "netns", "exec", stage.ns(ns), "ethtool", "-K", dev, *lab.OFFLOADS)
        lab.sh("ip", "-n", stage.ns(ns), "link", "set", dev, "up")
    lab.sh("ip", "-n", stage.ns("a"), "addr", "add", "203.0.113.1/24", "dev", "eth1")
    return ("\n    - name: port-c\n      device: \"net_af_packet2,iface=eth-c,qdisc_bypass=1,blocksz=65536,framesz=2048,"
            "framecnt=4096\"\n      addresses: [\"203.0.113.2/24\"]\n")


def moves():
    moved("another port of its NAT", f"{lab.ADDR[4]['a']}:2222", f"{lab.RELAY[4]['a']}:2121")
    moved("from one port of the relay to another", "203.0.113.1:2121", "203.0.113.2:2121", prepare=third_port)
    moved("from IPv4 to IPv6", f"[{lab.ADDR[6]['a']}]:2121", f"[{lab.RELAY[6]['a']}]:2121", ipv6=True)
    # The same epoch from another address, while the relay holds the link and it is young: silence shows that it is needed.
    moved("the same process dials again from another address", f"{lab.ADDR[4]['a']}:2222", f"{lab.RELAY[4]['a']}:2121",
          sig=signal.SIGUSR2)


def came_up(what, stage, relay, node, since, limit=45):
    took = lab.wait_for(lambda: running(*node.values()) and flowing(node.values(), since, 0.5), limit)
    rep.ok(took is not None, f"{what}: links up and traffic" + (f" after {took - 0.5:.1f} s" if took is not None else ""),
           *logs(relay, *node.values()))
    return took is not None


def again():
    what = "both sides dial at once"
    with lab.Lab(BUILD) as stage:
        nodes = {n: stage.end_node(n, seconds=0, rate=RATE, every_ms=100) for n in "ab"}
        relay = relay_up(stage, dials="ab")
        if came_up(what, stage, relay, nodes, 0):
            before = {n: dict(p.last()) for n, p in nodes.items()}
            time.sleep(4)  # past the doubts of a crossing
            rep.ok(all(p.last()["lost"] == before[n]["lost"] and p.last()["links_lost"] == 0 for n, p in nodes.items()),
                   f"{what}: nothing is lost afterwards", json.dumps([p.last() for p in nodes.values()]))
    what = "a peer that is not there at the start"
    with lab.Lab(BUILD) as stage:
        relay = relay_up(stage, dials="ab")
        nodes = {"a": stage.end_node("a", dials=False, seconds=0, rate=RATE, every_ms=100)}
        time.sleep(5)
        since = time.monotonic()
        nodes["b"] = stage.end_node("b", dials=False, seconds=0, rate=RATE, every_ms=100)
        came_up(what, stage, relay, nodes, since)
    unresolved("a peer whose name is not known at the start")
    dead("a link that is cut for 9 s (dead after 5 s), they dial", False)
    dead("a link that is cut for 9 s (dead after 5 s), we dial", True)


def unresolved(what):
    with lab.Lab(BUILD) as stage:
        folder = f"/etc/netns/{stage.ns('r')}"  # what ip netns exec lays over /etc
        try:
            os.makedirs(folder)
            with open(f"{folder}/hosts", "w", encoding="utf-8") as f:
                f.write("127.0.0.1 localhost\n")
            path = stage.relay_config(dials="ab")
            with open(path, encoding="utf-8") as f:
                text = f.read().replace(f"{lab.ADDR[4]['b']}:2121", "node-b.test:2121")
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            relay = stage.relay_of(path, "sluiced")
            lab.wait_for(lambda: not relay.alive() or stage.show("status"), UP)
            nodes = {n: stage.end_node(n, dials=False, seconds=0, rate=RATE, every_ms=100) for n in "ab"}
            time.sleep(3)
            peers = (stage.show("peers") or {}).get("peers") or []
            rep.ok(sorted(p["state"] == "up" for p in peers) == [False, True], f"{what}: the other one is up", json.dumps(peers))
            with open(f"{folder}/hosts", "a", encoding="utf-8") as f:
                f.write(f"{lab.ADDR[4]['b']} node-b.test\n")
            came_up(what, stage, relay, nodes, time.monotonic())
        finally:
            shutil.rmtree(folder, ignore_errors=True)


CUT = "table netdev cut { chain o { type filter hook egress device \"eth0\" priority 0; drop; }; " \
      "chain i { type filter hook ingress device \"eth0\" priority 0; drop; }; }"


def dead(what, relay_dials):
    with lab.Lab(BUILD) as stage:
        relay = relay_up(stage, dials="ab" if relay_dials else "",
                         extra_node="  link_dead_timeout_secs: 5\n  heartbeat_interval_secs: 1\n")
        nodes = {n: stage.end_node(n, dials=not relay_dials, seconds=0, rate=RATE, dead_ms=5000, every_ms=100) for n in "ab"}
        if not came_up(what, stage, relay, nodes, 0):
            return
        lab.sh("ip", "netns", "exec", stage.ns("a"), "nft", CUT)
        time.sleep(9)
        counters = (stage.show("counters") or {}).get("link") or {}
        rep.ok(counters.get("link_dead") == 1 and len((stage.show("links") or {}).get("links") or []) == 1,
               f"{what}: the relay has torn it down, the other one stays", json.dumps(counters))
        lab.sh("ip", "netns", "exec", stage.ns("a"), "nft", "delete table netdev cut")
        healed = time.monotonic()
        back = lab.wait_for(lambda: flowing(nodes.values(), healed), 60)
        rep.ok(back is not None, f"{what}: traffic is back" + (f" {back - 1:.1f} s after it was whole again" if back else ""),
               json.dumps([p.last() for p in nodes.values()]), *logs(relay, *nodes.values()))
        balanced(stage, what)


def soak():
    """tools/run soak, short: loss on every way, rekeys by either side, and an account that comes out even."""
    what = "2% loss and rekeys every 4 s"
    r = subprocess.run([sys.executable, os.path.join(os.path.dirname(lab.__file__), "soak.py"), "--build", BUILD, "--minutes", "0.3",
                        "--rate", str(RATE), "--rekey-s", "4", "--frames", "4096", "-j"], stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=100, check=False)
    try:
        result = json.loads(r.stdout)
    except ValueError:
        result = {}
    rekeys = (result.get("rekeys") or {}).get("relay") or [0]
    for name, d in (result.get("directions") or {}).items():
        rep.ok(d["unexplained"] == 0 and d["lost"] > 0, f"{what}: {name}: {d['sent']} sent, {d['lost']} lost, all of them accounted for",
               json.dumps(d))
    rep.ok(result.get("whole") is True and min(rekeys) >= 2, f"{what}: no link down, rekeys {rekeys}", *r.stderr.splitlines()[-20:])


def mtu():
    what = "a port that carries less than the transport"
    with lab.Lab(BUILD, mtu=1300) as stage:
        relay = relay_up(stage, udp_mtu=1400)
        nodes = {n: stage.end_node(n, seconds=2, rate=RATE, udp_mtu=1400) for n in "ab"}
        rep.ok(lab.wait_for(lambda: running(*nodes.values()), UP) is not None, f"{what}: both links up",
               *logs(relay, *nodes.values()))
        seen = [p.get("mtu") for p in (stage.show("tree") or {}).get("peers") or []]
        rep.ok(seen == [1272, 1272], f"{what}: the links are said to have what the port has: {seen}", *logs(relay))


# --- strangers -----------------------------------------------------------------------------------------------------

STRANGER = r"""
import os, random, socket, sys
host, family = sys.argv[1], socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
rnd = random.Random(7)
s = socket.socket(family, socket.SOCK_DGRAM)
s.bind(("", 4000))
s.settimeout(0.5)
def send(b):
    s.sendto(b, (host, 2121))
for n in range(0, 200):                       # every short length, random bytes
    send(rnd.randbytes(n))
for phase in range(16):                       # each phase with a right length field, random behind it
    for n in (28, 60, 110, 65, 500):
        send(bytes([phase, 0]) + n.to_bytes(2, "little") + rnd.randbytes(n))
for _ in range(300):                          # established, unknown index, lengths right
    n = rnd.randrange(5, 400)
    send(bytes([0, 0]) + n.to_bytes(2, "little") + rnd.randbytes(12 + n + 16))
for _ in range(30):                           # msg1 that cannot authenticate
    send(bytes([1, 0, 110, 0]) + rnd.randbytes(110))
answers = 0
try:
    while True:
        s.recv(2048)
        answers += 1
except TimeoutError:
    pass
print(answers)
"""


def strangers():
    what = "strangers"
    with lab.Lab(BUILD) as stage:
        relay = relay_up(stage)
        nodes = {n: stage.end_node(n, seconds=4, rate=RATE) for n in "ab"}
        if lab.wait_for(lambda: running(*nodes.values()), UP) is None:
            rep.ok(False, f"{what}: both links up", *logs(relay, *nodes.values()))
            return
        before = (stage.show("drops") or {}).get("drops") or {}
        r = subprocess.run(["ip", "netns", "exec", stage.ns("a"), sys.executable, "-c", STRANGER, lab.RELAY[4]["a"]],
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=30,
                           check=False)
        rep.ok(r.stdout.strip() == "0", f"{what}: no answer to any of 610 bad packets", r.stdout, r.stderr)
        lab.wait_for(lambda: not any(p.alive() for p in nodes.values()), 20)
        whole(what, "A", "B", nodes["a"].final, nodes["b"].final)
        whole(what, "B", "A", nodes["b"].final, nodes["a"].final)
        page = balanced(stage, what)
        grown = {k: v - before.get(k, 0) for k, v in (page.get("drops") or {}).items() if v > before.get(k, 0)}
        print(f"# drops: {grown}", flush=True)
        counted = (stage.show("counters") or {}).get("neighbour") or {}
        rep.ok(counted.get("requests_sent", 0) > 0 and "arp_malformed" in counted,
               f"{what}: ARP and discovery have counters too", json.dumps(counted))
        for reason in ("drop_fmp_short", "drop_fmp_version", "drop_fmp_phase", "drop_fmp_length", "drop_unknown_index"):
            rep.ok(grown.get(reason, 0) > 0, f"{what}: counted under {reason}", json.dumps(grown))


# --- two relays ----------------------------------------------------------------------------------------------------

def chain():
    """A raw Ethernet link between two relays that find each other by a beacon; the ends are two hops from each other's
    relay, so lookups, coordinates and the tree are needed to get there."""
    what = "two relays, raw Ethernet between them"
    with lab.Lab(BUILD) as stage:
        configs = stage.two_relays()
        relays = []
        for i, config_path in enumerate(configs, 1):
            relays.append(stage.relay_of(config_path, f"sluiced{i}"))
            lab.wait_for(lambda: not relays[-1].alive() or stage.show("status", f"control{i}.sock"), UP)
        nodes = {n: stage.end_node(n, seconds=4, rate=RATE, relay=r, far=True) for n, r in (("a", "r"), ("b", "s"))}
        took = lab.wait_for(lambda: running(*nodes.values()), 60)
        if not rep.ok(took is not None, f"{what}: the ends have found each other" + (f" after {took:.1f} s" if took else ""),
                      *logs(*relays, *nodes.values()), *(json.dumps(p.last()) for p in nodes.values()),
                      json.dumps(stage.show("links", "control1.sock")), json.dumps(stage.show("counters", "control1.sock"))):
            return
        links = (stage.show("peers", "control1.sock") or {}).get("peers") or []
        rep.ok(any(lab.NODES["s"][1] == p.get("npub") and p.get("state") == "up" for p in links),
               f"{what}: the first relay dialled the beacon it heard", json.dumps(links))
        lab.wait_for(lambda: not any(p.alive() for p in nodes.values()), 20)
        whole(what, "A", "B", nodes["a"].final, nodes["b"].final)
        whole(what, "B", "A", nodes["b"].final, nodes["a"].final)
        for i in (1, 2):
            for _ in range(10):
                page = stage.show("drops", f"control{i}.sock") or {}
                if page.get("balanced"):
                    break
                time.sleep(0.05)
            rep.ok(page.get("balanced") is True, f"{what}: relay {i}'s counters balance", json.dumps(page))
            drops = {k: v for k, v in (page.get("drops") or {}).items() if v}
            print(f"# relay {i}: tx {page.get('tx')}, drops: {drops}", flush=True)
        invented_nodes(stage, what)
        for p in relays:
            took = p.stop(wait=5)
            rep.ok(took is not None and took < 2, f"{what}: {p.name} ends within 2 s", *logs(p))


def invented_nodes(stage, what):
    """Somebody on the link announces nodes that do not exist: some are dialled, not all."""
    send = "import os, socket\ns = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)\ns.bind(('mid2', 0))\n" \
           "for _ in range(2000):\n" \
           "    s.send(b'\\xff' * 6 + b'\\x02' + os.urandom(5) + bytes([0x21, 0x21, 1, 1]) + os.urandom(32))\n"
    lab.sh("ip", "netns", "exec", stage.ns("r"), sys.executable, "-c", send)
    time.sleep(1)
    c = (stage.show("counters", "control1.sock") or {}).get("found") or {}
    rep.ok(0 < c.get("found_dialled", 0) < 100 and c.get("found_full", 0) > 100,
           f"{what}: of 2000 invented nodes a few are dialled", json.dumps(c))


def access():
    what = "access lists"
    with lab.Lab(BUILD) as stage:
        folder = stage.path("access")
        os.mkdir(folder)

        def write(name, *lines):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                f.write("".join(line + "\n" for line in lines))

        def up():
            peers = (stage.show("peers") or {}).get("peers") or []
            return sorted(n for n in "ab" for p in peers if p["npub"] == lab.NODES[n][1] and p["state"] == "up")

        write("peers.deny", "ALL")
        write("peers.allow", "first  # by its name")
        write("hosts", "first " + lab.NODES["a"][1])
        relay = relay_up(stage, extra_dataplane=f'  access_dir: "{folder}"\n')
        nodes = {n: stage.end_node(n, seconds=40, rate=RATE) for n in "ab"}
        took = lab.wait_for(lambda: up() == ["a"], UP)
        rep.ok(took is not None, f"{what}: the listed node has a link", up(), *logs(relay, *nodes.values()))
        time.sleep(3)
        refused = (stage.show("acl") or {}).get("refused", 0)
        rep.ok(up() == ["a"] and refused > 0, f"{what}: the other one is refused and counted", up(), refused, *logs(relay))
        write("peers.allow", "first", lab.NODES["b"][1])
        took = lab.wait_for(lambda: up() == ["a", "b"], 25)
        rep.ok(took is not None, f"{what}: a new line lets it in", up(), *logs(relay, *nodes.values()))
        print(f"# in after {took or 0:.1f} s", flush=True)
        write("peers.allow", "nobody")
        time.sleep(2)
        page = stage.show("acl") or {}
        rep.ok(up() == ["a", "b"] and page.get("skipped_lines") == 1 and page.get("reloaded", 0) >= 2,
               f"{what}: links that are up stay, the bad line is counted", up(), json.dumps(page), *logs(relay))


# --- ports that go and come ------------------------------------------------------------------------------------------

def port_page(stage, name):
    ports = (stage.show("ports") or {}).get("ports") or []
    return next((p for p in ports if p["name"] == name), {})


def away_and_back(stage, relay, nodes, what, away, back, state, limit=40):
    """Takes a port away and gives it back: shown, said once, routed around, and traffic comes back by itself."""
    before = "\n".join(relay.log(400))
    away()
    took = lab.wait_for(lambda: port_page(stage, "port-b").get("state") == state, 5)
    rep.ok(took is not None, f"{what}: show ports says {state}" + (f" after {took:.1f} s" if took else ""),
           json.dumps(port_page(stage, "port-b")), *logs(relay))
    took = lab.wait_for(lambda: (stage.show("counters") or {}).get("daemon", {}).get("peers_cut", 0) > 0, 5)
    rep.ok(took is not None, f"{what}: its peers are routed around", *logs(relay))
    time.sleep(1)
    rep.ok(relay.alive() and port_page(stage, "port-a").get("state") == "up", f"{what}: the other port is up", *logs(relay))
    since = time.monotonic()
    back()
    took = lab.wait_for(lambda: flowing(nodes.values(), since, 0.5), limit)
    rep.ok(took is not None, f"{what}: traffic is back" + (f" after {took:.1f} s" if took else ""),
           json.dumps([p.last() for p in nodes.values()]), json.dumps(port_page(stage, "port-b")), *logs(relay, *nodes.values()))
    rep.ok(port_page(stage, "port-b").get("state") == "up", f"{what}: show ports says up again", *logs(relay))
    said = "\n".join(relay.log(400))[len(before):]
    text = "link is down" if state == "down" else "the device is gone"
    rep.ok(said.count(f"port-b: {text}") == 1, f"{what}: said once", said)


def another_way():
    """The port to a peer goes down and it has an address behind another: the link goes on there, long before it would be dead."""
    what = "a peer with an address behind another port"
    with lab.Lab(BUILD) as stage:
        relay = relay_up(stage, extra_ports=third_port(stage), dials="a", second={"a": "203.0.113.1:2121"})
        nodes = {"a": stage.end_node("a", dials=False, seconds=0, rate=RATE, every_ms=100, extra=("--bind", "0.0.0.0:2121")),
                 "b": stage.end_node("b", seconds=0, rate=RATE, every_ms=100)}

        def where():
            peers = (stage.show("peers") or {}).get("peers") or []
            return next((p.get("transport_addr") for p in peers if p["npub"] == lab.NODES["a"][1]), None)

        if lab.wait_for(lambda: running(*nodes.values()) and flowing(nodes.values(), 0, 0.5), UP) is None:
            rep.ok(False, f"{what}: both links up", *logs(relay, *nodes.values()))
            return
        # Both addresses are dialled at once: whichever answered first is the one whose port goes.
        first = where()
        port = "eth-c" if first == "203.0.113.1:2121" else "eth-a"
        other = f"{lab.ADDR[4]['a']}:2121" if port == "eth-c" else "203.0.113.1:2121"
        at = time.monotonic()
        lab.sh("ip", "-n", stage.ns("r"), "link", "set", port, "down")
        took = lab.wait_for(lambda: flowing(nodes.values(), at + 1.5, 0.5) and where() == other, 10)
        counters = (stage.show("counters") or {}).get("link") or {}
        rep.ok(took is not None, f"{what}: traffic goes on at {other} after {gap_s(nodes.values()):.2f} s",
               where(), json.dumps(counters), *logs(relay, *nodes.values()))
        rep.ok(counters.get("rerouted") == 1 and counters.get("link_dead") == 0,
               f"{what}: it is the same link", json.dumps(counters), *logs(relay))
        lab.sh("ip", "-n", stage.ns("r"), "link", "set", port, "up")
        time.sleep(3)
        rep.ok(where() == other and running(*nodes.values()), f"{what}: and stays there when the port is back", where(), *logs(relay))
        # Both go, and the one that it is not on comes back.
        second = "eth-a" if port == "eth-c" else "eth-c"
        for dev in (port, second):
            lab.sh("ip", "-n", stage.ns("r"), "link", "set", dev, "down")
        cut = lab.wait_for(lambda: (stage.show("counters") or {}).get("daemon", {}).get("peers_cut", 0) > 0, 6)
        at = time.monotonic()
        lab.sh("ip", "-n", stage.ns("r"), "link", "set", port, "up")
        took = lab.wait_for(lambda: flowing(nodes.values(), at, 0.5) and where() == first, 10)
        counters = (stage.show("counters") or {}).get("link") or {}
        rep.ok(cut is not None and took is not None and counters.get("link_dead") == 0,
               f"{what}: both ports down, the other one up again: it goes on there" + (f" after {took:.1f} s" if took else ""),
               where(), json.dumps(counters), *logs(relay))
        lab.sh("ip", "-n", stage.ns("r"), "link", "set", second, "up")
        balanced(stage, what)


def ports():
    another_way()
    what = "ports"
    with lab.Lab(BUILD) as stage:
        relay = relay_up(stage)
        nodes = {n: stage.end_node(n, seconds=0, rate=RATE, every_ms=100) for n in "ab"}
        if lab.wait_for(lambda: running(*nodes.values()) and flowing(nodes.values(), 0, 0.5), UP) is None:
            rep.ok(False, f"{what}: both links up", *logs(relay, *nodes.values()))
            return
        again = stage.relay_of(stage.relay_config(), "sluiced-too")
        lab.wait_for(lambda: not again.alive(), 10)
        rep.ok(again.child.returncode == 1 and any("used by another relay" in line for line in again.log()),
               f"{what}: a second relay on the interface is refused by that name", *logs(again))
        away_and_back(stage, relay, nodes, "link down",
                      lambda: lab.sh("ip", "-n", stage.ns("r"), "link", "set", "eth-b", "down"),
                      lambda: lab.sh("ip", "-n", stage.ns("r"), "link", "set", "eth-b", "up"), "down")
        away_and_back(stage, relay, nodes, "interface removed",
                      lambda: lab.sh("ip", "-n", stage.ns("r"), "link", "del", "eth-b"),
                      lambda: stage.veth("b"), "removed")
        balanced(stage, what)
        took = relay.stop(wait=5)
        rep.ok(took is not None and relay.child.returncode == 0, f"{what}: and it leaves in good order", *logs(relay))
    with lab.Lab(BUILD) as stage:
        for reason, device, as_user in (("there is no such interface", "net_af_packet0,iface=nosuch", False),
                                        ("no permission for packet sockets", "net_af_packet0,iface=eth-a", True)):
            path = stage.path("one.yaml")
            with open(path, "w", encoding="utf-8") as f:
                f.write(GOOD.replace("net_null0", device))
            os.chmod(path, 0o644)
            os.chmod(stage.dir, 0o755)
            p = stage.start("one", "r", (["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"] if as_user else [])
                            + [stage.program("app", "sluiced", "sluiced"), "-c", path])
            lab.wait_for(lambda: not p.alive(), 10)
            rep.ok(p.child.returncode == 1 and any(reason in line for line in p.log()),
                   f"{what}: {'as a user' if as_user else 'as root'} on {device}: '{reason}'", p.child.returncode, *logs(p))


CHECKS = {"ports": ports, "access": access, "config": config, "udp": udp, "recovery": recovery, "moves": moves, "again": again,
          "mtu": mtu, "soak": soak, "strangers": strangers, "chain": chain}


def main():
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in CHECKS:
        sys.exit(f"usage: smoke.py {' | '.join(CHECKS)}")
    for program in (("app", "sluiced", "sluiced"), ("app", "sluicectl", "sluicectl"), ("tests", "endnode", "sl_endnode")):
        if not os.access(os.path.join(BUILD, *program), os.X_OK):
            rep.ok(False, f"{name}: {'/'.join(program)} is built")
            rep.end()
    if name != "config" and os.geteuid() != 0:
        rep.skip(name, "needs root for network namespaces")
        rep.end()
    if name in ("again", "soak") and not shutil.which("nft"):
        rep.skip(name, "nft is not installed")
        rep.end()
    lab.install()
    try:
        CHECKS[name]()
    except (lab.LabError, subprocess.TimeoutExpired, OSError, socket.error) as e:
        rep.ok(False, f"{name}: {e}")
    rep.end()


if __name__ == "__main__":
    main()
