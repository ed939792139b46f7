# SPDX-License-Identifier: BSD-3-Clause
"""tools/run soak --peers N: what a relay with many peers comes to hold over a long time.

Two end nodes exchange payloads through the relay; beside the first stand N more nodes (sl_swarm) that the relay dials, and
that are rekeyed all the time. A tenth of them is taken away every 80 seconds, in turns with a goodbye and without, and
started again 40 seconds later, when the relay holds the silent ones dead. Every minute the relay's memory, descriptors,
sessions and buffers are written down; at the end the mean of the last quarter is held against that of the second one.
"""
import os
import signal
import time

import lab

PORT, COMING_PORT, KEY, COMING_KEY = 20000, 40000, 5000000, 6000000
AWAY = 40      # seconds between two changes of those who come and go
SAMPLE = 60    # seconds between two rows
SETTLED = 20   # minutes: until then buffers and tables are touched for the first time, and memory says nothing
GROWTH = 0.01  # of what there was, by which memory may differ
UP = 60


class Failed(Exception):
    pass


def config(stage, args, keys):
    """The lab's relay with all of the crowd as peers."""
    path = stage.relay_config(
        frames=args.frames,
        extra_node=f"  limits:\n    max_peers: {args.peers + 24}\n  rekey:\n    after_secs: {args.rekey_s}\n",
        extra_dataplane="  idle_sleep_us: 50\n")
    with open(path, encoding="utf-8") as f:
        text = f.read()
    peers = "".join(f"\n  - npub: \"{npub}\"\n    addresses:\n      - transport: udp\n        addr: "
                    f"\"{lab.ADDR[4]['a']}:{port}\"" for port, npub in keys)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text.replace("peers: []\n", f"peers:{peers}\n"))
    return path


def pid_of(path):
    """sluiced itself, not the programs that started it."""
    for p in os.listdir("/proc"):
        try:
            if p.isdigit() and os.readlink(f"/proc/{p}/exe").endswith("/sluiced"):
                with open(f"/proc/{p}/cmdline", "rb") as f:
                    if path.encode() in f.read().split(b"\0"):
                        return int(p)
        except OSError:
            continue
    raise Failed("sluiced's process is not to be found")


