// A table of which only the rows in sight are in the document: a hundred thousand scroll as ten do.
import { h, styled } from "./dom";

export interface TableColumn {
  key: string;
  title: string;
  hint?: string;
  width: string; // of a grid
  numeric?: boolean;
  value(row: number): number | string; // to sort by
  cell?(row: number): Node | string; // what is shown, if not the value
  full?(row: number): string; // what pointing at it shows
}

export interface TableOptions {
  label: string;
  columns: TableColumn[];
  rows: ArrayLike<number>; // in their own order
  sort: string;
  descending: boolean;
  onSort?(key: string, descending: boolean): void;
  onPick?(row: number): void;
  picked?: number;
}

const HEIGHT = 28, MARGIN = 12, GAP = 10;

export class VirtualTable {
  readonly element: HTMLElement;
  private readonly head: HTMLElement;
  private readonly body: HTMLElement;
  private readonly scroller: HTMLElement;
  private order: number[] = [];
  private first = -1;
  private last = -1;
  private picked: number;

  constructor(private readonly options: TableOptions) {
    this.picked = options.picked ?? -1;
    this.head = h("div", { class: "t-head", role: "row" });
    this.body = h("div", { class: "t-body", role: "rowgroup" });
    this.scroller = h("div", { class: "t-scroll", tabindex: "0", role: "table", "aria-label": options.label }, h("div", { role: "rowgroup", class: "t-headgroup" }, this.head), this.body);
    this.element = h("div", { class: "table" }, this.scroller);
    this.scroller.style.setProperty("--columns", options.columns.map(column => column.width).join(" "));
    const least = options.columns.reduce((sum, column) => sum + Number(/(\d+)px/.exec(column.width)?.[1] ?? 0) + GAP, 2 * GAP);
    this.scroller.style.setProperty("--least", `${least}px`);
    this.scroller.addEventListener("scroll", () => this.draw());
    this.scroller.addEventListener("keydown", event => this.key(event));
    new ResizeObserver(() => this.draw(true)).observe(this.scroller);
    this.setRows(options.rows);
  }

  /** Show these rows instead, in the order that is chosen. */
  setRows(rows: ArrayLike<number>): void {
    this.options.rows = rows;
    this.sort();
  }

  private sort(): void {
    const { columns, sort, descending, rows } = this.options;
    const column = columns.find(each => each.key === sort);
    this.order = Array.from(rows);
    if (column) {
      const keys = new Map(this.order.map(row => [row, column.value(row)]));
      const way = descending ? -1 : 1;
      this.order.sort((a, b) => {
        const x = keys.get(a)!, y = keys.get(b)!;
        const compared = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
        return way * compared || a - b;
      });
    }
    this.drawHead();
    this.scroller.setAttribute("aria-rowcount", String(this.order.length + 1));
    this.body.style.height = `${this.order.length * HEIGHT}px`;
    this.draw(true);
  }

  private drawHead(): void {
    const { columns, sort, descending } = this.options;
    this.head.replaceChildren(...columns.map(column => {
      const active = column.key === sort;
      const button = h("button", { title: column.hint ?? `sort by ${column.title}`, "data-sort": column.key, onclick: () => this.sortBy(column) }, column.title, h("span", { class: "arrow", "aria-hidden": "true" }, active ? (descending ? " ▾" : " ▴") : ""));
      return h("div", { role: "columnheader", class: column.numeric ? "number" : "", "aria-sort": active ? (descending ? "descending" : "ascending") : "none" }, button);
    }));
  }

  private sortBy(column: TableColumn): void {
    const { options } = this;
    options.descending = options.sort === column.key ? !options.descending : Boolean(column.numeric);
    options.sort = column.key;
    options.onSort?.(options.sort, options.descending);
    this.sort();
    this.head.querySelector<HTMLElement>(`[data-sort="${column.key}"]`)?.focus();
  }

  private draw(anew = false): void {
    const room = this.scroller.clientHeight || 600;
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / HEIGHT) - MARGIN);
    const last = Math.min(this.order.length, Math.ceil((this.scroller.scrollTop + room) / HEIGHT) + MARGIN);
    if (!anew && first === this.first && last === this.last) return;
    this.first = first;
    this.last = last;
    const rows: HTMLElement[] = [];
    for (let at = first; at < last; at++) rows.push(this.row(at));
    this.body.replaceChildren(...rows);
  }

  private row(at: number): HTMLElement {
    const row = this.order[at];
    const cells = this.options.columns.map(column => {
      const content = column.cell ? column.cell(row) : String(column.value(row));
      return h("div", { role: "cell", class: column.numeric ? "number" : "text", "data-column": column.key, title: typeof content === "string" && !column.numeric ? (column.full?.(row) ?? content) : null }, content);
    });
    const element = h("div", { role: "row", class: row === this.picked ? "t-row picked" : "t-row", "aria-rowindex": at + 2, "data-row": row, onclick: () => this.pick(row) }, ...cells);
    return styled(element, { top: `${at * HEIGHT}px` });
  }

  private pick(row: number): void {
    if (!this.options.onPick) return;
    this.picked = row;
    this.draw(true);
    this.options.onPick(row);
  }

  private key(event: KeyboardEvent): void {
    const moves: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 };
    if (event.target !== this.scroller || !this.options.onPick || !(event.key in moves) || !this.order.length) return;
    event.preventDefault();
    const at = this.order.indexOf(this.picked), next = Math.min(Math.max(0, at < 0 ? 0 : at + moves[event.key]), this.order.length - 1);
    const top = next * HEIGHT, room = this.scroller.clientHeight - 2 * HEIGHT;
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
    else if (top > this.scroller.scrollTop + room) this.scroller.scrollTop = top - room;
    this.pick(this.order[next]);
  }
}

/** A number with a bar that is as long as its share of the largest. */
export function barCell(text: string, part: number, colour = "var(--bar)"): HTMLElement {
  const bar = styled(h("span", { class: "bar" }), { width: `${Math.max(0, Math.min(1, part)) * 100}%`, background: colour });
  return h("span", { class: "bar-cell" }, bar, h("span", { class: "bar-text" }, text));
}
