"""Runs the tests of the CUDA backend, each test case in a process of its own. So a test case that crashes the device, or does not end, does
not disturb the other test cases."""
import json
import os
import re
import signal
import subprocess
import time

from machine import say, with_toolkit

SKIPPED = 77  # exit status of tests/test_main.cpp for a skipped test
LONGEST = 3000  # characters of a failure's output that are kept


def environment(bundle, programs, device):
    """Returns the environment by which tests find their files (tests/engine/models.hpp, tests/cuda/backend/rig.hpp)."""
    # The emulator has a megabyte of thread-local memory. The C++ runtime that it contains needs this memory in the static TLS block.
    tunables = {} if device else {"GLIBC_TUNABLES": "glibc.rtld.optional_static_tls=4194304"}
    return {**with_toolkit(os.environ), **tunables, "TESSERA_TEST_SOURCE": str(bundle / "data/source"),
            "TESSERA_TEST_SHARED": str(bundle / "data/shared"), "TESSERA_TEST_CUDA": "device" if device else "emulator",
            "TESSERA_TEST_EMULATOR": str(programs / "libtessera_cuda_emulator.so")}


def cases(program, env):
    """Returns the names of the test cases. Versions 2 and 3 of Catch2 have different options for this; the exit status of 2 is the
    number of test cases."""
    for words in (["--list-test-names-only"], ["--list-tests", "--verbosity", "quiet"]):
        done = subprocess.run([program, *words], env=env, capture_output=True, text=True, timeout=60)
        names = [line.strip() for line in done.stdout.splitlines() if line.strip()]
        if names and not done.stderr.strip():
            return names
    return []


def finish(command, env, deadline, gently=False):
    """Runs a command. Returns its exit status and its output. The status is None if the command did not end in time and was killed. With
    `gently`, the command gets SIGINT first, and 15 seconds to print its results."""
    left = deadline - time.monotonic()
    if left <= 1:
        return None, ""
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               errors="replace", start_new_session=True)
    try:
        return communicate(process, left)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGINT if gently else signal.SIGKILL)
    try:
        _, output = communicate(process, 15)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        _, output = communicate(process, 15)
    return None, output


def communicate(process, seconds):
    output, _ = process.communicate(timeout=seconds)
    return process.returncode, output


def only(name):
    """Returns the argument with which a test program runs only this test case."""
    return re.sub(r'([\\,\["])', r"\\\1", name)


def ran(output):
    """Returns whether a test case ran. The exit status does not show this: it is 0 also if no test case has the name."""
    return re.search(r"\bin 1 test case\b|^test cases: +1\b", output, re.MULTILINE) is not None


def verdict(output):
    """Returns the status of a test case whose program exited with 0. A test case that is only for the emulator checks nothing on a
    device, and counts as skipped."""
    return "failed" if not ran(output) else "skipped" if "assertions: - none -" in output else "passed"


def run_case(program, name, env, deadline):
    """Runs one test case. Returns {"program", "case", "status", "seconds"} and, unless it passed, "exit_status" and "output"."""
    start = time.monotonic()
    code, output = finish([str(program), only(name)], env, deadline)
    status = {None: "unfinished", 0: verdict(output), SKIPPED: "skipped"}.get(code, "failed")
    record = {"program": program.name, "case": name, "status": status, "seconds": round(time.monotonic() - start, 2)}
    if status != "passed":
        record["exit_status"] = code
        record["output"] = output[-LONGEST:]
    say(f"{status:10} {record['seconds']:7.2f} s  {program.name}: {name}")
    return record


def run_cases(chosen, env, deadline):
    results = []
    for program in chosen:
        names = cases(program, env)
        if not names:
            results.append({"program": program.name, "case": "(listing its tests)", "status": "failed", "seconds": 0})
        results += [run_case(program, name, env, deadline) for name in names]
    return results


def good(results):
    return bool(results) and all(result["status"] in ("passed", "skipped") for result in results)


def run(bundle, programs, deadline):
    results = run_cases(sorted(programs.glob("test_*")), environment(bundle, programs, device=True), deadline)
    return {"ok": good(results), "cases": results}


def run_emulated(bundle, programs, deadline):
    """Checks that the bundle is complete: runs the small tests, and the benchmark of a tiny shape, on the emulated device."""
    env = environment(bundle, programs, device=False)
    results = run_cases([programs / "test_cuda_small"], env, deadline)
    emulator = env["TESSERA_TEST_EMULATOR"]
    code, output = finish([str(programs / "tessera-bench"), "--shape", "tiny", "--format", "Q8_0", "-p", "20", "-n", "2",
                           "--repeat", "1", "--json", "--backend", "cuda", "--cuda-driver", emulator, "--cuda-blas",
                           emulator, "--limits", "1,1"], env, deadline)
    try:
        rows = [json.loads(line) for line in output.splitlines()]
    except ValueError:
        rows = []
    whole = code == 0 and [row.get("backend") for row in rows] == ["cuda", "cuda"]
    results.append({"program": "tessera-bench", "case": "the tiny shape", "status": "passed" if whole else "failed",
                    "seconds": 0, **({} if whole else {"exit_status": code, "output": output[-LONGEST:]})})
    return {"ok": good(results), "cases": results}
