// What the parts of a report contain. Python's `report/sections` makes them.
import type { Column } from "./packed";

export interface Process { pid: number; parent: number; name: string; command: string[]; events: number }
export interface Report { processes: Process[]; base: number }

export interface Part { name: string; key: string; ns: number; means: string }
export interface Overview {
  wall: number;
  onProcessor: number | null;
  events: number;
  parts: Part[];
  otherThreads: [name: string, ns: number][];
  steps: { count: number; by: string; median: number };
}

export interface OperatorTable {
  needs?: undefined;
  names: string[]; kinds: string[]; lines: string[]; details: string[];
  name: Column; kind: Column; detail: Column; line: Column;
  count: Column; total: Column; self: Column; median: Column; max: Column;
  device: Column; selfDevice: Column; memory: Column; selfMemory: Column; flops: Column;
}
export interface Operators {
  groupings: Record<string, OperatorTable | { needs: string }>;
  has: { memory: boolean; flops: boolean; device: boolean; lines: boolean };
}

export interface Track { tid: number; thread: number; name: string; device: string; index: number }
export interface EventsPart {
  pid: number; parent: number; process: string; started: number; stopped: number;
  categories: string[]; labels: [name: string, category: number, kind: string][]; tracks: Track[];
  label: Column; track: Column; depth: Column; start: Column; duration: Column; inner: Column; part: Column;
  module: Column | null; modules: string[];
  stack: Column | null; places: string[]; stackStart: Column; stackFrame: Column;
  inputs: Column | null; inputTable: string[][];
  memory: Column | null;
  forward: Column; backward: Column; caller: Column; kernel: Column;
  steps: { number: Column; start: Column; end: Column };
}
