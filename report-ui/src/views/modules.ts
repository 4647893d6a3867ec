// The modules of a network as a tree.
import { Address } from "../address";
import { part } from "../model/packed";
import type { ModuleTree, NotRecorded } from "../model/report";
import type { Context, Shown, View } from "../view";
import { filterField, matcher, notRecorded } from "../widgets/controls";
import { debounce, h, styled } from "../widgets/dom";
import { bytes, count, metric, share, shown, time } from "../widgets/format";

export const modules: View = { name: "modules", title: "Modules", icon: "⊞", show };

async function show(context: Context): Promise<Shown> {
  const data = await part<ModuleTree | NotRecorded>(`modules.${context.process}`);
  if (data.needs !== undefined) return { element: notRecorded("Modules were not recorded.", data.needs) };
  if (!data.path.length) return { element: h("div", { class: "nothing" }, "No module was called.") };
  const view = new ModulesView(context, data);
  return { element: view.element, search: view.field };
}

class ModulesView {
  readonly element: HTMLElement;
  readonly field: HTMLInputElement;
  private readonly body = h("tbody");
  private readonly children: number[][];
  private readonly roots: number[] = [];
  private readonly closed: Set<number>;
  private sort: string;
  private readonly head = h("tr");

  constructor(private readonly context: Context, private readonly data: ModuleTree) {
    this.children = data.path.map(() => []);
    data.parent.forEach((above, i) => (above < 0 ? this.roots : this.children[above]).push(i));
    const { address } = context;
    this.sort = address.get("sort", "order");
    this.closed = new Set(address.get("closed").split(".").filter(Boolean).map(Number));
    this.field = filterField("filter", address.get("filter"), debounce(80, () => { context.keep({ filter: this.field.value }); this.fill(); }));
    const all = (open: boolean) => (): void => { this.closed.clear(); if (!open) this.children.forEach((inner, i) => { if (inner.length && data.parent[i] >= 0) this.closed.add(i); }); this.keep(); };
    this.element = h("div", { class: "fill" },
      h("div", { class: "bar-of-tools" }, this.field, h("button", { class: "tool", onclick: all(true) }, "open all"), h("button", { class: "tool", onclick: all(false) }, "close all"), h("span", { class: "faint" }, `${count(data.path.length)} ${data.path.length === 1 ? "module" : "modules"} · shares are of ${time(data.recorded)}, all events`)),
      h("div", { class: "scroll", tabindex: "0" }, h("table", { class: "tree", role: "treegrid", "aria-label": "modules" }, h("thead", {}, this.head), this.body)));
    this.fill();
  }

  private keep(): void {
    this.context.keep({ closed: [...this.closed].join(".") });
    this.fill();
  }

  private columns(): { key: string; title: string; hint: string; value(i: number): number; cell(i: number): Node | string }[] {
    const { data } = this, timed = (key: string, title: string, hint: string, values: ArrayLike<number>) => ({ key, title, hint, value: (i: number) => values[i], cell: (i: number) => time(values[i]) });
    const columns = [
      { key: "total", title: "total", hint: "forward and backward, with the modules inside", value: (i: number) => data.forward[i] + data.backward[i], cell: (i: number) => this.bar(i) },
      { key: "share", title: "share", hint: "of the time of all events", value: (i: number) => data.forward[i] + data.backward[i], cell: (i: number) => share(data.forward[i] + data.backward[i], data.recorded) },
      timed("forward", "forward", "with the modules inside", data.forward),
      timed("backward", "backward", "with the modules inside", data.backward),
      { key: "self", title: "self", hint: "forward and backward, without the modules inside", value: (i: number) => data.selfForward[i] + data.selfBackward[i], cell: (i: number) => h("span", { title: `forward ${time(data.selfForward[i])}, backward ${time(data.selfBackward[i])}` }, time(data.selfForward[i] + data.selfBackward[i])) },
    ];
    const { memory, flopsForward, flopsBackward } = data;
    if (memory) columns.push({ key: "memory", title: "memory kept", hint: "bytes that its forward calls made and did not free: activations, for the most part", value: i => memory[i], cell: i => bytes(memory[i]) });
    if (flopsForward && flopsBackward) {
      const flops = (i: number): number => flopsForward[i] + flopsBackward[i], rate = (i: number): number => (data.forward[i] + data.backward[i] ? flops(i) / (data.forward[i] + data.backward[i]) : 0);
      columns.push({ key: "flops", title: "FLOPs", hint: "floating point operations, forward and backward", value: flops, cell: i => metric(flops(i), "FLOP") });
      columns.push({ key: "rate", title: "achieved", hint: "operations in a second of its time", value: rate, cell: i => metric(rate(i) * 1e9, "FLOP/s") });
    }
    return columns;
  }

