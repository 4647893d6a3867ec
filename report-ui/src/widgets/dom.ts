// Elements, made in one expression. Text is always text: nothing of the program's is parsed as HTML.

type Child = Node | string | number | null | undefined | false;
type Attributes = Record<string, string | number | boolean | null | undefined | ((event: never) => void)>;

export function h<K extends keyof HTMLElementTagNameMap>(name: K, attributes: Attributes = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(key.replace(/^on/, ""), value as EventListener);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, String(value));
  }
  element.append(...children.filter((child): child is Node | string | number => child !== null && child !== undefined && child !== false).map(child => (typeof child === "number" ? String(child) : child)));
  return element;
}

/** An element with styles that only the data knows, such as the length of a bar. */
export function styled<T extends HTMLElement>(element: T, styles: Partial<CSSStyleDeclaration>): T {
  Object.assign(element.style, styles);
  return element;
}

export function debounce(milliseconds: number, action: () => void): () => void {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = window.setTimeout(action, milliseconds);
  };
}
