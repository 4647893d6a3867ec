// The address of a view: `#operators?sort=self&filter=mm`. It holds all that is needed to show the view again.

export class Address {
  constructor(readonly section: string, private readonly values: URLSearchParams = new URLSearchParams()) {}

  static read(): Address {
    const [section, query] = split(location.hash.replace(/^#/, ""), "?");
    return new Address(section || "overview", new URLSearchParams(query));
  }

  get(name: string, otherwise = ""): string {
    return this.values.get(name) ?? otherwise;
  }

  number(name: string, otherwise: number): number {
    const text = this.values.get(name), value = Number(text);
    return text === null || text === "" || !Number.isFinite(value) ? otherwise : value;
  }

  entries(): Iterable<[string, string]> {
    return this.values.entries();
  }

  /** The same with other values; an empty one is left out. */
  with(changes: Record<string, string | number>): Address {
    const values = new URLSearchParams(this.values);
    for (const [name, value] of Object.entries(changes)) {
      if (value === "") values.delete(name);
      else values.set(name, String(value));
    }
    return new Address(this.section, values);
  }

  toString(): string {
    const query = this.values.toString();
    return `#${this.section}${query ? `?${query}` : ""}`;
  }
}

function split(text: string, at: string): [string, string] {
  const place = text.indexOf(at);
  return place < 0 ? [text, ""] : [text.slice(0, place), text.slice(place + 1)];
}
