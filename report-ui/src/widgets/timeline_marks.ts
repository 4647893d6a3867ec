// Colours, names and ticks of the timeline.
import { shown } from "./format";

export const COLOURS = ["compile", "forward", "backward", "optimizer", "stall", "data", "waits", "python", "scope", "module", "gc", "memory", "kernel", "dim"];
export const SHADES = 3;
// the colour of an event that is no operator, by its category
const BY_CATEGORY: Record<string, number> = { scope: 8, optimizer: 3, data: 5, python: 7, module: 9, compile: 0, gc: 10, memory: 11, kernel: 12 };

export function colourOf(category: number, part: number, categories: string[]): number {
  const name = categories[category];
  return name === "operator" || name === "backward" || name === "runtime" ? part : BY_CATEGORY[name] ?? BY_CATEGORY.scope;
}

export function hash(text: string): number {
  let value = 7;
  for (let i = 0; i < Math.min(text.length, 80); i++) value = (value * 31 + text.charCodeAt(i)) | 0;
  return value >>> 0;
}

/** A colour of the page, a little lighter or darker, so that neighbours can be told apart. */
export function tint(hex: string, shade: number): string {
  const factor = [1, 0.92, 0.96][shade];
  const parts = [1, 3, 5].map(at => Math.min(255, Math.round(parseInt(hex.slice(at, at + 2), 16) * factor)));
  return `rgb(${parts.join(",")})`;
}

export function clip(name: string, room: number): string {
  const text = shown(name, 200);
  return text.length <= room ? text : `${text.slice(0, room - 1)}…`;
}

export function tickStep(rough: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  return [1, 2, 5, 10].map(base => base * power).find(step => step >= rough) ?? 10 * power;
}

export function tickText(t: number, step: number): string {
  const [unit, scale] = Math.abs(t) >= 1e9 ? ["s", 1e9] as const : Math.abs(t) >= 1e6 ? ["ms", 1e6] as const : ["µs", 1e3] as const;
  const decimals = Math.min(6, Math.max(0, Math.ceil(-Math.log10(step / scale) - 1e-9)));
  return t === 0 ? "0" : `${(t / scale).toFixed(decimals)} ${unit}`;
}
