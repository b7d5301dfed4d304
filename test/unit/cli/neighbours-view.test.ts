import { describe, expect, it } from '@jest/globals';
import { createColors } from 'picocolors';
import type { NeighboursView } from '../../../lib/api/schemas.ts';
import { neighboursPage } from '../../../lib/cli/views/neighbours-page.ts';
import { neighboursText } from '../../../lib/cli/views/neighbours-view.ts';

const output = { colors: createColors(false), columns: 80 };
const group = (id: string, templates: readonly string[], templateCount = templates.length) => ({
  id,
  profile: { cpu: 0.9, disk: 0, network: 0.25, waiting: 0.5, memory: 1 },
  templates: [...templates],
  templateCount,
  attempts: 12,
});
const view: NeighboursView = {
  groups: [group('g1', ['ana/a/a/main']), group('g2', ['ana/b/b/main', 'ana/c/c/main', 'ana/d/d/main'], 9)],
  pairs: [
    { running: 'g1', next: 'g1', chance: 0.1, slowdown: null },
    { running: 'g1', next: 'g2', chance: 0.9, slowdown: { factor: 1.7, low: 1.5, high: 1.9 } },
    { running: 'g2', next: 'g1', chance: 0.5, slowdown: { factor: 1, low: 0.9, high: 1.1 } },
    { running: 'g2', next: 'g2', chance: 0.5, slowdown: { factor: 0.97, low: 0.9, high: 1.1 } },
  ],
  asOf: '2026-01-14T10:46:45.928Z',
};

describe('what was learned of neighbours, as text', () => {
  it('has the groups, and a map of each kind', () => {
    const shown = neighboursText(output, view);
    expect(shown).toContain('and 6 more');
    expect(shown).toMatch(/g1\s+░ 10%\s+█ 90%/);
    expect(shown).toMatch(/g1\s+-\s+▓ 1\.70x/);
    for (const line of shown.split('\n')) expect(line.length).toBeLessThanOrEqual(output.columns);
  });

  it('says what teaches it where nothing is known', () => {
    expect(neighboursText(output, { groups: [], pairs: [], asOf: view.asOf })).toContain(
      'nothing has been learned yet',
    );
  });
});

describe('what was learned of neighbours, as a page', () => {
  it('has the groups and both maps, darker where more', () => {
    const page = neighboursPage(view);
    expect(page).toContain(
      '<td class="high" style="background: rgb(73, 132, 171)">1.70x<small>1.50 to 1.90</small></td>',
    );
    expect(page).toContain('<td class="low" style="background: rgb(244, 247, 251)">0.97x');
    expect(page).toContain('ana/b/b/main, ana/c/c/main, ana/d/d/main and 6 more');
    expect(page).not.toContain('<script');
  });

  it('shows names of programs as text, whatever they are', () => {
    const page = neighboursPage({ ...view, groups: [group('g1', ['<img src=x onerror=alert(1)>'])] });
    expect(page).not.toContain('<img');
    expect(page).toContain('&#60;img');
  });

  it('says so where nothing is known', () => {
    expect(neighboursPage({ groups: [], pairs: [], asOf: view.asOf })).toContain('Nothing has been learned yet.');
  });
});
