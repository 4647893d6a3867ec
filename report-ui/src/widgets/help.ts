import { h } from "./dom";

const KEYS: [keys: string, what: string][] = [
  ["1 … 9", "sections, in their order"],
  ["/", "search or filter in this section"],
  ["?", "this help"],
  ["Esc", "leave a field, close, deselect"],
  ["W  S", "timeline: zoom in and out, around the pointer"],
  ["A  D", "timeline: move left and right"],
  ["← → ↑ ↓", "timeline and flame graph: the next event, the one around it, the first inside; with nothing selected, move"],
  ["F", "timeline: zoom to the selected event"],
  ["P", "timeline: go to the forward–backward partner"],
  ["0", "timeline, flame graph, memory: everything"],
  ["Enter", "search: the next match (with Shift: the one before)"],
];

export function openHelp(): void {
  const rows = KEYS.map(([keys, what]) => h("tr", {}, h("th", { scope: "row" }, h("kbd", {}, keys)), h("td", {}, what)));
  const dialog = h("dialog", { class: "help", "aria-label": "help" },
    h("h2", {}, "Keys"), h("table", {}, ...rows),
    h("p", { class: "faint" }, "Ctrl and the wheel zoom the timeline around the pointer, the wheel alone scrolls it, dragging moves it, and Shift with dragging zooms to a range. The strip above it is the whole recording: drag its frame to move, drag beside it to zoom there. Every view has an address: copy it with “Copy link”."),
    h("form", { method: "dialog" }, h("button", { class: "tool" }, "Close")));
  dialog.querySelector("form")!.addEventListener("submit", event => { event.preventDefault(); dialog.close(); });
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
