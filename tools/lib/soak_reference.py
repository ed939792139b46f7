# SPDX-License-Identifier: BSD-3-Clause
"""tools/run soak --neighbour reference: two nodes of the reference, the relay between them, a numbered stream over their IPv6.

What the relay is judged by: data frames that went in on one side and did not come out on the other, and its links. What a node
of the reference loses inside itself, or at its interface, is listed and not the relay's.
"""
import json
import os
import sys
import time

import account
import lab
import reference

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "interop"))
import interop  # noqa: E402

UP = 60
NICE = -20


class Failed(Exception):
    pass


def fips_config(stage, n, args):
    path = stage.path(f"fips-{n}.yaml")
    peers = f"""peers:
  - npub: "{lab.NODES['r'][1]}"
    alias: relay
    addresses:
      - transport: udp
        addr: "{lab.endpoint(lab.RELAY[4][n])}"
"""
    node = f"  rekey: {{ after_secs: {args.their_rekey_s}, after_messages: {args.after_messages} }}\n"
    with open(path, "w", encoding="utf-8") as f:
        f.write(reference.config(lab.NODES[n][0], stage.path(f"fips-{n}.sock"), reference.udp(), peers, node))
    return path


def fips_show(stage, n, what):
    r = stage.run(n, os.environ["SLUICE_FIPSCTL_BIN"], "-s", stage.path(f"fips-{n}.sock"), "show", what)
    try:
        return json.loads(r.stdout)
    except ValueError:
        return {}


def ours(stage, n):
    """The relay as node n of the reference sees it."""
    for p in fips_show(stage, n, "peers").get("peers", []):
        if p.get("npub") == lab.NODES["r"][1]:
            return p
    return {}


def start(stage, args, say):
    relay = stage.relay(nice=NICE, frames=args.frames, extra_dataplane="  idle_sleep_us: 20\n",
                        extra_node=f"  rekey:\n    after_secs: {args.rekey_s}\n")
    if lab.wait_for(lambda: not relay.alive() or stage.show("status"), UP) is None or not relay.alive():
        raise Failed("sluiced did not start: " + " | ".join(relay.log()))
    nodes = {n: stage.start(f"fips-{n}", n, [os.environ["SLUICE_FIPS_BIN"], "-c", fips_config(stage, n, args)], nice=NICE)
             for n in "ab"}
    up = lab.wait_for(lambda: all(ours(stage, n).get("connectivity") == "connected" for n in "ab"), UP)
    if up is None:
        raise Failed("no links: " + " | ".join(line for p in nodes.values() for line in p.log(5)))
    if not all(interop.introduce(stage, n, o) for n, o in ("ab", "ba")):
        raise Failed("the nodes do not know each other's keys")
    first = lab.wait_for(lambda: stage.run("a", "ping", "-6", "-n", "-q", "-c", "1", "-W", "3",
                                           interop.NODES["b"][2]).returncode == 0, UP)
    if first is None:
        raise Failed("no way from one node to the other")
    say(f"links up after {up:.1f} s, first answer after another {first:.1f} s")
    return relay, nodes


def tun(stage, n):
    """Datagrams that node n's interface did not take or deliver."""
    s = json.loads(lab.sh("ip", "-n", stage.ns(n), "-s", "-j", "link", "show", "dev", "fips0"))[0]["stats64"]
    return {"fips0_tx_dropped": s["tx"]["dropped"], "fips0_rx_dropped": s["rx"]["dropped"], "fips0_rx_errors": s["rx"]["errors"]}


def direction(stage, x, y, ends, wire, page):
    tx, rx = ends[x], ends[y]
    seen_out, seen_in = wire.arrived(x), wire.data(y, "in")
    named = {k: v for k, v in {**page["drops"], **page["outside"], **wire.relay()}.items() if v}
    d = {"sent": tx["sent"], "received": rx["received"], "lost": tx["sent"] - rx["received"],
         "duplicated": rx["duplicated"], "reordered": rx["reordered"],
         "corrupted": rx["corrupted"], "longest_gap_ms": rx["longest_gap_ms"], "p50_us": rx["p50_us"],
         "p99_us": rx["p99_us"], "packets_per_s": round(rx["received"] / max(tx["run_s"], 1e-9), 1),
         "not_sent": tx["not_sent"],
         "in_their_sender": tx["sent"] - seen_out, "relay": seen_out - seen_in,
         "in_their_receiver": seen_in - rx["received"] - rx["duplicated"],
         "their_interfaces": {**{f"{x}_{k}": v for k, v in tun(stage, x).items() if v},
                              **{f"{y}_{k}": v for k, v in tun(stage, y).items() if v},
                              **{f"{y}_{k}": v for k, v in wire.kernel(y).items() if v}, "tx_failed": tx["tx_failed"]}}
    d["named"] = named if d["relay"] else {}
    d["unexplained"] = max(abs(d["relay"]) - (sum(named.values()) if d["relay"] > 0 else 0), 0)
    return d


