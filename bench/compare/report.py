"""Rounds of measurements as tables: medians, spread, and ratios taken round by round."""
from __future__ import annotations

import statistics

Rounds = list[dict[str, dict[str, float]]]  # a round: engine -> test -> tokens a second


def summary(values: list[float]) -> dict:
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "values": values}


def of_format(rounds: Rounds) -> dict:
    """Test -> engine -> its figures, with the ratio of each of tessera's modes to each peer."""
    tests = list(dict.fromkeys(test for one in rounds for results in one.values() for test in results))
    engines = list(dict.fromkeys(name for one in rounds for name in one))
    table: dict[str, dict] = {}
    for test in tests:
        speeds = {name: [one[name][test] for one in rounds if test in one.get(name, {})] for name in engines}
        row = table[test] = {name: summary(values) for name, values in speeds.items() if values}
        for ours in [name for name in row if name.startswith("tessera")]:
            both = lambda peer: [one[ours][test] / one[peer][test] for one in rounds
                                 if test in one.get(ours, {}) and test in one.get(peer, {})]
            peers = [name for name in row if not name.startswith("tessera")]
            row[ours]["ratio"] = {peer: summary(both(peer)) for peer in peers if both(peer)}
    return table


def number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def cell(figures: dict | None) -> str:
    if figures is None:
        return ""
    return f"{number(figures['median'])} ({number(figures['min'])}-{number(figures['max'])})"


def markdown(report: dict) -> str:
    results = report["results"]
    engines = list(dict.fromkeys(name for rows in results.values() for row in rows.values() for name in row))
    peers = [name for name in engines if not name.startswith("tessera")]
    ours = [name for name in engines if name.startswith("tessera")]
    ratios = [(mine, peer) for mine in ours for peer in peers
              if any(peer in row.get(mine, {}).get("ratio", {}) for rows in results.values() for row in rows.values())]
    head = ["format", "test", *peers, *ours, *(f"{mine} / {peer}" for mine, peer in ratios)]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for kind, rows in results.items():
        for test, row in rows.items():
            cells = [kind, test, *(cell(row.get(name)) for name in [*peers, *ours])]
            cells += [cell(row.get(mine, {}).get("ratio", {}).get(peer)) for mine, peer in ratios]
            lines.append("| " + " | ".join(cells) + " |")
    about = [f"{report['date']}, shape {report['shape']}, {report['threads']} threads, {report['rounds']} rounds, "
             f"engines by turns. {report['machine']}.",
             *(f"- {name}: {text}" for name, text in report["versions"].items()),
             "", "Tokens a second: median (slowest-fastest); ratios are taken round by round.", ""]
    return "\n".join(about + lines)