def memory_kib(pid):
    """What is this process's alone (no shared library of others), and the heap's part of it."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
        rows = dict(line.split(":", 1) for line in f if line.count(":") == 1)
    return sum(int(rows[k].split()[0]) for k in ("Private_Clean", "Private_Dirty"))


def sample(stage, pid, t):
    s = stage.show("status")
    if not s:
        raise Failed("the relay does not answer")
    return {"s": round(t), "private_kib": memory_kib(pid), "files": len(os.listdir(f"/proc/{pid}/fd")),
            "peers": s["peer_count"], "sessions": s["session_count"], "buffers_in_use": s["buffers"] - s["buffers_free"],
            "threads": len(os.listdir(f"/proc/{pid}/task")), "longest_turn_cpu_us": s["longest_turn_cpu_us"]}


class ComingAndGoing:
    """A tenth of the crowd: up for AWAY seconds, away as long, in turns with a goodbye and without."""

    def __init__(self, stage, command):
        self.stage, self.command, self.turns, self.due = stage, command, 0, time.monotonic() + AWAY
        self.here = self._start()

    def _start(self):
        return self.stage.start(f"coming-{self.turns}", "a", self.command)

    def step(self, now):
        if now < self.due:
            return
        self.due += AWAY
        self.turns += 1
        if self.here:
            self.here.stop(signal.SIGTERM if self.turns % 4 == 1 else signal.SIGKILL)
            self.stage.processes.remove(self.here)
            self.here = None
        else:
            self.here = self._start()


def quarter(rows, i, key):
    part = rows[len(rows) * i // 4:len(rows) * (i + 1) // 4] or rows[-1:]
    return sum(r[key] for r in part) / len(part)


def judge(rows, idle, after, finals, settled, say):
    result = {"rows": rows, "idle": idle, "after": after, "growth": {}, "traffic": {}, "memory_judged": settled}
    whole = True
    for key, slack in (("private_kib", 256), ("files", 1), ("threads", 0)):
        early, late = quarter(rows, 1, key), quarter(rows, 3, key)
        result["growth"][key] = {"second_quarter": round(early, 1), "last_quarter": round(late, 1)}
        if key != "private_kib" or settled:
            whole &= late - early <= max(slack, early * GROWTH if key == "private_kib" else 0)
        say(f"  {key:16} second quarter {early:,.1f}, last quarter {late:,.1f}")
    back = after["buffers_in_use"] <= idle["buffers_in_use"]
    say(f"  buffers in use: {idle['buffers_in_use']} before, {after['buffers_in_use']} after; files {idle['files']} before, "
        f"{after['files']} after")
    for n, f in finals.items():
        result["traffic"][n] = {k: f[k] for k in ("sent", "received", "duplicated", "corrupted", "links_lost")}
    sent, received = (sum(f[k] for f in finals.values()) for k in ("sent", "received"))
    clean = not any(f[k] for f in finals.values() for k in ("duplicated", "corrupted", "links_lost"))
    say(f"  payloads: {sent:,} sent, {received:,} received; duplicated, corrupted, links lost: "
        f"{'none' if clean else 'see -j'}")
    result["whole"] = bool(whole and back and clean)
    well = "ALL IS WELL: " + ("nothing grew, all buffers came back" if settled else
                              f"all buffers came back (memory is judged from {SETTLED} minutes on)")
    say(f"\n{well if result['whole'] else 'NOT WELL, see above'}")
    return result


def run(args, say):
    seconds, coming = args.minutes * 60, max(args.peers // 10, 1)
    with lab.Lab(args.build) as stage:
        crowd = [stage.program("tests", "endnode", "sl_swarm"), "--nodes", str(args.peers - coming), "--key", str(KEY)]
        comers = [crowd[0], "--nodes", str(coming), "--key", str(COMING_KEY)]
        keys = []
        for command, port in ((crowd, PORT), (comers, COMING_PORT)):
            keys += [(port + i, line.split()[1]) for i, line in enumerate(lab.sh(*command, "--keys").splitlines())]
        life = ["--seconds", str(int(seconds) + 600), "--stay"]
        path = config(stage, args, keys)
        relay = stage.relay_of(path, "sluiced", nice=-10)
        if lab.wait_for(lambda: not relay.alive() or stage.show("status"), UP) is None or not relay.alive():
            raise Failed("sluiced did not start: " + " | ".join(relay.log(5)))
        pid = pid_of(path)
        idle = sample(stage, pid, 0)
        stage.start("crowd", "a", [*crowd, "--bind", f"{lab.ADDR[4]['a']}:{PORT}", *life])
        changing = ComingAndGoing(stage, [*comers, "--bind", f"{lab.ADDR[4]['a']}:{COMING_PORT}", *life])
        every_cpu = sorted(os.sched_getaffinity(0))
        nodes = {n: stage.end_node(n, seconds=seconds, rate=args.rate, size=args.size, on=every_cpu) for n in "ab"}
        if lab.wait_for(lambda: (stage.show("status") or {}).get("peer_count", 0) >= args.peers - coming, UP, 1) is None:
            raise Failed("the crowd did not get its links")
        say(f"{args.peers} peers and two end nodes; {args.rate:,} payloads of {args.size} bytes a second each way for "
            f"{args.minutes:g} min; rekeys every {args.rekey_s} s; {coming} peers come and go every {AWAY} s\n\n"
            f"{'s':>6} {'private KiB':>12} {'files':>6} {'peers':>6} {'sessions':>9} {'buffers in use':>15} "
            f"{'longest turn us':>16}")
        started, rows = time.monotonic(), []
        due = started + SAMPLE
        while any(p.alive() for p in nodes.values()):
            time.sleep(0.2)
            now = time.monotonic()
            if not relay.alive():
                raise Failed("sluiced ended: " + " | ".join(relay.log(5)))
            if now > started + seconds + 120:
                raise Failed("the end nodes do not end")
            changing.step(now)
            if now >= due:
                due += SAMPLE
                rows.append(sample(stage, pid, now - started))
                r = rows[-1]
                say(f"{r['s']:>6} {r['private_kib']:>12,} {r['files']:>6} {r['peers']:>6} {r['sessions']:>9} "
                    f"{r['buffers_in_use']:>15,} {r['longest_turn_cpu_us']:>16,}")
        finals = {n: p.final for n, p in nodes.items()}
        if not all(finals.values()) or len(rows) < 4:
            raise Failed("an end node ended without its account, or the run was too short to judge (4 minutes)")
        for p in list(stage.processes):
            if p is not relay:
                p.stop()
        say()
        # Those that went without a goodbye are held dead after 30 s; then nobody is left and every buffer is back.
        lab.wait_for(lambda: (stage.show("status") or {}).get("session_count") == 0, 90, 1)
        after = sample(stage, pid, time.monotonic() - started)
        result = judge(rows, idle, after, finals, args.minutes >= SETTLED, say)
        result.update(peers=args.peers, minutes=args.minutes, rate=args.rate, rekey_s=args.rekey_s, changes=changing.turns)
        return result
