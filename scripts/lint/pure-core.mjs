/**
 * Lint plugin with one rule: the pure core calls nothing whose result changes between calls. Its selectors are ESLint's
 * (https://eslint.org/docs/latest/extend/selectors).
 */
const NO_CLOCK = 'The pure core reads no clock: take the time from the snapshot or a Clock.';
const NO_CHANCE = 'The pure core draws from named seeded streams only (lib/kernel/random.ts).';

const READS_THE_WORLD = {
  "CallExpression[callee.object.name='Date'][callee.property.name='now']": NO_CLOCK,
  "NewExpression[callee.name='Date'][arguments.length=0]": NO_CLOCK,
  "CallExpression[callee.object.name='performance'][callee.property.name='now']": NO_CLOCK,
  "CallExpression[callee.object.name='Math'][callee.property.name='random']": NO_CHANCE,
  "CallExpression[callee.object.name='crypto'][callee.property.name=/^random/]": NO_CHANCE,
};

const readsNoWorld = {
  create: (context) =>
    Object.fromEntries(
      Object.entries(READS_THE_WORLD).map(([selector, message]) => [
        selector,
        (node) => context.report({ node, message }),
      ]),
    ),
};

export default { meta: { name: 'pure-core' }, rules: { 'reads-no-world': readsNoWorld } };
