// What the parts of a report contain. Python's `report/sections` makes them.
import type { Column } from "./packed";

export interface Process { pid: number; parent: number; name: string; command: string[]; events: number; hasDevice: boolean }
export interface Report { processes: Process[]; base: number }

export interface Part { name: string; key: string; ns: number; means: string }
export interface Overview {
  wall: number;
  onProcessor: number | null;
  delay: string;
  events: number;
  parts: Part[];
  otherThreads: [name: string, ns: number][];
  devices: [name: string, busyShare: number][];
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

export interface NotRecorded { needs: string }

export interface SlowStep {
  step: number; // the place in the columns
  excess: number;
  parts: [key: string, ns: number][];
  labels: [name: string, ns: number, calls: number, usualCalls: number][];
  compiled: [count: number, ns: number];
  collected: [count: number, ns: number];
}
export interface Steps {
  needs?: undefined;
  by: string;
  number: Column; start: Column; duration: Column;
  parts: Record<string, Column>;
  slow: SlowStep[];
  slowAbove: number;
  median: number;
}

export interface ModuleTree {
  needs?: undefined;
  path: string[]; classes: string[]; class: Column; parent: Column; calls: Column;
  forward: Column; backward: Column; selfForward: Column; selfBackward: Column;
  recorded: number;
  memory: Column | null; flopsForward: Column | null; flopsBackward: Column | null;
}

export interface FlameTree {
  needs?: undefined;
  names: string[]; library: Column; name: Column; parent: Column; // library: by name, whether it is a function of the runtime or of a library
  self: Column; selfBackward: Column; count: Column; countBackward: Column;
}
export type Flame = Record<string, FlameTree | NotRecorded>;

export interface Evidence { operator: string; count: number; ns: number; share: number; steps: string; place: string | null; shapes: string | null }
export interface Finding {
  rule: string; seen: string; instead: string; estimate: string;
  gain: number; gainPerStep: number; gainShare: number; kept: number; event: number;
  evidence: Evidence[]; moreEvidence: number;
}
export interface Advice {
  recorded: number; steps: number;
  findings: Finding[];
  unexplained: { name: string; ns: number; share: number; hint: string; evidence: Evidence[] }[];
  notChecked: { rule: string; needs: string[] }[];
}

export interface Environment {
  groups: [title: string, rows: [name: string, value: string][]][];
  options: [option: string, what: string, isOn: boolean][];
  threads: [name: string, id: string, note: string][];
}

export interface Kernel { name: string; sort: string; count: number; total_ns: number; mean_ns: number; median_ns: number; min_ns: number; max_ns: number; share: number }
export interface DeviceFacts {
  type: string; index: number; name: string; started_ns: number; ended_ns: number; span_ns: number; busy_ns: number; idle_ns: number; busy_share: number;
  idle_causes: Record<string, number>; sorts: Record<string, number>; alone: Record<string, number>; overlap: Record<string, number>; communication_overlap: number;
  kernels: Kernel[];
  copies: { direction: string; count: number; total_ns: number; size_bytes: number; gigabytes_per_second: number }[];
  streams: { number: number; name: string; count: number; span_ns: number; busy_ns: number; idle_ns: number; idle_causes: Record<string, number>; queue_maximum: number; queue_mean: number }[];
  launches: { count: number; unknown: number; call_median_ns: number; delay_median_ns: number; delay_max_ns: number; shorter_than_call: number };
  queues: { time: Column; length: Column }[];
}
export interface CriticalPath { name: string; step: number; total_ns: number; start: number; end: number; places: Record<string, number>; names: { name: string; place: string; total_ns: number; count: number; is_event: boolean }[] }
export interface Devices { needs?: undefined; devices: DeviceFacts[]; means: Record<string, string>; path: CriticalPath | null; places: Record<string, string> }
