// A flame graph on a canvas, from the root down; what is too narrow to see is not drawn.
import type { FlameTree } from "../model/report";
import { h } from "./dom";
import { brief, count, share, shown, time } from "./format";
import { colour, onTheme } from "./theme";

const ROW = 20, LEAST = 0.6; // pixels
export type Phase = "both" | "forward" | "backward";

/** A tree with its totals for one phase, children in order of their time. */
export class Layout {
  readonly total: Float64Array;
  readonly self: Float64Array;
  readonly calls: Float64Array;
  readonly depth: Int32Array;
  readonly backward: Float64Array; // of the total, the time inside of backward passes
  readonly children: number[][];
  readonly roots: number[] = [];
  readonly whole: number;

  constructor(readonly tree: FlameTree, phase: Phase) {
    const { parent, self, selfBackward, count: calls, countBackward } = tree, n = parent.length;
    const forth = phase === "backward" ? 0 : 1, back = phase === "forward" ? 0 : 1;
    this.self = Float64Array.from({ length: n }, (_, i) => forth * self[i] + back * selfBackward[i]);
    this.calls = Float64Array.from({ length: n }, (_, i) => forth * calls[i] + back * countBackward[i]);
    this.total = this.self.slice();
    this.backward = Float64Array.from({ length: n }, (_, i) => back * selfBackward[i]);
    this.depth = new Int32Array(n);
    this.children = Array.from({ length: n }, () => []);
    for (let i = 0; i < n; i++) this.depth[i] = parent[i] < 0 ? 0 : this.depth[parent[i]] + 1;
    const order = Array.from({ length: n }, (_, i) => i).sort((a, b) => this.depth[b] - this.depth[a]);
    for (const i of order) if (parent[i] >= 0) { this.total[parent[i]] += this.total[i]; this.backward[parent[i]] += this.backward[i]; }
    let whole = 0;
    for (let i = 0; i < n; i++) {
      if (this.total[i] <= 0) continue;
      if (parent[i] >= 0) this.children[parent[i]].push(i);
      else { this.roots.push(i); whole += this.total[i]; }
    }
    const longestFirst = (a: number, b: number): number => this.total[b] - this.total[a];
    this.roots.sort(longestFirst);
    for (const list of this.children) list.sort(longestFirst);
    this.whole = whole;
  }

  /** Names from the root to a node. */
  path(node: number): string[] {
    const names: string[] = [];
    for (let at = node; at >= 0; at = this.tree.parent[at]) names.unshift(this.tree.names[this.tree.name[at]]);
    return names;
  }

  /** The node at a path of names, or -1. */
  find(path: string[]): number {
    let list = this.roots, found = -1; // an empty path is everything
    for (const name of path) {
      found = list.find(i => this.tree.names[this.tree.name[i]] === name) ?? -1;
      if (found < 0) return -1;
      list = this.children[found];
    }
    return found;
  }
}

export class FlameGraph {
  readonly element: HTMLElement;
  readonly canvas = h("canvas", { tabindex: "0", role: "img", "aria-label": "flame graph; arrow keys go from block to block, Enter zooms, 0 shows all" });
  private readonly scroller = h("div", { class: "flame-scroll" });
  private readonly tip = h("div", { class: "tip", hidden: true });
  private readonly pen = this.canvas.getContext("2d", { alpha: false })!;
  private boxes: { node: number; x: number; y: number; w: number }[] = [];
  private picked = -1;
  private matches: (name: string) => boolean = () => true;
  private searching = false;
  private readonly closers: (() => void)[] = [];
  private wanted = false;
  private pointed = -1;

