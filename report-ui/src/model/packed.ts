// Parts of the report's data, unpacked when they are first asked for. The format is that of `packing.py`.

export type Column = Int32Array | Float64Array;
type Place = [offset: number, length: number, width: number, isDelta: number, kind: "i4" | "f8"];

const found = new Map<string, Promise<unknown>>();

/** A part by its name; the same object every time. */
export function part<T>(name: string): Promise<T> {
  let value = found.get(name);
  if (!value) {
    value = unpack(name);
    found.set(name, value);
  }
  return value as Promise<T>;
}

async function unpack(name: string): Promise<unknown> {
  const element = document.getElementById(name);
  if (!element) throw new Error(`the report has no part ${name}`);
  const bytes = fromBase64(element.textContent ?? "");
  element.textContent = "";
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const content = new Uint8Array(await new Response(stream).arrayBuffer());
  const length = new DataView(content.buffer).getUint32(0, true);
  const header = new TextDecoder().decode(content.subarray(4, 4 + length));
  const columns = content.subarray(4 + length);
  return JSON.parse(header, (_, value: unknown) => (isPlace(value) ? column(columns, value.column) : value));
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const characters = atob(text), bytes = new Uint8Array(characters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = characters.charCodeAt(i);
  return bytes;
}

function isPlace(value: unknown): value is { column: Place } {
  return typeof value === "object" && value !== null && "column" in value && Array.isArray(value.column);
}

/** A column from its bytes: all first bytes, then all second ones; an odd number stands for one below zero. */
export function column(bytes: Uint8Array, [offset, n, width, isDelta, kind]: Place): Column {
  const values: Column = kind === "i4" ? new Int32Array(n) : new Float64Array(n);
  const at = (plane: number, i: number): number => bytes[offset + plane * n + i];
  let last = 0;
  for (let i = 0; i < n; i++) {
    let low = at(0, i), half: number;
    if (width >= 2) low |= at(1, i) << 8;
    if (width >= 4) low |= (at(2, i) << 16) | (at(3, i) << 24);
    if (width < 8) half = low >>> 1;
    else half = ((at(4, i) | (at(5, i) << 8) | (at(6, i) << 16) | (at(7, i) << 24)) >>> 0) * 2 ** 31 + (low >>> 1);
    const value = low & 1 ? -half - 1 : half;
    values[i] = last = isDelta ? last + value : value;
  }
  return values;
}

export function sum(values: ArrayLike<number>): number {
  let total = 0;
  for (let i = 0; i < values.length; i++) total += values[i];
  return total;
}
