#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/run demo: two end nodes talk to each other through a relay, and every payload is accounted for.

As root: three network namespaces, veth pairs, the real sluiced on af_packet ports. Otherwise: one process that holds the
relay's data plane and both end nodes, with rings for wires. Both print the same table and the same verdict.
"""
import argparse
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lab  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LINK_TIMEOUT = 30
HEAD = ("    time  direction        sent/s   received/s   Mbit/s     lost   dup  late   bad   p50 us   p99 us")

out = sys.stdout


def say(text=""):
    print(text, file=out, flush=True)


class Relay:
    """What sluicectl says about the relay, as sums over workers."""

    def __init__(self, page_drops, page_workers):
        drops, workers = page_drops or {}, page_workers or {}
        rows = workers.get("workers") or []
        self.known = bool(page_drops)
        self.balanced = bool(drops.get("balanced"))
        self.outside = drops.get("outside") or {}
        self.drops = {k: v for k, v in (drops.get("drops") or {}).items() if v}
        self.rx, self.tx, self.punt, self.local, self.handoff = (
            drops.get(k, sum(w.get(k, 0) for w in rows)) for k in ("rx", "tx", "punt", "local", "handoff"))
        self.busy_tsc, self.transit_tsc, self.driver_tsc = (
            sum(w.get(k, 0) for w in rows) for k in ("busy_tsc", "transit_tsc", "driver_tsc"))

    def since(self, before):
        d = Relay(None, None)
        for k in ("rx", "tx", "punt", "local", "handoff", "busy_tsc", "transit_tsc", "driver_tsc"):
            setattr(d, k, getattr(self, k) - getattr(before, k))
        d.drops = {k: v - before.drops.get(k, 0) for k, v in self.drops.items() if v > before.drops.get(k, 0)}
        d.balanced, d.known = self.balanced, self.known
        return d

    def cycles(self):
        """Of a frame: transit, the drivers' receive and transmit, and busy polls in all."""
        parts = (self.transit_tsc, self.driver_tsc, self.busy_tsc)
        return tuple(n / self.rx if self.rx else 0 for n in parts)

    def cycles_result(self):
        names = ("transit_cycles_per_packet", "driver_cycles_per_packet", "cycles_per_packet")
        return {name: round(n) for name, n in zip(names, self.cycles())}


def number(n):
    return f"{n:,.0f}"


def direction_line(at, name, sent_per_s, received_per_s, mbps, rx):
    return (f"  {at:>6}  {name:12} {number(sent_per_s):>10}   {number(received_per_s):>10} {mbps:8.1f} {number(rx['lost']):>8} "
            f"{rx['duplicated']:5} {rx['reordered']:5} {rx['corrupted']:5} {rx['p50_us']:8.0f} {rx['p99_us']:8.0f}")


def relay_line(relay, seconds):
    drops = ", ".join(f"{k} {v}" for k, v in sorted(relay.drops.items())) or "none"
    return (f"  {'':6}  relay: {number(relay.tx / seconds)} forwarded/s, {number(relay.punt / seconds)} to control/s, "
            "cycles a frame: transit {}, driver {}, in all {}; drops: {}".format(*map(number, relay.cycles()), drops))


