// Memory in use over time by category, with its peak, and who owns it at a moment.
import { type MemoryData, MemoryModel, pieceOf } from "../model/memory";
import { h, styled } from "./dom";
import { bytes, shown } from "./format";

type Child = SVGElement;
const LISTED = 15;

function element(name: string, attributes: Record<string, string | number> = {}, text = ""): Child {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  if (text) made.textContent = text;
  return made;
}

export interface MemoryView { from: number; to: number; pinned: number | null }

export class MemoryChart {
  readonly element: HTMLElement;
  readonly model: MemoryModel;
  readonly margin: { left: number; right: number; top: number; bottom: number };
  view: { from: number; to: number };
  pinned: number | null;
  width = 0;
  height = 0;
  highest = 1; // bytes at the upper edge
  private readonly chart = element("svg", { id: "chart", tabindex: 0, role: "img", "aria-label": "memory in use over time, by category" }) as SVGSVGElement;
  private readonly overview = element("svg", { id: "overview", preserveAspectRatio: "none", "aria-hidden": "true" }) as SVGSVGElement;
  private readonly tip = h("div", { id: "tip", class: "tip", hidden: true });
  private readonly frame = h("div", { id: "frame" }, this.chart, this.tip);
  private readonly categories = h("table", { id: "categories" });
  private readonly owners = h("table", { id: "owners" });
  private readonly ownersTitle = h("h2", { id: "owners-title" });
  private readonly toPeak = h("button", { id: "to-peak", class: "tool", hidden: true, onclick: () => { this.pin(null); this.draw(); } }, "Back to the peak");
  private readonly rows: Record<string, [y: number, height: number]>;
  private hovered: { x: number; y: number } | null = null;
  private drag: { x: number; moved: boolean } | null = null;
  private readonly observer = new ResizeObserver(() => this.draw());

  constructor(readonly data: MemoryData, private readonly onView: (view: MemoryView) => void = () => undefined, kept: Partial<MemoryView> = {}) {
    this.model = new MemoryModel(data);
    const hasSteps = data.bands.some(band => band[0] === "step");
    this.rows = { step: [4, 16], backward: [hasSteps ? 22 : 4, 14], optimizer: [hasSteps ? 22 : 4, 14] };
    this.margin = { left: 74, right: 14, top: hasSteps ? 44 : 26, bottom: 26 };
    this.view = { from: kept.from ?? 0, to: kept.to ?? Math.max(data.end, 1) };
    this.pinned = kept.pinned ?? null;
    const hint = h("p", { class: "hint", id: "hint" }, "Drag to zoom, scroll to zoom around the pointer, double-click for everything; click to see who owns the memory then.");
    for (const kind of ["backward", "optimizer"]) if (data.bands.some(band => band[0] === kind)) hint.append(styled(h("i"), { background: `var(--band-${kind})` }), kind === "backward" ? "backward pass" : "optimizer step");
    const panels = h("div", { class: "panels" }, h("div", { class: "panel" }, h("h2", {}, "Categories"), this.categories), h("div", { class: "panel" }, h("div", { class: "panel-head" }, this.ownersTitle, this.toPeak), this.owners));
    const nothing = !this.model.moments.length;
    if (nothing) this.frame.replaceChildren(h("p", { class: "nothing" }, "No memory was in use in this recording."));
    this.element = h("div", { class: "memory" }, this.frame, ...(nothing ? [] : [this.overview as unknown as HTMLElement, hint, panels]));
    if (nothing) return;
    this.listen();
    this.makeCategories();
    this.fillOwners();
    this.observer.observe(this.frame);
  }

  close(): void {
    this.observer.disconnect();
  }

