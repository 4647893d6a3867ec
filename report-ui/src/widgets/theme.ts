// Light and dark: as the system says, until the switch is used.
import { h } from "./dom";

const listeners = new Set<() => void>();
const system = matchMedia("(prefers-color-scheme: dark)");
system.addEventListener("change", changed);

export const isDark = (): boolean => (document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";

function changed(): void {
  for (const listener of listeners) listener();
}

/** Call a function whenever colours change; returns a function that ends this. */
export function onTheme(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function themeSwitch(): HTMLElement {
  const label = (): string => (isDark() ? "Light" : "Dark");
  const button = h("button", { class: "tool", id: "theme", title: "light or dark", onclick: () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    changed();
  } }, label());
  onTheme(() => { button.textContent = label(); });
  return button;
}

/** The value of a colour of the page, for canvases. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
