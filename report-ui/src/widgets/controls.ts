// Fields and switches that several sections have.
import { h } from "./dom";

export function filterField(label: string, value: string, onInput: (text: string) => void): HTMLInputElement {
  const field = h("input", { type: "search", class: "filter", placeholder: `${label} ( / )`, "aria-label": label, spellcheck: "false", autocomplete: "off" });
  field.value = value;
  field.addEventListener("input", () => onInput(field.value));
  return field;
}

export interface Choice { key: string; title: string; hint?: string; disabled?: boolean }

/** Buttons of which one is pressed. */
export function choice(label: string, choices: Choice[], chosen: string, onChoose: (key: string) => void): HTMLElement {
  const buttons = choices.map(({ key, title, hint, disabled }) => {
    const button = h("button", { type: "button", "data-key": key, title: hint, "aria-pressed": String(key === chosen), "aria-disabled": disabled ? "true" : null }, title);
    button.addEventListener("click", () => {
      for (const each of buttons) each.setAttribute("aria-pressed", String(each === button));
      onChoose(key);
    });
    return button;
  });
  return h("div", { class: "choice", role: "group", "aria-label": label }, h("span", { class: "faint" }, label), ...buttons);
}

/** What is shown where something was not recorded. */
export function notRecorded(what: string, option: string): HTMLElement {
  return h("div", { class: "nothing" }, h("p", {}, what), h("p", { class: "faint" }, "Record with ", h("code", {}, option), " to see it."));
}

/** A test of texts: all words must be in it; `/…/` is a regular expression. */
export function matcher(text: string): (candidate: string) => boolean {
  const wanted = text.trim();
  if (!wanted) return () => true;
  if (wanted.length > 2 && wanted.startsWith("/") && wanted.endsWith("/")) {
    try {
      const expression = new RegExp(wanted.slice(1, -1), "i");
      return candidate => expression.test(candidate);
    } catch {
      return () => false;
    }
  }
  const words = wanted.toLowerCase().split(/\s+/);
  return candidate => {
    const low = candidate.toLowerCase();
    return words.every(word => low.includes(word));
  };
}
