// What the time was spent on, the rows that matter, the first advice.
import { Address } from "../address";
import { part } from "../model/packed";
import type { Advice, Operators, OperatorTable, Overview, Part } from "../model/report";
import type { Context, Shown, View } from "../view";
import { h, styled } from "../widgets/dom";
import { brief, count, share, shortTime, shown, time } from "../widgets/format";
import { partColour } from "../widgets/parts";
import { gain } from "./advice";

const ROWS = 5;

export const overview: View = { name: "overview", title: "Overview", icon: "◧", show };

async function show(context: Context): Promise<Shown> {
  const { process } = context;
  const [data, operators, advice] = await Promise.all([part<Overview>(`overview.${process}`), part<Operators>(`operators.${process}`), part<Advice>(`advice.${process}`)]);
  const element = h("div", { class: "overview" },
    facts(data),
    h("section", { class: "card wide", "aria-labelledby": "parts-title" }, h("h2", { id: "parts-title" }, "Where the time went"), bar(data), data.delay ? h("p", { class: "note" }, data.delay) : null, table(data)),
    topRows(operators, data.wall), firstAdvice(context, advice));
  return { element };
}

function facts(data: Overview): HTMLElement {
  const known: [string, string][] = [["wall time", time(data.wall)], ["events", count(data.events)]];
  if (data.steps.count) known.push([data.steps.by === "optimizer" ? "optimizer steps" : "steps", count(data.steps.count)], ["a step, median", time(data.steps.median)]);
  if (data.onProcessor !== null) known.push(["on the processor", share(data.onProcessor, data.wall)]);
  for (const [name, busy] of data.devices) known.push([`${shown(name)} busy`, `${(100 * busy).toFixed(1)} %`]);
  return h("dl", { class: "facts" }, ...known.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

function bar(data: Overview): HTMLElement {
  const parts = data.parts.filter(each => each.ns > 0);
  const pieces = parts.map(each => {
    const width = (100 * each.ns) / Math.max(data.wall, 1);
    return styled(h("div", { class: width > 7 ? "piece named" : "piece", title: `${each.name}: ${time(each.ns)}, ${share(each.ns, data.wall)}` }, width > 7 ? `${each.name} ${share(each.ns, data.wall)}` : ""), { flexGrow: String(each.ns), background: partColour(each.key) });
  });
  return h("div", { class: "parts-bar", role: "img", "aria-label": parts.map(each => `${each.name} ${share(each.ns, data.wall)}`).join(", ") }, ...pieces);
}

function table(data: Overview): HTMLElement {
  const steps = Math.max(data.steps.count, 1), perStep = data.steps.count > 1;
  const row = (each: Part): HTMLElement => h("tr", { "data-part": each.key, class: each.ns ? "" : "none" },
    h("th", { scope: "row" }, styled(h("span", { class: "swatch" }), { background: partColour(each.key) }), each.name),
    h("td", { class: "number" }, time(each.ns)), h("td", { class: "number" }, share(each.ns, data.wall)),
    perStep ? h("td", { class: "number" }, time(each.ns / steps)) : null, h("td", { class: "means" }, each.means));
  const head = h("tr", {}, h("th", { scope: "col" }, "part"), h("th", { scope: "col", class: "number" }, "time"), h("th", { scope: "col", class: "number" }, "share"), perStep ? h("th", { scope: "col", class: "number" }, "a step, mean") : null, h("th", { scope: "col" }, "what it is"));
  const threads = data.otherThreads.filter(([, ns]) => ns > 0).map(([name, ns]) => h("p", { class: "faint" }, `Meanwhile, operators on ${shown(name, 60)} took ${time(ns)}.`));
  return h("div", {}, h("table", { class: "parts" }, h("thead", {}, head), h("tbody", {}, ...data.parts.map(row))), ...threads);
}

/** The operators with most self time. */
function topRows(operators: Operators, wall: number): HTMLElement {
  const table = operators.groupings.name as OperatorTable;
  const rows = [...table.self.keys()].filter(i => ["op", "runtime"].includes(table.kinds[table.kind[i]])).sort((a, b) => table.self[b] - table.self[a]).slice(0, ROWS);
  const most = Math.max(1, ...rows.map(i => table.self[i]));
  const items = rows.map(i => {
    const name = table.names[table.name[i]], line = table.line[i] >= 0 ? table.lines[table.line[i]] : "";
    const link = h("a", { href: String(new Address("operators").with({ filter: name })), class: "one-line", title: shown(name) }, shown(brief(name), 90));
    return h("li", {}, styled(h("span", { class: "bar" }), { width: `${(100 * table.self[i]) / most}%` }), h("div", { class: "row" }, link, h("span", { class: "number" }, `${time(table.self[i])} · ${share(table.self[i], wall)}`)),
      h("div", { class: "faint one-line" }, [`${count(table.count[i])} calls, ${shortTime(table.self[i] / table.count[i])} each`, shown(line, 90)].filter(Boolean).join(" · ")));
  });
  const note = rows.length ? h("ol", { class: "top-rows" }, ...items) : h("p", { class: "faint" }, "No operator was recorded.");
  return h("section", { class: "card", "aria-labelledby": "rows-title" }, h("h2", { id: "rows-title" }, "Operators with most self time"), note,
    h("p", {}, h("a", { href: String(new Address("operators")) }, "all operators")));
}

function firstAdvice(context: Context, advice: Advice): HTMLElement {
  const address = new Address("advice").with(context.process ? { process: context.process } : {});
  const [first] = advice.findings, [unexplained] = advice.unexplained;
  const content = first
    ? [h("p", { class: "gain" }, gain(first, advice.steps)), h("p", {}, shown(first.seen, 1000)), h("p", {}, h("b", {}, shown(first.instead, 1000)))]
    : [h("p", {}, advice.steps ? "No finding: none of the rules sees something that would gain a hundredth of the time." : "Nothing was recorded."), unexplained ? h("p", {}, `Most of the time, ${(100 * unexplained.share).toFixed(1)} %: ${shown(unexplained.name)}. ${unexplained.hint}`) : null];
  return h("section", { class: "card", "aria-labelledby": "advice-title" }, h("h2", { id: "advice-title" }, first ? "The first advice" : "Advice"), ...content, h("p", {}, h("a", { href: String(address) }, advice.findings.length > 1 ? `all ${advice.findings.length} findings` : "all about it")));
}
