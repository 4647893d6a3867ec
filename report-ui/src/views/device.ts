// What devices did, and why they had nothing to do.
import uPlot from "uplot";
import { Address } from "../address";
import { part } from "../model/packed";
import type { CriticalPath, DeviceFacts, Devices, NotRecorded } from "../model/report";
import type { Context, Shown, View } from "../view";
import { notRecorded } from "../widgets/controls";
import { h, styled } from "../widgets/dom";
import { bytes, count, share, shortTime, shown, time } from "../widgets/format";
import { DEVICE_COLOURS } from "../widgets/parts";
import { barCell, VirtualTable } from "../widgets/table";
import { colour, onTheme } from "../widgets/theme";

export const device: View = { name: "device", title: "Device", icon: "▦", when: report => report.processes.some(each => each.hasDevice), show };

async function show(context: Context): Promise<Shown> {
  const data = await part<Devices | NotRecorded>(`device.${context.process}`);
  if (data.needs !== undefined) return { element: notRecorded("No device is in this recording.", data.needs) };
  const closers: (() => void)[] = [];
  const element = h("div", { class: "devices" }, ...data.devices.map(each => deviceCard(context, each, data.means, closers)), data.path ? pathCard(context, data.path, data.places) : null);
  return { element, close: () => closers.forEach(close => close()) };
}

function deviceCard(context: Context, each: DeviceFacts, means: Record<string, string>, closers: (() => void)[]): HTMLElement {
  const facts: [string, string][] = [["busy", share(each.busy_ns, each.span_ns)], ["with work", time(each.busy_ns)], ["idle", time(each.idle_ns)], ["from first to last", time(each.span_ns)]];
  if (each.sorts.communication) facts.push(["communication hidden by computation", `${(100 * each.communication_overlap).toFixed(1)} %`]);
  return h("section", { class: "device" }, h("h2", {}, shown(`${each.type} ${each.index}${each.name ? ` · ${each.name}` : ""}`)),
    h("dl", { class: "facts" }, ...facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
    h("div", { class: "card" }, h("h2", {}, "Why it was idle"), bar(each.idle_causes, each.idle_ns), meanings(each.idle_causes, each.idle_ns, means, ["cause", "time", "of idle time"])),
    h("div", { class: "card" }, h("h2", {}, "What it did"), bar({ ...each.alone, ...each.overlap }, each.busy_ns), sorts(each)),
    h("div", { class: "kernels" }, h("h2", {}, "Kernels"), kernels(context, each)),
    streams(each, closers), copies(each),
    h("p", { class: "faint" }, `${count(each.launches.count)} launches: a call took ${shortTime(each.launches.call_median_ns)} (median), work began ${shortTime(each.launches.delay_median_ns)} after it (median; at most ${shortTime(each.launches.delay_max_ns)}). ${count(each.launches.shorter_than_call)} kernels took less time than their launch.`));
}

/** The chain of work that the length of the longest step depends on: where it was, and what it was made of. */
function pathCard(context: Context, path: CriticalPath, places: Record<string, string>): HTMLElement {
  const process: Record<string, number> = context.process ? { process: context.process } : {}, margin = 0.03 * path.total_ns;
  const head = ["on the path", "where", "time", "share", "pieces"].map((text, i) => h("th", { scope: "col", class: i > 1 ? "number" : "" }, text));
  const named = (each: CriticalPath["names"][number]): HTMLElement => each.is_event ? h("a", { class: "one-line", title: shown(each.name, 2000), href: String(new Address("timeline").with({ search: each.name, ...process })) }, shown(each.name, 90)) : h("span", {}, each.name);
  const rows = path.names.map(each => h("tr", {}, h("th", { scope: "row" }, named(each)), h("td", {}, styled(h("span", { class: "swatch" }), { background: tint(each.place) }), each.place), h("td", { class: "number" }, time(each.total_ns)), h("td", { class: "number" }, share(each.total_ns, path.total_ns)), h("td", { class: "number" }, count(each.count))));
  const whole = new Address("timeline").with({ from: Math.round(path.start - margin), to: Math.round(path.end + margin), ...process });
  return h("section", { class: "card critical-path" }, h("h2", {}, shown(`Critical path of ${path.name}, ${time(path.total_ns)}`)),
    h("p", { class: "faint" }, "The chain of work that its length depends on: what is not on it could take longer without making the step longer. ", h("a", { href: String(whole) }, "in the timeline")),
    bar(path.places, path.total_ns), meanings(path.places, path.total_ns, places, ["where", "time", "of the path"]),
    h("table", { class: "parts" }, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows)));
}

