// Events on a canvas, track below track. What is drawn is bounded by the pixels, not by the events: of those too short to
// see, one stands for all within a pixel, and the next is found by halving.
import type { Lane, Lanes, Matching, TrackLanes } from "../model/lanes";
import { h } from "./dom";
import { brief, shortTime, shown, time } from "./format";
import { colour, onTheme } from "./theme";
import { clip, colourOf, COLOURS, hash, SHADES, tickStep, tickText, tint } from "./timeline_marks";

export interface Selected { process: number; row: number }
export interface TimelineOptions {
  processes: Lanes[];
  names: string[]; // of the processes
  from: number;
  to: number;
  end: number; // of everything
  selected: Selected | null;
  onView(from: number, to: number): void;
  onSelect(selected: Selected | null): void;
  partner(selected: Selected): Selected | null;
}

const ROW = 18, HEAD = 20, RULER = 24, STEPS = 18, GAP = 6, GUTTER = 8;
const STRIP = 26; // the height of the whole recording above the ruler
const LEAST_TALL = 280; // of the canvas, for that strip: on a phone held sideways the tracks need the room
const STRIP_LANES = 52; // lanes that the strip draws at most
const SHORTEST = 200; // nanoseconds that the whole width shows at least

type Drag = "view" | "range" | "strip" | "strip range";
interface Band { tracks: TrackLanes; lanes: Lanes; title: string; y: number; height: number; collapsed: boolean }

export class Timeline {
  readonly element: HTMLElement;
  readonly canvas = h("canvas", { tabindex: "0", role: "img", "aria-label": "timeline of events; W, A, S and D zoom and move, arrow keys go from event to event" });
  from: number;
  to: number;
  frames: number[] = []; // milliseconds that drawing took, the latest last
  private readonly tip = h("div", { class: "tip", hidden: true });
  private readonly pen: CanvasRenderingContext2D;
  private bands: Band[] = [];
  private scroll = 0;
  private height = 0; // of all tracks
  private width = 0;
  private tall = 0;
  private readonly gutter = GUTTER;
  private isNew = true;
  private wanted = false;
  private palette: string[] = [];
  private shadeOfLabel: Uint8Array[] = [];
  private matches: Matching[] | null = null;
  private selected: Selected | null;
  private pointer: { x: number; y: number } | null = null;
  private drag: { x: number; y: number; from: number; to: number; scroll: number; kind: Drag; moved: boolean } | null = null;
  private strip = STRIP; // its height, 0 where it has no room
  private readonly stripCanvas = document.createElement("canvas");
  private stripState: unknown[] = []; // what the strip was drawn for
  private readonly closers: (() => void)[] = [];
  private ink: Record<string, string> = {};

  constructor(private readonly options: TimelineOptions) {
    this.from = options.from;
    this.to = options.to;
    this.selected = options.selected;
    this.element = h("div", { class: "timeline" }, this.canvas, this.tip);
    this.pen = this.canvas.getContext("2d", { alpha: false })!;
    this.shadeOfLabel = options.processes.map(({ events }) => Uint8Array.from(events.labels, ([name]) => hash(name) % SHADES));
    this.layOut();
    this.readColours();
    this.listen();
  }

  close(): void {
    for (const close of this.closers) close();
  }

  private layOut(): void {
    const many = this.options.processes.length > 1;
    const bands: Band[] = [];
    this.options.processes.forEach((lanes, number) => {
      for (const tracks of lanes.tracks) {
        const { info } = tracks;
        const own = info.device === "CPU" ? info.name || `thread ${info.tid}` : `${info.device} ${info.index} · ${info.name || `stream ${info.tid}`}`;
        const title = many ? `${this.options.names[number]} · ${own}` : own;
        const known = this.bands.find(band => band.tracks === tracks);
        bands.push({ tracks, lanes, title, y: 0, height: 0, collapsed: known?.collapsed ?? false });
      }
    });
    let y = 0;
    for (const band of bands) {
      band.y = y;
      band.height = HEAD + (band.collapsed ? 1 : band.tracks.lanes.length) * ROW + GAP;
      y += band.height;
    }
    this.bands = bands;
    this.height = y;
  }

