// What a section of the page is given, and what it gives back.
import type { Address } from "./address";
import type { Report } from "./model/report";

export interface Context {
  report: Report;
  process: number; // of which the section shows its part
  address: Address;
  /** Remember how the view looks now, in the address; the view is not made anew. */
  keep(changes: Record<string, string | number>): void;
  /** Go to another view. */
  go(address: Address): void;
  /** Say something to those who hear the page. */
  announce(text: string): void;
}

export interface Shown {
  element: HTMLElement;
  /** Called when the view is left. */
  close?(): void;
  /** A key that no field took; true if the view used it. */
  key?(event: KeyboardEvent): boolean;
  /** The field that `/` goes to. */
  search?: HTMLInputElement;
}

export interface View {
  name: string;
  title: string;
  icon: string;
  /** Whether there is something to show; always, if this is left out. */
  when?(report: Report): boolean;
  show(context: Context): Promise<Shown>;
}
