/**
 * Lint plugin with rules of the house style beyond built-in ones. Comments are as narrow as code, parts of a pool's id
 * are read in one place, and modules of the core keep no state.
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
  "CallExpression[callee.property.name='split'][arguments.0.value='/'][callee.object.name=/^pool(Id)?$/]": PARTS,
  "CallExpression[callee.property.name='split'][arguments.0.value='/'][callee.object.property.name='pool']": PARTS,
  "CallExpression[callee.property.name='split'][arguments.0.value='/'][callee.object.property.name='id'][callee.object.object.name='pool']":
    PARTS,
  "CallExpression[callee.property.name='split'][arguments.0.value='/'][callee.object.property.name='id'][callee.object.object.property.name='pool']":
    PARTS,
  'Literal[regex.pattern=/(^|[^a-z])(spot|on-demand|reserved)[$]$/]': PARTS,
};

const poolIds = {
  create: (context) =>
    Object.fromEntries(
      Object.entries(READS_PARTS).map(([selector, message]) => [selector, (node) => context.report({ node, message })]),
    ),
};

const REMEMBERS =
  'A module of the core remembers nothing: keep this in the DecisionMemory (lib/policy/memory.ts), or in the object that owns it.';
const TABLE = `${REMEMBERS} A constant table is declared read-only (ReadonlyMap, ReadonlySet, readonly T[]).`;
/** Objects that are useful only if they are written to. */
const MEMORIES = /^(WeakMap|WeakSet|WeakRef|ArrayBuffer)$/;
const TABLES = /^(Map|Set)$/;
/** Typed arrays; a fresh one is zeros unless made of values or empty. */
const NUMBERS = /^(Float|Int|Uint|BigInt|BigUint)\d+(Clamped)?Array$/;
const FUNCTIONS = /^(Function|ArrowFunction|MethodDefinition)/;

function* ancestors(node) {
  for (let at = node.parent; at !== null && at !== undefined; at = at.parent) yield at;
}

/** True for code that runs once, when its module is loaded. */
const isAtLoad = (node) =>
  ancestors(node).every((at) => !FUNCTIONS.test(at.type) && (at.type !== 'PropertyDefinition' || at.static));

/** True if the variable around the node has a read-only type. */
function isReadOnly(node, isMutable) {
  const variable = ancestors(node).find((at) => at.type === 'VariableDeclarator');
  const type = variable?.id.typeAnnotation?.typeAnnotation;
  return type !== undefined && type !== null && !isMutable(type);
}
const isMutableTable = (type) => type.type === 'TSTypeReference' && TABLES.test(type.typeName.name);
const isMutableArray = (type) => type.type === 'TSArrayType';

function newAtLoad(node, report) {
  const { name } = node.callee;
  const [count] = node.arguments;
  if (MEMORIES.test(name)) report(node, REMEMBERS);
  else if (TABLES.test(name) && !isReadOnly(node, isMutableTable)) report(node, TABLE);
  else if (NUMBERS.test(name) && count?.type !== 'ArrayExpression' && count?.value !== 0) report(node, REMEMBERS);
}

const moduleState = {
  create: (context) => {
    const report = (node, message) => context.report({ node, message });
    return {
      VariableDeclaration: (node) => {
        const isAtTop = /^(Program|ExportNamedDeclaration)$/.test(node.parent.type);
        if (isAtTop && node.kind !== 'const') report(node, REMEMBERS);
      },
      NewExpression: (node) => {
        if (isAtLoad(node)) newAtLoad(node, report);
      },
      ArrayExpression: (node) => {
        const isEmpty = node.elements.length === 0 && node.parent.type === 'VariableDeclarator';
        if (isEmpty && isAtLoad(node) && !isReadOnly(node, isMutableArray)) report(node, TABLE);
      },
    };
  },
};

export default {
  meta: { name: 'house' },
  rules: { 'comment-width': commentWidth, 'pool-ids': poolIds, 'module-state': moduleState },
};