def verdict(ends, relay, args, mode, seconds):
    """The summary for people and for programs, from the end nodes' final figures and the relay's."""
    result = {"mode": mode, "rate": args.rate, "size": args.size, "seconds": seconds, "directions": {}}
    ok = True
    say()
    for name, tx, rx in (("a_to_b", ends["a"], ends["b"]), ("b_to_a", ends["b"], ends["a"])):
        lost = max(tx["sent"] - rx["received"], 0)
        run = tx["run_s"] or seconds
        d = {"sent": tx["sent"], "received": rx["received"], "lost": lost, "duplicated": rx["duplicated"],
             "reordered": rx["reordered"], "corrupted": rx["corrupted"], "not_sent": tx["not_sent"],
             "packets_per_s": round(rx["received"] / run, 1) if run else 0,
             "latency_p50_us": rx["p50_us"], "latency_p99_us": rx["p99_us"]}
        result["directions"][name] = d
        intact = tx["sent"] > 0 and not (lost or d["duplicated"] or d["corrupted"] or rx["foreign"])
        # A sender that could not keep its own pace has not shown what was asked for.
        kept = tx["sent"] >= 0.95 * args.rate * args.seconds
        ok = ok and intact and kept
        words = "every payload arrived intact" if intact else \
            f"lost {lost}, duplicated {d['duplicated']}, corrupted {d['corrupted']}"
        say(f"  {name[0].upper()} -> {name[-1].upper()}: {number(tx['sent'])} sent, {number(rx['received'])} received at "
            f"{number(d['packets_per_s'])} a second, {d['reordered']} late; p50 {rx['p50_us']:.0f} us, "
            f"p99 {rx['p99_us']:.0f} us: {words}")
        if not kept:
            say(f"          the sender managed {number(tx['sent'])} of {number(args.rate * args.seconds)}: this machine is "
                "too busy for the rate")
    drops = ", ".join(f"{k} {v}" for k, v in sorted(relay.drops.items())) or "none"
    result.update({"drops": relay.drops, "balanced": relay.balanced, **relay.cycles_result(),
                   "relay_rx": relay.rx, "relay_tx": relay.tx, "relay_punt": relay.punt, "relay_local": relay.local})
    say(f"  relay: rx {number(relay.rx)} = tx {number(relay.tx)} + to control {number(relay.punt)} + local "
        f"{number(relay.local)} + drops {number(sum(relay.drops.values()))}: "
        f"{'balanced' if relay.balanced else 'NOT BALANCED'}; drops: {drops}")
    if not ok:
        # Where it may have gone, beyond the worker's own reasons.
        for n in "ab":
            e = ends[n]
            say(f"  end node {n.upper()}: {e['not_sent']} due but not sent, link lost {e['links_lost']} times, longest silence "
                f"{e['longest_gap_ms']:.0f} ms, {e['signals']} signals from the mesh, {e['foreign']} foreign payloads")
        outside = {k: v for k, v in relay.outside.items() if v}
        say(f"  relay, outside its workers: {outside or 'nothing counted'}")
        result["outside"] = outside
        lost = sum(d["lost"] for d in result["directions"].values())
        if mode == "namespaces" and lost > sum(relay.drops.values()) + sum(outside.values()):
            say("  what nobody here counted was lost in the packet socket's ring in front of the worker: its CPU was taken "
                "by others;\n  a smaller --rate leaves more time")
    ok = ok and relay.balanced
    result["intact"] = ok
    say(f"\n{'ALL IS WELL: every payload arrived intact and the counts balance' if ok else 'NOT WELL, see above'}")
    return result


class Failed(Exception):
    pass


def explain(stage, *processes):
    for p in processes:
        lines = p.log()
        if lines:
            print(f"--- {p.name}", *lines, sep="\n    ", file=sys.stderr)
    raise Failed(stage)


def at_rest(stage):
    """The relay's counts when no burst is under way: a look while a worker is in the middle of one may not add up."""
    for _ in range(10):
        relay = Relay(stage.show("drops"), stage.show("workers"))
        if relay.balanced:
            break
        time.sleep(0.1)
    return relay


def namespaces(args):
    build = os.path.join(ROOT, "build-release")
    udp_mtu = max(1280, args.size + 72)
    with lab.Lab(build) as stage:
        say(f"namespaces {stage.ns('a')} {stage.ns('r')} {stage.ns('b')}; worker on CPU {stage.worker_cpu}, "
            f"control and end nodes on {','.join(map(str, stage.other_cpus))}")
        sluiced = stage.relay(udp_mtu=udp_mtu, extra_dataplane="  measure_cycles: true\n")
        if lab.wait_for(lambda: not sluiced.alive() or stage.show("status"), LINK_TIMEOUT) is None or not sluiced.alive():
            explain("sluiced did not start", sluiced)
        nodes = {n: stage.end_node(n, seconds=args.seconds, rate=args.rate, size=args.size, udp_mtu=udp_mtu)
                 for n in "ab"}
        started = time.monotonic()
        while not all((p.last() or {}).get("state") in ("running", "ending", "done") for p in nodes.values()):
            if time.monotonic() - started > LINK_TIMEOUT or not sluiced.alive() or \
                    not all(p.alive() or p.last() for p in nodes.values()):
                explain("the end nodes did not reach each other", sluiced, *nodes.values())
            time.sleep(0.05)
        say(f"links up, both directions proven; {number(args.rate)} payloads of {args.size} bytes a second each way for "
            f"{args.seconds:g} s\n\n{HEAD}")
        first = before = Relay(stage.show("drops"), stage.show("workers"))
        before_at = {n: p.last() for n, p in nodes.items()}
        shown_at = time.monotonic()
        while any(p.alive() for p in nodes.values()):
            time.sleep(0.1)
            if time.monotonic() - started > args.seconds + LINK_TIMEOUT + 10:
                explain("the end nodes do not end", *nodes.values())
            if not sluiced.alive():
                explain("sluiced ended", sluiced)
            last = {n: p.last() for n, p in nodes.items()}
            if any(last[n]["t"] == before_at[n]["t"] or last[n]["final"] for n in "ab"):
                continue
            relay = Relay(stage.show("drops"), stage.show("workers"))
            now = time.monotonic()
            show_second(last, before_at, relay.since(before), now - shown_at, nodes)
            before, before_at, shown_at = relay, last, now
        for p in nodes.values():
            p.stop()
        ends = {n: p.final for n, p in nodes.items()}
        if not all(ends.values()):
            explain("an end node ended without its account", *nodes.values())
        relay = at_rest(stage)
        if not relay.known:
            explain("sluicectl got no answer", sluiced)
        total = relay.since(first) if first.known else relay
        result = verdict(ends, relay, args, "namespaces", args.seconds)
        result.update(total.cycles_result())
        took = sluiced.stop(wait=5)
        if took is None or sluiced.child.returncode != 0:
            say(f"sluiced did not leave in good order (status {sluiced.child.returncode})")
            result["intact"] = False
        return result