  /** What there is to see, in a line. */
  facts(): (Node | string)[] {
    const { data, model } = this;
    if (!model.moments.length) return [];
    const facts: (Node | string)[] = ["Peak ", h("b", {}, bytes(data.peak.bytes)), ` at ${this.time(data.peak.time)} of ${this.time(data.end)} · ${model.count.toLocaleString("en")} pieces of memory`];
    if (data.summed.count) facts.push(` and ${data.summed.count.toLocaleString("en")} below ${bytes(data.summed.below)}, drawn together`);
    return facts;
  }

  tools(): HTMLElement {
    const tool = (id: string, title: string, text: string, action: () => void): HTMLElement => h("button", { id, class: "tool", title, onclick: action }, text);
    return h("div", { class: "tools" }, tool("in", "zoom in (+)", "+", () => this.zoomAround(this.middle(), 0.5)), tool("out", "zoom out (-)", "−", () => this.zoomAround(this.middle(), 2)), tool("reset", "everything (0)", "Everything", () => this.zoom(0, this.data.end)));
  }

  // --- places ---

  toX(t: number): number {
    return this.margin.left + ((t - this.view.from) / (this.view.to - this.view.from)) * (this.width - this.margin.left - this.margin.right);
  }

  toTime(x: number): number {
    return this.view.from + ((x - this.margin.left) / (this.width - this.margin.left - this.margin.right)) * (this.view.to - this.view.from);
  }

  private toY(value: number): number {
    return this.height - this.margin.bottom - (value / this.highest) * (this.height - this.margin.top - this.margin.bottom);
  }

  private time(ns: number, step = 0): string {
    const [scale, unit] = this.data.end >= 2e9 ? [1e9, "s"] : this.data.end >= 2e6 ? [1e6, "ms"] : [1e3, "µs"];
    const digits = step ? Math.max(0, Math.ceil(-Math.log10(step / Number(scale)) - 1e-9)) : 3;
    return `${(ns / Number(scale)).toFixed(Math.min(digits, 6))} ${unit}`;
  }

  // --- drawing ---

  draw(): void {
    const box = this.chart.getBoundingClientRect(), { margin, view, model } = this;
    if (!box.width) return;
    this.width = box.width;
    this.height = box.height;
    this.chart.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    this.chart.dataset.from = String(view.from);
    this.chart.dataset.to = String(view.to);
    const points = model.pointsIn(view.from, view.to, this.width - margin.left - margin.right);
    this.highest = points.reduce((most, [, k]) => Math.max(most, model.totals[k]), 1) * 1.12;
    this.chart.replaceChildren(this.grid(), this.areas(points), this.bands(), this.peakMark(), ...this.overlays());
    this.drawOverview();
    if (this.hovered) this.showTip(this.hovered.x, this.hovered.y);
  }

  private grid(): Child {
    const { margin, width, height, view } = this, group = element("g", { class: "grid" });
    for (const value of byteTicks(this.highest, (height - margin.top) / 60)) {
      const y = this.toY(value);
      group.append(element("line", { x1: margin.left, x2: width - margin.right, y1: y, y2: y }), element("text", { x: margin.left - 8, y: y + 4, "text-anchor": "end" }, bytes(value)));
    }
    const [found, step] = ticks(view.from, view.to, Math.max(2, width / 130), [1, 2, 5, 10]);
    for (const value of found) {
      const x = this.toX(value);
      group.append(element("line", { x1: x, x2: x, y1: height - margin.bottom, y2: height - margin.bottom + 5 }));
      group.append(element("text", { x, y: height - 6, "text-anchor": x > width - margin.right - 30 ? "end" : "middle" }, this.time(value, step)));
    }
    return group;
  }

  private areas(points: [number, number][]): Child {
    const { model, data } = this, group = element("g", { class: "areas" }), end = this.toX(this.view.to);
    let below = points.map(() => 0), line = "";
    for (let c = 0; c < model.kinds; c++) {
      if (!model.shown[c] || !points.some(([, k]) => model.levels[c][k] > 0)) continue;
      const above = points.map(([, k], i) => below[i] + model.levels[c][k]), up = this.stepped(points, above, end), down = this.steppedBack(points, below, end);
      group.append(element("path", { d: `${up}${down}Z`, class: `c${c}`, "data-category": data.categories[c] }));
      below = above;
      line = up;
    }
    if (line) group.append(element("path", { d: line, class: "total" }));
    return group;
  }