  private bar(i: number): HTMLElement {
    const { data } = this, most = Math.max(1, ...this.roots.map(root => data.forward[root] + data.backward[root]));
    const piece = (ns: number, colour: string): HTMLElement => styled(h("span"), { width: `${(100 * ns) / most}%`, background: colour });
    return h("div", { class: "split" }, h("div", { class: "split-bar" }, piece(data.forward[i], "var(--forward)"), piece(data.backward[i], "var(--backward)")), h("span", {}, time(data.forward[i] + data.backward[i])));
  }

  private fill(): void {
    const { data } = this, columns = this.columns(), matches = matcher(this.field.value), filtering = this.field.value.trim() !== "";
    const titles = [{ key: "order", title: "module", hint: "in order of their first calls" }, { key: "calls", title: "calls", hint: "" }, ...columns];
    this.head.replaceChildren(...titles.map(({ key, title, hint }, i) => h("th", { scope: "col", class: i ? "number" : "", "aria-sort": this.sort === key ? (key === "order" ? "ascending" : "descending") : "none" }, h("button", { title: hint, "data-sort": key, onclick: () => { this.sort = key; this.context.keep({ sort: key === "order" ? "" : key }); this.fill(); } }, title, this.sort === key && key !== "order" ? " ▾" : ""))));
    const column = columns.find(each => each.key === this.sort), value = this.sort === "calls" ? (i: number): number => data.calls[i] : column?.value;
    const rows: HTMLElement[] = [];
    const add = (list: number[], depth: number): void => {
      for (const i of value ? [...list].sort((a, b) => value(b) - value(a)) : list) {
        const shownHere = !filtering || matches(`${data.path[i]} ${data.classes[data.class[i]]}`);
        if (shownHere) rows.push(this.row(i, filtering ? 0 : depth, columns));
        if (filtering || !this.closed.has(i)) add(this.children[i], depth + 1);
      }
    };
    add(this.roots, 0);
    this.body.replaceChildren(...rows);
  }

  private row(i: number, depth: number, columns: { cell(i: number): Node | string; key: string }[]): HTMLElement {
    const { data } = this, inner = this.children[i].length > 0, open = !this.closed.has(i), above = data.parent[i];
    const name = depth && above >= 0 ? data.path[i].slice(data.path[above].length + 1) : data.path[i];
    const toggle = inner ? h("button", { class: "toggle", "aria-label": open ? "close" : "open", onclick: () => { if (open) this.closed.add(i); else this.closed.delete(i); this.keep(); this.body.querySelector<HTMLElement>(`[data-module="${i}"] .toggle`)?.focus(); } }, open ? "▾" : "▸") : h("span", { class: "toggle" });
    const link = h("a", { href: String(new Address("operators").with({ group: "module", filter: data.path[i], ...(this.context.process ? { process: this.context.process } : {}) })), title: shown(data.path[i]) }, shown(name, 80));
    const first = styled(h("th", { scope: "row" }, toggle, link, h("span", { class: "faint" }, ` ${shown(data.classes[data.class[i]], 60)}`)), { paddingLeft: `${depth * 16 + 4}px` });
    return h("tr", { "data-module": i, "aria-level": depth + 1, "aria-expanded": inner ? String(open) : null }, first, h("td", { class: "number" }, count(data.calls[i])), ...columns.map(column => h("td", { class: "number", "data-column": column.key }, column.cell(i))));
  }
}
