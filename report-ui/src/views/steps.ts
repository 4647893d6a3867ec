// The time of each step, and what was different in the slow ones.
import uPlot from "uplot";
import { Address } from "../address";
import { part, sum } from "../model/packed";
import type { NotRecorded, SlowStep, Steps } from "../model/report";
import type { Context, Shown, View } from "../view";
import { notRecorded } from "../widgets/controls";
import { h, styled } from "../widgets/dom";
import { brief, count, share, shortTime, shown, time } from "../widgets/format";
import { partColour, partName, PARTS } from "../widgets/parts";
import { colour, onTheme } from "../widgets/theme";

export const steps: View = { name: "steps", title: "Steps", icon: "▥", show };

async function show(context: Context): Promise<Shown> {
  const data = await part<Steps | NotRecorded>(`steps.${context.process}`);
  if (data.needs !== undefined) return { element: notRecorded("No step was recorded.", data.needs) };
  const chart = new StepChart(context, data);
  const element = h("div", { class: "steps" }, facts(data), h("section", { class: "card" }, chart.element, legend(data)), slowSteps(context, data));
  return { element, close: () => chart.close() };
}

function facts(data: Steps): HTMLElement {
  const sorted = Array.from(data.duration).sort((a, b) => a - b), at = (q: number): number => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))];
  const mean = sum(data.duration) / sorted.length, deviation = Math.sqrt(sum(sorted.map(each => (each - mean) ** 2)) / sorted.length);
  const known: [string, string][] = [[data.by === "optimizer" ? "steps, by the optimizer" : "steps", count(sorted.length)], ["median", time(data.median)], ["mean", time(mean)], ["standard deviation", time(deviation)], ["shortest", time(sorted[0])], ...(sorted.length > 20 ? [["95 % below", time(at(0.95))] as [string, string]] : []), ["longest", time(sorted[sorted.length - 1])]];
  return h("dl", { class: "facts" }, ...known.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

function legend(data: Steps): HTMLElement {
  const used = PARTS.filter(({ key }) => data.parts[key] && sum(data.parts[key]) > 0);
  return h("p", { class: "legend" }, ...used.map(({ name, key }) => h("span", {}, styled(h("span", { class: "swatch" }), { background: partColour(key) }), name)), h("span", { class: "faint" }, "Drag to zoom, double-click for all, click to see a step in the timeline."));
}

/** Bars of the steps, part above part. */
class StepChart {
  readonly element = h("div", { class: "chart", role: "img", "aria-label": "time of each step by part" });
  private plot: uPlot | null = null;
  private readonly closers: (() => void)[] = [];

  constructor(private readonly context: Context, private readonly data: Steps) {
    const observer = new ResizeObserver(() => this.plot ? this.plot.setSize(this.size()) : this.draw());
    observer.observe(this.element);
    this.closers.push(() => observer.disconnect(), onTheme(() => { this.plot?.destroy(); this.draw(); }));
  }

  close(): void {
    for (const close of this.closers) close();
    this.plot?.destroy();
  }

  private size(): { width: number; height: number } {
    return { width: Math.max(this.element.clientWidth, 100), height: 230 };
  }

  private draw(): void {
    const { data } = this, n = data.number.length, used = PARTS.filter(({ key }) => data.parts[key] && sum(data.parts[key]) > 0);
    // the sum of a part and those below it; the largest sums are drawn first, and lower ones over them
    const sums: number[][] = [];
    used.forEach(({ key }, i) => sums.push(Array.from({ length: n }, (_, k) => (i ? sums[i - 1][k] : 0) + data.parts[key][k] / 1e6)));
    const limit = data.slowAbove / 1e6;
    const bars = uPlot.paths.bars!({ size: [0.9, 60, 1] });
    const axis = { stroke: colour("faint"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line") }, font: "11px system-ui" };
    const options: uPlot.Options = {
      ...this.size(), legend: { show: false }, cursor: { drag: { x: true, y: false }, points: { show: false } },
      scales: { x: { time: false, range: (_, low, high) => [low - 0.6, high + 0.6] }, y: { range: (_, __, high) => [0, high * 1.06 || 1] } },
      axes: [{ ...axis, values: (_, ticks) => ticks.map(tick => (Number.isInteger(tick) && tick >= 0 && tick < n ? String(data.number[tick]) : "")) }, { ...axis, size: 64, values: (_, ticks) => ticks.map(tick => shortTime(tick * 1e6)) }],
      series: [{}, ...used.map(({ colour: name }) => ({ fill: colour(name), width: 0, paths: bars, points: { show: false } })).reverse()],
      hooks: { draw: [plot => {
        const y = plot.valToPos(limit, "y", true), { left, width } = plot.bbox;
        if (!data.slow.length || y < plot.bbox.top) return;
        plot.ctx.save();
        plot.ctx.strokeStyle = colour("mark");
        plot.ctx.setLineDash([5, 4]);
        plot.ctx.beginPath();
        plot.ctx.moveTo(left, y);
        plot.ctx.lineTo(left + width, y);
        plot.ctx.stroke();
        plot.ctx.restore();
      }] },
    };
    this.plot = new uPlot(options, [Array.from({ length: n }, (_, i) => i), ...sums.reverse()], this.element);
    const tip = h("div", { class: "tip", hidden: true });
    this.plot.over.append(tip);
    this.plot.over.addEventListener("mousemove", () => this.point(tip));
    this.plot.over.addEventListener("mouseleave", () => { tip.hidden = true; });
    let pressed = 0;
    this.plot.over.addEventListener("mousedown", event => { pressed = event.clientX; });
    this.plot.over.addEventListener("click", event => {
      const at = this.plot!.cursor.idx;
      if (Math.abs(event.clientX - pressed) < 4 && at !== null && at !== undefined) this.context.go(stepAddress(data, at));
    });
  }

  private point(tip: HTMLElement): void {
    const { data } = this, at = this.plot!.cursor.idx, left = this.plot!.cursor.left ?? 0;
    tip.hidden = at === null || at === undefined;
    if (at === null || at === undefined) return;
    const parts = PARTS.filter(({ key }) => data.parts[key]?.[at] > 0).map(({ key, name }) => h("div", {}, styled(h("span", { class: "swatch" }), { background: partColour(key) }), `${name} ${time(data.parts[key][at])}`));
    tip.replaceChildren(h("div", { class: "name" }, `step ${data.number[at]}: ${time(data.duration[at])}`), ...parts);
    const wide = this.plot!.over.clientWidth;
    styled(tip, left > wide / 2 ? { left: "", right: `${wide - left + 14}px`, top: "8px" } : { left: `${left + 14}px`, right: "", top: "8px" });
  }
}

function stepAddress(data: Steps, at: number): Address {
  const start = data.start[at], took = data.duration[at];
  return new Address("timeline").with({ from: Math.round(start - 0.03 * took), to: Math.round(start + 1.03 * took) });
}

function slowSteps(context: Context, data: Steps): HTMLElement {
  if (!data.slow.length) return h("section", { class: "card" }, h("h2", {}, "Slow steps"), h("p", { class: "faint" }, data.duration.length > 2 ? `No step took longer than ${time(data.slowAbove)}: the median, and three times the usual deviation or a tenth of it.` : "With fewer than three steps none is told from the others."));
  const rows = data.slow.map(slow => {
    const link = h("a", { href: String(stepAddress(data, slow.step).with(context.process ? { process: context.process } : {})) }, `step ${data.number[slow.step]}`);
    return h("tr", {}, h("th", { scope: "row" }, link), h("td", { class: "number" }, time(data.duration[slow.step])), h("td", { class: "number" }, `+${share(slow.excess, data.median)}`), h("td", {}, reasons(slow)));
  });
  return h("section", { class: "card" }, h("h2", {}, `Slow steps: longer than ${time(data.slowAbove)}`), h("table", { class: "parts slow" }, h("thead", {}, h("tr", {}, ...["step", "time", "more", "what was different"].map((text, i) => h("th", { scope: "col", class: i === 1 || i === 2 ? "number" : "" }, text)))), h("tbody", {}, ...rows)));
}

/** What took longer in a step than it usually does. */
function reasons(slow: SlowStep): HTMLElement {
  const told: (Node | string)[] = slow.parts.slice(0, 3).map(([key, ns]) => h("span", { class: "reason" }, styled(h("span", { class: "swatch" }), { background: partColour(key) }), `${partName(key)} +${shortTime(ns)}`));
  if (slow.compiled[0]) told.push(h("span", { class: "reason" }, `${count(slow.compiled[0])} functions compiled in ${shortTime(slow.compiled[1])}`));
  if (slow.collected[0]) told.push(h("span", { class: "reason" }, `garbage collector ran ${count(slow.collected[0])}×, ${shortTime(slow.collected[1])}`));
  const labels = slow.labels.map(([name, ns, calls, usual]) => `${shown(brief(name), 70)} +${shortTime(ns)}${calls !== usual ? ` (${count(calls)} calls instead of ${count(usual)})` : ""}`);
  return h("div", {}, h("div", {}, ...told), labels.length ? h("div", { class: "faint small" }, labels.join(" · ")) : null);
}