def show_second(last, before, relay, relay_seconds, nodes):
    for tx, rx, name in (("a", "b", "A -> B"), ("b", "a", "B -> A")):
        seconds_tx = max(last[tx]["t"] - before[tx]["t"], 1e-3)
        seconds_rx = max(last[rx]["t"] - before[rx]["t"], 1e-3)
        got = last[rx]["received"] - before[rx]["received"]
        bits = (last[rx]["received_bytes"] - before[rx]["received_bytes"]) * 8
        say(direction_line(f"{last[tx]['t']:.0f} s" if tx == "a" else "", name,
                           (last[tx]["sent"] - before[tx]["sent"]) / seconds_tx, got / seconds_rx,
                           bits / seconds_rx / 1e6, last[rx]))
    say(relay_line(relay, max(relay_seconds, 1e-3)))


def rings(args):
    """One process; it prints the same objects as the end nodes and sluicectl do, a line a second."""
    program = os.path.join(ROOT, "build-release", "tests", "endnode", "ring_demo")
    if not os.access(program, os.X_OK):
        raise Failed("the demo without root is not built")
    child = subprocess.Popen([program, "--rate", str(args.rate), "--size", str(args.size), "--seconds",
                              str(args.seconds)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    say(f"one process, rings for wires; {number(args.rate)} payloads of {args.size} bytes a second each way for "
        f"{args.seconds:g} s\n\n{HEAD}")
    before = final = None
    try:
        for line in child.stdout:
            if not line.startswith("{"):
                continue
            now = json.loads(line)
            if now.get("final"):
                final = now
            elif now["a"]["state"] == now["b"]["state"] == "running":
                if before:
                    show_second(now, before, Relay(now["drops"], now["workers"]).since(
                        Relay(before["drops"], before["workers"])), now["a"]["t"] - before["a"]["t"], None)
                before = now
        child.wait(10)
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()
    if not final:
        raise Failed("the demo's process ended without its account")
    return verdict({n: final[n] for n in "ab"}, Relay(final["drops"], final["workers"]), args, "rings", args.seconds)


def main():
    global out
    parser = argparse.ArgumentParser(prog="tools/run demo")
    parser.add_argument("--seconds", type=float, default=10, help="of sending (10)")
    parser.add_argument("--rate", type=int, default=20000, help="payloads a second each way (20000)")
    parser.add_argument("--size", type=int, default=256, help="payload bytes, 40 to 1400 (256)")
    parser.add_argument("--rings", action="store_true", help="the demo inside one process, also as root")
    parser.add_argument("-j", "--json", action="store_true", help="one JSON object at the end of standard output")
    args = parser.parse_args()
    if not 40 <= args.size <= 1400:
        parser.error("--size is 40 to 1400 bytes")
    if args.rate < 1 or args.seconds <= 0:
        parser.error("--rate and --seconds are more than 0")
    if args.json:
        out = sys.stderr
    lab.install()
    try:
        result = rings(args) if args.rings or os.geteuid() != 0 else namespaces(args)
    except (Failed, lab.LabError) as e:
        say(f"\ndemo: {e}")
        result = {"intact": False, "error": str(e)}
    if args.json:
        print(json.dumps(result), flush=True)
    sys.exit(0 if result["intact"] else 1)


if __name__ == "__main__":
    main()
