/**
 * docs/reference/rights.md says what the template says: nothing that a role may do is missing there, and nothing else
 * is there.
 */
import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { rolesOf, type Role } from './policies.ts';
import { synthesis } from './synthesis.ts';

const page = readFileSync(new URL('../../docs/reference/rights.md', import.meta.url), 'utf8');

/** Actions by section, of the tables' first column. */
const sections = new Map(
  page
    .split(/^### /m)
    .slice(1)
    .map((text) => {
      const [title = ''] = text.split('\n', 1);
      const rows = text.split('\n').filter((line) => line.startsWith('| `'));
      const actions = rows.flatMap((line) =>
        [...(line.split('|')[1] ?? '').matchAll(/`([^`]+)`/g)].map(([, a]) => a ?? ''),
      );
      return [title, { text, actions: actions.sort() }] as const;
    }),
);

describe('docs/reference/rights.md', () => {
  let roles: readonly Role[];
  beforeAll(() => {
    roles = rolesOf(synthesis({ services: 'internal' }).main);
  });

  it('has a section for each role', () => {
    expect(sections.size).toBe(roles.length);
    expect(roles.length).toBeGreaterThan(15);
  });

  it('lists exactly the actions of each role', () => {
    const byPage = [...sections.values()].map(({ actions }) => actions.join()).sort();
    const byTemplate = roles
      .map((r) =>
        r.statements
          .flatMap((s) => s.actions)
          .sort()
          .join(),
      )
      .sort();
    expect(byPage).toEqual(byTemplate);
  });

  it('gives a reason for each, and says which managed policy is used', () => {
    for (const { text } of sections.values())
      for (const row of text.split('\n').filter((line) => line.startsWith('| `'))) {
        const [, , , , why = ''] = row.split(/(?<!\\)\|/);
        expect(why.trim().length).toBeGreaterThan(5);
      }
    for (const managed of roles.flatMap((r) => r.managed)) expect(page).toContain(managed.split('/').at(-1));
  });
});
