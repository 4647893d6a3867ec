// The memory timeline as a page of its own.
import type { MemoryData } from "./model/memory";
import { h } from "./widgets/dom";
import { MemoryChart } from "./widgets/memory_chart";

const app = document.getElementById("app")!, chart = new MemoryChart(JSON.parse(document.getElementById("data")!.textContent!) as MemoryData);
Object.assign(window, { memory: chart }); // for tests, which ask where a moment is drawn
app.style.maxWidth = `calc(${Number(app.dataset.width)}px + 48px)`;
app.append(h("header", {}, h("div", {}, h("h1", {}, document.title), h("p", { id: "facts" }, ...chart.facts())), chart.tools()), chart.element);
document.getElementById("frame")!.style.height = `min(56vh, ${Number(app.dataset.height)}px)`;
chart.draw();
