"""Describes the machine: its GPU, driver and clocks, as nvidia-smi and the toolkit report them."""
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import threading
from pathlib import Path

GPU = ["name", "driver_version", "memory.total", "compute_cap", "clocks.max.sm", "clocks.max.mem", "clocks.sm",
       "clocks.mem", "power.limit", "ecc.mode.current"]
CLOCKS = ["clocks.sm", "clocks.mem", "power.draw", "temperature.gpu"]


def say(text):
    print(text, file=sys.stderr, flush=True)


def toolkit(program):
    """Returns the path of a program of the CUDA toolkit, from PATH or from the toolkit's usual folder; None if it is not there."""
    home = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
    return shutil.which(program) or shutil.which(program, path=str(home / "bin"))


def toolkit_libraries():
    """Returns the folder of the toolkit's libraries, or None."""
    nvcc = toolkit("nvcc")
    folder = Path(os.path.realpath(nvcc)).parent.parent / "lib64" if nvcc else None
    return folder if folder and folder.is_dir() else None


def with_toolkit(env):
    """Returns the environment with the folder of the toolkit's libraries added to LD_LIBRARY_PATH. An engine looks for cuBLASLt there;
    without cuBLASLt our own kernels compute all products."""
    folder = toolkit_libraries()
    paths = [path for path in (env.get("LD_LIBRARY_PATH"), folder) if path]
    return {**env, "LD_LIBRARY_PATH": ":".join(map(str, paths))} if folder else dict(env)


def output_of(*command):
    """Returns the standard output of a command; None if the program is not there or fails."""
    if command[0] is None:
        return None
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


def query(field):
    """Returns a field of the first GPU; None if nvidia-smi does not know it. Asks for one field, because nvidia-smi may answer nothing if
    one of several fields is unknown."""
    text = output_of("nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader,nounits", "--id=0")
    return (text or "").strip() or None


def has_gpu():
    return query("name") is not None


def found(pattern, text):
    match = re.search(pattern, text or "")
    return match.group(1) if match else None


def describe():
    gpu = {field: query(field) or "unknown" for field in GPU} if has_gpu() else {}
    return {"gpu": gpu, "cuda_driver": found(r"CUDA Version:\s*([0-9.]+)", output_of("nvidia-smi")),
            "cuda_toolkit": found(r"release ([0-9.]+)", output_of(toolkit("nvcc"), "--version")),
            "processor": found(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text(errors="replace")),
            "cores": os.cpu_count(), "system": platform.platform()}


class ClockLog:
    """Records the clocks twice a second while something runs: with ClockLog() as log: ...; log.summary()."""

    def __enter__(self):
        self.samples = []
        command = ["nvidia-smi", "--query-gpu=" + ",".join(CLOCKS), "--format=csv,noheader,nounits", "--id=0",
                   "--loop-ms=500"]
        try:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        except OSError:
            self.process = None
            return self
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        return self

    def read(self):
        for line in self.process.stdout:
            try:
                self.samples.append([float(value) for value in line.split(",")])
            except ValueError:  # a value is "[N/A]"
                continue

    def __exit__(self, *exception):
        if self.process is not None:
            self.process.terminate()
            self.process.wait()
            self.reader.join()

    def summary(self):
        columns = zip(CLOCKS, zip(*self.samples))
        return {name: {"min": min(values), "median": statistics.median(values), "max": max(values)}
                for name, values in columns}
