/** HTML that is safe to embed. */
export class Markup {
  readonly html: string;

  constructor(html: string) {
    this.html = html;
  }
}

type Piece = Markup | string | number | null | readonly (Markup | null)[];

/** Template whose values are escaped unless they are markup: names and command lines of jobs are foreign text. */
export function html(strings: TemplateStringsArray, ...pieces: readonly Piece[]): Markup {
  return new Markup(strings.reduce((text, s, i) => text + rendered(pieces[i - 1] ?? null) + s));
}

function rendered(piece: Piece): string {
  if (piece === null) return '';
  if (piece instanceof Markup) return piece.html;
  if (typeof piece === 'string' || typeof piece === 'number') return escaped(String(piece));
  return piece.map(rendered).join('');
}

/** Text escaped for elements and quoted attributes. */
export const escaped = (text: string): string => text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

/** JSON inside a script element. It has no `<`, so neither `</script` nor `<!--` can end or change the element. */
export const scriptJson = (value: unknown): string => JSON.stringify(value).replaceAll('<', '\\u003c');

/** Script or style element with unchanged content: the page's policy has hashes of it. */
export function rawElement(
  tag: 'script' | 'style',
  attributes: Readonly<Record<string, string>>,
  content: string,
): Markup {
  const given = Object.entries(attributes).map(([name, value]) => ` ${name}="${escaped(value)}"`);
  return new Markup(`<${tag}${given.join('')}>${content}</${tag}>\n`);
}
