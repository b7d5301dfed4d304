import { childrenOf, isKill, isLeaf, type Expression, type Leaf } from './expression.ts';

/** The expression as indented text, one leaf per line, in the papers' notation. */
export function print(e: Expression, indent = ''): string {
  if (isLeaf(e)) return indent + printLeaf(e);
  const head = e.kind === 'scale' ? `scale[${e.factor}]` : e.kind === 'barrier' ? `barrier[${e.threshold}]` : e.kind;
  const children = childrenOf(e).map((child) => print(child, `${indent}  `));
  return [`${indent}${head}(`, children.join(',\n'), `${indent})`].join('\n');
}

function printLeaf(leaf: Leaf): string {
  const set = leaf.set.map((m) => (m.atMost < leaf.k ? `${m.name}<=${m.atMost}` : m.name)).join(', ');
  const worth = isKill(leaf) ? `c=${round(leaf.cost)}` : `v=${round(leaf.value)}`;
  return `${leaf.kind}({${set}}, k=${leaf.k}, start=${leaf.start}, dur=${leaf.duration}, ${worth}) "${leaf.id}"`;
}

const round = (x: number): string => String(Number(x.toPrecision(6)));
