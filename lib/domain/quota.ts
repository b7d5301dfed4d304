import { poolParts } from './pool.ts';
import type { PoolId } from '../kernel/ids.ts';

/** Classes by the letters before the generation of their families, as AWS lists them (`G and VT`, ...). */
const CLASSES: Readonly<Record<string, string>> = {
  dl: 'dl',
  f: 'f',
  g: 'g',
  gr: 'g',
  hpc: 'hpc',
  inf: 'inf',
  mac: 'mac',
  p: 'p',
  trn: 'trn',
  u: 'high-memory',
  vt: 'g',
  x: 'x',
};
/** `Standard (A, C, D, H, I, M, R, T, Z)`: families by their first letter, unless matched before. */
const STANDARD = /^[acdhimrtz]/;

/**
 * Name of a pool's EC2 vCPU quota, such as `spot/standard`: one per purchase option and class of instance families, for
 * a whole region ("Spot Instance quotas", "On-Demand Instance quotas", EC2 user guide). P5 has a spot quota apart from
 * its predecessors; here all of P is one.
 */
export function quotaOf(pool: PoolId): string {
  const { type, option } = poolParts(pool);
  const [letters = type] = /^[a-z]+/.exec(type) ?? [];
  return `${option}/${CLASSES[letters] ?? (STANDARD.test(letters) ? 'standard' : letters)}`;
}
