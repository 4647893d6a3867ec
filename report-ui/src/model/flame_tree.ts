// Trees of a flame graph made of others: with frames left out, and turned round.
import type { FlameTree } from "./report";

const ENGINE = "autograd::engine::";

interface Builder { parent: number[]; name: number[]; sums: number[][]; known: Map<string, number> }

const SUMS = ["self", "selfBackward", "count", "countBackward"] as const;

function builder(): Builder {
  return { parent: [], name: [], sums: SUMS.map(() => []), known: new Map() };
}

function node(made: Builder, parent: number, name: number): number {
  const key = `${parent} ${name}`;
  let at = made.known.get(key);
  if (at === undefined) {
    at = made.parent.length;
    made.known.set(key, at);
    made.parent.push(parent);
    made.name.push(name);
    for (const sums of made.sums) sums.push(0);
  }
  return at;
}

function add(made: Builder, at: number, tree: FlameTree, i: number): void {
  SUMS.forEach((sum, k) => { made.sums[k][at] += tree[sum][i]; });
}

function built(made: Builder, { names, library }: FlameTree): FlameTree {
  const [self, selfBackward, count, countBackward] = made.sums.map(sums => Float64Array.from(sums));
  return { names, library, parent: Int32Array.from(made.parent), name: Int32Array.from(made.name), self, selfBackward, count, countBackward };
}

/** The tree without the frames of the runtime and of libraries; their time is that of the frame around them. Operators stay. */
export function ownFrames(tree: FlameTree): FlameTree {
  const made = builder(), hidden = tree.names.map((name, i) => tree.library[i] > 0 || name.startsWith(ENGINE)), place = new Int32Array(tree.parent.length);
  for (let i = 0; i < tree.parent.length; i++) {
    const around = tree.parent[i] < 0 ? -1 : place[tree.parent[i]];
    place[i] = hidden[tree.name[i]] && around >= 0 ? around : node(made, around, tree.name[i]);
    add(made, place[i], tree, i);
  }
  return built(made, tree);
}

/** The tree turned round: what has self time is at the root, and below it who called it. */
export function callers(tree: FlameTree): FlameTree {
  const made = builder();
  for (let i = 0; i < tree.parent.length; i++) {
    if (!tree.self[i] && !tree.selfBackward[i]) continue;
    let at = -1;
    for (let from = i; from >= 0; from = tree.parent[from]) at = node(made, at, tree.name[from]);
    add(made, at, tree, i); // the outermost caller has it, so that totals are right all the way
  }
  return built(made, tree);
}
