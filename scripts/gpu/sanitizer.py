"""Runs the small tests under compute-sanitizer, which finds accesses outside of memory, and races in shared memory."""
import re
import time

from conformance import LONGEST, SKIPPED, cases, environment, finish, only, ran
from machine import output_of, say, toolkit

FOUND = 86  # exit status of the tool if it has found something
PROGRAM = "test_cuda_small"
SHARES = {"memcheck": 0.4, "racecheck": 1.0}  # share of the remaining time that the tool gets; the tools run in this order


def summary(tool, output):
    """Returns the counts of the tool: errors; for racecheck hazards, and how many of them are errors and warnings."""
    if tool == "racecheck":
        match = re.search(r"RACECHECK SUMMARY: (\d+) hazards? displayed \((\d+) errors?, (\d+) warnings?\)", output)
        return dict(zip(("hazards", "errors", "warnings"), map(int, match.groups()))) if match else {}
    match = re.search(r"ERROR SUMMARY: (\d+) errors?", output)
    return {"errors": int(match.group(1))} if match else {}


def run_case(sanitizer, tool, program, name, env, deadline):
    start = time.monotonic()
    command = [sanitizer, "--tool", tool, "--error-exitcode", str(FOUND), "--print-limit", "10", str(program), only(name)]
    code, output = finish(command, env, deadline)
    counted = summary(tool, output)
    status = {None: "unfinished", 0: "clean" if counted and ran(output) else "failed", FOUND: "found", SKIPPED: "skipped"}.get(code, "failed")
    record = {"tool": tool, "case": name, "status": status, "seconds": round(time.monotonic() - start, 2), **counted}
    if status != "clean":
        record["exit_status"] = code
        record["output"] = output[:LONGEST] + ("\n[...]\n" + output[-LONGEST:] if len(output) > LONGEST else "")
    say(f"{status:10} {record['seconds']:7.2f} s  {tool}: {name}")
    return record


def run(bundle, programs, deadline):
    sanitizer = toolkit("compute-sanitizer")
    if sanitizer is None:
        say("There is no compute-sanitizer here.")
        return {"ok": False, "version": None, "cases": []}
    env, program, results = environment(bundle, programs, device=True), programs / PROGRAM, []
    names = cases(program, env)
    for tool, share in SHARES.items():
        end = time.monotonic() + share * (deadline - time.monotonic())
        results += [run_case(sanitizer, tool, program, name, env, end) for name in names]
    version = (output_of(sanitizer, "--version") or "").strip().splitlines()
    return {"ok": bool(results) and all(result["status"] in ("clean", "skipped") for result in results),
            "version": version[-1] if version else None, "cases": results}
