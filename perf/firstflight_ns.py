#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""First flight in namespaces: time from the start of a dial until both sides have the link, without and with it.

    node i (namespace a) --veth-- sl_wire (namespace r) --veth-- node i (namespace b)

perf/firstflight.c does the same on a virtual clock. Here are real sockets, real time and the kernel's own path; the kernel has no
netem, so a program of ours delays and loses. Many pairs dial at once, each on a path of its own. Root.
"""
import argparse
import json
import os
import statistics
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tools", "lib"))
import lab  # noqa: E402

ROWS = [(0, loss, rtt) for loss in (0, 1, 5, 20) for rtt in (20, 100, 300)] + [(250, 0, rtt) for rtt in (20, 100, 300)]
A, B = "203.0.113.1", "203.0.113.2"
PORTS = {"a": 20000, "b": 30000}
KEYS = {"a": 1000000, "b": 2000000}
out = sys.stdout


def run(stage, row, on, args):
    kbit, loss, rtt = row
    program = lambda name: stage.program("tests", "endnode", name)  # noqa: E731
    # Both ways of doing it meet the same luck, as far as packets come in the same order.
    wire = stage.start("wire", "r", [program("sl_wire"), "--loss", str(loss), "--delay-us", str(rtt * 500), "--kbit", str(kbit),
                                     "--seed", str(args.seed), "eth-a", "eth-b"], nice=-20)
    lab.wait_for(wire.last, 5)
    limit = 60 + args.stagger / 1000
    flight = ["--first-flight"] if on else []
    common = ["--nodes", str(args.pairs), "--seconds", str(int(limit))]
    b = stage.start("answers", "b", [program("sl_swarm"), *common, *flight, "--bind", f"{B}:{PORTS['b']}", "--key",
                                     str(KEYS["b"]), "--stay"], nice=-20)
    lab.wait_for(b.last, 10)
    a = stage.start("dials", "a", [program("sl_swarm"), *common, *flight, "--bind", f"{A}:{PORTS['a']}", "--key", str(KEYS["a"]),
                                   "--to", f"{B}:{PORTS['b']}", "--to-key", str(KEYS["b"]), "--stagger-ms",
                                   str(args.stagger), "--stay"], nice=-20)
    lab.wait_for(lambda: min((p.last() or {}).get("up", 0) for p in (a, b)) == args.pairs, limit)
    for p in (a, b, wire):
        p.stop(wait=20)
    if not a.final or not b.final:
        raise lab.LabError("a program ended without its account")
    took = [(max(x, y) - began) / 1e6 if x and y else float("inf")
            for began, x, y in zip(a.final["began_us"], a.final["up_us"], b.final["up_us"])]
    took.sort()
    w = wire.final or {}
    return {"median_s": statistics.median(took), "p95_s": took[len(took) * 95 // 100], "up": sum(t < 1e9 for t in took),
            "lost": w.get("lost", 0) + w.get("narrow_lost", 0)}


def main():
    global out
    parser = argparse.ArgumentParser(prog="tools/run perf firstflight_ns", description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=200, help="that dial, of each row (200)")
    parser.add_argument("--stagger", type=int, default=2000, help="milliseconds over which they begin (2000)")
    parser.add_argument("--seed", type=int, default=1, help="of the losses (1)")
    parser.add_argument("--rows", help="some only: their numbers from 1, with commas")
    parser.add_argument("-j", "--json", action="store_true", help="one JSON object at the end of standard output")
    args = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("firstflight_ns: needs root for network namespaces")
    if args.json:
        out = sys.stderr
    lab.install()
    rows = [ROWS[int(n) - 1] for n in args.rows.split(",")] if args.rows else ROWS
    print(f"{'kbit/s':>7} {'loss %':>7} {'RTT ms':>7}   {'median s':>15}   {'p95 s':>15}   {'up':>9}\n"
          f"{'':>23}   {'off':>7} {'on':>7}   {'off':>7} {'on':>7}   {'off':>4} {'on':>4}", file=out, flush=True)
    result = []
    with lab.Lab(os.path.join(ROOT, "build-release")) as stage:
        for n, addr in (("a", A), ("b", B)):
            lab.sh("ip", "-n", stage.ns(n), "addr", "add", f"{addr}/24", "dev", "eth0")
        for row in rows:
            off, on = run(stage, row, False, args), run(stage, row, True, args)
            result.append({"kbit_s": row[0], "loss_percent": row[1], "rtt_ms": row[2], "off": off, "on": on})
            print(f"{row[0] or '-':>7} {row[1]:>7} {row[2]:>7}   {off['median_s']:7.3f} {on['median_s']:7.3f}   {off['p95_s']:7.3f} "
                  f"{on['p95_s']:7.3f}   {off['up']:4} {on['up']:4}", file=out, flush=True)
    if args.json:
        print(json.dumps({"pairs": args.pairs, "rows": result}), flush=True)


if __name__ == "__main__":
    main()
