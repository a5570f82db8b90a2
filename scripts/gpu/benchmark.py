"""Measures the limits of the device (limits.cu), and the speed of models of known shapes on the device (tessera-bench)."""
import json
import os
import tempfile
import time
from pathlib import Path

from conformance import finish
from machine import ClockLog, output_of, query, say, toolkit, with_toolkit

# [(shape, format, numerics)]. The most important runs come first, because the time may not be enough for all.
RUNS = ([("llama-1b", form, "auto") for form in ("BF16", "Q8_0", "Q4_0", "Q4_K")] +
        [("llama-8b", form, "auto") for form in ("BF16", "Q8_0", "Q4_0")] +
        [("llama-1b", form, "invariant") for form in ("BF16", "Q8_0", "Q4_0", "Q4_K")])
TESTS = ["-p", "512,2048", "-n", "32", "-b", "1,8,32", "--depth", "8192", "--repeat", "3"]
RUN_SECONDS = 100  # the most seconds of one run, with its loading


def compile_limits(bundle, directory):
    """Compiles limits.cu with this machine's toolkit, and returns the program. If that fails, says why and returns None."""
    nvcc = toolkit("nvcc")
    capability = (query("compute_cap") or "").replace(".", "")
    if nvcc is None or not capability:
        say("limits.cu: there is no nvcc here")
        return None
    program = directory / "limits"
    done = output_of(nvcc, "-std=c++17", "-O3", f"-arch=sm_{capability}", "-o", str(program), str(bundle / "limits.cu"),
                     "-lcublas")
    if done is None:
        say("limits.cu does not compile")
    return program if done is not None else None


def measure_limits(bundle, env, deadline):
    with tempfile.TemporaryDirectory() as directory:
        program = compile_limits(bundle, Path(directory))
        if program is None:
            return None
        with ClockLog() as clocks:
            code, output = finish([str(program)], env, deadline)
    try:
        return {**json.loads(output), "clocks": clocks.summary()}
    except ValueError:
        say(f"limits: exit status {code}: {output[-500:]}")
        return None


def run_model(programs, run, limits, env, deadline):
    """Runs tessera-bench once. Returns a record with its rows, also if the time was over before the last row."""
    shape, form, numerics = run
    command = [str(programs / "tessera-bench"), "--shape", shape, "--format", form, "--numerics", numerics,
               "--backend", "cuda", "--json", *TESTS]
    if limits:
        command += ["--limits", f"{limits['read_gb_per_s']},{limits['matrix_tflop_per_s']}"]
    start = time.monotonic()
    with ClockLog() as clocks:
        code, output = finish(command, env, min(deadline, start + RUN_SECONDS), gently=True)
    rows, said = [], []
    for line in output.splitlines():
        try:
            rows.append(json.loads(line))
        except ValueError:
            said.append(line)
    status = {None: "unfinished", 0: "done"}.get(code, "failed")
    seconds = round(time.monotonic() - start, 1)
    say(f"{status:10} {seconds:7.2f} s  {shape} {form} {numerics}, {len(rows)} results")
    return {"shape": shape, "format": form, "numerics": numerics, "status": status, "seconds": seconds,
            "clocks": clocks.summary(), "rows": rows, **({"output": "\n".join(said)[-2000:]} if said else {})}


def run(bundle, programs, deadline):
    env = with_toolkit(os.environ)
    limits = measure_limits(bundle, env, deadline)
    runs = [run_model(programs, run, limits, env, deadline) for run in RUNS]
    # A run for which there was no time is not a failure. The table of results says so.
    return {"ok": limits is not None and all(run["status"] != "failed" for run in runs), "limits": limits, "runs": runs}
