import { describe, expect, it } from '@jest/globals';
import type { ExplanationView } from '../../../lib/api/schemas.ts';
import { explanation } from '../../../lib/cli/views/explanation.ts';
import { PLAIN } from '../../support/run-ebb.ts';

const [A, B, C] = ['i-0f1e2d3c4b5a6978', 'i-1f1e2d3c4b5a6978', 'i-2f1e2d3c4b5a6978'];
const of = (over: Partial<ExplanationView>): ExplanationView => ({
  job: 'j-1',
  name: 'render',
  state: 'running',
  at: '2026-03-01T12:00:00.000Z',
  headline: 'h',
  waiting: [],
  placed: [],
  copies: [],
  moves: [],
  considered: [],
  excluded: [],
  forecast: [],
  runtime: null,
  admission: { feasible: true, notes: [] },
  ...over,
});
const starting = (instance: string, at: string, tasks = 2): ExplanationView['waiting'][number] => ({
  stage: 'frames',
  tasks,
  why: 'starting-instance',
  detail: `instance ${instance} in c5.large/us-east-1a/spot was bought for it and is starting`,
  wouldChange: 'nothing: it starts when the instance is up',
  expectedStartAt: at,
});
const offer = (pool: string, verdict: string): ExplanationView['considered'][number] => ({
  pool,
  bid: 0.1,
  priceUsdPerHour: 0.05,
  pInterrupted: 0.1,
  pLate: 0,
  expectedCostUsd: 0.01,
  verdict,
});

describe('what explain says of many instances', () => {
  it('is one line where tasks wait for instances that are alike', () => {
    const shown = explanation(
      PLAIN,
      of({
        waiting: [
          starting(A, '2026-03-01T12:02:00.000Z'),
          starting(B, '2026-03-01T12:01:00.000Z', 3),
          starting(C, '2026-03-01T12:01:30.000Z'),
        ],
      }),
    );
    expect(shown.match(/starting-instance/g)).toHaveLength(1);
    expect(shown).toContain(`frames: 7 tasks (starting-instance) - instance ${A}, ${B}, ${C} in c5.large`);
    expect(shown).toContain('expected to start: 2026-03-01 12:01:00 to 2026-03-01 12:02:00');
  });

  it('keeps apart what waits for different reasons or in different pools', () => {
    const other = { ...starting(B, '2026-03-01T12:01:00.000Z'), detail: `instance ${B} in m5.large was bought` };
    const capacity = { ...starting(C, '2026-03-01T12:01:00.000Z'), why: 'capacity' as const };
    const shown = explanation(PLAIN, of({ waiting: [starting(A, '2026-03-01T12:02:00.000Z'), other, capacity] }));
    expect(shown.match(/frames: 2 tasks/g)).toHaveLength(3);
  });

  it('is one line where tasks run alike', () => {
    const placed = [A, B].map((id) => ({ stage: 'frames', tasks: 4, pool: 'p', why: `runs on ${id} at 0.0131 USD/h` }));
    expect(explanation(PLAIN, of({ placed }))).toContain(`frames: 8 tasks in p - runs on ${A}, ${B} at 0.0131 USD/h`);
  });
});

describe('what explain says of offers', () => {
  it('shows those that the plan could choose from and counts the others', () => {
    const shown = explanation(
      PLAIN,
      of({
        considered: [
          offer('a/spot', 'best: lowest expected cost'),
          offer('b/spot', 'kept as an alternative, 9 % dearer in expectation'),
          offer('c/spot', 'not kept: others are better, 20 % dearer in expectation'),
        ],
      }),
    );
    expect(shown).toMatch(/^a\/spot .*best/m);
    expect(shown).toMatch(/^b\/spot /m);
    expect(shown).not.toContain('c/spot');
    expect(shown).toContain('and 1 that others are better than: see --json');
  });

  it('shows all where none was kept', () => {
    expect(explanation(PLAIN, of({ considered: [offer('c/spot', 'not kept: too late')] }))).toContain('c/spot');
  });
});
