#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Cold start in real time: a real sluiced with a thousand configured peers, a thousand end nodes in one process on the other end
of a veth pair, until every link is up on both sides. Root."""
import argparse
import json
import os
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tools", "lib"))
import lab  # noqa: E402

PORT, KEY = 20000, 5000000
out = sys.stdout


def config(stage, keys):
    """The lab's relay, dialling all of them."""
    path = stage.relay_config(extra_node=f"  limits:\n    max_peers: {len(keys) + 24}\n",
                              extra_dataplane="  idle_sleep_us: 20\n")
    with open(path, encoding="utf-8") as f:
        text = f.read()
    peers = "".join(f"\n  - npub: \"{npub}\"\n    addresses:\n      - transport: udp\n        addr: \"{lab.ADDR[4]['a']}:{PORT + i}\""
                    for i, (_, npub) in enumerate(keys))
    with open(path, "w", encoding="utf-8") as f:
        f.write(text.replace("peers: []\n", f"peers:{peers}\n"))
    return path


def cpu_s(pid):
    """CPU seconds of each thread of a process, by its name."""
    seconds = {}
    for t in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{t}/comm", encoding="utf-8") as f:
            name = f.read().strip()
        with open(f"/proc/{pid}/task/{t}/schedstat", encoding="utf-8") as f:
            seconds[name] = int(f.read().split()[0]) / 1e9
    return seconds


def run(args):
    with lab.Lab(os.path.join(ROOT, "build-release")) as stage:
        swarm = [stage.program("tests", "endnode", "sl_swarm"), "--nodes", str(args.peers), "--key", str(KEY)]
        keys = [line.split() for line in lab.sh(*swarm, "--keys").splitlines()]
        nodes = stage.start("swarm", "a", [*swarm, "--bind", f"{lab.ADDR[4]['a']}:{PORT}", "--seconds", "120", "--stay"], nice=-20)
        if lab.wait_for(nodes.last, 30) is None:
            raise lab.LabError("the end nodes did not start")
        path = config(stage, keys)
        started = time.monotonic()
        relay = stage.relay_of(path, "sluiced", nice=-20)
        took = lab.wait_for(lambda: not relay.alive() or (nodes.last() or {}).get("up") == args.peers, 60, every=0.02)
        if took is None or not relay.alive():
            raise lab.LabError("not all links came up: " + " | ".join(relay.log(5)) + json.dumps(nodes.last()))
        pid = next(int(p) for p in lab.sh("pgrep", "-f", f"sluiced -c {path}").split()
                   if os.readlink(f"/proc/{p}/exe").endswith("sluiced"))
        cpu = cpu_s(pid)
        status, counters = stage.show("status") or {}, (stage.show("counters") or {}).get("link") or {}
        running = next((line for line in relay.log(5000) if " running: " in line), "")
        nodes.stop()
        ups = sorted(nodes.final["up_us"])
        # Monotonic clocks of both programs are one.
        first, last = ups[0] / 1e6 - started, ups[-1] / 1e6 - started
        result = {"peers": args.peers, "up": status.get("peer_count"), "first_link_s": round(first, 3), "all_links_s": round(last, 3),
                  "dialling_s": round(last - first, 3), "control_cpu_s": round(cpu.get("sluiced", 0), 3),
                  "msg1_tx": counters.get("msg1_tx"), "msg1_resent": counters.get("msg1_resent"),
                  "longest_turn_us": status.get("longest_turn_us"), "longest_turn_cpu_us": status.get("longest_turn_cpu_us"),
                  "running": running[:24]}
        relay.stop()
    print(f"{args.peers} peers: the first link {first:.2f} s after the daemon was started, all of them after {last:.2f} s "
          f"({last - first:.2f} s later); control used {result['control_cpu_s']:.2f} s of CPU since its start, its longest turn took "
          f"{result['longest_turn_cpu_us']} us; {result['msg1_resent']} of {result['msg1_tx']} msg1 sent again", file=out, flush=True)
    return result


def main():
    global out
    parser = argparse.ArgumentParser(prog="tools/run perf coldstart", description=__doc__.split(".", 1)[0])
    parser.add_argument("--peers", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("-j", "--json", action="store_true", help="one JSON object at the end of standard output")
    args = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("coldstart: needs root for network namespaces")
    if args.json:
        out = sys.stderr
    lab.install()
    runs = [run(args) for _ in range(args.runs)]
    if args.json:
        print(json.dumps({"runs": runs}), flush=True)


if __name__ == "__main__":
    main()
