import fc from 'fast-check';

/** Wildcards and braces with exponential time or memory in naive matchers and expanders. */
const stars = fc
  .array(fc.constantFrom('*', '**', '***', '*'.repeat(40), 'a', '1', 'x', '-', 'us-east-1', 'm5', '*a*a*a*'), {
    minLength: 1,
    maxLength: 8,
  })
  .map((parts) => parts.join('').slice(0, 64));
const braces = fc
  .tuple(
    fc.constantFrom(
      '{a,b}',
      '{,}',
      '{a,{b,c}}',
      '{1..99}',
      '{0..999999999999}',
      '{{index}..9}',
      '{a,..}',
      '{',
      '{a,',
      '}',
    ),
    fc.constantFrom(1, 2, 22, 200, 1300),
    fc.constantFrom('', '**/', '*', '[', '!(', '+(a|', '..', 's3://b/'),
  )
  .map(([piece, times, other]) => (other + piece).repeat(times));
/** Unclosed or literal braces in many patterns: the time to read one must be linear in its length. */
const manyOpen = fc
  .tuple(fc.constantFrom('{', '{}', '{{}', '{a', '{{{}}'), fc.integer({ min: 1, max: 40 }))
  .map(([piece, count]) => Array.from({ length: count }, (_, i) => piece.repeat(4000 / piece.length) + String(i)));
const matcher = fc.oneof(
  stars.chain((p) => fc.constantFrom('zones', 'instanceTypes', 'families').map((key) => ({ [key]: [p] }))),
  stars.map((p) => ({ zones: new Array<string>(256).fill(p) })),
);
/** Keys of a stage: constraints, preferences, inputs or outputs. */
export const hostileStage: fc.Arbitrary<object> = fc.oneof(
  matcher.map((constraints) => ({ constraints })),
  fc.array(matcher, { maxLength: 40 }).map((all) => ({ preferences: all.map((prefer) => ({ prefer, weight: 0.1 })) })),
  fc.array(braces, { maxLength: 4 }).map((inputs) => ({ inputs })),
  fc.array(braces, { maxLength: 4 }).map((outputs) => ({ outputs })),
  manyOpen.map((inputs) => ({ inputs })),
);
