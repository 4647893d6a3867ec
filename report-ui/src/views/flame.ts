// Time by what called what: as operators call each other, as Python does, by call site, by module.
import { Address } from "../address";
import { callers, ownFrames } from "../model/flame_tree";
import { part } from "../model/packed";
import type { Flame, FlameTree } from "../model/report";
import type { Context, Shown, View } from "../view";
import { choice, filterField, matcher, notRecorded } from "../widgets/controls";
import { debounce, h } from "../widgets/dom";
import { FlameGraph, Layout, type Phase } from "../widgets/flame";
import { share, shown, time } from "../widgets/format";

export const flame: View = { name: "flame", title: "Flame graph", icon: "▤", show };

const TREES = [
  { key: "operators", title: "operators", hint: "scopes and operators, as they call each other" },
  { key: "calls", title: "Python calls", hint: "Python functions with the operators that they call" },
  { key: "stack", title: "call sites", hint: "lines of the stacks, below them the operators called there" },
  { key: "module", title: "modules", hint: "modules, below them their operators" },
];
const FRAMES = [{ key: "all", title: "all" }, { key: "own", title: "own code", hint: "without the frames of the runtime and of libraries; their time is that of the frame around them" }];
const WAYS = [{ key: "down", title: "callees", hint: "from the outermost call down" }, { key: "up", title: "callers", hint: "what took the time itself at the top, below it who called it" }];
const PHASES = [{ key: "both", title: "both" }, { key: "forward", title: "forward" }, { key: "backward", title: "backward" }];

async function show(context: Context): Promise<Shown> {
  const view = new FlameView(context, await part<Flame>(`flame.${context.process}`));
  Object.assign(window, { flame: view }); // for tests, which ask where a block is drawn
  return { element: view.element, search: view.field, key: event => view.graph?.key(event) ?? false, close: () => view.graph?.close() };
}

class FlameView {
  readonly element: HTMLElement;
  readonly field: HTMLInputElement;
  graph: FlameGraph | null = null;
  layout: Layout | null = null;
  private readonly place = h("div", { class: "flame-place" });
  private readonly path = h("div", { class: "path", role: "navigation", "aria-label": "zoomed to" });
  private readonly found = h("span", { class: "faint", role: "status", id: "found" });
  private tree: string;
  private phase: Phase;
  private frames: string;
  private way: string;

  constructor(private readonly context: Context, private readonly data: Flame) {
    const { address } = context;
    this.tree = TREES.some(each => each.key === address.get("by")) ? address.get("by") : "operators";
    this.phase = (PHASES.some(each => each.key === address.get("phase")) ? address.get("phase") : "both") as Phase;
    this.frames = address.get("frames") === "own" ? "own" : "all";
    this.way = address.get("way") === "up" ? "up" : "down";
    this.field = filterField("search", address.get("search"), debounce(100, () => this.search()));
    this.element = h("div", { class: "fill" }, h("div", { class: "bar-of-tools" }, this.field, choice("by", TREES, this.tree, key => { this.tree = key; context.keep({ by: key === "operators" ? "" : key, path: "" }); this.make(); }),
      choice("phase", PHASES, this.phase, key => { this.phase = key as Phase; context.keep({ phase: key === "both" ? "" : key }); this.make(); }),
      choice("frames", FRAMES, this.frames, key => { this.frames = key; context.keep({ frames: key === "all" ? "" : key, path: "" }); this.make(); }),
      choice("show", WAYS, this.way, key => { this.way = key; context.keep({ way: key === "down" ? "" : key, path: "" }); this.make(); }), this.found), this.path, this.place);
    this.make();
  }

  private make(): void {
    const found = this.data[this.tree];
    this.graph?.close();
    this.graph = this.layout = null;
    this.path.replaceChildren();
    if (found.needs !== undefined) return this.place.replaceChildren(notRecorded("This was not recorded.", found.needs));
    const tree = this.frames === "own" ? ownFrames(found as FlameTree) : (found as FlameTree);
    this.layout = new Layout(this.way === "up" ? callers(tree) : tree, this.phase);
    if (!this.layout.roots.length) return this.place.replaceChildren(h("div", { class: "nothing" }, "No time was recorded here."));
    const kept = this.kept(), root = this.layout.find(pathIn(kept));
    this.graph = new FlameGraph(this.layout, root, node => { this.context.keep({ path: node >= 0 ? JSON.stringify(this.layout!.path(node)) : "" }); this.showPath(node); }, node => this.context.announce(`${this.layout!.path(node).at(-1)} ${time(this.layout!.total[node])}`));
    this.place.replaceChildren(this.graph.element);
    this.showPath(root);
    this.search();
  }

  /** The path in the address, which the page keeps up to date. */
  private kept(): string {
    return Address.read().get("path");
  }

  private showPath(node: number): void {
    const { layout } = this;
    if (!layout) return;
    const steps: Node[] = [h("button", { class: "link", onclick: () => this.graph!.zoom(-1) }, "everything")];
    const above: number[] = [];
    for (let at = node; at >= 0; at = layout.tree.parent[at]) above.unshift(at);
    for (const each of above.slice(-6)) steps.push(document.createTextNode(" › "), h("button", { class: "link", onclick: () => this.graph!.zoom(each) }, shown(layout.tree.names[layout.tree.name[each]], 60)));
    const total = node >= 0 ? layout.total[node] : layout.whole;
    this.path.replaceChildren(...steps, h("span", { class: "faint" }, `  ${time(total)}${node >= 0 ? `, ${share(total, layout.whole)}` : ""}`));
  }

  private search(): void {
    const text = this.field.value, searching = text.trim() !== "";
    this.context.keep({ search: text });
    if (!this.graph || !this.layout) return;
    const spent = this.graph.search(matcher(text), searching);
    this.found.textContent = searching ? `${time(spent)}, ${share(spent, this.layout.whole)} in what matches` : "";
  }
}

function pathIn(text: string): string[] {
  try {
    const path: unknown = JSON.parse(text || "[]");
    return Array.isArray(path) ? path.map(String) : [];
  } catch {
    return [];
  }
}