  private readColours(): void {
    this.palette = COLOURS.flatMap(name => Array.from({ length: SHADES }, (_, shade) => tint(colour(name), name === "dim" ? 0 : shade)));
    this.ink = Object.fromEntries(["back", "ink", "faint", "line", "panel", "mark", "on-colour"].map(name => [name, colour(name)]));
  }

  private listen(): void {
    const { canvas } = this;
    const observer = new ResizeObserver(() => this.draw());
    observer.observe(this.element);
    this.closers.push(() => observer.disconnect(), onTheme(() => { this.readColours(); this.draw(); }));
    canvas.addEventListener("wheel", event => this.wheel(event), { passive: false });
    canvas.addEventListener("pointerdown", event => this.down(event));
    canvas.addEventListener("pointermove", event => this.move(event));
    canvas.addEventListener("pointerup", event => this.up(event));
    canvas.addEventListener("pointerleave", () => { this.pointer = null; this.tip.hidden = true; });
    canvas.addEventListener("dblclick", event => { const hit = this.hit(event.offsetX, event.offsetY); if (hit) this.zoomTo(hit); });
  }

  // --- acting ---

  /** Show from one time to another. */
  show(from: number, to: number): void {
    const end = Math.max(this.options.end, 1), span = Math.min(Math.max(to - from, SHORTEST), end * 1.02);
    this.from = Math.min(Math.max(from, -0.01 * end), 1.01 * end - span);
    this.to = this.from + span;
    this.options.onView(this.from, this.to);
    this.draw();
  }

  everything(): void {
    this.show(-0.005 * this.options.end, 1.005 * this.options.end);
  }

