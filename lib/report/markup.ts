/** HTML that is safe to put into a page as it stands. */
export class Markup {
  readonly html: string;

  constructor(html: string) {
    this.html = html;
  }
}

type Piece = Markup | string | number | null | readonly (Markup | null)[];

/**
 * A template whose values are escaped unless they are markup themselves: job names and command lines are foreign text.
 */
export function html(strings: TemplateStringsArray, ...pieces: readonly Piece[]): Markup {
  return new Markup(strings.reduce((text, s, i) => text + rendered(pieces[i - 1] ?? null) + s));
}

function rendered(piece: Piece): string {
  if (piece === null) return '';
  if (piece instanceof Markup) return piece.html;
  if (typeof piece === 'string' || typeof piece === 'number') return escaped(String(piece));
  return piece.map(rendered).join('');
}

/** For text and for attributes in quotes. */
export const escaped = (text: string): string => text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

/** JSON inside a script element: `<` never appears, so neither `</script` nor `<!--` can end or change it. */
export const scriptJson = (value: unknown): string => JSON.stringify(value).replaceAll('<', '\\u003c');

/** A script or style element whose content stands as it is, to the byte: the page's policy has hashes of it. */
export function rawElement(
  tag: 'script' | 'style',
  attributes: Readonly<Record<string, string>>,
  content: string,
): Markup {
  const given = Object.entries(attributes).map(([name, value]) => ` ${name}="${escaped(value)}"`);
  return new Markup(`<${tag}${given.join('')}>${content}</${tag}>\n`);
}
