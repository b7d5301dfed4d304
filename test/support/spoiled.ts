/**
 * An answer with one of its fields spoiled: each field in turn, of each kind of entry once. All else stays the very
 * same records, so that nothing but the field is wrong.
 */
export interface Spoiled {
  readonly path: string;
  readonly answer: unknown;
}

const DEEPEST = 8;

/** `isGiven`: records that the policy was given, which it can only hand back whole. */
export function* spoiledEach(
  answer: unknown,
  { spoil, isGiven }: { readonly spoil: unknown; readonly isGiven: (value: unknown) => boolean },
  path = '',
): Generator<Spoiled> {
  const isWhole = typeof answer !== 'object' || answer === null || isGiven(answer) || path.split('.').length > DEEPEST;
  if (isWhole) {
    yield { path, answer: spoil };
    return;
  }
  const inner = (key: string, value: unknown) => spoiledEach(value, { spoil, isGiven }, `${path}.${key}`);
  if (answer instanceof Map) {
    const [first, ...rest] = [...(answer as ReadonlyMap<unknown, unknown>)];
    if (first === undefined) return;
    yield { path: `${path}.key`, answer: new Map([[spoil, first[1]], ...rest]) };
    for (const { path: at, answer: value } of inner('value', first[1]))
      yield { path: at, answer: new Map([[first[0], value], ...rest]) };
    return;
  }
  if (answer instanceof Set) {
    yield { path: `${path}.entry`, answer: new Set([...(answer as ReadonlySet<unknown>), spoil]) };
    return;
  }
  if (answer instanceof Float64Array) {
    if (typeof spoil === 'number') yield { path: `${path}.entry`, answer: answer.map((x, i) => (i === 0 ? spoil : x)) };
    return;
  }
  if (Array.isArray(answer)) {
    const [first, ...rest] = answer as readonly unknown[];
    yield { path, answer: spoil };
    yield { path: `${path}.hole`, answer: [...(answer as readonly unknown[]), spoil] };
    if (first === undefined) return;
    for (const { path: at, answer: value } of inner('entry', first)) yield { path: at, answer: [value, ...rest] };
    return;
  }
  for (const [key, value] of Object.entries(answer)) {
    if (typeof value === 'function') continue;
    for (const of of inner(key, value)) yield { path: of.path, answer: { ...answer, [key]: of.answer } };
  }
}
