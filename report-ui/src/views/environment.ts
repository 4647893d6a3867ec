// Where and how the recording was made.
import { part } from "../model/packed";
import type { Environment } from "../model/report";
import type { Context, Shown, View } from "../view";
import { h, styled } from "../widgets/dom";
import { count, shown } from "../widgets/format";

export const environment: View = { name: "environment", title: "Environment", icon: "⚙", show };

async function show(context: Context): Promise<Shown> {
  const data = await part<Environment>(`environment.${context.process}`);
  const pairs = (rows: [string, string][]): HTMLElement => h("dl", { class: "pairs" }, ...rows.flatMap(([name, value]) => [h("dt", {}, shown(name)), h("dd", {}, shown(value, 4000))]));
  const element = h("div", { class: "environment" },
    ...data.groups.map(([title, rows]) => h("section", { class: "card" }, h("h2", {}, title), pairs(rows))),
    h("section", { class: "card" }, h("h2", {}, "Recorded"), h("ul", { class: "options" }, ...data.options.map(([option, what, isOn]) => h("li", { class: isOn ? "" : "faint" }, `${isOn ? "✓" : "–"} ${what}`, isOn ? null : h("span", {}, ": record with ", h("code", {}, option)))))),
    h("section", { class: "card" }, h("h2", {}, "Threads and tasks"), pairs(data.threads.map(([name, id, note]) => [name, [id, note].filter(Boolean).join(" · ")]))),
    processTree(context));
  return { element };
}

function processTree(context: Context): HTMLElement | null {
  const { processes } = context.report;
  if (processes.length < 2) return null;
  const known = new Set(processes.map(each => each.pid));
  const items = (parent: number | null, depth: number): HTMLElement[] => processes.filter(each => (parent === null ? !known.has(each.parent) || each.parent === each.pid : each.parent === parent && each.pid !== parent)).flatMap(each => [
    styled(h("li", {}, `${shown(each.name, 80)} ${each.pid}`, h("span", { class: "faint" }, ` · ${count(each.events)} events · ${shown(each.command.join(" "), 160)}`)), { marginLeft: `${depth * 20}px` }), ...(depth < 20 ? items(each.pid, depth + 1) : [])]);
  return h("section", { class: "card" }, h("h2", {}, "Processes"), h("ul", { class: "options" }, ...items(null, 0)));
}
