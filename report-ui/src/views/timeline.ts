// All events on one time base, with what is known of the one that is selected.
import { Address } from "../address";
import { Lanes, Pairs } from "../model/lanes";
import { part } from "../model/packed";
import type { EventsPart } from "../model/report";
import type { Context, Shown, View } from "../view";
import { filterField, matcher } from "../widgets/controls";
import { debounce, h } from "../widgets/dom";
import { bytes, count, shown, time } from "../widgets/format";
import { type Selected, Timeline } from "../widgets/timeline";

export const timeline: View = { name: "timeline", title: "Timeline", icon: "☰", show };

interface Loaded { lanes: Lanes[]; passes: Pairs[]; launches: Pairs[]; end: number }
let loaded: Promise<Loaded> | null = null;

async function load(processes: number): Promise<Loaded> {
  const parts = await Promise.all(Array.from({ length: processes }, (_, number) => part<EventsPart>(`events.${number}`)));
  const lanes = parts.map((events, number) => new Lanes(events, number));
  let end = 1;
  for (const each of lanes) {
    end = Math.max(end, each.events.stopped);
    for (let i = 0; i < each.end.length; i++) if (each.end[i] > end) end = each.end[i];
  }
  return { lanes, end, passes: parts.map(events => new Pairs(events.forward, events.backward)), launches: parts.map(events => new Pairs(events.caller, events.kernel)) };
}

async function show(context: Context): Promise<Shown> {
  loaded ??= load(context.report.processes.length);
  const view = new TimelineView(context, await loaded);
  Object.assign(window, { timeline: view.timeline }); // for tests, which ask where an event is drawn
  return { element: view.element, search: view.field, key: event => view.key(event), close: () => view.timeline.close() };
}

class TimelineView {
  readonly element: HTMLElement;
  readonly field: HTMLInputElement;
  readonly timeline: Timeline;
  private readonly detail = h("aside", { class: "detail", "aria-label": "the selected event", hidden: true });
  private readonly found = h("span", { class: "faint", role: "status", id: "found" });
  private matches: Selected[] | null = null;
  private matching: Uint8Array[] | null = null;

  constructor(private readonly context: Context, private readonly data: Loaded) {
    const { address } = context, { lanes, end } = data;
    const keepView = debounce(150, () => context.keep({ from: Math.round(this.timeline.from), to: Math.round(this.timeline.to) }));
    const selected = this.read(address.get("event"));
    this.timeline = new Timeline({
      processes: lanes,
      names: context.report.processes.map(each => `${each.name} ${each.pid}`),
      from: address.number("from", -0.005 * end), to: address.number("to", 1.005 * end), end, selected,
      onView: keepView,
      onSelect: each => { context.keep({ event: each ? `${each.process}.${each.row}` : "" }); this.describe(each); },
      partner: each => this.partner(each),
    });
    this.field = filterField("search", address.get("search"), debounce(150, () => this.search(this.field.value)));
    this.field.addEventListener("keydown", event => { if (event.key === "Enter") this.next(event.shiftKey ? -1 : 1); });
    const tool = (title: string, hint: string, action: () => void): HTMLElement => h("button", { class: "tool", title: hint, "aria-label": hint, onclick: action }, title);
    const tools = h("div", { class: "bar-of-tools" }, this.field, tool("‹", "previous match (Shift+Enter)", () => this.next(-1)), tool("›", "next match (Enter)", () => this.next(1)), this.found,
      h("span", { class: "space" }), tool("+", "zoom in (W)", () => this.timeline.zoom(0.5)), tool("−", "zoom out (S)", () => this.timeline.zoom(2)), tool("Everything", "show everything (0)", () => this.timeline.everything()));
    this.element = h("div", { class: "timeline-view fill" }, tools, this.timeline.element, this.detail);
    if (address.get("search")) this.search(address.get("search"));
    this.describe(selected);
  }

  key(event: KeyboardEvent): boolean {
    return this.timeline.key(event);
  }

  private read(text: string): Selected | null {
    const [process, row] = text.split(".").map(Number);
    return text && process < this.data.lanes.length && row >= 0 && row < this.data.lanes[process].rows.length ? { process, row } : null;
  }

  private partner({ process, row }: Selected): Selected | null {
    const other = [this.data.passes[process].partner(row), this.data.launches[process].partner(row)].find(each => each >= 0);
    return other === undefined ? null : { process, row: other };
  }

  private search(text: string): void {
    this.context.keep({ search: text });
    this.matches = null;
    if (!text.trim()) {
      this.matching = null;
      this.found.textContent = "";
      return this.timeline.highlight(null);
    }
    const test = matcher(text);
    this.matching = this.data.lanes.map(({ events }) => Uint8Array.from(events.labels, ([name]) => Number(test(name))));
    let found = 0, spent = 0;
    this.data.lanes.forEach(({ events }, process) => {
      const mine = this.matching![process];
      for (let i = 0; i < events.label.length; i++) if (mine[events.label[i]]) { found++; spent += events.duration[i] - events.inner[i]; }
    });
    this.found.textContent = found ? `${count(found)} events, ${time(spent)} self` : "no event";
    this.timeline.highlight(this.matching);
  }

