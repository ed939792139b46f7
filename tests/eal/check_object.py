#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""An object file of the workers' may call only what is listed here, and holds no division and no system call instruction.

Usage: check_object.py LIBRARY MEMBER FUNCTION (one that must be in it; meson keeps the objects of a library in LIBRARY.p)
The list is of names whose code is known not to allocate, lock or call the system; whoever lengthens it has looked.
"""
import re
import subprocess
import sys

ALLOWED = {
    "sl_spread_take", "sl_spread_publish",  # spread.c, held to the same rules
    "sl_join",  # takes a buffer of a pool, copies
    "sl_parse_slow", "sl_parse_traversal", "sl_payload_coords", "sl_fib_lookup",
    "sl_aead_any_open_lead", "sl_aead_any_open_rest", "sl_aead_any_reseal",  # pure, tables only; run under guard by test_quiet
    "sl_parse_net4_bad",  # a table
    "rte_pktmbuf_free_bulk",   # back to the pool's cache of this lcore
    "rte_eth_fp_ops",          # table of the drivers' burst functions
    "rte_eth_call_tx_callbacks",  # called when a tool has hung itself on the queue, otherwise not
    "memcpy", "memset", "memcmp", "memmove",
    "__stack_chk_fail",
    "_GLOBAL_OFFSET_TABLE_",
}
# Only under sanitizers.
INSTRUMENTED = re.compile(r"^__(asan|ubsan|tsan|sanitizer)_|^rte_eth_(trace|rx|tx)_?call|^__gcov|^llvm_")


def run(*args):
    return subprocess.run(args, check=True, capture_output=True, text=True).stdout


def main():
    obj = f"{sys.argv[1]}.p/{sys.argv[2]}"
    symbols = [line.split()[-1] for line in run("nm", "-u", obj).splitlines() if line.strip()]
    sanitized = any(INSTRUMENTED.match(s) for s in symbols)
    bad = [s for s in symbols if s not in ALLOWED and not INSTRUMENTED.match(s)]
    code = run("objdump", "-d", "--no-show-raw-insn", obj)
    for line in code.splitlines():
        m = re.match(r"\s*[0-9a-f]+:\s+(\S+)", line)
        if m and (re.match(r"^i?div[bwlq]?$", m.group(1)) or m.group(1) in ("syscall", "sysenter", "int")):
            bad.append("instruction: " + line.strip())
    if sys.argv[3] not in run("nm", obj):
        bad.append(f"{sys.argv[3]} is not in this object")
    for b in bad:
        print("not allowed in a worker's loop:", b)
    print(f"{obj}: {len(symbols)} names called{', instrumented' if sanitized else ''}; {len(bad)} not allowed")
    return 1 if bad else 0


sys.exit(main())