  constructor(private layout: Layout, public root: number, private readonly onRoot: (node: number) => void, private readonly onPick: (node: number) => void) {
    this.scroller.append(this.canvas);
    this.element = h("div", { class: "flame" }, this.scroller, this.tip);
    const observer = new ResizeObserver(() => this.draw());
    observer.observe(this.element);
    this.closers.push(() => observer.disconnect(), onTheme(() => this.draw()));
    this.canvas.addEventListener("pointermove", event => this.point(event));
    this.canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; this.pointed = -1; this.draw(); });
    this.canvas.addEventListener("click", event => { const node = this.hit(event.offsetX, event.offsetY); if (node >= 0) { this.picked = node; this.onPick(node); this.zoom(node); } });
  }

  close(): void {
    for (const close of this.closers) close();
  }

  setLayout(layout: Layout, root: number): void {
    this.layout = layout;
    this.root = root;
    this.picked = -1;
    this.draw();
  }

  search(matches: (name: string) => boolean, searching: boolean): number {
    this.matches = matches;
    this.searching = searching;
    this.draw();
    // time inside of blocks that match, each counted once
    let spent = 0;
    const add = (list: number[]): void => {
      for (const i of list) {
        if (matches(this.name(i))) spent += this.layout.total[i];
        else add(this.layout.children[i]);
      }
    };
    if (searching) add(this.root >= 0 ? [this.root] : this.layout.roots);
    return spent;
  }

  zoom(node: number): void {
    this.root = node;
    this.onRoot(node);
    this.draw();
  }

  key(event: KeyboardEvent): boolean {
    const { layout } = this, { parent } = layout.tree;
    const siblings = (node: number): number[] => (parent[node] >= 0 ? layout.children[parent[node]] : layout.roots);
    const go = (node: number | undefined): void => {
      if (node === undefined || node < 0) return;
      this.picked = node;
      this.onPick(node);
      this.draw();
    };
    const start = this.root >= 0 ? this.root : layout.roots[0];
    const actions: Record<string, () => void> = {
      ArrowDown: () => go(this.picked < 0 ? start : layout.children[this.picked][0]),
      ArrowUp: () => go(this.picked < 0 ? start : parent[this.picked]),
      ArrowLeft: () => { if (this.picked >= 0) { const list = siblings(this.picked); go(list[list.indexOf(this.picked) - 1]); } },
      ArrowRight: () => { if (this.picked >= 0) { const list = siblings(this.picked); go(list[list.indexOf(this.picked) + 1]); } },
      Enter: () => { if (this.picked >= 0) this.zoom(this.picked); },
      "0": () => this.zoom(-1),
      Escape: () => this.zoom(-1),
    };
    if (event.key === "Enter" && document.activeElement !== this.canvas) return false;
    actions[event.key]?.();
    return event.key in actions;
  }

  private name(node: number): string {
    return this.layout.tree.names[this.layout.tree.name[node]];
  }

  private hit(x: number, y: number): number {
    const box = this.boxes.find(each => y >= each.y && y < each.y + ROW && x >= each.x && x <= each.x + each.w);
    return box ? box.node : -1;
  }

  private point(event: PointerEvent): void {
    const node = this.hit(event.offsetX, event.offsetY), { layout } = this;
    if (node !== this.pointed) { this.pointed = node; this.draw(); }
    this.tip.hidden = node < 0;
    this.canvas.classList.toggle("pointing", node >= 0);
    if (node < 0) return;
    this.tip.replaceChildren(h("div", { class: "name" }, shown(this.name(node), 300)), h("div", {}, `${time(layout.total[node])}, ${share(layout.total[node], layout.whole)} of all${layout.self[node] ? ` · self ${time(layout.self[node])}` : ""}`), h("div", { class: "faint" }, layout.calls[node] ? `${count(layout.calls[node])} events` : ""));
    const box = this.element.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    const w = this.tip.offsetWidth, tall = this.tip.offsetHeight;
    this.tip.style.left = `${x + 14 + w > box.width ? Math.max(0, x - w - 10) : x + 14}px`;
    this.tip.style.top = `${y + 16 + tall > box.height ? Math.max(0, y - tall - 8) : y + 16}px`;
  }

  draw(): void {
    if (this.wanted) return;
    this.wanted = true;
    requestAnimationFrame(() => { this.wanted = false; this.drawNow(); });
  }

  private drawNow(): void {
    const { layout, pen, canvas } = this, width = this.scroller.clientWidth;
    if (!width) return;
    this.boxes = [];
    const above: number[] = [];
    for (let at = this.root; at >= 0; at = layout.tree.parent[at]) above.unshift(at);
    above.forEach((node, depth) => this.boxes.push({ node, x: 0, y: depth * ROW, w: width }));
    const whole = this.root >= 0 ? layout.total[this.root] : layout.whole;
    let deepest = above.length;
    const place = (list: number[], x: number, depth: number): void => {
      for (const node of list) {
        const w = (layout.total[node] / whole) * width;
        if (w < LEAST) break; // the rest is narrower
        this.boxes.push({ node, x, y: depth * ROW, w });
        deepest = Math.max(deepest, depth + 1);
        place(layout.children[node], x, depth + 1);
        x += w;
      }
    };
    if (whole > 0) place(this.root >= 0 ? layout.children[this.root] : layout.roots, 0, above.length);
    const tall = Math.max(deepest * ROW + 4, this.scroller.clientHeight - 2), ratio = devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(tall * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${tall}px`;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.fillStyle = colour("back");
    pen.fillRect(0, 0, width, tall);
    pen.font = "11.5px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace";
    pen.textBaseline = "middle";
    const letter = pen.measureText("m").width, colours = Object.fromEntries(["forward", "backward", "dim", "mark", "on-colour", "faint", "scope", "ink"].map(name => [name, colour(name)]));
    this.boxes.forEach(({ node, x, y, w }, i) => {
      const back = layout.backward[node] / layout.total[node];
      pen.fillStyle = this.searching && !this.matches(this.name(node)) ? colours.dim : i < above.length - 1 ? colours.scope : back > 0.5 ? colours.backward : colours.forward;
      pen.globalAlpha = node === this.pointed ? 0.75 : 1 - 0.14 * (hash(this.name(node)) % 3);
      pen.fillRect(x, y, Math.max(w - 0.6, 0.4), ROW - 1);
      pen.globalAlpha = 1;
      const room = Math.floor((w - 8) / letter);
      if (room >= 3) {
        const name = shown(brief(this.name(node)), 300);
        pen.fillStyle = colours["on-colour"];
        pen.fillText(name.length <= room ? name : `${name.slice(0, room - 1)}…`, x + 4, y + ROW / 2);
      }
      if (node === this.picked) { pen.strokeStyle = colours.mark; pen.lineWidth = 2; pen.strokeRect(x + 1, y + 1, Math.max(w - 2, 1), ROW - 3); }
    });
    canvas.dataset.boxes = String(this.boxes.length);
  }

  /** Where a node is drawn, for those who ask. */
  boxOf(node: number): { x: number; y: number; w: number } | null {
    return this.boxes.find(box => box.node === node) ?? null;
  }
}

function hash(text: string): number {
  let value = 7;
  for (let i = 0; i < Math.min(text.length, 60); i++) value = (value * 31 + text.charCodeAt(i)) | 0;
  return value >>> 0;
}
