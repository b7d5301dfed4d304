/** Elements made without HTML strings: data is only ever text. */
export interface Attributes {
  readonly class?: string;
  readonly [name: `aria-${string}`]: string;
  readonly role?: string;
  readonly title?: string;
  readonly tabindex?: string;
  readonly type?: string;
  readonly value?: string;
  readonly scope?: string;
  readonly id?: string;
}

export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: readonly (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** Element of the page by id. A page without it was written by another version. */
export function byId<T extends HTMLElement>(id: string, type: abstract new (...args: never[]) => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`the page has no #${id}`);
  return found;
}
