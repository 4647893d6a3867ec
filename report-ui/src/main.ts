import { Address } from "./address";
import { part } from "./model/packed";
import type { Report } from "./model/report";
import type { Context, Shown, View } from "./view";
import { VIEWS } from "./views";
import { copyText } from "./widgets/clipboard";
import { h } from "./widgets/dom";
import { count, shown } from "./widgets/format";
import { openHelp } from "./widgets/help";
import { themeSwitch } from "./widgets/theme";

class Page {
  private readonly main = h("main", { id: "view", tabindex: "-1" });
  private readonly live = h("div", { class: "unseen", role: "status", "aria-live": "polite" });
  private readonly links = new Map<string, HTMLAnchorElement>();
  private current: Shown | null = null;
  private address = Address.read();
  private turn = 0;

  private readonly views: View[];

  constructor(private readonly report: Report) {
    this.views = VIEWS.filter(view => view.when?.(report) ?? true);
    const app = document.getElementById("app")!;
    app.append(this.header(), this.navigation(), this.main, this.live);
    addEventListener("hashchange", () => void this.open(Address.read()));
    document.addEventListener("keydown", event => this.key(event));
    void this.open(this.address);
  }

  private header(): HTMLElement {
    const first = this.report.processes[0];
    const command = first.command.join(" ");
    const copied = h("button", { class: "tool", title: "copy a link to this view", id: "copy-link", onclick: () => void this.copyLink(copied) }, "Copy link");
    return h("header", { class: "top" },
      h("div", { class: "titles" }, h("h1", {}, shown(document.title, 120)), h("p", { class: "faint one-line" }, shown(command === document.title ? "" : command, 200))),
      h("div", { class: "tools" }, this.processChoice(), copied, themeSwitch(), h("button", { class: "tool", id: "help", title: "keys and hints (?)", "aria-label": "help", onclick: () => openHelp() }, "?")));
  }

  private processChoice(): HTMLElement | null {
    const { processes } = this.report;
    if (processes.length < 2) return null;
    const options = processes.map((p, i) => h("option", { value: i }, shown(`${p.name} ${p.pid} · ${count(p.events)} events`, 80)));
    const choice = h("select", { id: "process", "aria-label": "process", onchange: () => this.go(this.address.with({ process: choice.value === "0" ? "" : choice.value })) }, ...options);
    return choice;
  }

  private navigation(): HTMLElement {
    const list = this.views.map(view => {
      const link = h("a", { href: `#${view.name}`, "data-view": view.name }, h("span", { class: "icon", "aria-hidden": "true" }, view.icon), view.title);
      link.addEventListener("click", event => {
        event.preventDefault();
        const process = this.address.get("process");
        this.go(new Address(view.name).with(process ? { process } : {}));
      });
      this.links.set(view.name, link);
      return link;
    });
    return h("nav", { "aria-label": "sections" }, ...list);
  }

  private go(address: Address): void {
    if (String(address) === location.hash) return;
    location.hash = String(address); // `hashchange` opens it, and the browser's way back works
  }

  private async open(address: Address): Promise<void> {
    const turn = ++this.turn;
    const view: View = this.views.find(each => each.name === address.section) ?? this.views[0];
    this.address = new Address(view.name).with(Object.fromEntries(address.entries()));
    const process = Math.min(Math.max(0, Math.trunc(address.number("process", 0))), this.report.processes.length - 1);
    const choice = document.getElementById("process") as HTMLSelectElement | null;
    if (choice) choice.value = String(process);
    for (const [name, link] of this.links) name === view.name ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current");
    this.current?.close?.();
    this.current = null;
    this.main.replaceChildren(h("p", { class: "faint waiting" }, "…"));
    const context: Context = {
      report: this.report,
      process,
      address: this.address,
      keep: changes => {
        if (turn !== this.turn) return;
        this.address = this.address.with(changes);
        history.replaceState(null, "", String(this.address));
      },
      go: next => this.go(process && !next.get("process") ? next.with({ process }) : next),
      announce: text => { this.live.textContent = text; },
    };
    try {
      const made = await view.show(context);
      if (turn !== this.turn) return made.close?.();
      this.current = made;
      this.main.className = `view-${view.name}`;
      this.main.replaceChildren(made.element);
      this.main.dataset.ready = view.name;
      this.live.textContent = view.title;
      made.element.dispatchEvent(new Event("attached"));
    } catch (error) {
      this.main.replaceChildren(h("p", { class: "nothing", role: "alert" }, `This section could not be shown: ${String(error)}`));
      console.error(error);
    }
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const target = event.target as HTMLElement;
    const typing = target instanceof HTMLInputElement || target instanceof HTMLSelectElement || target instanceof HTMLTextAreaElement;
    if (typing) {
      if (event.key === "Escape") target.blur();
      return;
    }
    if (document.querySelector("dialog[open]")) return;
    if (event.key === "?") openHelp();
    else if (event.key === "/" && this.current?.search) this.current.search.focus();
    else if (/^[1-9]$/.test(event.key) && this.views[Number(event.key) - 1]) this.go(new Address(this.views[Number(event.key) - 1].name));
    else if (!this.current?.key?.(event)) return;
    event.preventDefault();
  }

  private async copyLink(button: HTMLButtonElement): Promise<void> {
    const done = await copyText(location.href);
    button.textContent = done ? "Copied" : "In the address bar";
    this.live.textContent = done ? "link copied" : "the link is in the address bar";
    setTimeout(() => { button.textContent = "Copy link"; }, 1500);
  }
}

void part<Report>("report").then(report => new Page(report));
