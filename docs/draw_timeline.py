"""Draw one step of a trace as an SVG picture: `python docs/draw_timeline.py TRACE.json "ProfilerStep#8" OUT.svg`."""

import gzip
import html
import json
import sys
from pathlib import Path

WIDTH, LEFT, ROW, TOP = 1080, 12, 22, 34
LETTER = 6.1  # pixels, of the font below
COLOURS = {"user_annotation": ("#fdeee4", "#d08b5b"), "cpu_op": ("#e4ecf7", "#6585b5"), "backward": ("#e9f1e4", "#7d9c6a")}


def slices(trace: dict, step: str) -> list[dict]:
    """The step and all that ran inside it on its thread, outermost first."""
    rows = [row for row in trace["traceEvents"] if row.get("ph") == "X" and row["cat"] in ("cpu_op", "user_annotation")]
    around = next(row for row in rows if row["name"] == step)
    end = around["ts"] + around["dur"]
    inside = [r for r in rows if r["tid"] == around["tid"] and around["ts"] <= r["ts"] and r["ts"] + r["dur"] <= end]
    return sorted(inside, key=lambda row: (row["ts"], -row["dur"]))


def kind(row: dict) -> str:
    name = row["name"].removeprefix("autograd::engine::evaluate_function: ")
    return "backward" if name.endswith(("Backward0", "Backward1", "AccumulateGrad")) else row["cat"]


def draw(rows: list[dict]) -> str:
    began, took = rows[0]["ts"], rows[0]["dur"]
    scale = (WIDTH - 2 * LEFT) / took
    boxes, ends, deepest = [], [], 0
    for row in rows:
        while ends and ends[-1] <= row["ts"]:
            ends.pop()
        x, y, w = LEFT + (row["ts"] - began) * scale, TOP + len(ends) * ROW, row["dur"] * scale
        ends.append(row["ts"] + row["dur"])
        deepest = max(deepest, len(ends))
        if w < 0.25:
            continue
        fill, line = COLOURS[kind(row)]
        name = row["name"].removeprefix("autograd::engine::evaluate_function: ").removeprefix("torch::autograd::")
        letters = int((w - 6) / LETTER)
        shown = name if len(name) <= letters else name[: letters - 1] + "…" if letters > 4 else ""
        title = f"<title>{html.escape(row['name'])}: {row['dur']:.1f} µs</title>"
        boxes.append(f'<rect x="{x:.1f}" y="{y}" width="{w:.2f}" height="{ROW - 2}" fill="{fill}" stroke="{line}">{title}</rect>')
        if shown:
            boxes.append(f'<text x="{x + 4:.1f}" y="{y + 14}">{html.escape(shown)}</text>')
    unit = next(u for u in (50, 100, 200, 250, 500, 1000, 2000, 5000) if took / u <= 12)
    for at in range(0, int(took) + 1, unit):
        x = LEFT + at * scale
        boxes.append(f'<path d="M{x:.1f} 20v8" stroke="#888"/><text x="{x + 3:.1f}" y="24" fill="#555">{at / 1000:g} ms</text>')
    height = TOP + deepest * ROW + 8
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="monospace" font-size="10.1" stroke-width=".7">'
    text = "text{fill:#222;stroke:none}"
    return (
        f'{head}\n<style>{text}</style>\n<rect width="{WIDTH}" height="{height}" fill="#fff"/>\n' + "\n".join(boxes) + "\n</svg>\n"
    )


def main() -> None:
    path, step, out = sys.argv[1:]
    content = Path(path).read_bytes()
    trace = json.loads(gzip.decompress(content) if path.endswith(".gz") else content)
    Path(out).write_text(draw(slices(trace, step)))


if __name__ == "__main__":
    main()
