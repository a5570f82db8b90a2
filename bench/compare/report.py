"""Turns of engines as tables: medians, quartiles, ratios (computed within each turn), shares of the machine's limits."""
from __future__ import annotations

import statistics

Turn = dict[str, dict]  # engine -> its figures (tokens_per_s, and tessera's shares)
SHARES = {"% read": "pct_read_bandwidth", "% matrix": "pct_matrix_peak"}


def summary(values: list[float]) -> dict:
    quarter = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [values[0]] * 3
    return {"median": quarter[1], "quartiles": [quarter[0], quarter[2]], "values": values}


def of_test(turns: list[Turn]) -> dict:
    """Returns the figures of each engine, and the ratio of each of tessera's modes to each other engine."""
    row: dict[str, dict] = {}
    for name in dict.fromkeys(name for turn in turns for name in turn):
        mine = [turn[name] for turn in turns if name in turn]
        row[name] = summary([figures["tokens_per_s"] for figures in mine])
        for share, key in SHARES.items():
            if known := [figures[key] for figures in mine if figures.get(key) is not None]:
                row[name][share] = summary(known)
    for ours in [name for name in row if name.startswith("tessera")]:
        row[ours]["ratio"] = {}
        for peer in [name for name in row if not name.startswith("tessera")]:
            if both := [turn[ours]["tokens_per_s"] / turn[peer]["tokens_per_s"] for turn in turns
                        if ours in turn and peer in turn]:
                row[ours]["ratio"][peer] = summary(both)
    return row


def number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def cell(figures: dict | None) -> str:
    if figures is None:
        return ""
    return f"{number(figures['median'])} ({'-'.join(map(number, figures['quartiles']))})"


def share(test: str, figures: dict | None) -> str:
    """Returns the share of the limit that binds the test: the read bandwidth for one sequence, the matrix peak for many rows."""
    name = "% read" if test == "decode 1" or test.startswith("decode at") else "% matrix"
    return f"{figures[name]['median']:.0f}{name[1:]}" if figures and name in figures else ""


def markdown(report: dict) -> str:
    results = report["results"]
    engines = list(dict.fromkeys(name for rows in results.values() for row in rows.values() for name in row))
    peers = [name for name in engines if not name.startswith("tessera")]
    ours = [name for name in engines if name.startswith("tessera")]
    ratios = [(mine, peer) for mine in ours for peer in peers
              if any(peer in row.get(mine, {}).get("ratio", {}) for rows in results.values() for row in rows.values())]
    head = ["format", "test", *peers, *ours, *(f"{mine} / {peer}" for mine, peer in ratios), *(f"{mine}, %" for mine in ours)]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for kind, rows in results.items():
        for test, row in rows.items():
            cells = [kind, test, *(cell(row.get(name)) for name in [*peers, *ours])]
            cells += [cell(row.get(mine, {}).get("ratio", {}).get(peer)) for mine, peer in ratios]
            cells += [share(test, row.get(mine)) for mine in ours]
            lines.append("| " + " | ".join(cells) + " |")
    about = [f"{report['date']}, shape {report['shape']}, {report['threads']} threads, {report['turns']} turns of each test, "
             f"all engines loaded. {report['machine']}.",
             *(f"- {name}: {text}" for name, text in report["versions"].items()),
             "", "Tokens a second: median (quartiles); ratios are taken turn by turn; of the read bandwidth or the bf16 matrix "
             "peak as measured beside each turn.", ""]
    return "\n".join(about + lines)
