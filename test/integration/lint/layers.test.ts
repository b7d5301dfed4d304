/** The directions of the architecture as they are configured, on imports that break them in a folder of their own. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from '@jest/globals';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const CRUISER = join(ROOT, 'node_modules', 'dependency-cruiser', 'bin', 'dependency-cruiser.mjs');

/** Importing file, imported file, and the rule that must refuse it; null where the import is allowed. */
const IMPORTS: readonly (readonly [from: string, to: string, rule: string | null])[] = [
  ['lib/domain/a.ts', 'lib/kernel/a.ts', null],
  ['lib/kernel/b.ts', 'lib/domain/b.ts', 'kernel-imports'],
  ['lib/kernel/c.ts', 'ebbtide/policy', 'kernel-imports'],
  ['lib/kernel/d.ts', 'examples/d.ts', 'kernel-imports'],
  ['lib/policy/e.ts', 'lib/stages/plan/e.ts', 'policy-imports'],
  ['lib/stages/plan/f.ts', 'lib/stages/place/f.ts', 'plan-is-a-stage'],
  ['lib/stages/plan/g.ts', 'lib/cycle/g.ts', 'stages-imports'],
  ['lib/cycle/h.ts', 'lib/drivers/sim/h.ts', 'cycle-imports'],
  ['lib/drivers/sim/i.ts', 'lib/drivers/local/i.ts', 'sim-is-a-driver'],
  ['lib/drivers/sim/j.ts', 'lib/drivers/solver/j.ts', null],
  ['lib/drivers/k.ts', 'lib/drivers/local/k.ts', 'drivers-are-listed'],
  ['lib/drivers/gcp/l.ts', 'lib/drivers/aws/l.ts', 'drivers-are-listed'],
  ['lib/infra/m.ts', 'lib/drivers/local/m.ts', 'infra-imports'],
  ['lib/infra/n.ts', 'lib/cycle/n.ts', 'infra-imports'],
  ['lib/utils/o.ts', 'lib/kernel/o.ts', 'rooms-are-listed'],
  ['lib/p.ts', 'lib/kernel/p.ts', 'rooms-are-listed'],
  ['lib/cli/q.ts', 'lambdas/solve/handler.ts', 'cli-imports'],
  ['lib/cli/r.ts', 'lambdas/api/handler.ts', null],
  ['lib/api/s.ts', 'lib/cli/s.ts', 'api-imports'],
  ['lambdas/t/handler.ts', 'lib/api/t.ts', 'lambdas-are-on-aws'],
  ['lib/api/t.ts', 'lib/drivers/local/t.ts', null],
  ['bench/u.ts', 'test/support/u.ts', 'bench-and-scripts-stand-alone'],
  ['lib/report/v.ts', 'scripts/v.ts', 'report-imports'],
];

interface Violation {
  readonly from: string;
  readonly rule: { readonly name: string };
}

describe('the directions of imports', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ebb-layers-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it('refuse what breaks them, types and detours included', () => {
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
    for (const [, to] of IMPORTS) if (to.endsWith('.ts')) write(folder, to, 'export type T = 1;\n');
    for (const [from, to] of IMPORTS) write(folder, from, `export type { T } from '${named(from, to)}';\n`);
    const args = [
      '--config',
      join(ROOT, '.dependency-cruiser.cjs'),
      '--output-type',
      'json',
      'lib',
      'lambdas',
      'bench',
    ];
    const { stdout } = spawnSync(process.execPath, [CRUISER, ...args], { cwd: folder, encoding: 'utf8' });
    const { violations } = (JSON.parse(stdout) as { summary: { violations: Violation[] } }).summary;
    const refused = new Map(Map.groupBy(violations, (v) => v.from).entries());
    const seen = IMPORTS.map(([from, to]) => [from, to, refused.get(from)?.map((v) => v.rule.name) ?? []]);
    expect(seen).toEqual(
      IMPORTS.map(([from, to, rule]) => [from, to, rule === null ? [] : expect.arrayContaining([rule])]),
    );
  });
});

const named = (from: string, to: string): string => {
  const path = relative(dirname(from), to);
  return to.startsWith('ebbtide/') ? to : path.startsWith('.') ? path : `./${path}`;
};

function write(folder: string, file: string, text: string): void {
  mkdirSync(dirname(join(folder, file)), { recursive: true });
  writeFileSync(join(folder, file), text);
}