const tint = (key: string): string => `var(--${DEVICE_COLOURS[key] ?? "kernel"})`;

/** A fill; of work of several sorts at once, stripes of their colours. */
function fill(key: string): string {
  const sorts = key.split(", "), width = 5;
  if (sorts.length === 1) return tint(key);
  return `repeating-linear-gradient(135deg, ${sorts.map((sort, i) => `${tint(sort)} ${i * width}px ${(i + 1) * width}px`).join(", ")})`;
}

function bar(parts: Record<string, number>, whole: number): HTMLElement {
  const used = Object.entries(parts).filter(([, ns]) => ns > 0);
  return h("div", { class: "parts-bar", role: "img", "aria-label": used.map(([name, ns]) => `${name} ${share(ns, whole)}`).join(", ") }, ...used.map(([name, ns]) => {
    const wide = (100 * ns) / Math.max(whole, 1) > 9;
    return styled(h("div", { class: wide ? "piece named" : "piece", title: `${name}: ${time(ns)}, ${share(ns, whole)}` }, wide && !name.includes(", ") ? `${name} ${share(ns, whole)}` : ""), { flexGrow: String(ns), background: fill(name) });
  }));
}

const partsHead = (names: string[]): HTMLElement => h("thead", {}, h("tr", {}, ...names.map((name, i) => h("th", { scope: "col", class: i ? "number" : "" }, name)), h("th", { scope: "col" })));

function meanings(parts: Record<string, number>, whole: number, means: Record<string, string>, heads: string[]): HTMLElement {
  const rows = Object.entries(parts).map(([name, ns]) => h("tr", { class: ns ? "" : "none", "data-cause": name }, h("th", { scope: "row" }, styled(h("span", { class: "swatch" }), { background: tint(name) }), name), h("td", { class: "number" }, time(ns)), h("td", { class: "number" }, share(ns, whole)), h("td", { class: "means" }, means[name] ?? "")));
  return h("table", { class: "parts" }, partsHead(heads), h("tbody", {}, ...rows));
}

function sorts(each: DeviceFacts): HTMLElement {
  const rows = [...Object.entries(each.alone).map(([name, ns]) => [`${name} alone`, name, ns] as const), ...Object.entries(each.overlap).map(([name, ns]) => [`${name} at once`, name, ns] as const)].filter(([, , ns]) => ns > 0);
  return h("table", { class: "parts" }, partsHead(["work", "time", "of busy time"]), h("tbody", {}, ...rows.map(([text, name, ns]) => h("tr", {}, h("th", { scope: "row" }, styled(h("span", { class: "swatch" }), { background: fill(name) }), text), h("td", { class: "number" }, time(ns)), h("td", { class: "number" }, share(ns, each.busy_ns)), h("td", { class: "means rest" })))));
}

