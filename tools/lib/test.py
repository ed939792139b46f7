#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Builds and runs the tests, and counts cases rather than programs.

Meson knows which programs belong to which suite. A program is asked for Google Test's XML; one that writes none may
print TAP or Google Test's lines; one that prints neither counts as one case by its exit status (77: skipped). A program
that ends badly without a failed case counts as one failure of its own, so a crash is never lost.
The last line is always "N passed, N failed, N skipped".
"""
import argparse
import concurrent.futures
import fnmatch
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as xml

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SUITES = ["unit", "eal", "sim", "smoke", "interop"]
SANITIZED = {"asan": ["unit", "eal"], "tsan": ["unit", "eal"]}
FOREIGN = {"arm64": (["unit", "sim"], ["qemu-aarch64"])}  # cross-compiled: suites, and what runs the programs
SIDE_BY_SIDE = {"unit", "sim"}  # the others use whole machines: lcores, namespaces, timing
FAILURE_LINES = 25
PATIENCE = 30  # seconds between two signs of life of one program

out = sys.stdout
say_lock = threading.Lock()


def say(text=""):
    with say_lock:
        print(text, file=out, flush=True)


class Case:
    def __init__(self, name, state, detail="", seconds=0.0):
        self.name, self.state, self.detail, self.seconds = name, state, detail.strip(), seconds


class Program:
    def __init__(self, build, suite, test):
        self.build, self.suite, self.name = build, suite, test["name"]
        self.cmd, self.timeout = test["cmd"], max(test["timeout"], 30)
        emulator = FOREIGN.get(build[len("build-"):], ([], []))[1]
        if emulator and self.cmd[0].startswith(os.path.join(ROOT, build) + os.sep):
            self.cmd, self.timeout = emulator + self.cmd, 10 * self.timeout
        self.env, self.workdir = test["env"], test["workdir"] or os.path.join(ROOT, build)
        self.parallel = test["is_parallel"]
        self.cases, self.seconds, self.log = [], 0.0, ""

    def count(self, state):
        return sum(1 for c in self.cases if c.state == state)


# --- reading what a program said -----------------------------------------------------------------------------------

def cases_of_xml(path):
    cases = []
    for node in xml.parse(path).getroot().iter("testcase"):
        name = f"{node.get('classname')}.{node.get('name')}"
        if node.get("status") == "notrun":
            continue
        failures = [f.get("message") or f.text or "" for f in node.findall("failure")]
        skipped = node.find("skipped")
        if failures:
            cases.append(Case(name, "failed", "\n".join(failures)))
        elif skipped is not None or node.get("result") == "skipped":
            reason = (skipped.get("message") or skipped.text or "") if skipped is not None else ""
            # Google Test puts file and line before the reason
            lines = [l for l in reason.strip().splitlines() if not re.match(r"^\S*:\d+$|^\(null\)|^unknown file", l)]
            cases.append(Case(name, "skipped", " ".join(lines)))
        else:
            cases.append(Case(name, "passed", seconds=float(node.get("time") or 0)))
    return cases


TAP = re.compile(r"^(not )?ok\b\s*(\d+)?\s*-?\s*(.*)$")
GTEST = re.compile(r"^\[\s*(OK|FAILED|SKIPPED)\s*\]\s+([^\s,]+\.[^\s,(]+)\s*(?:\(\d+ ms\))?(?:[:,]?\s*(.*))?$")
STATES = {"OK": "passed", "FAILED": "failed", "SKIPPED": "skipped"}


def cases_of_text(text):
    cases, notes, planned = [], [], None
    for line in text.splitlines():
        plan = re.match(r"^1\.\.(\d+)\s*(?:#\s*skip\S*\s*(.*))?$", line, re.I)
        if plan:
            planned = int(plan.group(1))
            if planned == 0:
                cases.append(Case("all", "skipped", plan.group(2) or ""))
                planned = None
            continue
        m = TAP.match(line)
        if m:
            name, _, directive = m.group(3).partition("#")
            directive = directive.strip()
            state = "failed" if m.group(1) else "passed"
            if re.match(r"skip|todo", directive, re.I):
                state = "skipped"
            reason = re.sub(r"^(skip\S*|todo)\s*:?\s*", "", directive, flags=re.I)
            detail = "\n".join(notes[-FAILURE_LINES:]) if state == "failed" else reason
            cases.append(Case(name.strip() or f"check {m.group(2) or len(cases) + 1}", state, detail))
            notes = []
            continue
        m = GTEST.match(line)
        if m and not any(c.name == m.group(2) for c in cases):
            cases.append(Case(m.group(2), STATES[m.group(1)], m.group(3) or ""))
            continue
        notes.append(line)
    if planned is not None and len([c for c in cases]) < planned:
        cases.append(Case("plan", "failed", f"{planned} checks planned, {len(cases)} reported"))
    return cases


def last_running(text):
    name = None
    for m in re.finditer(r"^\[ RUN      \] (\S+)|^\[\s*(?:OK|FAILED|SKIPPED)\s*\] (\S+)", text, re.M):
        name = m.group(1)
    return name


# --- running -------------------------------------------------------------------------------------------------------

def environment(program, gtest_filter, xml_path):
    env = dict(os.environ)
    env.update(program.env)
    env["GTEST_OUTPUT"] = "xml:" + xml_path
    env["GTEST_COLOR"] = "no"
    env.setdefault("SLUICE_BUILD", os.path.join(ROOT, program.build))
    env.setdefault("SLUICE_ROOT", ROOT)
    env.setdefault("ASAN_OPTIONS", "abort_on_error=0:detect_stack_use_after_return=1")
    env.setdefault("UBSAN_OPTIONS", "print_stacktrace=1:halt_on_error=1")
    if gtest_filter:
        env["GTEST_FILTER"] = gtest_filter
    if "XDG_RUNTIME_DIR" not in env and os.geteuid() != 0:
        env["XDG_RUNTIME_DIR"] = tempfile.gettempdir()
    return env


def wait(child, program, start):
    """Its status; a word on standard error now and then, so that nobody takes a long program for a hung one."""
    while True:
        left = start + program.timeout - time.monotonic()
        try:
            return child.wait(max(min(left, PATIENCE), 0))
        except subprocess.TimeoutExpired:
            if left <= PATIENCE:
                raise
            print(f"  {program.suite:8}{program.name:28} runs for {time.monotonic() - start:.0f} s, at most {program.timeout}",
                  file=sys.stderr, flush=True)


def run(program, gtest_filter):
    logs = os.path.join(ROOT, program.build, "test-logs")
    os.makedirs(logs, exist_ok=True)
    base = os.path.join(logs, f"{program.suite}-{program.name}".replace("/", "_").replace(" ", "_"))
    program.log, xml_path = base + ".log", base + ".xml"
    if os.path.exists(xml_path):
        os.unlink(xml_path)
    start = time.monotonic()
    timed_out = False
    with open(program.log, "wb") as log:
        try:
            child = subprocess.Popen(program.cmd, cwd=program.workdir, stdin=subprocess.DEVNULL, stdout=log,
                                     stderr=subprocess.STDOUT, env=environment(program, gtest_filter, xml_path),
                                     start_new_session=True)
        except OSError as e:
            program.cases = [Case("start", "failed", str(e))]
            return program
        try:
            status = wait(child, program, start)
        except subprocess.TimeoutExpired:
            timed_out = True
            # Scripts clean up after themselves on TERM; what does not listen is killed with all it started.
            for sig, grace in ((signal.SIGTERM, 10), (signal.SIGKILL, 10)):
                try:
                    os.killpg(child.pid, sig)
                    child.wait(grace)
                    break
                except (ProcessLookupError, subprocess.TimeoutExpired):
                    continue
            status = child.poll()
    program.seconds = time.monotonic() - start
    with open(program.log, errors="replace") as f:
        text = f.read()
    tail = "\n".join(text.splitlines()[-FAILURE_LINES:])
    try:
        program.cases = cases_of_xml(xml_path) if os.path.exists(xml_path) else cases_of_text(text)
    except xml.ParseError:
        program.cases = cases_of_text(text)
    where = last_running(text)
    if timed_out:
        program.cases.append(Case(where or "timeout", "failed", f"no end after {program.timeout} s\n{tail}"))
    elif status == 77 and not program.cases:
        program.cases = [Case(program.name, "skipped", (tail.splitlines() or [""])[-1])]
    elif status != 0 and not program.count("failed"):
        what = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
        program.cases.append(Case(where or "exit", "failed", f"{what}\n{tail}"))
    elif status == 0 and not program.cases and not gtest_filter:
        program.cases = [Case(program.name, "passed")]
    return program


def report(program):
    counts = [f"{program.count(s)} {s}" for s in ("passed", "failed", "skipped") if program.count(s)]
    if not program.cases:
        return
    lines = [f"  {program.suite:8}{program.name:28} {', '.join(counts):32} {program.seconds:7.1f} s"]
    for case in program.cases:
        if case.state == "skipped":
            lines.append(f"            skipped {case.name}: {case.detail or 'no reason given'}")
        elif case.state == "failed":
            lines.append(f"            FAILED  {case.name}")
            shown = case.detail.splitlines()[:FAILURE_LINES]
            lines.extend("              | " + l for l in shown)
    say("\n".join(lines))


# --- planning ------------------------------------------------------------------------------------------------------

def introspect(build, what):
    text = subprocess.run(["meson", "introspect", what, os.path.join(ROOT, build)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, check=True).stdout
    return json.loads(text)


def prepare(name, suites, pattern):
    """Configures and builds what the suites need; their programs in order."""
    door = os.path.join(ROOT, "tools", "run")
    build = "build-" + name
    if subprocess.run([door, "build", name, "--configure"], stdin=subprocess.DEVNULL, stdout=sys.stderr).returncode:
        return None
    files = {t["id"]: t["filename"] for t in introspect(build, "--targets")}
    programs, needed = [], set()
    for test in introspect(build, "--tests"):
        for suite in [s.split(":")[-1] for s in test["suite"]]:
            if suite not in suites or (pattern and not fnmatch.fnmatch(test["name"], pattern)):
                continue
            programs.append(Program(build, suite, test))
            for target in test["depends"]:
                needed.update(files.get(target, []))
            needed.add(test["cmd"][0])
    base = os.path.join(ROOT, build) + os.sep
    targets = sorted(f[len(base):] for f in needed if f.startswith(base))
    # The daemon and the command line are what smoke tests and people run: always built whole in release.
    if name == "release" and not pattern:
        targets = []
    elif not targets:
        return programs
    if subprocess.run([door, "build", name] + targets, stdin=subprocess.DEVNULL, stdout=sys.stderr).returncode:
        return None
    programs.sort(key=lambda p: suites.index(p.suite))
    return programs


def run_all(programs, gtest_filter):
    for suite in dict.fromkeys(p.suite for p in programs):
        mine = [p for p in programs if p.suite == suite]
        together = [p for p in mine if p.parallel and suite in SIDE_BY_SIDE]
        with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
            for done in concurrent.futures.as_completed([pool.submit(run, p, gtest_filter) for p in together]):
                report(done.result())
        for program in mine:
            if program not in together:
                report(run(program, gtest_filter))


def rerun(program, case):
    kind = "" if program.build == "build-release" else program.build[len("build-"):] + " "
    line = f"tools/run test {kind}{program.suite if not kind else ''}".rstrip()
    line += f" --filter {shlex.quote(program.name)}"
    if re.fullmatch(r"\w+\.\w+", case.name) and program.suite not in ("smoke", "interop"):
        line += f" --gtest {case.name}"
    return line


def summary(programs, broken, as_json, started):
    failed = [(p, c) for p in programs for c in p.cases if c.state == "failed"]
    skipped = [(p, c) for p in programs for c in p.cases if c.state == "skipped"]
    passed = sum(p.count("passed") for p in programs)
    if skipped:
        say("\nSkipped:")
        for p, c in skipped:
            say(f"  {p.suite}/{p.name} {c.name}: {c.detail or 'no reason given'}")
    if failed or broken:
        say("\nFailed:")
        for what in broken:
            say(f"  {what}")
        for p, c in failed:
            say(f"  {p.suite}/{p.name} {c.name}\n      again: {rerun(p, c)}\n      log:   {os.path.relpath(p.log, ROOT)}")
    nothing = not passed and not failed and not broken
    say(f"\n{len(programs)} programs, {time.monotonic() - started:.0f} s" + (", no test ran" if nothing else ""))
    say(f"{passed} passed, {len(failed) + len(broken)} failed, {len(skipped)} skipped")
    if as_json:
        print(json.dumps({
            "passed": passed, "failed": len(failed) + len(broken), "skipped": len(skipped),
            "failures": [f"{p.suite}/{p.name} {c.name}" for p, c in failed] + broken,
            "seconds": round(time.monotonic() - started, 1)}), flush=True)
    return 1 if failed or broken or not (passed or skipped) else 0


def main():
    global out
    parser = argparse.ArgumentParser(prog="tools/run test")
    parser.add_argument("suite", nargs="*", help="unit eal sim smoke interop asan tsan arm64; none = all")
    parser.add_argument("--debian", metavar="VERSION", help="run unit and eal in a Debian root of this version (12, 13)")
    parser.add_argument("--arch", metavar="ARCH", choices=["arm64"],
                        help="cross-compile in a Debian root of its own and run unit and sim by qemu-user (arm64)")
    parser.add_argument("--filter", metavar="PATTERN", help="only test programs of this name (shell pattern)")
    parser.add_argument("--gtest", metavar="PATTERN", help="only these cases (Google Test filter)")
    parser.add_argument("--fast", action="store_true", help="without the sanitizer pass of the unit suite")
    parser.add_argument("-j", "--json", action="store_true", help="one JSON object at the end of standard output")
    args = parser.parse_args()
    if args.json:
        out = sys.stderr
    if args.debian or args.arch:
        script = os.path.join(ROOT, "tools", "lib", "debian-root")
        os.execv(script, [script, args.debian or "12"] + (["--arch", args.arch] if args.arch else []) + args.suite)

    unknown = [s for s in args.suite if s not in SUITES and s not in SANITIZED and s not in FOREIGN]
    if unknown:
        parser.error(f"no such suite: {' '.join(unknown)} ({' '.join(SUITES + list(SANITIZED))})")
    plan = []
    plain = [s for s in SUITES if s in args.suite] if args.suite else SUITES
    if plain and not any(s in FOREIGN for s in args.suite):
        plan.append(("release", plain))
    for name in SANITIZED:
        if name in args.suite:
            plan.append((name, SANITIZED[name]))
    for name in FOREIGN:
        if name in args.suite:
            plan.append((name, plain if args.suite != [name] else FOREIGN[name][0]))
    if not args.suite and not args.fast and not args.filter:
        plan.append(("asan", ["unit"]))

    started = time.monotonic()
    programs, broken = [], []
    for name, suites in plan:
        mine = prepare(name, suites, args.filter)
        if mine is None:
            broken.append(f"build-{name} does not build")
            continue
        say(f"\n{name}: {' '.join(suites)}")
        run_all(mine, args.gtest)
        programs += mine
    sys.exit(summary(programs, broken, args.json, started))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
