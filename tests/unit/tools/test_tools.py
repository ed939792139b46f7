#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The tools that judge the rest: does the test runner count what was said, does check-layers see each kind of breach."""
import os
import subprocess
import sys
import tempfile

TOOLS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "tools")
sys.path.insert(0, os.path.join(TOOLS, "lib"))
sys.dont_write_bytecode = True
import test as runner  # noqa: E402

count = failures = 0


def ok(good, text, *why):
    global count, failures
    count += 1
    failures += not good
    if not good:
        print("#", *why)
    print(f"{'ok' if good else 'not ok'} {count} - {text}", flush=True)


def states(cases):
    return [(c.name, c.state, c.detail) for c in cases]


def reading():
    got = states(runner.cases_of_text(
        "ok 1 - one\n# because\nnot ok 2 - two\nok 3 - three # SKIP needs root\nok 4\nokay, no check\n1..4\n"))
    ok(got == [("one", "passed", ""), ("two", "failed", "# because"), ("three", "skipped", "needs root"),
               ("check 4", "passed", "")], "TAP: passed, failed with its notes, skipped with its reason", got)
    got = states(runner.cases_of_text("1..3\nok 1 - one\n"))
    ok([g[1] for g in got] == ["passed", "failed"], "TAP: fewer checks than planned is a failure", got)
    got = states(runner.cases_of_text("1..0 # SKIP no network\n"))
    ok(got == [("all", "skipped", "no network")], "TAP: a whole program skipped", got)
    got = states(runner.cases_of_text("[ RUN      ] a.b\n[       OK ] a.b (3 ms)\n[ RUN      ] a.c\n[  FAILED  ] a.c (0 ms)\n"
                                      "[  SKIPPED ] a.d (0 ms)\n[  FAILED  ] a.c\n 1 FAILED TEST\n"))
    ok([g[:2] for g in got] == [("a.b", "passed"), ("a.c", "failed"), ("a.d", "skipped")],
       "Google Test's lines, each case once", got)
    with tempfile.NamedTemporaryFile("w", suffix=".xml") as f:
        f.write("""<?xml version="1.0"?><testsuites><testsuite name="s">
<testcase name="p" status="run" result="completed" time="0.1" classname="s"/>
<testcase name="f" status="run" result="completed" time="0" classname="s"><failure message="x.c:3&#x0A;1 vs 2"/></testcase>
<testcase name="k" status="run" result="skipped" time="0" classname="s"><skipped message="x.cc:9&#x0A;no CPU for it"/></testcase>
<testcase name="n" status="notrun" result="suppressed" time="0" classname="s"/>
</testsuite></testsuites>""")
        f.flush()
        got = states(runner.cases_of_xml(f.name))
    ok(got == [("s.p", "passed", ""), ("s.f", "failed", "x.c:3\n1 vs 2"), ("s.k", "skipped", "no CPU for it")],
       "Google Test's XML", got)


def program(script, timeout=30):
    p = runner.Program("build", "unit", {"name": "p", "cmd": ["/bin/sh", "-c", script], "timeout": timeout, "env": {},
                                         "workdir": "/", "is_parallel": True})
    p.timeout = timeout
    return p


def running():
    root = runner.ROOT
    with tempfile.TemporaryDirectory() as folder:
        runner.ROOT = folder
        for script, want, text in (
                ("exit 0", ["passed"], "no output and status 0 counts as one"),
                ("exit 3", ["failed"], "a bad status without a failed case is a failure"),
                ("echo 'ok 1 - a'; kill -SEGV $$", ["passed", "failed"], "a crash after a passed case is a failure"),
                ("echo not today; exit 77", ["skipped"], "status 77 is a skip"),
                ("echo 'not ok 1 - a'; exit 1", ["failed"], "a failed case is counted once"),
                ("echo '[ RUN      ] s.c'; sleep 20", ["failed"], "overrunning its time is a failure")):
            p = runner.run(program(script, 1 if "sleep" in script else 30), None)
            ok([c.state for c in p.cases] == want, f"runner: {text}", states(p.cases))
        ok(p.cases[0].name == "s.c", "runner: and names the case that was running", states(p.cases))
    runner.ROOT = root


BREACHES = {
    "lib/crypto/a.c": ('#include "../overlay/sl_wire.h"\n', "crypto includes"),
    "lib/overlay/b.c": ("#include <rte_mbuf.h>\n", "DPDK"),
    "lib/overlay/c.c": ('void f(void) { printf("x"); }\n', "never print"),
    "lib/routing/d.c": ("int f(void) { return socket(1, 2, 3); }\n", "socket call"),
    "lib/routing/e.c": ("long f(void) { return time(0); }\n", "clock"),
    "lib/pipeline/f.c": ('#include "../overlay/sl_link.h"\n', "may see only"),
    "lib/pipeline/g.c": ('#include "../routing/sl_router.h"\n', "may see only"),
    "lib/pipeline/h.c": ("void f(void) { exit(1); }\n", "never print or exit"),
    "app/sluicectl/i.c": ('#include "../../lib/pipeline/sl_dataplane.h"\n', "sluicectl"),
    "app/sluiced/j.c": ('#include "../../lib/overlay/private.h"\n', "private"),
    "lib/crypto/meson.build": ("dependencies: [overlay_dep, dpdk]\n", "crypto depends on"),
    "tests/k.py": ('x = "/ho' 'me/somebody/x"\n', "one machine"),
}
FINE = {
    "lib/overlay/sl_wire.h": '#include "../crypto/sl_hash.h"\n', "lib/overlay/sl_link.h": "", "lib/overlay/private.h": "",
    "lib/crypto/sl_hash.h": "", "lib/routing/sl_router.h": "", "lib/pipeline/sl_dataplane.h": "#include <rte_mbuf.h>\n",
    "lib/pipeline/ok.c": '#include "../overlay/sl_wire.h"\n/* exit(1), printf("") */ const char *s = "exit(1)";\n',
    "app/sluiced/ok.c": '#include "../../lib/overlay/sl_link.h"\nvoid f(void) { exit(1); }\n',
}


def layers():
    with tempfile.TemporaryDirectory() as tree:
        def check():
            return subprocess.run([sys.executable, os.path.join(TOOLS, "check-layers"), tree], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True, check=False)

        def write(path, text):
            os.makedirs(os.path.join(tree, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(tree, path), "w", encoding="utf-8") as f:
                f.write("# SPDX-License-Identifier: x\n" if path.endswith((".build", ".py")) else
                        "/* SPDX-License-Identifier: x */\n")
                f.write(text)

        for path, text in FINE.items():
            write(path, text)
        r = check()
        ok(r.returncode == 0 and not r.stdout, "check-layers: a tree in order passes", r.stdout)
        for path, (text, message) in BREACHES.items():
            write(path, text)
            r = check()
            ok(r.returncode == 1 and f"{path}:2: " in r.stdout and message in r.stdout, f"check-layers: {message} ({path})",
               r.stdout)
            os.unlink(os.path.join(tree, path))


def main():
    reading()
    running()
    layers()
    print(f"1..{count}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