  private stepped(points: [number, number][], values: number[], end: number): string {
    let d = "";
    points.forEach(([t], i) => { const x = this.toX(t).toFixed(2), y = this.toY(values[i]).toFixed(2); d += i ? `H${x}V${y}` : `M${x} ${y}`; });
    return `${d}H${end.toFixed(2)}`;
  }

  private steppedBack(points: [number, number][], values: number[], end: number): string {
    let d = "", x = end;
    for (let i = points.length - 1; i >= 0; i--) { d += `L${x.toFixed(2)} ${this.toY(values[i]).toFixed(2)}`; x = this.toX(points[i][0]); d += `H${x.toFixed(2)}`; }
    return d;
  }

  private bands(): Child {
    const { view, margin, width } = this, group = element("g", { class: "bands" }), drawn: Record<string, number> = { step: -1, backward: -1, optimizer: -1 };
    for (const [kind, name, start, end] of this.data.bands) {
      if (end < view.from || start > view.to) continue;
      const a = Math.max(this.toX(start), margin.left), b = Math.min(this.toX(end), width - margin.right), [y, tall] = this.rows[kind];
      if (b < drawn[kind] + 0.5) continue; // of many in one pixel, one
      drawn[kind] = b;
      const rect = element("rect", { class: kind, x: a, y, width: Math.max(b - a, 0.8), height: tall, rx: 2 });
      rect.append(element("title", {}, `${shown(name)}: ${this.time(start)} to ${this.time(end)}`));
      group.append(rect);
      const text = kind === "step" ? name.replace("ProfilerStep#", "step ") : kind;
      if (b - a > 7 * text.length) group.append(element("text", { x: a + 4, y: y + tall - 4 }, text));
    }
    return group;
  }

  private peakMark(): Child {
    const { model, data, view, margin, width } = this, { time: t, bytes: size } = data.peak, group = element("g", { id: "peak", "data-time": t, "data-bytes": size });
    if (t < view.from || t > view.to || !model.shown.every(Boolean)) return group;
    const x = this.toX(t), y = this.toY(size), k = model.momentAt(t), most = model.levels.reduce((best, level, c) => (level[k] > model.levels[best][k] ? c : best), 0);
    const owner = `${((100 * model.levels[most][k]) / size).toFixed(0)} % ${data.categories[most]}, in ${shown(data.names[data.pieces.maker[pieceOf(model.largest[k])]], 80)}`;
    group.append(element("line", { x1: x, x2: x, y1: y, y2: this.height - margin.bottom }), element("circle", { cx: x, cy: y, r: 4 }));
    const text = `peak ${bytes(size)} at ${this.time(t)}`, room = 7 * (text.length + owner.length + 3);
    const long = x + room < width || x - room > margin.left, full = long ? `${text} · ${owner}` : text, left = x + 7 * full.length > width - margin.right;
    group.append(element("text", { x: left ? x - 8 : x + 8, y: y - 7, "text-anchor": left ? "end" : "start" }, full));
    return group;
  }

  private overlays(): Child[] {
    const { margin, height, view, pinned } = this;
    const lines = [element("line", { id: "cursor", visibility: "hidden", y1: margin.top - 4, y2: height - margin.bottom }), element("rect", { id: "brush", visibility: "hidden", y: margin.top - 4, height: height - margin.bottom - margin.top + 4 })];
    if (pinned !== null && pinned >= view.from && pinned <= view.to) lines.push(element("line", { id: "pin", x1: this.toX(pinned), x2: this.toX(pinned), y1: margin.top - 4, y2: height - margin.bottom }));
    return lines;
  }

