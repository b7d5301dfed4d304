/** Every call to AWS that the functions' sources make is a right of some function: none was forgotten. */
import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { NEEDS } from '../support/rights.ts';
import { rolesOf } from './policies.ts';
import { synthesis } from './synthesis.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

describe('calls to AWS', () => {
  // What runs before a deployment is done with the rights of who deploys.
  const files = globSync(['lib/drivers/aws/**/*.ts', 'lambdas/**/*.ts'], { cwd: ROOT }).filter(
    (f) => !f.startsWith('lib/drivers/aws/preflight/'),
  );
  const commands = new Set(
    files.flatMap((file) =>
      [...readFileSync(`${ROOT}${file}`, 'utf8').matchAll(/(?:new (\w+)Command|\bpaginate(\w+))\(/g)].map(
        ([, name, paged]) => name ?? paged ?? '',
      ),
    ),
  );

  it('are found', () => expect(commands.size).toBeGreaterThan(15));

  it('are all known here', () => {
    expect([...commands].filter((name) => !Object.hasOwn(NEEDS, name))).toEqual([]);
  });

  it('are allowed to one who makes them', () => {
    const granted = rolesOf(synthesis({ reservations: ['cr-0a1b2c3d4e5f60718'], services: 'internal' }).main)
      .filter((r) => r.id.startsWith('EbbtideFunctions'))
      .map((r) => new Set(r.statements.flatMap((s) => s.actions)));
    const lacking = [...commands].filter(
      (name) => !granted.some((of) => (NEEDS[name] ?? ['?']).every((a) => of.has(a))),
    );
    expect(lacking).toEqual([]);
  });
});
