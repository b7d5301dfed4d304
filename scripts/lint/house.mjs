/**
 * A plugin of the linter with rules of the house style that no built-in rule can say: comments are as narrow as code,
 * and the parts of a pool's id are read in one place.
 */
const WIDTH = 120;
/** Lines that may be wider: a link, or a row of a table. */
const MAY_BE_WIDER = /https?:\/\/|^\s*(\*|\/\/)?\s*\||\S {2,}\S/;

const commentWidth = {
  create: (context) => ({
    Program: () => {
      const { lines } = context.sourceCode;
      for (const comment of context.sourceCode.getAllComments()) {
        for (let at = comment.loc.start.line; at <= comment.loc.end.line; at++) {
          const line = lines[at - 1] ?? '';
          if (line.length <= WIDTH || MAY_BE_WIDER.test(line)) continue;
          context.report({
            loc: { start: { line: at, column: 0 }, end: { line: at, column: line.length } },
            message: `A comment has ${line.length} columns; allowed: ${WIDTH}. Wrap it.`,
          });
        }
      }
    },
  }),
};

const PARTS = 'Read the parts of a pool id with poolParts, isSpotPool or typeAndZone (lib/domain/pool.ts).';
const READS_PARTS = {
  "CallExpression[callee.property.name='endsWith'][arguments.0.value=/^.?(spot|on-demand|reserved)$/]": PARTS,
  "CallExpression[callee.property.name='split'][arguments.0.value='/'][callee.object.name='pool']": PARTS,
  "CallExpression[callee.property.name='split'][arguments.0.value='/'][callee.object.property.name='pool']": PARTS,
};

const poolIds = {
  create: (context) =>
    Object.fromEntries(
      Object.entries(READS_PARTS).map(([selector, message]) => [selector, (node) => context.report({ node, message })]),
    ),
};

export default { meta: { name: 'house' }, rules: { 'comment-width': commentWidth, 'pool-ids': poolIds } };
