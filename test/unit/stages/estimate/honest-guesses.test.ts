import { describe, expect, it } from '@jest/globals';
import { featuresOf } from '../../../../lib/domain/job-features.ts';
import type { Job } from '../../../../lib/domain/job.ts';
import { jobId } from '../../../../lib/kernel/ids.ts';
import { seconds } from '../../../../lib/kernel/units.ts';
import { LoggedHistory } from '../../../../lib/stages/estimate/logged-history.ts';
import { recurring } from '../../../../lib/stages/estimate/recurring.ts';
import { job, snapshot, spec, stage } from '../../../support/builders.ts';
import { knowing } from '../../../support/beliefs.ts';
import { randomStream } from '../../../../lib/kernel/random.ts';
import { quantileOf } from '../../../support/recurring-jobs.ts';

const LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95];
const JOBS = 240;
const PROGRAMS = 12;
/** Guesses lie within this share of the running time. */
const HONEST = 0.25;

/** Kinds of programs: how far runs of one scatter, as the deviation of ln(seconds); one-off programs run once. */
const KINDS = { 'repeats itself': 0.03, scatters: 0.5, 'scatters far': 1.5, 'runs once': null } as const;
type Kind = keyof typeof KINDS;
const NAMES = Object.keys(KINDS) as Kind[];

function jobOf(name: string, owner: string, guessS: number | null): Job {
  const expectedRuntimeS = guessS === null ? null : seconds(guessS);
  const of = spec({ name, owner, stages: [stage({ command: [name], expectedRuntimeS })] });
  const counts = { nextFresh: 0, waiting: 0, running: 0, succeeded: 0, failed: 0, cancelled: 0 };
  return job({ id: jobId('j'), spec: of, stages: [{ name: 'main', tasks: 1, ...counts }] });
}

/** A name without digits, which names of one program may differ in. */
const letters = (n: number): string => n.toString(26).replaceAll(/\d/g, (d) => 'qrstuvwxyz'[Number(d)] ?? '');

/** Mean pinball loss of ln(seconds) by kind; each job is forecast before it is learned. */
function lossesOf(seed: number, hasGuesses: boolean): Record<Kind, number> {
  const random = randomStream(seed, 'honest guesses');
  const gauss = (): number => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  const programs = Array.from({ length: PROGRAMS }, (_, i) => ({
    name: letters(i),
    centre: Math.log(600) + 1.5 * gauss(),
  }));
  const history = new LoggedHistory();
  const losses = Object.fromEntries(NAMES.map((kind) => [kind, 0])) as Record<Kind, number>;
  for (let n = 0; n < JOBS; n++) {
    const kind = NAMES[n % NAMES.length] ?? 'scatters';
    const spread = KINDS[kind];
    const of = programs[Math.floor(random() * programs.length)];
    const fresh = gauss();
    const centre = spread === null ? Math.log(600) + 1.5 * fresh : (of?.centre ?? 0) + spread * fresh;
    const runS = Math.exp(centre);
    const guessS = Number((runS * (1 + HONEST * (2 * random() - 1))).toPrecision(1));
    const name = spread === null ? `once ${letters(n)}` : `${kind} ${of?.name ?? ''}`;
    const given = jobOf(name, `owner-${n % 3}`, hasGuesses ? guessS : null);
    const forecast = recurring(knowing(snapshot({ jobs: new Map([[given.id, given]]) }), history)).get(`j/main`);
    if (forecast === undefined) throw new Error('the stage has no forecast');
    for (const level of LEVELS) {
      const over = Math.log(runS) - Math.log(quantileOf(forecast.runtime, level));
      losses[kind] += Math.max(level * over, (level - 1) * over) / (LEVELS.length * (JOBS / NAMES.length));
    }
    history.learn(featuresOf(given.spec, given.spec.stages[0] ?? stage(), given.submittedMs), seconds(runS));
  }
  return losses;
}

describe('honest guesses, within a quarter of the truth', () => {
  it.each([1, 2, 3, 4])('sharpen forecasts of every kind of job while programs are young (seed %s)', (seed) => {
    const guessed = lossesOf(seed, true);
    const without = lossesOf(seed, false);
    for (const kind of NAMES) expect([kind, guessed[kind] / without[kind] < 0.75]).toEqual([kind, true]);
  });
});
