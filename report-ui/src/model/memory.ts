// Pieces of memory, and the bytes of each category at every moment at which they changed. Python's `memory_page.py` makes the data.

export interface MemoryData {
  categories: string[];
  end: number;
  peak: { time: number; bytes: number };
  pieces: Record<"start" | "end" | "size" | "category" | "maker" | "place" | "freer", ArrayLike<number>>;
  names: string[];
  places: [shown: string, stack: string][];
  bands: [kind: string, name: string, start: number, end: number][];
  summed: { count: number; below: number };
}

export class MemoryModel {
  readonly moments: number[] = [];
  readonly largest: number[] = []; // the piece that came (i) or went (~i) then: of several, the largest
  readonly levels: number[][]; // bytes by category and moment
  readonly kinds: number;
  readonly count: number;
  readonly shown: boolean[];
  totals = new Float64Array(0); // of the categories that are shown

  constructor(readonly data: MemoryData) {
    const { pieces } = data;
    this.kinds = data.categories.length;
    this.count = pieces.start.length;
    this.levels = Array.from({ length: this.kinds }, () => []);
    this.shown = new Array<boolean>(this.kinds).fill(true);
    const { count, moments, largest, levels, kinds } = this;
    const at = new Float64Array(2 * count), order = new Uint32Array(2 * count);
    for (let i = 0; i < count; i++) { at[2 * i] = pieces.start[i]; at[2 * i + 1] = pieces.end[i]; }
    for (let i = 0; i < 2 * count; i++) order[i] = i;
    order.sort((a, b) => at[a] - at[b]);
    const now = new Float64Array(kinds);
    for (const change of order) {
      const piece = change >> 1, goes = change & 1, size = pieces.size[piece];
      if (at[change] > data.end) break;
      if (!moments.length || moments[moments.length - 1] !== at[change]) {
        moments.push(at[change]);
        largest.push(goes ? ~piece : piece);
        for (let c = 0; c < kinds; c++) levels[c].push(now[c]);
      } else {
        const known = pieceOf(largest[largest.length - 1]);
        if (size > pieces.size[known] || (size === pieces.size[known] && !goes)) largest[largest.length - 1] = goes ? ~piece : piece;
      }
      now[pieces.category[piece]] += goes ? -size : size;
      levels[pieces.category[piece]][moments.length - 1] = now[pieces.category[piece]];
    }
    this.sumShown();
  }

  sumShown(): void {
    this.totals = new Float64Array(this.moments.length);
    for (let c = 0; c < this.kinds; c++) if (this.shown[c]) for (let k = 0; k < this.totals.length; k++) this.totals[k] += this.levels[c][k];
  }

  /** The last moment at or before a time; -1 before the first. */
  momentAt(t: number): number {
    let low = 0, high = this.moments.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.moments[middle] <= t) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  /** Points of the picture, at most three a pixel: in each, the greatest sum and what comes last. */
  pointsIn(from: number, to: number, pixels: number): [time: number, moment: number][] {
    const { moments, totals } = this, points: [number, number][] = [], first = this.momentAt(from), last = this.momentAt(to), scale = pixels / (to - from);
    if (first >= 0) points.push([from, first]);
    for (let k = first + 1; k <= last;) {
      const column = Math.floor((moments[k] - from) * scale);
      let most = k, end = k;
      while (end + 1 <= last && Math.floor((moments[end + 1] - from) * scale) === column) { end++; if (totals[end] > totals[most]) most = end; }
      points.push([moments[k], k]);
      if (most !== k) points.push([moments[most], most]);
      if (end !== most && end !== k) points.push([moments[end], end]);
      k = end + 1;
    }
    return points;
  }

  /** What a moment's largest change was: who, what, and where from. */
  describe(k: number, bytes: (n: number) => string): [who: string, what: string, place: number] {
    const { pieces, names, categories } = this.data, change = this.largest[k], i = pieceOf(change), kind = categories[pieces.category[i]], size = bytes(pieces.size[i]);
    if (change >= 0) {
      const before = pieces.start[i] === 0 && names[pieces.maker[i]] === "before the recording";
      return [names[pieces.maker[i]], before ? `${size} (${kind}) were there` : `made ${size} (${kind})`, pieces.place[i]];
    }
    if (pieces.freer[i] === -2) return ["in-place write", `${size} are ${kind} no more`, -1];
    return [names[pieces.freer[i]], `freed ${size} (${kind}) of ${names[pieces.maker[i]]}`, -1];
  }

  place(number: number): [shown: string, stack: string] {
    return number < 0 ? ["", ""] : this.data.places[number];
  }

  /** What lives at a time, by category, maker and place; the most bytes first. */
  owners(t: number): { piece: number; size: number; count: number }[] {
    const { pieces } = this.data, groups = new Map<string, { piece: number; size: number; count: number }>();
    for (let i = 0; i < this.count; i++) {
      if (pieces.start[i] > t || pieces.end[i] <= t) continue;
      const key = `${pieces.category[i]} ${pieces.maker[i]} ${pieces.place[i]}`, group = groups.get(key) ?? { piece: i, size: 0, count: 0 };
      group.size += pieces.size[i];
      group.count++;
      groups.set(key, group);
    }
    return [...groups.values()].sort((a, b) => b.size - a.size);
  }
}

export const pieceOf = (change: number): number => (change < 0 ? ~change : change);
