// Numbers and names as people read them. Times have the digits of the printed tables.

export function time(ns: number): string {
  const us = Math.abs(ns) / 1000, sign = ns < 0 ? "−" : "";
  if (us >= 1e6) return `${sign}${(us / 1e6).toFixed(3)} s`;
  return us >= 1000 ? `${sign}${(us / 1000).toFixed(3)} ms` : `${sign}${us.toFixed(3)} µs`;
}

/** Three digits and a unit, for axes and sentences. */
export function shortTime(ns: number): string {
  const sign = ns < 0 ? "−" : "", size = Math.abs(ns);
  for (const [unit, scale] of [["s", 1e9], ["ms", 1e6], ["µs", 1e3]] as const) if (size >= scale) return `${sign}${digits(size / scale)} ${unit}`;
  return `${sign}${digits(size)} ns`;
}

function digits(value: number): string {
  return value >= 1000 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)));
}

export const count = (n: number): string => n.toLocaleString("en");
export const share = (part: number, whole: number): string => (whole ? `${((100 * part) / whole).toFixed(1)} %` : "");

export function bytes(n: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0, value = Math.abs(n);
  while (value >= 1024 && unit < units.length - 1) { value /= 1024; unit++; }
  return `${n < 0 ? "−" : ""}${unit ? value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0) : value} ${units[unit]}`;
}

export function metric(n: number, unit: string): string {
  const prefixes = ["", "k", "M", "G", "T", "P"];
  let at = 0, value = Math.abs(n);
  while (value >= 1000 && at < prefixes.length - 1) { value /= 1000; at++; }
  return n ? `${n < 0 ? "−" : ""}${digits(value)} ${prefixes[at]}${unit}` : "";
}

const LONGEST = 400; // characters of a name in a cell
// what cannot be seen, or changes the order of what can: controls, direction marks, lone surrogates
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

const ENGINE = "autograd::engine::evaluate_function: ";

/** A name without the long prefix of the engine's events. */
export const brief = (name: string): string => (name.startsWith(ENGINE) ? `engine › ${name.slice(ENGINE.length)}` : name);

/** A text of the program as it can be shown: hidden characters spelled out, very long ones cut. */
export function shown(text: string, longest = LONGEST): string {
  const cut = text.length > longest ? `${text.slice(0, longest)}… (${count(text.length)} characters)` : text;
  return cut.replace(HIDDEN, character => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