def judge(stage, ends, wire, page, links, args, seconds, say):
    result = {"seconds": seconds, "rate": args.rate, "size": args.size, "rekey_s": args.rekey_s,
              "their_rekey_s": args.their_rekey_s, "their_after_messages": args.after_messages, "directions": {}}
    for x, y in ("ab", "ba"):
        d = direction(stage, x, y, ends, wire, page)
        result["directions"][f"{x}_to_{y}"] = d
        say(f"  {x.upper()} -> {y.upper()}: {d['sent']:,} sent, {d['received']:,} received at {d['packets_per_s']:,.0f} a second; "
            f"{d['lost']:,} lost: in their sender {d['in_their_sender']:,}, in the relay {d['relay']:,}, "
            f"in their receiver {d['in_their_receiver']:,}; unexplained {d['unexplained']}")
        say(f"          duplicated {d['duplicated']}, late {d['reordered']}, corrupted {d['corrupted']}, not sent in time "
            f"{d['not_sent']}; longest silence {d['longest_gap_ms']:.0f} ms, p50 {d['p50_us']:.0f} us, p99 {d['p99_us']:.0f} us; "
            f"their interfaces {json.dumps(d['their_interfaces'])}")
    counters = (stage.show("counters") or {}).get("link") or {}
    result["relay_links"] = {k: v for k, v in counters.items() if v}
    result["relay_drops"] = {k: v for k, v in page["drops"].items() if v}
    result["rekeys"] = links
    down = (counters.get("link_up") != 2) + counters.get("link_dead", 1) + counters.get("disconnect_rx", 1)
    bad = sum(d["unexplained"] + d["duplicated"] + d["corrupted"] for d in result["directions"].values())
    result["whole"] = not bad and not down and page["balanced"]
    say(f"  rekeys on the relay's links {links}; links lost {down}; the relay's drops: {result['relay_drops'] or 'none'}")
    say(f"  the relay's links say: {json.dumps(result['relay_links'])}")
    say(f"\n{'ALL IS WELL: the relay lost nothing without a name, no link down' if result['whole'] else 'NOT WELL, see above'}")
    return result


def run(args, say):
    seconds = args.minutes * 60
    for var in ("SLUICE_FIPS_BIN", "SLUICE_FIPSCTL_BIN"):
        if not os.access(os.environ.get(var, ""), os.X_OK):
            raise Failed(f"{var} does not name the reference's program")
    with lab.Lab(args.build) as stage:
        relay, nodes = start(stage, args, say)
        least = args.size + account.OVERHEAD_IPV6
        wire = account.Wire(stage, f"{least}-{least + account.COORDS}", 0)
        streams = {n: stage.start(f"stream-{n}", n, [
            stage.program("tests", "endnode", "sl_udpstream"), "--bind", interop.NODES[n][2], "--to", interop.NODES[o][2],
            "--rate", str(args.rate), "--size", str(args.size), "--seconds", str(seconds)], nice=NICE) for n, o in ("ab", "ba")}
        if lab.wait_for(lambda: all((p.last() or {}).get("state") == "running" for p in streams.values()), UP) is None:
            raise Failed("the streams did not start")
        say(f"{args.rate:,} payloads of {args.size} bytes a second each way for {args.minutes:g} min; the reference rekeys after "
            f"{args.their_rekey_s} s or {args.after_messages:,} frames, we after {args.rekey_s} s or 65,536\n")
        started = time.monotonic()
        due, before, links = started + args.every, {n: p.last() for n, p in streams.items()}, []
        while any(p.alive() for p in streams.values()):
            time.sleep(0.2)
            now = time.monotonic()
            if not relay.alive() or not all(p.alive() for p in nodes.values()) or now > started + seconds + 60:
                raise Failed("a program ended, or the streams do not")
            if now < due or not all(p.alive() for p in streams.values()):
                continue
            due += args.every
            last = {n: p.last() for n, p in streams.items()}
            links = [link.get("rekeys", 0) for link in (stage.show("links") or {}).get("links") or []]
            rates = ", ".join(f"{x.upper()}->{y.upper()} " + format(
                (last[y]["received"] - before[y]["received"]) / max(last[y]["t"] - before[y]["t"], 1e-3), ",.0f") + "/s"
                              for x, y in ("ab", "ba"))
            missing = {f"{x}{y}": last[x]["sent"] - last[y]["received"] for x, y in ("ab", "ba")}
            say(f"  {now - started:>6.0f} s  {rates}; missing {missing} (under way included); rekeys {links}")
            before = last
        ends = {n: p.final for n, p in streams.items()}
        if not all(ends.values()):
            raise Failed("a stream ended without its account")
        for _ in range(20):
            page = stage.show("drops") or {}
            if page.get("balanced"):
                break
            time.sleep(0.1)
        say()
        return judge(stage, ends, wire, page, links, args, seconds, say)