  zoom(factor: number, around?: number): void {
    const at = around ?? (this.pointer && this.pointer.x > this.gutter ? this.toTime(this.pointer.x) : (this.from + this.to) / 2);
    this.show(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }

  pan(share: number): void {
    const span = this.to - this.from;
    this.show(this.from + share * span, this.to + share * span);
  }

  zoomTo({ process, row }: Selected): void {
    const { events } = this.options.processes[process];
    const room = Math.max(events.duration[row], 20) * 0.4;
    this.show(events.start[row] - room, events.start[row] + events.duration[row] + room);
    this.scrollToRow({ process, row });
  }

  /** Select an event, and bring it into sight. */
  select(selected: Selected | null, reveal = true): void {
    this.selected = selected;
    if (selected && reveal) this.reveal(selected);
    this.options.onSelect(selected);
    this.draw();
  }

  private reveal({ process, row }: Selected): void {
    const lanes = this.options.processes[process], { events } = lanes;
    const start = events.start[row], end = lanes.end[row], span = this.to - this.from;
    if (end < this.from || start > this.to) this.show((start + end) / 2 - span / 2, (start + end) / 2 + span / 2);
    if ((end - start) / span * (this.width - this.gutter) < 3) {
      const wide = Math.max(end - start, 20) * 40;
      this.show((start + end) / 2 - wide / 2, (start + end) / 2 + wide / 2);
    }
    this.scrollToRow({ process, row });
  }

  /** Where the tracks begin. */
  private get top(): number {
    return this.strip + RULER + STEPS;
  }

  private measure(): boolean {
    this.width = this.element.clientWidth;
    this.tall = this.element.clientHeight;
    this.strip = this.tall < LEAST_TALL ? 0 : STRIP;
    return this.width > 0 && this.tall > 0;
  }

  private scrollToRow({ process, row }: Selected): void {
    if (!this.measure()) return;
    const lanes = this.options.processes[process], { events } = lanes;
    const band = this.bands.find(each => each.lanes === lanes && each.tracks.track === events.track[row]);
    if (!band) return;
    if (band.collapsed && events.depth[row]) { band.collapsed = false; this.layOut(); }
    const y = band.y + HEAD + events.depth[row] * ROW, room = this.tall - this.top;
    if (y < this.scroll) this.scrollTo(y - HEAD);
    else if (y + ROW > this.scroll + room) this.scrollTo(y + 2 * ROW - room);
  }

  /** Dim what does not have one of these labels; null dims nothing. */
  highlight(matches: Uint8Array[] | null): void {
    this.matches = matches && this.options.processes.map((lanes, process) => lanes.matching(matches[process]));
    this.draw();
  }

  private scrollTo(y: number): void {
    const most = Math.max(0, this.height - (this.tall - this.top));
    this.scroll = Math.min(Math.max(0, y), most);
    this.draw();
  }

  key(event: KeyboardEvent): boolean {
    const move = (step: number): void => {
      if (!this.selected) return this.pan(step * 0.2);
      this.step(lanes => lanes.neighbour(this.selected!.row, step));
    };
    const actions: Record<string, () => void> = {
      w: () => this.zoom(0.7), s: () => this.zoom(1 / 0.7), a: () => this.pan(-0.2), d: () => this.pan(0.2), "+": () => this.zoom(0.5), "-": () => this.zoom(2), "0": () => this.everything(),
      f: () => this.selected && this.zoomTo(this.selected),
      p: () => { const other = this.selected && this.options.partner(this.selected); if (other) this.select(other); },
      Escape: () => this.select(null),
      ArrowLeft: () => move(-1), ArrowRight: () => move(1),
      ArrowUp: () => (this.selected ? this.step(lanes => lanes.parent(this.selected!.row)) : this.scrollTo(this.scroll - 60)),
      ArrowDown: () => (this.selected ? this.step(lanes => lanes.child(this.selected!.row)) : this.scrollTo(this.scroll + 60)),
    };
    const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    action?.();
    return Boolean(action);
  }

  private step(next: (lanes: Lanes) => number): void {
    const { process } = this.selected!, row = next(this.options.processes[process]);
    if (row >= 0) this.select({ process, row });
  }

  private wheel(event: WheelEvent): void {
    event.preventDefault();
    const amount = Math.max(-200, Math.min(200, event.deltaY * (event.deltaMode ? 16 : 1)));
    if (event.ctrlKey || event.metaKey) return this.zoom(Math.exp(amount / 250), this.toTime(Math.max(event.offsetX, this.gutter)));
    const sideways = event.shiftKey ? event.deltaY : Math.abs(event.deltaX) > Math.abs(event.deltaY) ? event.deltaX : 0;
    if (sideways) return this.pan(sideways / Math.max(this.width, 1));
    this.scrollTo(this.scroll + amount);
  }

  private down(event: PointerEvent): void {
    if (event.button !== 0) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.drag = { x: event.offsetX, y: event.offsetY, from: this.from, to: this.to, scroll: this.scroll, kind: this.dragKind(event), moved: false };
  }

  /** In the strip, what is shown is moved, and a new part is chosen beside it; in the ruler, a part is chosen. */
  private dragKind(event: PointerEvent): Drag {
    if (event.offsetY >= this.strip) return event.shiftKey || event.offsetY < this.strip + RULER ? "range" : "view";
    const t = this.stripTime(event.offsetX), isPart = this.to - this.from < 0.98 * this.options.end;
    return isPart && t >= this.from && t <= this.to ? "strip" : "strip range";
  }

  private move(event: PointerEvent): void {
    this.pointer = { x: event.offsetX, y: event.offsetY };
    const { drag } = this;
    if (!drag) return this.point();
    if (Math.abs(event.offsetX - drag.x) + Math.abs(event.offsetY - drag.y) > 4) drag.moved = true;
    if (!drag.moved) return;
    this.tip.hidden = true;
    if (drag.kind === "range" || drag.kind === "strip range") return this.draw();
    if (drag.kind === "strip") {
      const moved = this.stripTime(event.offsetX) - this.stripTime(drag.x);
      return this.show(drag.from + moved, drag.to + moved);
    }
    const shift = ((drag.x - event.offsetX) / (this.width - this.gutter)) * (drag.to - drag.from);
    this.scroll = Math.min(Math.max(0, drag.scroll + drag.y - event.offsetY), Math.max(0, this.height - (this.tall - this.top)));
    this.show(drag.from + shift, drag.to + shift);
  }

  private up(event: PointerEvent): void {
    const { drag } = this;
    this.drag = null;
    if (!drag) return;
    if (drag.moved) {
      const [left, right] = [Math.min(drag.x, event.offsetX), Math.max(drag.x, event.offsetX)];
      if (drag.kind === "range") this.show(this.toTime(left), this.toTime(right));
      if (drag.kind === "strip range") this.show(this.stripTime(left), this.stripTime(right));
      return;
    }
    if (event.offsetY < this.strip) { // to that moment
      const half = (this.to - this.from) / 2, at = this.stripTime(event.offsetX);
      return this.show(at - half, at + half);
    }
    const band = this.bandAt(event.offsetY);
    if (band && event.offsetY - this.top + this.scroll - band.y < HEAD) {
      band.collapsed = !band.collapsed;
      this.layOut();
      return this.scrollTo(this.scroll);
    }
    this.select(this.hit(event.offsetX, event.offsetY), false);
    this.canvas.focus();
  }

  private bandAt(y: number): Band | undefined {
    const at = y - this.top + this.scroll;
    return y < this.top ? undefined : this.bands.find(band => at >= band.y && at < band.y + band.height);
  }

  private hit(x: number, y: number): Selected | null {
    const band = this.bandAt(y);
    if (!band || x < this.gutter) return null;
    const depth = Math.floor((y - this.top + this.scroll - band.y - HEAD) / ROW), lane = band.tracks.lanes[depth];
    if (!lane || depth < 0 || (band.collapsed && depth > 0)) return null;
    const reach = this.toTime(this.gutter + 1.5) - this.from, t = this.toTime(x);
    let row = band.lanes.at(lane, t);
    if (row < 0) { // one that is too short to hit
      const near = band.lanes.firstEndingAfter(lane, t - reach);
      row = near < lane.to && band.lanes.events.start[band.lanes.rows[near]] < t + reach ? band.lanes.rows[near] : -1;
    }
    return row < 0 ? null : { process: band.tracks.process, row };
  }

  private point(): void {
    const { x, y } = this.pointer!, hit = this.hit(x, y);
    this.canvas.classList.toggle("pointing", hit !== null);
    if (!hit) { this.tip.hidden = true; return; }
    const lanes = this.options.processes[hit.process], { events } = lanes;
    const name = events.labels[events.label[hit.row]][0], inner = events.inner[hit.row];
    this.tip.replaceChildren(h("div", { class: "name" }, shown(name, 200)), h("div", {}, `${time(events.duration[hit.row])}${inner ? `, ${time(events.duration[hit.row] - inner)} of it self` : ""}`),
      h("div", { class: "faint" }, `at ${time(events.start[hit.row])}`));
    this.tip.hidden = false;
    const room = this.element.clientWidth, w = this.tip.offsetWidth, tall = this.tip.offsetHeight;
    this.tip.style.left = `${x + 14 + w > room ? Math.max(0, x - 14 - w) : x + 14}px`;
    this.tip.style.top = `${y + 18 + tall > this.tall ? Math.max(0, y - tall - 10) : y + 18}px`;
  }

  // --- drawing ---

  toX(t: number): number {
    return this.gutter + ((t - this.from) / (this.to - this.from)) * (this.width - this.gutter);
  }

  toTime(x: number): number {
    return this.from + ((x - this.gutter) / (this.width - this.gutter)) * (this.to - this.from);
  }

  private stripTime(x: number): number {
    return ((x - this.gutter) / (this.width - this.gutter)) * this.options.end;
  }

  private stripX(t: number): number {
    return this.gutter + (t / Math.max(this.options.end, 1)) * (this.width - this.gutter);
  }

  /** Where an event is on the canvas: its left, top, right and bottom. */
  box({ process, row }: Selected): [number, number, number, number] | null {
    const lanes = this.options.processes[process], { events } = lanes;
    const band = this.bands.find(each => each.lanes === lanes && each.tracks.track === events.track[row]);
    if (!band) return null;
    const y = this.top + band.y - this.scroll + HEAD + (band.collapsed ? 0 : events.depth[row]) * ROW;
    return [this.toX(events.start[row]), y, this.toX(lanes.end[row]), y + ROW - 1];
  }

  draw(): void {
    if (this.wanted) return;
    this.wanted = true;
    requestAnimationFrame(() => {
      this.wanted = false;
      const began = performance.now();
      this.drawNow();
      this.frames.push(performance.now() - began);
      if (this.frames.length > 1000) this.frames.splice(0, 500);
    });
  }

  private drawNow(): void {
    const { pen, canvas } = this, ratio = devicePixelRatio || 1;
    if (!this.measure()) return;
    if (this.isNew && this.selected) this.scrollToRow(this.selected);
    this.isNew = false;
    const [w, tall] = [Math.round(this.width * ratio), Math.round(this.tall * ratio)];
    if (canvas.width !== w || canvas.height !== tall) { canvas.width = w; canvas.height = tall; }
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.fillStyle = this.ink.back;
    pen.fillRect(0, 0, this.width, this.tall);
    pen.font = "11px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace";
    const letter = pen.measureText("m").width;
    pen.textBaseline = "middle";
    this.drawTracks(letter);
    this.drawRuler();
    if (this.strip) this.drawStrip();
    this.drawSelection();
    this.canvas.dataset.from = String(this.from);
    this.canvas.dataset.to = String(this.to);
  }

  private drawTracks(letter: number): void {
    const { pen } = this, top = this.top;
    const rects: number[][] = this.palette.map(() => []);
    const texts: (string | number)[] = [];
    pen.save();
    pen.beginPath();
    pen.rect(0, top, this.width, this.tall - top);
    pen.clip();
    for (const band of this.bands) {
      const y = top + band.y - this.scroll;
      if (y > this.tall || y + band.height < top) continue;
      pen.fillStyle = this.ink.panel;
      pen.fillRect(0, y, this.width, HEAD - 2);
      band.tracks.lanes.slice(0, band.collapsed ? 1 : undefined).forEach((lane, depth) => {
        const at = y + HEAD + depth * ROW;
        if (at < this.tall && at + ROW > top) this.drawLane(band, lane, at, rects, texts, letter);
      });
    }
    this.fill(pen, rects, ROW - 2);
    pen.fillStyle = this.ink["on-colour"];
    for (let i = 0; i < texts.length; i += 3) pen.fillText(texts[i] as string, texts[i + 1] as number, texts[i + 2] as number);
    this.drawGutter(top);
    pen.restore();
  }

  private drawGutter(top: number): void {
    const { pen } = this;
    pen.fillStyle = this.ink.back;
    pen.fillRect(0, top, this.gutter - 2, this.tall - top);
    for (const band of this.bands) {
      const y = top + band.y - this.scroll;
      if (y > this.tall || y + band.height < top) continue;
      pen.fillStyle = this.ink.panel;
      pen.fillRect(0, y, this.gutter, HEAD - 2);
      pen.fillStyle = this.ink.ink;
      pen.save();
      pen.beginPath();
      pen.rect(0, y, this.width - 8, HEAD);
      pen.clip();
      pen.font = "600 11px system-ui, sans-serif";
      pen.fillText(`${band.collapsed ? "▸" : "▾"} ${shown(band.title, 80)}`, 6, y + HEAD / 2 - 1);
      pen.restore();
    }
  }

  /** A lane; while something is searched, dim, and what was found above it: it must not hide behind others within its pixel. */
  private drawLane(band: Band, lane: Lane, y: number, rects: number[][], texts: (string | number)[], letter: number): void {
    const found = this.matches?.[band.tracks.process];
    this.drawRows(band, band.lanes.rows, lane, y, this.from, this.to, found !== undefined, rects, texts, letter);
    if (found) this.drawRows(band, found.rows, found.lanes.get(lane)!, y, this.from, this.to, false, rects, [], letter);
  }

  private drawRows(band: Band, rows: Int32Array, lane: Lane, y: number, from: number, to: number, isDim: boolean, rects: number[][], texts: (string | number)[], letter: number): void {
    const { lanes } = band, { events, end } = lanes, { label, start } = events;
    const { gutter } = this, scale = (this.width - gutter) / (to - from), pixel = 1 / scale;
    const shades = this.shadeOfLabel[band.tracks.process];
    let at = lanes.firstEndingAfter(lane, from, lane.from, rows);
    let runFrom = 0, runTo = -1, runKind = -1; // neighbouring pixels of one colour are drawn as one
    const endRun = (): void => { if (runTo > runFrom) rects[runKind * SHADES].push(runFrom, y, runTo - runFrom); };
    while (at < lane.to) {
      const row = rows[at], begins = start[row];
      if (begins >= to) break;
      const x = gutter + (begins - from) * scale, wide = (end[row] - begins) * scale, number = label[row];
      const kind = isDim ? COLOURS.length - 1 : colourOf(events.labels[number][1], events.part[row], events.categories);
      if (wide >= 2) {
        const list = rects[kind * SHADES + shades[number]];
        const left = Math.max(x, gutter - 2), width = Math.min(x + wide, this.width + 2) - left;
        list.push(left, y, Math.max(width - 0.6, 0.8));
        const room = Math.floor((width - 6) / letter);
        if (room >= 3) {
          const name = events.labels[number][0];
          texts.push(clip(brief(name), room), Math.max(left, gutter) + 3, y + ROW / 2 - 1);
        }
        at++;
      } else {
        const column = Math.max(Math.floor(x), gutter);
        if (column > runTo || kind !== runKind) { endRun(); runFrom = column; runKind = kind; }
        runTo = column + 1;
        // all that end within this pixel are drawn by now
        at = lanes.firstEndingAfter(lane, Math.max(from + (column + 1 - gutter) * pixel, end[row]), at + 1, rows);
      }
    }
    endRun();
  }

  /** The whole recording in small, with a frame around the part that is shown. It is drawn anew for another size, theme or search. */
  private drawStrip(): void {
    const { pen, strip, stripCanvas: canvas } = this, ratio = devicePixelRatio || 1, state = [this.width, ratio, this.palette, this.matches];
    if (state.some((each, i) => each !== this.stripState[i])) {
      this.stripState = state;
      canvas.width = Math.round(this.width * ratio);
      canvas.height = Math.round(strip * ratio);
      this.fillStrip(canvas.getContext("2d")!, ratio);
    }
    pen.drawImage(canvas, 0, 0, this.width, strip);
    const left = Math.max(this.stripX(this.from), this.gutter), right = Math.min(this.stripX(this.to), this.width);
    pen.fillStyle = this.ink.back;
    pen.globalAlpha = 0.7;
    pen.fillRect(0, 0, left, strip);
    pen.fillRect(right, 0, this.width - right, strip);
    pen.globalAlpha = 1;
    pen.strokeStyle = this.ink.faint;
    pen.lineWidth = 1;
    pen.strokeRect(left + 0.5, 0.5, Math.max(right - left - 1, 2), strip - 1);
  }

  private fillStrip(pen: CanvasRenderingContext2D, ratio: number): void {
    const deepest = Math.max(1, Math.floor(STRIP_LANES / Math.max(this.bands.length, 1)));
    const lanes = this.bands.slice(0, STRIP_LANES).flatMap(band => band.tracks.lanes.slice(0, deepest).map(lane => ({ band, lane })));
    const tall = (this.strip - 2) / Math.max(lanes.length, 8), rects: number[][] = this.palette.map(() => []);
    const end = Math.max(this.options.end, 1), found: number[][] = this.palette.map(() => []);
    lanes.forEach(({ band, lane }, i) => this.drawRows(band, band.lanes.rows, lane, 1 + i * tall, 0, end, this.matches !== null, rects, [], Infinity));
    if (this.matches) for (const band of this.bands) for (const lane of band.tracks.lanes) { // what was found is as high as the strip
      const { rows, lanes: own } = this.matches[band.tracks.process];
      this.drawRows(band, rows, own.get(lane)!, 1, 0, end, false, found, [], Infinity);
    }
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.fillStyle = this.ink.panel;
    pen.fillRect(0, 0, this.width, this.strip);
    this.fill(pen, rects, Math.max(tall, 0.8));
    this.fill(pen, found, this.strip - 2);
  }

  /** Fill rectangles by their colours, the dim ones, which are last, below all others. */
  private fill(pen: CanvasRenderingContext2D, rects: number[][], tall: number): void {
    for (let number = rects.length - 1; number >= 0; number--) {
      const list = rects[number];
      pen.fillStyle = this.palette[number];
      for (let i = 0; i < list.length; i += 3) pen.fillRect(list[i], list[i + 1], list[i + 2], tall);
    }
  }

  private drawRuler(): void {
    const { pen } = this;
    pen.fillStyle = this.ink.back;
    pen.fillRect(0, 0, this.width, this.top);
    pen.font = "11px system-ui, sans-serif";
    const step = tickStep((this.to - this.from) / Math.max(2, (this.width - this.gutter) / 110));
    for (let t = Math.ceil(this.from / step) * step; t <= this.to; t += step) {
      const x = this.toX(t);
      pen.fillStyle = this.ink.line;
      pen.fillRect(x, this.strip + RULER - 6, 1, 6);
      pen.fillStyle = this.ink.faint;
      pen.fillText(tickText(t, step), x + 4, this.strip + RULER - 10);
    }
    this.drawSteps();
    pen.fillStyle = this.ink.back;
    pen.fillRect(0, 0, this.gutter - 1, this.top);
    pen.fillStyle = this.ink.line;
    pen.fillRect(0, this.top - 1, this.width, 1);
  }

  private drawSteps(): void {
    const { pen } = this, { steps } = this.options.processes[0].events;
    let last = -1;
    for (let i = 0; i < steps.number.length; i++) {
      const a = Math.max(this.toX(steps.start[i]), this.gutter), b = Math.min(this.toX(steps.end[i]), this.width);
      if (b < this.gutter || a > this.width || b < last + 3) continue; // of steps that are too narrow to see, some
      last = b;
      pen.fillStyle = i % 2 ? this.ink.line : this.ink.panel;
      pen.fillRect(a, this.strip + RULER + 1, Math.max(b - a, 1), STEPS - 4);
      const text = `step ${steps.number[i]}`;
      if (b - a > 6.5 * text.length) { pen.fillStyle = this.ink.faint; pen.fillText(text, a + 4, this.strip + RULER + STEPS / 2 - 1); }
    }
  }

  private drawSelection(): void {
    const { pen, drag } = this;
    if (drag?.moved && this.pointer && (drag.kind === "range" || drag.kind === "strip range")) {
      const left = Math.min(drag.x, this.pointer.x), wide = Math.abs(this.pointer.x - drag.x), inStrip = drag.kind === "strip range";
      pen.fillStyle = this.ink.ink;
      pen.globalAlpha = inStrip ? 0.3 : 0.12;
      pen.fillRect(left, inStrip ? 0 : this.strip + RULER, wide, inStrip ? this.strip : this.tall);
      pen.globalAlpha = 1;
      const spent = inStrip ? this.stripTime(left + wide) - this.stripTime(left) : this.toTime(left + wide) - this.toTime(left);
      pen.fillText(shortTime(spent), left + 6, this.top + 12);
    }
    if (!this.selected) return;
    const box = this.box(this.selected), other = this.options.partner(this.selected), otherBox = other && this.box(other);
    pen.save();
    pen.beginPath();
    pen.rect(this.gutter, this.top, this.width, this.tall);
    pen.clip();
    pen.lineWidth = 2;
    pen.strokeStyle = this.ink.mark;
    for (const each of [box, otherBox]) if (each) pen.strokeRect(each[0] - 1, each[1] - 1, Math.max(each[2] - each[0], 2) + 1, each[3] - each[1] + 1);
    if (box && otherBox) {
      const [x0, y0, x1, y1] = [(box[0] + box[2]) / 2, box[3], (otherBox[0] + otherBox[2]) / 2, otherBox[1]];
      pen.beginPath();
      pen.moveTo(x0, y0);
      pen.bezierCurveTo(x0, y0 + 60, x1, y1 - 60, x1, y1);
      pen.setLineDash([5, 4]);
      pen.stroke();
    }
    pen.restore();
  }
}
