/**
 * Patterns of files, as job files write them: one language for local mode and AWS.
 *
 *   *  ?  [a-z]  [!a-z]     within one name; a name that begins with a dot is matched by a pattern that begins with a dot
 *   **                      as a whole segment: any folders, none included; at the end: the folder with all that is in it
 *   {a,b}  {1..9}  {a..c}   alternatives, nested at will; `{01..10}` keeps its zeros, `{0..9..3}` takes each third
 *   [*]                     the character itself
 *
 * Extended patterns (`!(a)`), classes by name (`[[:alpha:]]`) and backslashes are refused: S3 has nothing like them,
 * and matching the first takes exponential time. Alternatives are counted from the parsed text before any is written
 * out: O(length).
 *
 * Copied into the fleet's directory beside the supervisor: no imports.
 */
export const GLOB_LIMITS = {
  /** Length of one pattern, characters. */
  length: 4096,
  /** Patterns without braces that a list of patterns may stand for. */
  alternatives: 1000,
  /** Characters of all these together. */
  characters: 262_144,
} as const;

/** Part of a pattern. `count` patterns without braces of `characters` characters together. */
type Part = { readonly count: number; readonly characters: number } & (
  | { readonly is: 'text'; readonly text: string }
  | { readonly is: 'sequence'; readonly parts: readonly Part[] }
  | { readonly is: 'choice'; readonly among: readonly Part[] }
  | { readonly is: 'range'; readonly range: Range }
);

interface Range {
  readonly from: number;
  readonly to: number;
  /** At least 1. */
  readonly step: number;
  readonly write: (value: number) => string;
}

export interface GlobSize {
  /** Patterns without braces: 1 without any. */
  readonly alternatives: number;
  /** Length of all alternatives, characters. */
  readonly characters: number;
}

/** Size of a pattern once its braces are written out, without doing so. */
export function globSize(pattern: string): GlobSize {
  const { count, characters } = parsed(pattern);
  return { alternatives: count, characters };
}

/** The patterns without braces that one stands for, in order; null where there are more than the limits allow. */
export function expandBraces(pattern: string, most: number = GLOB_LIMITS.alternatives): readonly string[] | null {
  const part = parsed(pattern);
  if (part.count > most || part.characters > GLOB_LIMITS.characters) return null;
  return written(part);
}

/** Fault in the form of a pattern, as the rest of a sentence with the pattern as its subject; null for a usable one. */
export function globFault(pattern: string): string | null {
  if (EXTENDED.test(pattern)) {
    return 'has an extended pattern such as `!(..)`: only `*`, `**`, `?`, `[..]` and `{a,b}` are known; write `[(]` for a parenthesis';
  }
  if (pattern.includes('[[:')) return 'has a class by name such as `[[:alpha:]]`: write `[a-zA-Z]`';
  if (pattern.includes('\\')) return 'has a backslash: write `/` between folders, and `[*]` for a star itself';
  const { alternatives, characters } = globSize(pattern);
  if (alternatives > GLOB_LIMITS.alternatives) {
    return `stands for ${shown(alternatives)} patterns, at most ${GLOB_LIMITS.alternatives} are allowed: write fewer braces, or \`*\``;
  }
  if (characters > GLOB_LIMITS.characters) {
    return `stands for patterns of ${shown(characters)} characters together, at most ${GLOB_LIMITS.characters} are allowed: write fewer braces`;
  }
  if ((expandBraces(pattern) ?? []).some(leadsOut)) return 'leads out of the working directory';
  return null;
}

const shown = (n: number): string => (n < 1e15 ? String(n) : 'more than 10^15');

