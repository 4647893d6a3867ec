// What could be faster, with the evidence and links to it.
import { Address } from "../address";
import { part } from "../model/packed";
import type { Advice, Evidence, Finding } from "../model/report";
import type { Context, Shown, View } from "../view";
import { h } from "../widgets/dom";
import { brief, bytes, count, shortTime, shown } from "../widgets/format";

const FIRST = 6; // lines of evidence that are open

export const advice: View = { name: "advice", title: "Advice", icon: "✓", show };

async function show(context: Context): Promise<Shown> {
  const data = await part<Advice>(`advice.${context.process}`);
  const steps = data.steps > 1 ? ` in ${count(data.steps)} steps` : "";
  const found = data.findings.length;
  const element = h("div", { class: "advice" },
    h("p", { class: "faint" }, data.steps ? `${found === 1 ? "1 finding" : found ? `${found} findings` : "No finding"}: ${shortTime(data.recorded)} recorded${steps}.${found ? " Gains are estimates." : ""}` : "Nothing was recorded."),
    ...data.findings.map((finding, i) => findingCard(context, finding, data.steps, i)),
    data.unexplained.length ? h("section", { class: "card" }, h("h2", {}, "Not explained by a finding"), ...data.unexplained.map(each => h("div", { class: "part" }, h("p", {}, h("b", {}, `${(100 * each.share).toFixed(1)} %, ${shortTime(each.ns)}`), ` ${shown(each.name)}. ${each.hint}`), evidence(context, each.evidence.slice(0, 5))))) : null,
    data.notChecked.length ? h("section", { class: "card" }, h("h2", {}, "Not checked"), h("ul", {}, ...data.notChecked.map(each => h("li", {}, `${each.rule}: record with `, h("code", {}, each.needs.join(", ")))))) : null);
  return { element };
}

export function gain(finding: Finding, steps: number): string {
  if (finding.kept && !finding.gain) return `${bytes(finding.kept)} of memory`;
  return `${(100 * finding.gainShare).toFixed(1)} % of the time, ${shortTime(finding.gain)}${steps > 1 ? `, ${shortTime(finding.gainPerStep)} a step` : ""}`;
}

export function findingCard(context: Context, finding: Finding, steps: number, at: number): HTMLElement {
  const process: Record<string, string | number> = context.process ? { process: context.process } : {};
  const link = finding.event >= 0 ? h("a", { href: String(new Address("timeline").with({ event: `${context.process}.${finding.event}`, ...process })) }, "the longest of these events in the timeline") : null;
  return h("section", { class: "card finding", id: `finding-${at}` }, h("h2", {}, `${at + 1}. ${shown(finding.rule)}`, h("span", { class: "gain" }, gain(finding, steps))), h("p", {}, shown(finding.seen, 2000)), h("p", {}, h("b", {}, shown(finding.instead, 2000))), h("p", { class: "faint small" }, `Estimate: ${shown(finding.estimate, 1000)}`),
    evidence(context, finding.evidence.slice(0, FIRST)), finding.evidence.length > FIRST ? h("details", {}, h("summary", {}, `${count(finding.evidence.length - FIRST + finding.moreEvidence)} more`), evidence(context, finding.evidence.slice(FIRST)), finding.moreEvidence ? h("p", { class: "faint" }, `and ${count(finding.moreEvidence)} that are not listed`) : null) : null, link ? h("p", {}, link) : null);
}

function evidence(context: Context, list: Evidence[]): HTMLElement | null {
  if (!list.length) return null;
  const withSteps = list.some(each => each.steps.includes("-") || each.steps.includes(","));
  const withShapes = list.some(each => each.shapes), withPlaces = list.some(each => each.place);
  const head = ["operator", "calls", "time", "share", withSteps ? "steps" : null, withShapes ? "shapes" : null, withPlaces ? "where" : null].filter((text): text is string => text !== null);
  const rows = list.map(each => h("tr", {},
    h("th", { scope: "row" }, h("a", { href: String(new Address("operators").with({ filter: each.operator, kind: "all", ...(context.process ? { process: context.process } : {}) })) }, shown(brief(each.operator), 120))), h("td", { class: "number" }, count(each.count)), h("td", { class: "number" }, shortTime(each.ns)), h("td", { class: "number" }, `${(100 * each.share).toFixed(1)} %`),
    withSteps ? h("td", {}, shown(each.steps, 60)) : null, withShapes ? h("td", { class: "faint" }, shown(each.shapes ?? "", 90)) : null, withPlaces ? h("td", { class: "faint" }, shown(each.place ?? "", 160)) : null));
  return h("div", { class: "scroll-x" }, h("table", { class: "evidence" }, h("thead", {}, h("tr", {}, ...head.map(text => h("th", { scope: "col", class: ["calls", "time", "share"].includes(text) ? "number" : "" }, text)))), h("tbody", {}, ...rows)));
}
