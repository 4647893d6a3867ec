// Events by lane: those of one track at one depth. In a lane they follow each other, so that any moment is found by halving.
import type { Column } from "./packed";
import type { EventsPart, Track } from "./report";

export interface Lane { from: number; to: number } // into `rows`
export interface Matching { rows: Int32Array; lanes: Map<Lane, Lane> }
export interface TrackLanes { process: number; track: number; info: Track; lanes: Lane[] }

export class Lanes {
  readonly rows: Int32Array; // rows of events, lane after lane, in order of start
  readonly tracks: TrackLanes[] = [];
  readonly place: Int32Array; // of each row in `rows`
  readonly end: Float64Array;
  private readonly laneOf: Map<number, Lane> = new Map();
  private readonly deepest: number;

  constructor(readonly events: EventsPart, process: number) {
    const { track, depth, start, duration } = events, n = start.length;
    let deepest = 0;
    for (let i = 0; i < n; i++) if (depth[i] > deepest) deepest = depth[i];
    this.deepest = deepest + 1;
    const counts = new Int32Array(events.tracks.length * this.deepest + 1);
    for (let i = 0; i < n; i++) counts[track[i] * this.deepest + depth[i] + 1]++;
    for (let i = 1; i < counts.length; i++) counts[i] += counts[i - 1];
    const next = counts.slice();
    this.rows = new Int32Array(n);
    this.place = new Int32Array(n);
    this.end = new Float64Array(n);
    for (let i = 0; i < n; i++) {
      const at = next[track[i] * this.deepest + depth[i]]++;
      this.rows[at] = i;
      this.place[i] = at;
      this.end[i] = start[i] + duration[i];
    }
    events.tracks.forEach((info, number) => {
      const lanes: Lane[] = [];
      for (let d = 0; d < this.deepest; d++) {
        const lane = { from: counts[number * this.deepest + d], to: counts[number * this.deepest + d + 1] };
        if (lane.from === lane.to) break;
        lanes.push(lane);
        this.laneOf.set(number * this.deepest + d, lane);
      }
      if (lanes.length) this.tracks.push({ process, track: number, info, lanes });
    });
  }

  lane(row: number): Lane {
    return this.laneOf.get(this.events.track[row] * this.deepest + this.events.depth[row])!;
  }

  /** The first place in a lane, from `low` on, whose event ends after a time. */
  firstEndingAfter(lane: Lane, time: number, low = lane.from, rows = this.rows): number {
    let high = low, step = 1;
    while (high < lane.to && this.end[rows[high]] <= time) { low = high + 1; high += step; step *= 2; }
    high = Math.min(high, lane.to);
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.end[rows[middle]] <= time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The events with one of these labels: rows as in `rows`, and for each lane its part of them. */
  matching(labels: Uint8Array): Matching {
    const { rows, events: { label } } = this, found = new Int32Array(rows.length), lanes = new Map<Lane, Lane>();
    let to = 0;
    for (const { lanes: own } of this.tracks) for (const lane of own) {
      const from = to;
      for (let at = lane.from; at < lane.to; at++) if (labels[label[rows[at]]]) found[to++] = rows[at];
      lanes.set(lane, { from, to });
    }
    return { rows: found.slice(0, to), lanes };
  }

  /** The event of a lane at a time, or -1. */
  at(lane: Lane, time: number): number {
    const place = this.firstEndingAfter(lane, time);
    if (place >= lane.to) return -1;
    const row = this.rows[place];
    return this.events.start[row] <= time ? row : -1;
  }

  /** The event around one, or -1. */
  parent(row: number): number {
    const depth = this.events.depth[row];
    if (!depth) return -1;
    const lane = this.laneOf.get(this.events.track[row] * this.deepest + depth - 1);
    if (!lane) return -1;
    // the last that begins at or before it
    let low = lane.from, high = lane.to;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.rows[middle] < row) low = middle + 1;
      else high = middle;
    }
    return low > lane.from ? this.rows[low - 1] : -1;
  }

  /** The first event inside one, or -1. */
  child(row: number): number {
    const lane = this.laneOf.get(this.events.track[row] * this.deepest + this.events.depth[row] + 1);
    if (!lane) return -1;
    let low = lane.from, high = lane.to;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.rows[middle] <= row) low = middle + 1;
      else high = middle;
    }
    return low < lane.to && this.parent(this.rows[low]) === row ? this.rows[low] : -1;
  }

  /** The event before or after one in its lane, or -1. */
  neighbour(row: number, step: number): number {
    const lane = this.lane(row), at = this.place[row] + step;
    return at >= lane.from && at < lane.to ? this.rows[at] : -1;
  }
}

/** Pairs of rows, looked up from either side. */
export class Pairs {
  private readonly there = new Map<number, number>();
  private readonly back = new Map<number, number>();

  constructor(one: Column, other: Column) {
    for (let i = 0; i < one.length; i++) {
      this.there.set(one[i], other[i]);
      this.back.set(other[i], one[i]);
    }
  }

  partner(row: number): number {
    return this.there.get(row) ?? this.back.get(row) ?? -1;
  }
}
