// The second stage: trusts nothing. Multiplies the factors back, tests each for primality, and writes
// outputs/report.md.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isProbablePrime } from './ecm.mjs';

const parts = readdirSync('outputs')
  .filter((name) => /^part-\d+\.json$/.test(name))
  .sort();
const found = Object.assign({}, ...parts.map((name) => JSON.parse(readFileSync(join('outputs', name), 'utf8'))));
/** With FACTOR_SECONDS the tasks leave what they could not split in that time. */
const wanted = Object.keys(found).filter((text) => found[text].open.length === 0);
const left = Object.keys(found).length - wanted.length;
if (wanted.length === 0) throw new Error('no number was factored');

const rows = [];
for (const text of wanted) {
  const primes = found[text].primes.map(BigInt).sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  const [, base, exponent, offset] = /^(\d+)\^(\d+)([+-]\d+)?$/.exec(text) ?? [null, text, '1', '0'];
  const n = BigInt(base) ** BigInt(exponent) + BigInt(offset ?? 0);
  if (primes.reduce((product, p) => product * p, 1n) !== n)
    throw new Error(`${text}: the factors do not multiply back`);
  const composite = primes.find((p) => !isProbablePrime(p));
  if (composite !== undefined) throw new Error(`${text}: ${composite} is not prime`);
  rows.push(`| ${text} | ${String(n).length} | ${primes.join(' x ')} | ${found[text].totalCurves} |`);
}
writeFileSync(
  join('outputs', 'report.md'),
  [
    `# ${rows.length} factorisations, each multiplied back and tested`,
    '',
    '| number | digits | prime factors | curves |',
    '| --- | --- | --- | --- |',
    ...rows,
    '',
  ].join('\n'),
);
console.log(`${rows.length} factorisations are right, ${left} begun and left; see outputs/report.md`);
