#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The daemon and its adverts, in two network namespaces: TAP.

    daemon_test.py discovery | open | reference

    peer (namespace a) --veth, the data plane's port-- sluiced (namespace r)
                       --veth, the kernel's-----------  Nostr relays (namespace r)

Needs root. SLUICE_BUILD names the build directory; `reference` needs SLUICE_FIPS_BIN too. Addresses are of 198.18.0.0/15
(benchmarks), since adverts may not name private or documentation addresses.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tools", "lib"))
import lab  # noqa: E402
import reference as fips  # noqa: E402
import relays  # noqa: E402

BUILD = os.environ.get("SLUICE_BUILD") or os.path.join(os.getcwd(), "build-release")
FIPS = os.environ.get("SLUICE_FIPS_BIN")
PROBE = os.path.join(BUILD, "tests", "nostr", "nostr_probe")
MANAGE, PEER, PEER2, US, DEAD = "198.18.99.1", "198.18.1.1", "198.18.1.3", "198.18.1.2", "198.18.1.77"
SECRET, NPUB = lab.NODES["b"][0], lab.NODES["b"][1]
HEX = {"b": "5b5ddab24397e310e24d0a54ba85eaf4fe7d1866555156c7ac4558e674838a0e",
       "r": "24653eac434488002cc06bbfb7f10fe18991e35f9fe4302dbea6d2353dc0ab1c"}


class Tap:
    n = failed = 0

    def ok(self, good, what, *why):
        self.n += 1
        self.failed += not good
        for line in () if good else why:
            print("# " + str(line)[:1200], flush=True)
        print(f"{'ok' if good else 'not ok'} {self.n} - {what}", flush=True)
        return good

    def skip(self, what, why):
        self.n += 1
        print(f"ok {self.n} - {what} # SKIP {why}", flush=True)

    def note(self, text):
        print("# " + text, flush=True)

    def end(self):
        print(f"1..{self.n}", flush=True)
        return 1 if self.failed else 0


