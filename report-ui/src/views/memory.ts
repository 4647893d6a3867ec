// Memory in use: by category, where that was recorded; else as one curve.
import uPlot from "uplot";
import type { MemoryData } from "../model/memory";
import { type Column, part } from "../model/packed";
import type { Context, Shown, View } from "../view";
import { notRecorded } from "../widgets/controls";
import { debounce, h } from "../widgets/dom";
import { bytes, shortTime } from "../widgets/format";
import { MemoryChart } from "../widgets/memory_chart";
import { colour, onTheme } from "../widgets/theme";

export const memory: View = { name: "memory", title: "Memory", icon: "▲", show };

interface Memory { needs?: string; timeline?: MemoryData; curve?: { time: Column; bytes: Column } }

async function show(context: Context): Promise<Shown> {
  const data = await part<Memory>(`memory.${context.process}`);
  if (data.timeline) return timeline(context, data.timeline);
  if (data.curve?.time.length) return curve(data.curve, data.needs ?? "");
  return { element: notRecorded("Memory was not recorded.", data.needs ?? "profile_memory=True") };
}

function timeline(context: Context, data: MemoryData): Shown {
  const { address } = context, pinned = address.number("at", -1);
  const keep = debounce(150, () => context.keep({ from: Math.round(chart.view.from), to: Math.round(chart.view.to), at: chart.pinned ?? "" }));
  const chart: MemoryChart = new MemoryChart(data, keep, { from: address.number("from", 0), to: address.number("to", Math.max(data.end, 1)), pinned: pinned >= 0 ? pinned : null });
  Object.assign(window, { memory: chart }); // for tests, which ask where a moment is drawn
  const element = h("div", { class: "memory-view" }, h("div", { class: "bar-of-tools" }, h("span", { id: "facts" }, ...chart.facts()), h("span", { class: "space" }), chart.tools()), chart.element);
  return { element, close: () => chart.close(), key: event => chart.key(event) };
}

function curve(data: { time: Column; bytes: Column }, needs: string): Shown {
  const place = h("div", { class: "chart tall", role: "img", "aria-label": "bytes of live storage over time" });
  let plot: uPlot | null = null;
  const size = (): { width: number; height: number } => ({ width: Math.max(place.clientWidth, 100), height: 330 });
  const make = (): void => {
    plot?.destroy();
    const axis = { stroke: colour("faint"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line") }, font: "11px system-ui" };
    plot = new uPlot({
      ...size(), legend: { show: false }, scales: { x: { time: false }, y: { range: (_, __, high) => [0, high * 1.08 || 1] } },
      axes: [{ ...axis, values: (_, ticks) => ticks.map(shortTime) }, { ...axis, size: 76, incrs: Array.from({ length: 50 }, (_, power) => 2 ** power), values: (_, ticks) => ticks.map(bytes) }],
      series: [{}, { stroke: colour("forward"), fill: `color-mix(in srgb, ${colour("forward")} 30%, transparent)`, width: 1.5, paths: uPlot.paths.stepped!({ align: 1 }), points: { show: false } }],
    }, [Array.from(data.time), Array.from(data.bytes)], place);
  };
  const observer = new ResizeObserver(() => (plot ? plot.setSize(size()) : make()));
  observer.observe(place);
  const end = onTheme(make);
  let most = 0;
  for (let i = 0; i < data.bytes.length; i++) most = Math.max(most, data.bytes[i]);
  const element = h("div", { class: "card" }, h("h2", {}, `Live storage on the CPU: peak ${bytes(most)}`), place, needs ? h("p", { class: "faint" }, "Categories and owners are recorded with ", h("code", {}, needs), ".") : null);
  return { element, close: () => { observer.disconnect(); end(); plot?.destroy(); } };
}