/** `!(a)` and the like. */
const EXTENDED = /[*?+@!]\(/;

/** True if a pattern without braces names a place outside of its base folder. */
export const leadsOut = (alternative: string): boolean =>
  /^(?:[/\\~]|[A-Za-z]:)/.test(alternative) || alternative.split(/[/\\]/).includes('..');

/** True for one plain path, without wildcards and alternatives. */
export const isPlainPath = (pattern: string): boolean => {
  const [only, ...others] = expandBraces(pattern) ?? [];
  return only !== undefined && others.length === 0 && segmentsOf(only).every((s) => s.is === 'name');
};

/* Braces. */

interface Open {
  /** Finished choices, and the parts of the one that is being read. */
  readonly choices: Part[][];
  readonly parts: Part[];
}

/** Meaning of braces and commas in a pattern, by position; others stand for themselves. */
interface Marks {
  /** Opening braces of alternatives. */
  readonly opening: ReadonlySet<number>;
  /** Commas between them, and closing braces after them. */
  readonly between: ReadonlySet<number>;
  readonly closing: ReadonlySet<number>;
  /** Opening braces of ranges, with the place of the closing one. */
  readonly ranges: ReadonlyMap<number, { readonly range: Range; readonly end: number }>;
}

/** Unclosed braces, and braces around neither alternatives nor a range, stand for themselves. O(length). */
function marksOf(pattern: string): Marks {
  const stack: { readonly at: number; readonly commas: number[] }[] = [];
  const opening = new Set<number>();
  const between = new Set<number>();
  const closing = new Set<number>();
  const ranges = new Map<number, { readonly range: Range; readonly end: number }>();
  for (let i = 0; i < pattern.length; i++) {
    const c = pattern[i];
    if (c === '{') stack.push({ at: i, commas: [] });
    else if (c === ',') stack.at(-1)?.commas.push(i);
    else if (c === '}') {
      const open = stack.pop();
      if (open === undefined) continue;
      if (open.commas.length > 0) {
        opening.add(open.at);
        closing.add(i);
        for (const comma of open.commas) between.add(comma);
      } else {
        const range = i - open.at > LONGEST_RANGE ? null : rangeOf(pattern.slice(open.at + 1, i));
        if (range !== null) ranges.set(open.at, { range, end: i });
      }
    }
  }
  return { opening, between, closing, ranges };
}

/** Two passes, and a stack as deep as the alternatives are nested: O(length). */
function parsed(pattern: string): Part {
  const { opening, between, closing, ranges } = marksOf(pattern);
  const stack: Open[] = [];
  let parts: Part[] = [];
  let text = '';
  const endText = (): void => {
    if (text !== '') parts.push(textPart(text));
    text = '';
  };
  for (let i = 0; i < pattern.length; i++) {
    const top = stack.at(-1);
    const range = ranges.get(i);
    if (range !== undefined) {
      endText();
      parts.push(rangePart(range.range));
      i = range.end;
    } else if (opening.has(i)) {
      endText();
      stack.push({ choices: [], parts });
      parts = [];
    } else if (between.has(i) && top !== undefined) {
      endText();
      top.choices.push(parts);
      parts = [];
    } else if (closing.has(i) && top !== undefined) {
      endText();
      stack.pop();
      const group = choice([...top.choices, parts].map(sequence));
      parts = top.parts;
      parts.push(group);
    } else text += pattern[i] ?? '';
  }
  endText();
  return sequence(parts);
}

/** Characters of the longest range: three numbers of 16 characters. */
const LONGEST_RANGE = 64;
const NUMBERS = /^(-?\d{1,15})\.\.(-?\d{1,15})(?:\.\.(-?\d{1,15}))?$/;
const LETTERS = /^(?:([a-z])\.\.([a-z])|([A-Z])\.\.([A-Z]))(?:\.\.(-?\d{1,15}))?$/;

function rangeOf(text: string): Range | null {
  const [, first, last, step] = NUMBERS.exec(text) ?? [];
  if (first !== undefined && last !== undefined) {
    const isPadded = [first, last].some((n) => /^-?0\d/.test(n));
    const width = isPadded ? Math.max(first.length, last.length) : 0;
    const write = (n: number): string =>
      n < 0 ? `-${String(-n).padStart(width - 1, '0')}` : String(n).padStart(width, '0');
    return { from: Number(first), to: Number(last), step: stepOf(step), write };
  }
  const [, a = '', z = '', upperA = '', upperZ = '', each] = LETTERS.exec(text) ?? [];
  const [from, to] = [a + upperA, z + upperZ];
  if (from === '') return null;
  return { from: from.charCodeAt(0), to: to.charCodeAt(0), step: stepOf(each), write: (n) => String.fromCharCode(n) };
}

const stepOf = (text: string | undefined): number => Math.max(1, Math.abs(Number(text ?? 1)));

const textPart = (text: string): Part => ({ is: 'text', text, count: 1, characters: text.length });

function sequence(parts: readonly Part[]): Part {
  const [only] = parts;
  if (parts.length === 1 && only !== undefined) return only;
  let count = 1;
  let characters = 0;
  for (const part of parts) {
    characters = characters * part.count + part.characters * count;
    count *= part.count;
  }
  return { is: 'sequence', parts, count, characters };
}

function choice(among: readonly Part[]): Part {
  const total = (of: (part: Part) => number): number => among.reduce((sum, part) => sum + of(part), 0);
  return { is: 'choice', among, count: total((p) => p.count), characters: total((p) => p.characters) };
}

function rangePart(range: Range): Part {
  const count = Math.floor(Math.abs(range.to - range.from) / range.step) + 1;
  const width = Math.max(range.write(range.from).length, range.write(range.to).length);
  return { is: 'range', range, count, characters: count * width };
}

/** Every text of a part whose count is within bounds. */
function written(part: Part): readonly string[] {
  switch (part.is) {
    case 'text':
      return [part.text];
    case 'choice':
      return part.among.flatMap(written);
    case 'range':
      return Array.from({ length: part.count }, (_, i) => {
        const { from, to, step, write } = part.range;
        return write(from <= to ? from + i * step : from - i * step);
      });
    case 'sequence':
      return part.parts.reduce<readonly string[]>(
        (heads, next) => {
          const tails = written(next);
          return heads.flatMap((head) => tails.map((tail) => head + tail));
        },
        [''],
      );
  }
}

/* Names. */

/** One segment of a pattern without braces. */
export type Segment =
  | { readonly is: 'name'; readonly name: string }
  | { readonly is: 'folders' }
  | { readonly is: 'wild'; readonly matches: (name: string) => boolean };

/** Segments of a pattern without braces; empty ones and `.` are left out. */
export const segmentsOf = (alternative: string): readonly Segment[] =>
  alternative
    .split('/')
    .filter((segment) => segment !== '' && segment !== '.')
    .map(segmentOf);

type Token = { readonly is: 'any' } | { readonly is: 'one'; readonly of: (character: string) => boolean };

const ANY: Token = { is: 'any' };

function segmentOf(segment: string): Segment {
  if (segment === '**') return { is: 'folders' };
  const tokens: Token[] = [];
  let name = '';
  let isWild = false;
  const characters = [...segment];
  for (let i = 0; i < characters.length; i++) {
    const c = characters[i] ?? '';
    const set = c === '[' ? setAt(characters, i) : null;
    if (c === '*') {
      // Two stars match the same as one.
      if (tokens.at(-1) !== ANY) tokens.push(ANY);
      isWild = true;
    } else if (c === '?') {
      tokens.push({ is: 'one', of: () => true });
      isWild = true;
    } else if (set !== null) {
      tokens.push({ is: 'one', of: set.has });
      isWild = true;
      i = set.end;
    } else {
      tokens.push({ is: 'one', of: (other) => other === c });
      name += c;
    }
  }
  if (!isWild) return { is: 'name', name };
  const takesHidden = segment.startsWith('.');
  return { is: 'wild', matches: (text) => (takesHidden || !text.startsWith('.')) && matchesTokens(tokens, [...text]) };
}

/** A set `[a-z]` that begins at `start`; null where no bracket closes it, which then stands for itself. */
function setAt(
  characters: readonly string[],
  start: number,
): { readonly has: (character: string) => boolean; readonly end: number } | null {
  const isNegated = characters[start + 1] === '!' || characters[start + 1] === '^';
  const first = start + (isNegated ? 2 : 1);
  const ranges: (readonly [string, string])[] = [];
  for (let i = first; i < characters.length; i++) {
    // A closing bracket that comes first belongs to the set.
    if (characters[i] === ']' && i > first) {
      const has = (c: string): boolean => ranges.some(([from, to]) => from <= c && c <= to) !== isNegated;
      return { has, end: i };
    }
    const from = characters[i] ?? '';
    const isRange = characters[i + 1] === '-' && i + 2 < characters.length && characters[i + 2] !== ']';
    ranges.push([from, isRange ? (characters[i + 2] ?? '') : from]);
    if (isRange) i += 2;
  }
  return null;
}

/** The algorithm of wildcard.ts on tokens: O(tokens x characters). */
function matchesTokens(tokens: readonly Token[], text: readonly string[]): boolean {
  let p = 0;
  let afterAny = -1;
  let retry = 0;
  for (let t = 0; t < text.length;) {
    const token = tokens[p];
    if (token?.is === 'any') {
      p++;
      afterAny = p;
      retry = t;
    } else if (token?.of(text[t] ?? '') === true) {
      p++;
      t++;
    } else if (afterAny >= 0) {
      p = afterAny;
      retry++;
      t = retry;
    } else return false;
  }
  while (tokens[p]?.is === 'any') p++;
  return p === tokens.length;
}
