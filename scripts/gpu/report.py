"""Makes results.json and results.md from the files of the parts."""
import json
import sys
from pathlib import Path

PARTS = ("conformance", "sanitizer", "benchmark", "emulated")


def collect(directories):
    """Returns the parts by name. If several folders have a part, the first one counts."""
    parts = {}
    for directory in directories:
        for part in PARTS:
            file = directory / f"{part}.json"
            if file.exists():
                parts.setdefault(part, json.loads(file.read_text()))
    return parts


def table(columns, rows):
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for row in rows:
        cells = ("" if cell is None else str(cell).replace("|", "\\|").replace("\n", " ") for cell in row)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def number(value):
    """Writes a number with three digits, or with all digits before the point."""
    if value is None:
        return "-"
    digits = 0 if value >= 99.95 else 1 if value >= 9.995 else 2 if value >= 0.9995 else 3
    return f"{value:.{digits}f}"


def of_machine(parts):
    first = next(iter(parts.values()))
    machine, bundle = first["machine"], first["bundle"]
    gpu = machine["gpu"]
    rows = [("date", ", ".join(sorted({part["began"][:10] for part in parts.values()}))),
            ("tessera", f"{bundle['version']}, commit {bundle['commit']}")]
    if gpu:
        rows += [("GPU", f"{gpu['name']}, compute capability {gpu['compute_cap']}, {gpu['memory.total']} MiB, "
                         f"ECC {gpu['ecc.mode.current'].lower()}"),
                 ("driver", f"{gpu['driver_version']} (CUDA {machine['cuda_driver']})"),
                 ("toolkit", f"CUDA {machine['cuda_toolkit']}; the kernels were compiled by {bundle['nvcc']}"),
                 ("clocks at rest", f"SM {gpu['clocks.sm']} of {gpu['clocks.max.sm']} MHz, memory {gpu['clocks.mem']} of "
                                    f"{gpu['clocks.max.mem']} MHz; power limit {gpu['power.limit']} W")]
    else:
        rows += [("GPU", "none: the emulated device")]
    rows += [("processor", f"{machine['processor']}, {machine['cores']} cores; {machine['system']}"),
             ("parts", ", ".join(f"{name} {part['seconds']:.0f} s" for name, part in parts.items()))]
    return table(("machine", ""), rows)


def of_limits(limits):
    if not limits:
        return "The ceilings could not be measured.\n"
    rows = [("read bandwidth", f"{number(limits['read_gb_per_s'])} GB/s", f"{limits['read_buffer_gib']} GiB, "
                                                                          f"{limits['read_kernel']}"),
            ("copy bandwidth", f"{number(limits['copy_gb_per_s'])} GB/s", "read and written"),
            ("matrix peak", f"{number(limits['matrix_tflop_per_s'])} TFLOP/s", limits["matrix"]),
            ("launch until known to be done", f"{limits['launch_and_wait_us']} µs", "an empty kernel"),
            ("launch after launch", f"{limits['launch_gap_us']} µs", "empty kernels of one stream, no graph")]
    rows += [(f"{name} meanwhile", number(clock["median"]), f"{number(clock['min'])} to {number(clock['max'])}")
             for name, clock in limits["clocks"].items()]
    return table(("ceiling (medians)", "", ""), rows)


def of_cases(cases):
    rows = []
    for program in dict.fromkeys(case["program"] for case in cases):
        mine = [case for case in cases if case["program"] == program]
        count = {status: sum(case["status"] == status for case in mine)
                 for status in ("passed", "failed", "skipped", "unfinished")}
        names = "; ".join(case["case"] for case in mine if case["status"] in ("failed", "unfinished"))
        rows.append((program, *count.values(), f"{sum(case['seconds'] for case in mine):.0f}", names))
    return table(("program", "passed", "failed", "skipped", "unfinished", "s", "not passed"), rows)


def of_sanitizer(part):
    rows = []
    for tool in dict.fromkeys(case["tool"] for case in part["cases"]):
        mine = [case for case in part["cases"] if case["tool"] == tool]
        others = "; ".join(f"{case['case']}: {case['status']}" for case in mine if case["status"] != "clean")
        rows.append((tool, len(mine), sum(case["status"] == "clean" for case in mine),
                     sum(case.get("errors", 0) for case in mine), sum(case.get("hazards", 0) for case in mine), others))
    return f"{part['version']}\n\n" + table(("tool", "test cases", "clean", "errors", "hazards", "not clean"), rows)


def of_runs(runs):
    rows = []
    for run in runs:
        for row in run["rows"]:
            rows.append((run["shape"], run["format"], run["numerics"], row["test"], row["rows"], row["depth"],
                         number(row["tokens_per_s"]), f"{number(row['min'])} to {number(row['max'])}",
                         number(row["gb_per_s"]), number(row["pct_read_bandwidth"]), number(row["tflop_per_s"]),
                         number(row["pct_matrix_peak"]), row["family"]))
        if run["status"] != "done":
            rows.append((run["shape"], run["format"], run["numerics"], f"({run['status']})") + ("",) * 9)
    return table(("shape", "format", "numerics", "test", "rows", "depth", "tokens/s", "from, to", "GB/s", "% read",
                  "TFLOP/s", "% matrix", "kernels"), rows)


def markdown(parts):
    sections = [of_machine(parts)]
    if "benchmark" in parts:
        sections.append(of_limits(parts["benchmark"]["limits"]))
    for name in ("conformance", "emulated"):
        if name in parts:
            sections.append(f"Tests ({name})\n\n" + of_cases(parts[name]["cases"]))
    if "sanitizer" in parts:
        sections.append("compute-sanitizer: " + of_sanitizer(parts["sanitizer"]))
    if "benchmark" in parts:
        sections.append("Speed (tessera-bench; GB/s and TFLOP/s as its --help defines them)\n\n" +
                        of_runs(parts["benchmark"]["runs"]))
    return "\n".join(sections)


def write(directories):
    """Writes results.json and results.md into the first folder."""
    parts = collect(directories)
    if not parts:
        raise SystemExit(f"no results in {', '.join(map(str, directories))}")
    (directories[0] / "results.json").write_text(json.dumps(parts, indent=1) + "\n")
    (directories[0] / "results.md").write_text(markdown(parts))


def insert(text, document, begin="<!-- results -->\n", end="<!-- end of results -->\n"):
    """Puts `text` between the document's two marks."""
    whole = document.read_text()
    if begin not in whole or end not in whole:
        raise SystemExit(f"{document}: no {begin.strip()} and {end.strip()}")
    document.write_text(whole[:whole.index(begin) + len(begin)] + text + whole[whole.index(end):])


if __name__ == "__main__":  # report.py RESULTS.md DOCUMENT
    insert(Path(sys.argv[1]).read_text(), Path(sys.argv[2]))