class World:
    def __init__(self):
        self.id = f"{os.getpid():x}"
        self.dir = tempfile.mkdtemp(prefix="sl-nostr-")
        self.processes, self.relays = [], []
        for n in "ar":
            lab.sh("ip", "netns", "add", self.ns(n))
            lab.sh("ip", "-n", self.ns(n), "link", "set", "lo", "up")
        lab.sh("ip", "netns", "exec", self.ns("r"), "sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1", check=False)
        self.veth("p", "eth0", "port", [f"{PEER}/24", f"{PEER2}/24"], None)
        self.veth("m", "mng0", "mng1", ["198.18.99.2/24"], f"{MANAGE}/24")

    def ns(self, n):
        return f"sn-{n}-{self.id}"

    def path(self, name):
        return os.path.join(self.dir, name)

    def veth(self, tag, near, far, near_addrs, far_addr):
        a, b = f"sn{tag}{self.id}n", f"sn{tag}{self.id}f"
        lab.sh("ip", "link", "add", a, "type", "veth", "peer", "name", b)
        for dev, ns, name, addrs in ((a, "a", near, near_addrs), (b, "r", far, [far_addr] if far_addr else [])):
            lab.sh("ip", "link", "set", dev, "netns", self.ns(ns), "name", name)
            lab.sh("ip", "netns", "exec", self.ns(ns), "ethtool", "-K", name, *lab.OFFLOADS)
            lab.sh("ip", "-n", self.ns(ns), "link", "set", name, "up")
            for addr in addrs:
                lab.sh("ip", "-n", self.ns(ns), "addr", "add", addr, "dev", name)

    def start(self, name, n, args):
        p = lab.Process(self, name, self.ns(n), args, nice=-5)
        self.processes.append(p)
        return p

    def prefix(self, n="r"):
        return ["ip", "netns", "exec", self.ns(n)]

    def show(self, page):
        try:
            r = subprocess.run(self.prefix() + [os.path.join(BUILD, "app/sluicectl/sluicectl"), "-s", self.path("sock"), "-j",
                                                "show", page], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True, timeout=10, check=False)
            return json.loads(r.stdout)
        except (ValueError, subprocess.TimeoutExpired):
            return {}

    def table(self, page):
        return subprocess.run(self.prefix() + [os.path.join(BUILD, "app/sluicectl/sluicectl"), "-s", self.path("sock"), "show",
                                               page], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=10,
                              check=False).stdout

    def peer(self, npub=NPUB):
        for p in self.show("peers").get("peers", []):
            if p["npub"] == npub:
                return p
        return {}

    def link(self, npub=NPUB):
        for p in self.show("links").get("links", []):
            if p["npub"] == npub:
                return p
        return {}

    def probe(self, *args):
        return subprocess.run(self.prefix() + [PROBE, *map(str, args)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              text=True, timeout=60, check=False)

    def end_node(self, name, bind):
        return self.start(name, "a", [os.path.join(BUILD, "tests/endnode/sl_endnode"), "--secret", SECRET, "--bind",
                                      f"{bind}:2121", "--peer", lab.NODES["r"][1], "--partner", lab.NODES["a"][1], "--rate", "1",
                                      "--size", "64", "--seconds", "0", "--dead-ms", "6000"])

    def sluiced(self, name, urls, cert, peers, more="", nostr=""):
        worker, others = lab.cpus()
        with open(self.path(name + ".yaml"), "w", encoding="ascii") as f:
            f.write(f"""node:
  identity: {{ nsec: "{lab.NODES['r'][0]}" }}
  control: {{ socket_path: "{self.path('sock')}" }}
  heartbeat_interval_secs: 2
  link_dead_timeout_secs: 6
  rate_limit: {{ handshake_timeout_secs: 4 }}
  discovery:
    nostr:
      enabled: true
      advert_relays: {json.dumps(urls)}
      dm_relays: {json.dumps(urls[:1])}
{nostr}transports:
  udp: {{ bind_addr: "0.0.0.0:2121", advertise_on_nostr: true, public: true }}
peers: {json.dumps(peers)}
dataplane:
  idle_sleep_us: 50
  nostr_ca_file: "{cert}"
  lcores: {{ control: {others[0]}, workers: [{worker}] }}
  ports:
    - name: port
      device: "net_af_packet0,iface=port,qdisc_bypass=1,blocksz=65536,framesz=2048,framecnt=2048"
      addresses: [ "{US}/24" ]
{more}""")
        return self.start(name, "r", [os.path.join(BUILD, "app/sluiced/sluiced"), "-c", self.path(name + ".yaml")])

    def close(self):
        for p in reversed(self.processes):
            p.stop()
        for r in self.relays:
            r.stop()
        for n in "ar":
            subprocess.run(["ip", "netns", "del", self.ns(n)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, check=False)
        if os.environ.get("SL_KEEP"):
            print("# kept: " + self.dir, flush=True)
        else:
            shutil.rmtree(self.dir, ignore_errors=True)


def two_relays(w):
    cert, key = relays.certificate(w.dir, f"IP:{MANAGE}")
    pair = [relays.Real(w.dir, "plain", bind=MANAGE, port=7000, prefix=w.prefix()),
            relays.Real(w.dir, "tls", cert, key, bind=MANAGE, port=7001, prefix=w.prefix())]
    w.relays += pair
    for r in pair:
        r.start()
    for r in pair:
        r.wait()
    return pair, cert


def up(w, addr=None):
    p = w.link()
    return p.get("state") == "up" and (addr is None or p.get("remote_addr", "").startswith(addr + ":"))


def advertised(w, cert, urls, who, seconds=3):
    out = w.probe("watch", seconds, cert, HEX[who], *urls).stdout
    return [json.loads(x)["addr"] for x in out.splitlines() if x.startswith('{"advert"')]


def relay_lines(daemon, text):
    return [x for x in daemon.log(400) if "relay w" in x and text in x]


def discovery(tap):
    w = World()
    try:
        pair, cert = two_relays(w)
        urls = [r.url for r in pair]
        subprocess.run([PROBE, "make", lab.NODES["a"][0], "5", str(int(time.time()) - 60), "udp:198.18.7.7:2121"], check=True,
                       stdout=open(w.path("other.jsonl"), "w", encoding="ascii"))
        bad = relays.Hostile(w.dir, bind=MANAGE, port=7002, prefix=w.prefix())
        bad.start()
        w.relays.append(bad)
        d = w.sluiced("first", urls + [bad.url("flood-other"), bad.url("giant"), bad.url("closed")], cert,
                      [{"npub": NPUB, "alias": "peer-b", "via_nostr": True,
                        "addresses": [{"transport": "udp", "addr": f"{DEAD}:2121"}]}])
        relays_open = lab.wait_for(lambda: sum(r["state"] == "open" and r["url"] in urls
                                               for r in w.show("relays").get("relays", [])) == 2, 40)
        tap.ok(relays_open is not None, "the daemon is connected to both relays, one by TLS with its own authority",
               w.show("relays"), *d.log())
        tap.ok(lab.wait_for(lambda: advertised(w, cert, urls, "r"), 30) is not None and
               set(advertised(w, cert, urls, "r")) == {f"{US}:2121"}, "our advert names the port's address", *d.log())
        w.end_node("peer", PEER)
        failed = lab.wait_for(lambda: w.peer().get("dial_failures", 0) >= 2, 60, 0.2)
        asked = w.show("adverts")["adverts"][0]
        tap.ok(failed is not None and asked["fetches"] >= 1 and not asked["known"],
               "every address is dead: dials fail, and relays are asked before each", w.peer(), asked)
        before = w.peer()
        start = time.monotonic()
        tap.ok(w.probe("advert", SECRET, cert, *urls, "--", f"udp:{PEER}:2121").returncode == 0, "the peer's first advert appears")
        published = time.monotonic()
        took = lab.wait_for(lambda: up(w, PEER), 60)
        tap.ok(took is not None and w.show("adverts")["adverts"][0]["known"], "link up at the advert's address", w.peer(), *d.log())
        tap.note(f"advert published to link up: {time.monotonic() - published:.1f} s (with the publishing {time.monotonic() - start:.1f} s)"
                 f"; the next dial of the back-off was {before.get('next_dial_secs', 0):.1f} s away")
        # The peer moves: as a NAT that gives it another address would have it.
        w.processes[-1].stop()
        tap.ok(lab.wait_for(lambda: not up(w), 30) is not None, "the peer has gone", w.link())
        w.end_node("peer2", PEER2)
        w.probe("advert", SECRET, cert, *urls, "--", f"udp:{PEER2}:2121")
        start = time.monotonic()
        took = lab.wait_for(lambda: up(w, PEER2), 60)
        tap.ok(took is not None, "the peer that moved is found again by its newer advert", w.peer(), w.show("adverts"), *d.log())
        tap.note(f"newer advert published to link up: {time.monotonic() - start:.1f} s")
        # All relays away: what works is kept, and what worked is found again.
        for r in pair:
            r.stop()
        tap.ok(lab.wait_for(lambda: all(r["state"] != "open" for r in w.show("relays")["relays"] if r["url"] in urls), 60)
               is not None, "the relays are away, and the daemon knows it", w.show("relays"))
        tap.ok(up(w, PEER2), "the link stays up without relays", w.link())
        w.processes[-1].stop()
        tap.ok(lab.wait_for(lambda: not up(w), 30) is not None, "the peer restarts meanwhile")
        w.end_node("peer3", PEER2)
        took = lab.wait_for(lambda: up(w, PEER2), 60)
        tap.ok(took is not None, "and is reached again where it was, without any relay", w.peer(), w.show("adverts"), *d.log())
        lost = [len([x for x in relay_lines(d, u) if " lost: " in x]) for u in urls]
        tap.ok(lost == [1, 1], "one line in the log for each relay lost", lost, *relay_lines(d, ""))
        for r in pair:
            r.start()
        for r in pair:
            r.wait()
        back = lab.wait_for(lambda: all(r["state"] == "open" for r in w.show("relays")["relays"] if r["url"] in urls), 90)
        tap.ok(back is not None, "the relays are back, and the daemon too", w.show("relays"))
        status, page = w.show("status"), w.show("relays")
        by = {r["url"].rsplit("/", 1)[-1]: r for r in page["relays"]}
        tap.ok(by["giant"]["faults"].get("too_long", 0) >= 1 and by["closed"]["subscriptions_closed"] >= 1,
               "the bad relays are named for what they do", by["giant"], by["closed"], by["flood-other"])
        tap.note(f"control: longest turn {status.get('longest_turn_cpu_us')} us of CPU ({status.get('longest_turn_us')} us by the "
                 f"clock), Nostr thread {page['cpu_ms']} ms of CPU in all, reports dropped {page['reports_dropped']}; "
                 f"flood-other: {by['flood-other']['messages']} messages, throttled {by['flood-other']['throttled']}, "
                 f"last error {by['flood-other'].get('last_error')}")
        for page in ("adverts", "relays"):
            text = w.table(page)
            tap.ok(MANAGE in text if page == "relays" else f"udp:{PEER2}:2121" in text, f"sluicectl show {page}", text)
            for line in text.splitlines():
                tap.note(line[:180])
        seconds = d.stop()
        tap.ok(seconds is not None and not advertised(w, cert, urls, "r"), "an orderly end withdraws the advert", *d.log())
    finally:
        w.close()


def open_policy(tap):
    """policy: open: a node that nobody has configured is found among a crowd that does not exist."""
    crowd = 1000
    w = World()
    try:
        pair, cert = two_relays(w)
        with open(w.path("good.jsonl"), "w", encoding="ascii") as f:
            subprocess.run([PROBE, "make", "-", str(crowd), str(int(time.time()) - 5), f"udp:{DEAD}:2121"], check=True, stdout=f)
        bad = relays.Hostile(w.dir, bind=MANAGE, port=7002, prefix=w.prefix())
        bad.start()
        w.relays.append(bad)
        urls = [pair[0].url, bad.url("good")]
        d = w.sluiced("open", urls, cert, [], nostr="      policy: open\n      open_discovery_max_pending: 16\n")
        tap.ok(lab.wait_for(lambda: (w.show("counters").get("found") or {}).get("found_full", 0) >= crowd - 600, 40) is not None,
               f"{crowd} adverts of nodes that do not exist are heard", w.show("counters").get("found"), *d.log())
        found, c = w.show("found").get("found", []), w.show("counters")["found"]
        tap.ok(len(found) <= 16 and c["found_dialled"] <= 60, "16 of them are remembered, and a few are dialled", len(found), c)
        w.end_node("peer", PEER)
        start = time.monotonic()

        def again():
            w.probe("advert", SECRET, cert, pair[0].url, "--", f"udp:{PEER}:2121", "tcp:198.18.1.1:443")
            return up(w, PEER)
        took = lab.wait_for(again, 120, 2)
        tap.ok(took is not None, "a true node that nobody has configured is linked, found by its advert", w.show("found"), c, *d.log())
        tap.note(f"its advert published to link up: {time.monotonic() - start:.1f} s")
        status = w.show("status")
        tap.note(f"control: longest turn {status.get('longest_turn_cpu_us')} us of CPU; {w.show('counters')['found']}")
        tap.ok(w.show("status").get("peer_count", 1) == 1, "and nobody else", w.show("links"))
        for line in w.table("found").splitlines()[:8]:
            tap.note(line[:180])
    finally:
        w.close()


def reference_node(w, name, url, peers):
    nostr = f"enabled: true, advert_relays: [\"{url}\"], dm_relays: [\"{url}\"], stun_servers: []"
    with open(w.path(name + ".yaml"), "w", encoding="ascii") as f:
        f.write(fips.config(SECRET, w.path(name + ".sock"),
                            fips.udp(PEER, f", advertise_on_nostr: true, public: true, external_addr: \"{PEER}:2121\""),
                            f"peers: {json.dumps(peers)}\n", f"  rendezvous: {{ nostr: {{ {nostr} }} }}\n", tun=False))
    return w.start(name, "a", [FIPS, "-c", w.path(name + ".yaml")])


def reference(tap):
    w = World()
    try:
        pair, cert = two_relays(w)
        urls = [r.url for r in pair]
        # It looks for us.
        d = w.sluiced("sought", urls, cert, [])
        f = reference_node(w, "fips-seeks", pair[0].url, [{"npub": lab.NODES["r"][1], "alias": "sluice", "via_nostr": True}])
        took = lab.wait_for(lambda: up(w, PEER), 60)
        tap.ok(took is not None and w.link().get("direction") == "inbound", "the reference finds our advert and dials us",
               w.link(), *d.log(), *f.log())
        tap.note(f"both started to link up: {took or 0:.1f} s")
        f.stop()
        d.stop()
        # We look for it.
        f = reference_node(w, "fips-sought", pair[0].url, [])
        d = w.sluiced("seeks", urls, cert, [{"npub": NPUB, "alias": "fips", "via_nostr": True}])
        took = lab.wait_for(lambda: up(w, PEER), 60)
        tap.ok(took is not None and w.link().get("direction") == "outbound", "we find the reference's advert and dial it",
               w.link(), w.show("adverts"), *d.log(), *f.log())
        tap.note(f"both started to link up: {took or 0:.1f} s; {json.dumps(w.show('adverts').get('adverts'))}")
    finally:
        w.close()


def main():
    what = sys.argv[1]
    tap = Tap()
    why = "needs root" if os.geteuid() else relays.unavailable()
    if not why and what == "reference" and not FIPS:
        why = "SLUICE_FIPS_BIN is not set"
    lab.install()
    if why:
        tap.skip(what, why)
    else:
        {"discovery": discovery, "open": open_policy, "reference": reference}[what](tap)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