  private drawOverview(): void {
    const { model, data, margin, view } = this, wide = this.overview.getBoundingClientRect().width, left = margin.left, right = wide - margin.right, tall = 34;
    this.overview.setAttribute("viewBox", `0 0 ${wide} ${tall}`);
    const points = model.pointsIn(0, Math.max(data.end, 1), right - left), most = points.reduce((best, [, k]) => Math.max(best, model.totals[k]), 1);
    const x = (t: number): number => left + (t / Math.max(data.end, 1)) * (right - left);
    let d = `M${x(0)} ${tall}`;
    for (const [t, k] of points) d += `H${x(t).toFixed(1)}V${(tall - (model.totals[k] / most) * (tall - 4)).toFixed(1)}`;
    this.overview.replaceChildren(element("path", { d: `${d}H${right}V${tall}Z` }), element("rect", { x: x(view.from), y: 0.5, width: Math.max(x(view.to) - x(view.from), 2), height: tall - 1, rx: 2 }));
  }

  // --- pointing ---

  /** The moment that a pointer means: the largest change within a few pixels, else the last one before. */
  private momentNear(t: number): number {
    const { model } = this, reach = this.toTime(this.margin.left + 4) - this.view.from, low = model.momentAt(t - reach) + 1, high = model.momentAt(t + reach);
    const size = (k: number): number => this.data.pieces.size[pieceOf(model.largest[k])];
    let best = -1;
    for (let k = low; k <= high; k++) if (best < 0 || size(k) > size(best)) best = k;
    return best < 0 ? model.momentAt(t) : best;
  }

  private showTip(x: number, y: number): void {
    const { model, margin, tip } = this, k = this.momentNear(this.toTime(x));
    if (k < 0 || x < margin.left || x > this.width - margin.right) return this.hideTip();
    const t = Math.max(model.moments[k], this.view.from), [name, what, place] = model.describe(k, bytes), cursor = this.chart.querySelector("#cursor");
    for (const side of ["x1", "x2"]) cursor?.setAttribute(side, String(this.toX(t)));
    cursor?.setAttribute("visibility", "visible");
    const during = this.data.bands.filter(([, , start, end]) => start <= model.moments[k] && model.moments[k] <= end).map(([kind, text]) => (kind === "step" ? text.replace("ProfilerStep#", "step ") : kind));
    const lines = [h("div", { class: "name" }, shown(name, 200)), h("div", { class: "what" }, shown(what, 300))];
    if (model.place(place)[0]) lines.push(h("div", { class: "where" }, shown(model.place(place)[0])));
    lines.push(h("div", { class: "where" }, [this.time(model.moments[k]), ...during, `${bytes(model.totals[k])} in use`].join(" · ")));
    tip.replaceChildren(...lines);
    tip.hidden = false;
    const frame = this.chart.getBoundingClientRect(), w = tip.offsetWidth, tall = tip.offsetHeight, at = this.toX(t);
    tip.style.left = `${at + 14 + w > frame.width ? Math.max(0, at - 14 - w) : at + 14}px`;
    tip.style.top = `${Math.min(Math.max(0, y - tall - 12 < 0 ? y + 16 : y - tall - 12), frame.height - tall)}px`;
    this.fillCategories(k);
  }

  private hideTip(): void {
    this.tip.hidden = true;
    this.chart.querySelector("#cursor")?.setAttribute("visibility", "hidden");
    this.fillCategories(null);
  }

  // --- tables ---

  private fillCategories(k: number | null): void {
    const { levels } = this.model;
    for (const cell of this.categories.querySelectorAll<HTMLElement>("[data-now]")) {
      const c = Number(cell.dataset.now);
      cell.textContent = k === null ? "" : bytes(c < 0 ? levels.reduce((sum, level) => sum + level[k], 0) : levels[c][k]);
    }
  }

