// All operators: sorted, filtered, grouped.
import { Address } from "../address";
import { part } from "../model/packed";
import type { Operators, OperatorTable } from "../model/report";
import type { Context, Shown, View } from "../view";
import { choice, filterField, matcher, notRecorded } from "../widgets/controls";
import { debounce, h } from "../widgets/dom";
import { brief, bytes, count, metric, share, shown, time } from "../widgets/format";
import { barCell, type TableColumn, VirtualTable } from "../widgets/table";

export const operators: View = { name: "operators", title: "Operators", icon: "≣", show };

const GROUPINGS = [
  { key: "name", title: "name" }, { key: "shape", title: "shapes" }, { key: "line", title: "source line" }, { key: "stack", title: "stack" }, { key: "module", title: "module" },
];
const KINDS: Record<string, string[]> = {
  operators: ["op", "runtime", "kernel"], scopes: ["scope"], Python: ["python_function"], all: [],
};

async function show(context: Context): Promise<Shown> {
  const data = await part<Operators>(`operators.${context.process}`);
  const view = new OperatorsView(context, data);
  return { element: view.element, search: view.field };
}

class OperatorsView {
  readonly element: HTMLElement;
  readonly field: HTMLInputElement;
  private readonly place = h("div", { class: "table-place" });
  private readonly detail = h("div", { class: "detail", hidden: true });
  private readonly sums = h("span", { class: "faint", role: "status", id: "sums" });
  private group: string;
  private kind: string;
  private filter: string;
  private table: VirtualTable | null = null;

  constructor(private readonly context: Context, private readonly data: Operators) {
    const { address } = context;
    this.group = GROUPINGS.some(each => each.key === address.get("group")) ? address.get("group") : "name";
    this.kind = address.get("kind") in KINDS ? address.get("kind") : "operators";
    this.filter = address.get("filter");
    const refilter = debounce(80, () => this.refill());
    this.field = filterField("filter", this.filter, text => {
      this.filter = text;
      this.context.keep({ filter: text });
      refilter();
    });
    const groupings = choice("group by", GROUPINGS, this.group, key => {
      this.group = key;
      this.context.keep({ group: key === "name" ? "" : key, pick: "" });
      this.make();
    });
    const kinds = choice("show", Object.keys(KINDS).map(key => ({ key, title: key })), this.kind, key => {
      this.kind = key;
      this.context.keep({ kind: key === "operators" ? "" : key });
      this.refill();
    });
    this.element = h("div", { class: "operators fill" }, h("div", { class: "bar-of-tools" }, this.field, groupings, kinds, this.sums), this.place, this.detail);
    this.make();
  }

  private make(): void {
    const found = this.data.groupings[this.group];
    this.detail.hidden = true;
    if (found.needs !== undefined) {
      this.table = null;
      this.sums.textContent = "";
      this.place.replaceChildren(notRecorded("This was not recorded.", found.needs));
      return;
    }
    const { address } = this.context;
    const columns = this.columns(found);
    const sort = columns.some(column => column.key === address.get("sort")) ? address.get("sort") : "self";
    this.table = new VirtualTable({
      label: "operators", columns, rows: this.rows(found), sort, descending: address.get("order") !== "up" && (address.get("order") === "down" || Boolean(columns.find(c => c.key === sort)!.numeric)),
      onSort: (key, descending) => this.context.keep({ sort: key, order: descending ? "down" : "up" }),
      onPick: row => { this.context.keep({ pick: row }); this.describe(found, row); },
      picked: address.number("pick", -1),
    });
    this.place.replaceChildren(this.table.element);
    const picked = address.number("pick", -1);
    if (picked >= 0 && picked < found.name.length) this.describe(found, picked);
  }

  private refill(): void {
    const found = this.data.groupings[this.group];
    if (found.needs === undefined) this.table?.setRows(this.rows(found));
  }

  private rows(table: OperatorTable): number[] {
    const kinds = KINDS[this.kind], matches = matcher(this.filter);
    const rows: number[] = [];
    let self = 0, calls = 0, all = 0;
    for (let i = 0; i < table.name.length; i++) {
      all += table.self[i];
      if (kinds.length && !kinds.includes(table.kinds[table.kind[i]])) continue;
      const line = table.line[i] >= 0 ? table.lines[table.line[i]] : "";
      if (!matches(`${table.names[table.name[i]]} ${table.details[table.detail[i]]} ${line}`)) continue;
      rows.push(i);
      self += table.self[i];
      calls += table.count[i];
    }
    this.sums.textContent = `${count(rows.length)} rows · ${count(calls)} calls · ${time(self)} self (${share(self, all)} of all)`;
    return rows;
  }