function kernels(context: Context, each: DeviceFacts): HTMLElement {
  const { kernels: list } = each, most = Math.max(1, ...list.slice(0, 1).map(kernel => kernel.total_ns));
  const timed = (key: "mean_ns" | "median_ns" | "max_ns", title: string) => ({ key, title, width: "92px", numeric: true, value: (i: number) => list[i][key], cell: (i: number) => time(list[i][key]) });
  const table = new VirtualTable({
    label: "kernels", rows: list.map((_, i) => i), sort: "total", descending: true,
    columns: [
      { key: "name", title: "name", width: "minmax(220px, 3fr)", value: i => list[i].name, cell: i => shown(list[i].name), full: i => shown(list[i].name, 2000) },
      { key: "sort", title: "sort", width: "110px", value: i => list[i].sort },
      { key: "count", title: "count", width: "70px", numeric: true, value: i => list[i].count, cell: i => count(list[i].count) },
      { key: "total", title: "total", width: "minmax(110px, 1fr)", numeric: true, value: i => list[i].total_ns, cell: i => barCell(time(list[i].total_ns), list[i].total_ns / most) },
      { key: "share", title: "share", width: "64px", numeric: true, value: i => list[i].share, cell: i => `${(100 * list[i].share).toFixed(1)} %` },
      timed("mean_ns", "mean"), timed("median_ns", "median"), timed("max_ns", "max"),
    ],
    onPick: i => context.go(new Address("timeline").with({ search: list[i].name })),
  });
  return styled(h("div", {}, table.element), { height: `${Math.min(list.length * 28 + 48, 380)}px` });
}

function streams(each: DeviceFacts, closers: (() => void)[]): HTMLElement {
  const rows = each.streams.map(stream => h("tr", {}, h("th", { scope: "row" }, shown(stream.name || `stream ${stream.number}`)), h("td", { class: "number" }, count(stream.count)), h("td", { class: "number" }, time(stream.busy_ns)), h("td", { class: "number" }, share(stream.busy_ns, stream.span_ns)), h("td", { class: "number" }, count(stream.queue_maximum)), h("td", { class: "number" }, stream.queue_mean.toFixed(1))));
  const head = ["stream", "work", "busy", "share", "longest queue", "mean queue"].map((text, i) => h("th", { scope: "col", class: i ? "number" : "" }, text));
  const charts = each.queues.filter(queue => queue.time.length > 2).slice(0, 4).map((queue, i) => queueChart(shown(each.streams[i].name || `stream ${each.streams[i].number}`), queue, closers));
  return h("div", { class: "card" }, h("h2", {}, "Streams, and launched work that waits in them"), h("table", { class: "parts" }, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows)), ...charts);
}

function queueChart(name: string, queue: DeviceFacts["queues"][number], closers: (() => void)[]): HTMLElement {
  const place = h("div", { class: "chart low", role: "img", "aria-label": `work that waits in ${name} over time` });
  let plot: uPlot | null = null;
  const size = (): { width: number; height: number } => ({ width: Math.max(place.clientWidth, 100), height: 120 });
  const make = (): void => {
    plot?.destroy();
    const axis = { stroke: colour("faint"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line") }, font: "11px system-ui" };
    plot = new uPlot({
      ...size(), title: "", legend: { show: false }, scales: { x: { time: false } }, axes: [{ ...axis, values: (_, ticks) => ticks.map(shortTime) }, { ...axis, size: 50 }],
      series: [{}, { stroke: colour("kernel"), fill: `color-mix(in srgb, ${colour("kernel")} 25%, transparent)`, width: 1, paths: uPlot.paths.stepped!({ align: 1 }), points: { show: false } }],
    }, [Array.from(queue.time), Array.from(queue.length)], place);
  };
  const observer = new ResizeObserver(() => (plot ? plot.setSize(size()) : make()));
  observer.observe(place);
  closers.push(() => { observer.disconnect(); plot?.destroy(); }, onTheme(make));
  return h("div", {}, h("h3", {}, name), place);
}

function copies(each: DeviceFacts): HTMLElement | null {
  if (!each.copies.length) return null;
  const head = ["copies", "count", "time", "bytes", "rate"].map((text, i) => h("th", { scope: "col", class: i ? "number" : "" }, text));
  const rows = each.copies.map(copy => h("tr", {}, h("th", { scope: "row" }, shown(copy.direction)), h("td", { class: "number" }, count(copy.count)), h("td", { class: "number" }, time(copy.total_ns)), h("td", { class: "number" }, bytes(copy.size_bytes)), h("td", { class: "number" }, `${copy.gigabytes_per_second.toFixed(2)} GB/s`)));
  return h("div", { class: "card" }, h("table", { class: "parts" }, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows)));
}
