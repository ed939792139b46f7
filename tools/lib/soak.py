#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/run soak: traffic for long through the relay while links are rekeyed all the time, every loss accounted for.

Two end nodes of our own, the relay between them, in network namespaces. nftables loses a share of the frames on each of the
four ways (node to relay, relay to node, both sides) and counts them; data frames are known by their length. A payload that
did not arrive must have been lost by nftables or stand under a name somewhere; a link must never go down.

With --peers N it is the relay's memory that is looked at, with N peers more, some of them coming and going: soak_crowd.py.

With --neighbour reference both neighbours are nodes of the reference (SLUICE_FIPS_BIN, SLUICE_FIPSCTL_BIN): soak_reference.py.
"""
import argparse
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import account  # noqa: E402
import lab  # noqa: E402
import soak_crowd  # noqa: E402
import soak_reference  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
UP = 30
NICE = -20
out = sys.stdout


Failed = soak_reference.Failed


def say(text=""):
    print(text, file=out, flush=True)


def number(n):
    return f"{n:,.0f}"


def explain(stage, *processes):
    for p in processes:
        print(f"--- {p.name}", *p.log(), sep="\n    ", file=sys.stderr)
    raise Failed(stage)


def at_rest(stage):
    for _ in range(20):
        page = stage.show("drops")
        if page and page.get("balanced"):
            return page
        time.sleep(0.1)
    raise Failed("sluicectl's counts do not balance")


def rekeys(stage):
    return [link.get("rekeys", 0) for link in (stage.show("links") or {}).get("links") or []]


def direction(x, y, ends, wire, page):
    """Where the payloads of one direction went; every hop counted by someone else than the two beside it."""
    tx, rx, kernel = ends[x], ends[y], wire.kernel(y)
    seen_out, lost_out, seen_in, lost_in = wire.data(x, "out"), wire.data(x, "lost_out"), wire.data(y, "in"), \
        wire.data(y, "lost_in")
    d = {"sent": tx["sent"], "received": rx["received"], "lost": tx["sent"] - rx["received"],
         "lost_by_the_wire": lost_out + lost_in, "duplicated": rx["duplicated"], "reordered": rx["reordered"],
         "corrupted": rx["corrupted"], "not_sent": tx["not_sent"], "longest_gap_ms": rx["longest_gap_ms"],
         "p50_us": rx["p50_us"], "p99_us": rx["p99_us"], "packets_per_s": round(rx["received"] / max(tx["run_s"], 1e-9), 1),
         # By hop: what is missing between two counts of data frames.
         "sender": tx["sent"] - seen_out, "relay": seen_out - lost_out - seen_in,
         "receiver": seen_in - lost_in - rx["received"] - rx["duplicated"]}
    # What has a name: packets that the socket would not take, frames that the relay or the kernel dropped and counted.
    named = {"sender": {"tx_failed": tx["tx_failed"]},
             "relay": {**{k: v for k, v in page["drops"].items() if v}, **{k: v for k, v in page["outside"].items() if v},
                       **{k: v for k, v in wire.relay().items() if v}},
             "receiver": {k: v for k, v in kernel.items() if v}}
    d["named"] = {k: v for k, v in named.items() if any(v.values())}
    d["unexplained"] = sum(max(d[hop] - sum(named[hop].values()), 0) if d[hop] >= 0 else -d[hop] for hop in named)
    return d


def judge(seen, ends, wire, page, counters, args, seconds):
    links = counters.get("link") or {}
    result = {"seconds": seconds, "rate": args.rate, "size": args.size, "loss_percent": args.loss,
              "rekey_s": args.rekey_s, "directions": {}}
    for x, y in ("ab", "ba"):
        d = direction(x, y, ends, wire, page)
        result["directions"][f"{x}_to_{y}"] = d
        say(f"  {x.upper()} -> {y.upper()}: {number(d['sent'])} sent, {number(d['received'])} received at "
            f"{number(d['packets_per_s'])} a second; {number(d['lost'])} lost, of them {number(d['lost_by_the_wire'])} by the "
            f"wire; unexplained {d['unexplained']}; longest silence {d['longest_gap_ms']:.0f} ms, p50 {d['p50_us']:.0f} us, "
            f"p99 {d['p99_us']:.0f} us")
        say(f"          by hop: sender {d['sender']}, relay {d['relay']}, receiver {d['receiver']}; named: "
            f"{json.dumps(d['named']) if d['named'] else 'none'}; {d['not_sent']} not sent in time, duplicated "
            f"{d['duplicated']}, corrupted {d['corrupted']}")
    result["rekeys"] = {"relay": seen, **{n: ends[n]["counters"].get("rekey", 0) for n in "ab"}}
    result["links_lost"] = {n: ends[n]["links_lost"] for n in "ab"}
    result["relay_links"] = {k: v for k, v in links.items() if v}
    result["relay_drops"] = {k: v for k, v in page["drops"].items() if v}
    # Each node says goodbye once, when all is over.
    down = sum(result["links_lost"].values()) + links.get("link_dead", 1) + (links.get("link_up") != 2) + \
        (links.get("disconnect_rx", 0) > 2)
    bad = sum(d["unexplained"] + d["duplicated"] + d["corrupted"] for d in result["directions"].values())
    result["whole"] = not bad and not down and page["balanced"]
    say(f"  rekeys: relay {result['rekeys']['relay']}, nodes {result['rekeys']['a']} and {result['rekeys']['b']}; links lost: "
        f"{down}; the relay's drops: {result['relay_drops'] or 'none'}")
    kept = all(d["sent"] >= 0.95 * args.rate * seconds for d in result["directions"].values())
    if not kept:
        say(f"  the senders did not keep {number(args.rate)} a second: this machine was too busy for the rate")
    result["rate_kept"] = kept
    say(f"\n{'ALL IS WELL: no unexplained loss, no link down' if result['whole'] else 'NOT WELL, see above'}")
    return result


def progress(t, nodes, before, wire, seen):
    last = {n: p.last() for n, p in nodes.items()}
    words = []
    for x, y in ("ab", "ba"):
        dt = max(last[y]["t"] - before[y]["t"], 1e-3)
        words.append(f"{x.upper()}->{y.upper()} {number((last[y]['received'] - before[y]['received']) / dt)}/s")
    lost = sum(max(last[x]["sent"] - last[y]["received"], 0) for x, y in ("ab", "ba"))
    wired = sum(wire.data(n, "lost_out") + wire.data(n, "lost_in") for n in "ab")
    say(f"  {t:>6.0f} s  {', '.join(words)}; missing {number(lost)} (under way included), by the wire {number(wired)}; rekeys "
        f"{seen}; links lost {sum(last[n]['links_lost'] for n in 'ab')}")
    return last


def own(args):
    seconds = args.minutes * 60
    with lab.Lab(args.build) as stage:
        wire = account.Wire(stage, args.size + account.OVERHEAD, args.loss)
        relay = stage.relay(nice=NICE, frames=args.frames, extra_dataplane="  idle_sleep_us: 20\n",
                            extra_node=f"  rekey:\n    after_secs: {args.rekey_s}\n")
        if lab.wait_for(lambda: not relay.alive() or stage.show("status"), UP) is None or not relay.alive():
            explain("sluiced did not start", relay)
        every_cpu = sorted(os.sched_getaffinity(0))
        nodes = {n: stage.end_node(n, seconds=seconds, rate=args.rate, size=args.size, nice=NICE, on=every_cpu,
                                   extra=("--rekey-s", args.rekey_s)) for n in "ab"}
        up = lab.wait_for(lambda: all((p.last() or {}).get("state") == "running" for p in nodes.values()), UP)
        if up is None:
            explain("the end nodes did not reach each other", relay, *nodes.values())
        say(f"links up after {up:.1f} s; {number(args.rate)} payloads of {args.size} bytes a second each way for "
            f"{args.minutes:g} min, {args.loss}% of the frames lost on each of four ways, rekeys every {args.rekey_s} s by "
            "either side\n")
        started, shown = time.monotonic(), {n: p.last() for n, p in nodes.items()}
        due, seen = started + args.every, []
        while any(p.alive() for p in nodes.values()):
            time.sleep(0.2)
            now = time.monotonic()
            if not relay.alive():
                explain("sluiced ended", relay)
            if now > started + seconds + 60:
                explain("the end nodes do not end", *nodes.values())
            if now >= due and all(p.alive() for p in nodes.values()):
                seen = rekeys(stage)
                shown = progress(now - started, nodes, shown, wire, seen)
                due += args.every
        for p in nodes.values():
            p.stop()
        if not all(p.final for p in nodes.values()):
            explain("an end node ended without its account", *nodes.values())
        say()
        page = at_rest(stage)
        return judge(seen, {n: p.final for n, p in nodes.items()}, wire, page, stage.show("counters") or {}, args,
                     seconds)


def main():
    global out
    parser = argparse.ArgumentParser(prog="tools/run soak", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30, help="of traffic (30)")
    parser.add_argument("--peers", type=int, default=0, metavar="N", help="so many peers more, and what the relay comes to hold")
    parser.add_argument("--rate", type=int, help="payloads a second each way (50000; with the reference or --peers 2000)")
    parser.add_argument("--size", type=int, default=256, help="payload bytes, 40 to 1200 (256)")
    parser.add_argument("--loss", type=float, help="percent of the frames lost on each way (2; with the reference none)")
    parser.add_argument("--rekey-s", type=int, help="age at which we rekey, 4 or more (10; with the reference 36)")
    parser.add_argument("--frames", type=int, default=32768, help="of each port's receive ring (32768)")
    parser.add_argument("--every", type=float, default=10, help="seconds between two lines of progress (10)")
    parser.add_argument("--neighbour", choices=("own", "reference"), default="own", help="what the end nodes are (own)")
    parser.add_argument("--their-rekey-s", type=int, default=36, help="with the reference: its node.rekey.after_secs (36)")
    parser.add_argument("--after-messages", type=int, default=1 << 40, metavar="N",
                        help="with the reference: its node.rekey.after_messages; FIPS's own default is 65536 (none)")
    parser.add_argument("--build", default=os.path.join(ROOT, "build-release"), help=argparse.SUPPRESS)
    parser.add_argument("-j", "--json", action="store_true", help="one JSON object at the end of standard output")
    args = parser.parse_args()
    for name, ours, theirs in (("rate", 50000, 2000), ("loss", 2, 0), ("rekey_s", 10, 36)):
        if getattr(args, name) is None:
            setattr(args, name, ours if args.neighbour == "own" and not args.peers else theirs)
    if not 40 <= args.size <= 1200 or args.rate < 1 or args.minutes <= 0 or args.rekey_s < 4 or not 0 <= args.loss < 50:
        parser.error("a value is out of its range, see --help")
    if args.peers and (args.neighbour != "own" or args.loss or not 10 <= args.peers <= 4000):
        parser.error("--peers: 10 to 4000, without --loss and --neighbour")
    if args.json:
        out = sys.stderr
    if os.geteuid() != 0:
        sys.exit("tools/run soak: needs root for network namespaces")
    lab.install()
    try:
        if args.peers:
            result = soak_crowd.run(args, say)
        else:
            result = own(args) if args.neighbour == "own" else soak_reference.run(args, say)
    except (Failed, soak_crowd.Failed, lab.LabError) as e:
        say(f"\nsoak: {e}")
        result = {"whole": False, "error": str(e)}
    if args.json:
        print(json.dumps(result), flush=True)
    sys.exit(0 if result["whole"] else 1)


if __name__ == "__main__":
    main()