  private columns(table: OperatorTable): TableColumn[] {
    const { has } = this.data;
    const largest = (values: ArrayLike<number>): number => { let most = 1; for (let i = 0; i < values.length; i++) if (values[i] > most) most = values[i]; return most; };
    const mostSelf = largest(table.self), mostTotal = largest(table.total);
    const timed = (key: string, title: string, values: ArrayLike<number>, hint: string): TableColumn => ({ key, title, hint, width: "82px", numeric: true, value: i => values[i], cell: i => time(values[i]) });
    const detail = this.group !== "name" && this.group !== "line";
    const text = (i: number): string => shown(table.names[table.name[i]]);
    const line = (i: number): string => (table.line[i] >= 0 ? shown(table.lines[table.line[i]]) : "");
    return [
      { key: "name", title: "name", width: "minmax(170px, 2fr)", value: text, cell: (i: number) => shown(brief(table.names[table.name[i]])), full: text },
      detail ? { key: "detail", title: GROUPINGS.find(each => each.key === this.group)!.title, width: "minmax(140px, 1.6fr)", value: (i: number) => shown(table.details[table.detail[i]].split("\n")[0]) } : null,
      { key: "count", title: "calls", width: "58px", numeric: true, value: (i: number) => table.count[i], cell: (i: number) => count(table.count[i]) },
      { key: "self", title: "self", hint: "time without the operators inside", width: "minmax(96px, .9fr)", numeric: true, value: (i: number) => table.self[i], cell: (i: number) => barCell(time(table.self[i]), table.self[i] / mostSelf) },
      { key: "total", title: "total", hint: "time with the operators inside", width: "minmax(96px, .9fr)", numeric: true, value: (i: number) => table.total[i], cell: (i: number) => barCell(time(table.total[i]), table.total[i] / mostTotal, "var(--bar-2)") },
      { ...timed("mean", "mean", table.total, "total time of a call, mean"), value: (i: number) => table.total[i] / table.count[i], cell: (i: number) => time(table.total[i] / table.count[i]) },
      timed("median", "median", table.median, "total time of a call, median"),
      timed("max", "max", table.max, "total time of the longest call"),
      has.device ? timed("device", "device", table.selfDevice, "time of the kernels that it started") : null,
      has.memory ? { key: "memory", title: "memory", hint: "bytes made and not freed, without the operators inside", width: "76px", numeric: true, value: (i: number) => table.selfMemory[i], cell: (i: number) => bytes(table.selfMemory[i]) } : null,
      has.flops ? { key: "flops", title: "FLOPs", width: "86px", numeric: true, value: (i: number) => table.flops[i], cell: (i: number) => metric(table.flops[i], "FLOP") } : null,
      has.lines ? { key: "line", title: "source line", hint: "the line of the program that most of its time is from", width: "minmax(110px, 1.4fr)", value: line } : null,
    ].filter((column): column is TableColumn => column !== null);
  }

  private describe(table: OperatorTable, row: number): void {
    const name = table.names[table.name[row]], detail = table.details[table.detail[row]], line = table.line[row] >= 0 ? table.lines[table.line[row]] : "";
    const links = h("p", {}, h("a", { href: String(new Address("timeline").with({ search: name })) }, "in the timeline"), " · ", h("a", { href: String(new Address("flame").with({ search: name })) }, "in the flame graph"), " · ",
      h("a", { href: String(new Address("operators").with({ group: this.group === "shape" ? "line" : "shape", filter: name })) }, this.group === "shape" ? "by source line" : "by shapes"));
    const close = h("button", { class: "tool close", "aria-label": "close", onclick: () => { this.detail.hidden = true; this.context.keep({ pick: "" }); } }, "×");
    this.detail.replaceChildren(close, h("h2", {}, shown(name, 2000)), detail ? h("pre", {}, shown(detail, 4000)) : "", line ? h("p", {}, "most of its time from ", h("code", {}, shown(line))) : "", links);
    this.detail.hidden = false;
  }
}