  /** Go to the next event that matches, in order of start. */
  private next(step: number): void {
    if (!this.matching) return;
    if (!this.matches) {
      const all: Selected[] = [];
      this.data.lanes.forEach(({ events }, process) => { for (let row = 0; row < events.label.length; row++) if (this.matching![process][events.label[row]]) all.push({ process, row }); });
      if (this.data.lanes.length > 1) all.sort((a, b) => this.data.lanes[a.process].events.start[a.row] - this.data.lanes[b.process].events.start[b.row]);
      this.matches = all;
    }
    if (!this.matches.length) return;
    const selected = this.read(this.current);
    let at = selected ? this.matches.findIndex(each => each.process === selected.process && each.row === selected.row) : -1;
    at = at < 0 ? (step > 0 ? 0 : this.matches.length - 1) : (at + step + this.matches.length) % this.matches.length;
    this.timeline.select(this.matches[at]);
    this.found.textContent = `${count(at + 1)} of ${count(this.matches.length)}`;
  }

  private current = "";

  private describe(selected: Selected | null): void {
    this.current = selected ? `${selected.process}.${selected.row}` : "";
    this.detail.hidden = selected === null;
    if (!selected) return;
    const { process, row } = selected, lanes = this.data.lanes[process], { events } = lanes;
    const [name, , kind] = events.labels[events.label[row]], track = events.tracks[events.track[row]];
    const facts: [string, Node | string][] = [
      ["time", time(events.duration[row])],
      ["self", time(events.duration[row] - events.inner[row])],
      ["start", time(events.start[row])],
      ["thread", shown(`${track.name || track.tid}${this.data.lanes.length > 1 ? ` of ${events.process} ${events.pid}` : ""}`)],
    ];
    const step = stepAt(events, events.start[row]);
    if (step !== null) facts.push(["step", String(step)]);
    if (events.module && events.module[row]) facts.push(["module", shown(events.modules[events.module[row] - 1])]);
    if (events.memory && events.memory[row]) facts.push(["memory kept", bytes(events.memory[row])]);
    const partner = this.partner(selected);
    if (partner) facts.push([kind === "kernel" || events.labels[events.label[partner.row]][2] === "kernel" ? "launch" : events.start[partner.row] > events.start[row] ? "backward" : "forward", this.jump(partner)]);
    const around = lanes.parent(row);
    if (around >= 0) facts.push(["inside", this.jump({ process, row: around })]);
    if (events.inputs) facts.push(["arguments", this.inputs(events, row)]);
    const close = h("button", { class: "tool close", "aria-label": "close", onclick: () => this.timeline.select(null) }, "×");
    this.detail.replaceChildren(close, h("h2", {}, shown(name, 1000)), h("dl", {}, ...facts.flatMap(([key, value]) => [h("dt", {}, key), h("dd", {}, value)])), this.stack(events, row),
      h("p", {}, h("a", { href: String(new Address("operators").with({ filter: name, kind: kind === "op" ? "" : "all" })) }, "all of this name")));
  }

  private jump(to: Selected): HTMLElement {
    const { events } = this.data.lanes[to.process];
    return h("button", { class: "link", onclick: () => { this.timeline.select(to); this.timeline.canvas.focus(); } }, `${shown(events.labels[events.label[to.row]][0], 120)} · ${time(events.duration[to.row])}`);
  }

  private inputs(events: EventsPart, row: number): Node | string {
    const number = events.inputs![row];
    if (!number || !events.inputTable[number - 1].length) return "none";
    return h("ol", { class: "arguments" }, ...events.inputTable[number - 1].map(text => h("li", {}, shown(text, 1000))));
  }

  private stack(events: EventsPart, row: number): HTMLElement {
    if (!events.stack) return h("p", { class: "faint" }, "Stacks are recorded with ", h("code", {}, "with_stack=True"), ".");
    const number = events.stack[row];
    if (!number) return h("p", { class: "faint" }, "No stack.");
    const frames = Array.from(events.stackFrame.subarray(events.stackStart[number - 1], events.stackStart[number]), frame => events.places[frame]);
    return h("div", {}, h("h3", {}, "Stack, innermost first"), h("ol", { class: "stack" }, ...frames.map(place => h("li", {}, shown(place)))));
  }
}

function stepAt(events: EventsPart, t: number): number | null {
  const { steps } = events;
  for (let i = 0; i < steps.number.length; i++) if (steps.start[i] <= t && t < steps.end[i]) return steps.number[i];
  return null;
}