  private makeCategories(): void {
    const { model, data } = this, peak = model.momentAt(data.peak.time), table = this.categories;
    table.append(h("tr", {}, h("th", {}, "category"), h("th", { class: "number" }, "here"), h("th", { class: "number" }, "at the peak"), h("th", { class: "number" }, "most")));
    for (let c = model.kinds - 1; c >= 0; c--) {
      const most = model.levels[c].reduce((a, b) => Math.max(a, b), 0);
      if (!most) continue;
      const box = h("input", { type: "checkbox", onchange: () => { model.shown[c] = box.checked; model.sumShown(); this.draw(); } });
      box.checked = true;
      const label = h("label", {}, box, h("span", { class: `swatch c${c}` }), data.categories[c]);
      table.append(h("tr", { "data-category": data.categories[c] }, h("td", {}, label), h("td", { class: "number", "data-now": c }), h("td", { class: "number" }, bytes(model.levels[c][peak] ?? 0)), h("td", { class: "number" }, bytes(most))));
    }
    table.append(h("tr", {}, h("td", {}, "all"), h("td", { class: "number", "data-now": -1 }), h("td", { class: "number" }, bytes(data.peak.bytes)), h("td", { class: "number" }, bytes(data.peak.bytes))));
  }

  private fillOwners(): void {
    const { model, data } = this, t = this.pinned ?? data.peak.time, sorted = model.owners(t), total = sorted.reduce((sum, group) => sum + group.size, 0);
    this.ownersTitle.textContent = this.pinned === null ? `Who owns the ${bytes(total)} at the peak` : `Who owns the ${bytes(total)} at ${this.time(t)}`;
    this.toPeak.hidden = this.pinned === null;
    const rows = sorted.slice(0, LISTED).map(({ piece, size, count }) => {
      const { pieces } = data, [where, stack] = model.place(pieces.place[piece]);
      const place = stack.includes("\n") ? h("details", {}, h("summary", {}, shown(where)), h("pre", {}, shown(stack, 8000))) : shown(where);
      const kind = h("td", { class: "kind" }, h("span", { class: `swatch c${pieces.category[piece]}` }), data.categories[pieces.category[piece]]);
      return h("tr", {}, h("td", { class: "number" }, bytes(size)), kind, h("td", { class: "operator" }, shown(data.names[pieces.maker[piece]]) + (count > 1 ? `\u00a0×\u00a0${count}` : "")), h("td", { class: "place" }, place));
    });
    const rest = sorted.slice(LISTED);
    if (rest.length) rows.push(h("tr", {}, h("td", { class: "number" }, bytes(rest.reduce((sum, group) => sum + group.size, 0))), h("td", { class: "place", colspan: 3 }, `and ${rest.length} more`)));
    this.owners.replaceChildren(h("tr", {}, h("th", { class: "number" }, "bytes"), ...["category", "made by", "called from"].map(text => h("th", {}, text))), ...rows);
  }

  // --- acting ---

  zoom(from: number, to: number): void {
    const end = Math.max(this.data.end, 1), span = Math.min(Math.max(to - from, Math.min(end, 1000)), end);
    from = Math.min(Math.max(from, 0), end - span);
    this.view = { from, to: from + span };
    this.changed();
    this.draw();
  }

  private changed(): void {
    this.onView({ ...this.view, pinned: this.pinned });
  }

  private pin(t: number | null): void {
    this.pinned = t;
    this.changed();
    this.fillOwners();
  }

  private zoomAround(t: number, factor: number): void {
    this.zoom(t - (t - this.view.from) * factor, t + (this.view.to - t) * factor);
  }

  private middle(): number {
    return (this.view.from + this.view.to) / 2;
  }

  key(event: KeyboardEvent): boolean {
    const { from, to } = this.view, fifth = (to - from) / 5;
    const actions: Record<string, () => void> = {
      "+": () => this.zoomAround(this.middle(), 0.5), "=": () => this.zoomAround(this.middle(), 0.5), "-": () => this.zoomAround(this.middle(), 2), "0": () => this.zoom(0, this.data.end),
      ArrowLeft: () => this.zoom(from - fifth, to - fifth), ArrowRight: () => this.zoom(from + fifth, to + fifth),
      w: () => this.zoomAround(this.middle(), 0.7), s: () => this.zoomAround(this.middle(), 1 / 0.7), a: () => this.zoom(from - fifth, to - fifth), d: () => this.zoom(from + fifth, to + fifth),
    };
    actions[event.key]?.();
    return event.key in actions;
  }

  private listen(): void {
    const { chart } = this, within = (event: MouseEvent): [number, number] => { const box = chart.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    chart.addEventListener("pointerdown", event => { if (event.button === 0) { this.drag = { x: within(event)[0], moved: false }; chart.setPointerCapture(event.pointerId); } });
    chart.addEventListener("pointermove", event => this.move(...within(event)));
    chart.addEventListener("pointerup", event => this.up(within(event)[0]));
    chart.addEventListener("pointerleave", () => { this.hovered = null; this.hideTip(); });
    chart.addEventListener("dblclick", () => { this.pin(null); this.zoom(0, this.data.end); });
    chart.addEventListener("wheel", event => {
      event.preventDefault();
      const shift = ((this.view.to - this.view.from) * event.deltaX) / Math.max(this.width, 1);
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) return this.zoom(this.view.from + shift, this.view.to + shift);
      this.zoomAround(this.toTime(within(event)[0]), Math.exp(Math.max(-200, Math.min(200, event.deltaY)) / 300));
    }, { passive: false });
    chart.addEventListener("keydown", event => { if (!event.ctrlKey && !event.metaKey && this.key(event)) event.preventDefault(); });
    this.overview.addEventListener("click", event => {
      const box = this.overview.getBoundingClientRect(), span = this.view.to - this.view.from;
      const t = ((event.clientX - box.left - this.margin.left) / (box.width - this.margin.left - this.margin.right)) * this.data.end;
      this.zoom(t - span / 2, t + span / 2);
    });
  }

  private move(x: number, y: number): void {
    const { drag, margin } = this;
    if (drag && Math.abs(x - drag.x) > 4) drag.moved = true;
    if (!drag?.moved) { this.hovered = { x, y }; return this.showTip(x, y); }
    const brush = this.chart.querySelector("#brush")!, a = Math.max(Math.min(x, drag.x), margin.left), b = Math.min(Math.max(x, drag.x), this.width - margin.right);
    brush.setAttribute("x", String(a));
    brush.setAttribute("width", String(Math.max(b - a, 0)));
    brush.setAttribute("visibility", "visible");
    this.hideTip();
  }

  private up(x: number): void {
    const { drag } = this;
    this.drag = null;
    if (!drag) return;
    if (drag.moved) return this.zoom(this.toTime(Math.min(x, drag.x)), this.toTime(Math.max(x, drag.x)));
    const k = this.momentNear(this.toTime(x));
    if (k >= 0) { this.pin(Math.max(this.model.moments[k], 0)); this.draw(); }
  }
}

function ticks(low: number, high: number, wanted: number, bases: number[]): [number[], number] {
  const rough = (high - low) / wanted, power = 10 ** Math.floor(Math.log10(rough)), step = bases.map(base => base * power).find(each => each >= rough) ?? 10 * power, found: number[] = [];
  for (let value = Math.ceil(low / step) * step; value <= high; value += step) found.push(value);
  return [found, step];
}

function byteTicks(high: number, wanted: number): number[] {
  const unit = 1024 ** Math.max(0, Math.floor(Math.log2(Math.max(high, 1)) / 10));
  return ticks(0, high / unit, wanted, [1, 2, 2.5, 5, 10])[0].map(value => value * unit);
}
