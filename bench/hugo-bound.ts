/**
 * How much the order of jobs can save in the queues of Mary and Hugo: the best order that a local search finds which
 * knows everything, running times, contention and what comes later. And how well goodness, eq. (1), tells how fast two
 * of the jobs are together.
 *   npm run bench:hugo-bound -- [--steps 350] [--seeds 2] [--procs 2]
 *
 * Exchanges two jobs or moves one, and keeps what is no worse in the sum over seeds for tuning. The orders are entered
 * in bench/hugo/jobs.ts by hand; `npm run bench:hugo` reports them on its own seeds. About 20 minutes.
 */
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { mean, sampleCorrelation, sum } from 'simple-statistics';
import { contended } from '../lib/drivers/sim/interference/contention.ts';
import { randomStream } from '../lib/kernel/random.ts';
import { goodness } from '../lib/policy/colocation/goodness.ts';
import { machine } from './figures.ts';
import { answerOf as answerOfRun, type Order } from './hugo/order.ts';
import { FIT, NODE, programsOf, QUEUES, type QueueName } from './hugo/jobs.ts';
import { answerOrders, inProcesses } from './processes.ts';

const { values: options } = parseArgs({
  options: {
    steps: { type: 'string', default: '350' },
    seeds: { type: 'string', default: '2' },
    procs: { type: 'string', default: '2' },
    worker: { type: 'boolean', default: false },
  },
});

interface Search {
  readonly queue: QueueName;
  readonly steps: number;
  readonly seeds: number;
}
interface Found extends Search {
  readonly letters: string;
  /** Of the order of submission, and of the best one. */
  readonly minutes: readonly [number, number];
}

async function minutesOf({ queue, seeds }: Search, letters: string): Promise<number> {
  let sum = 0;
  for (let seed = 1; seed <= seeds; seed++) {
    const run: Order = {
      queue,
      letters,
      preset: 'fifo-random',
      seed,
      after: [],
      arrivals: 'at-once',
    };
    sum += (await answerOfRun(run)).figures.makespanS / 60 / seeds;
  }
  return sum;
}

async function answerOf(search: Search): Promise<Found> {
  const draw = randomStream(1, `bound/${search.queue}`);
  let letters: string = QUEUES[search.queue];
  const first = await minutesOf(search, letters);
  let best = first;
  const place = (): number => Math.floor(draw() * letters.length);
  for (let step = 0; step < search.steps; step++) {
    const next = [...letters];
    const [from, to] = [place(), place()];
    const [one = '', other = ''] = [next[from], next[to]];
    if (draw() < 0.5) [next[from], next[to]] = [other, one];
    else next.splice(to, 0, ...next.splice(from, 1));
    const tried = next.join('');
    if (tried === letters) continue;
    const minutes = await minutesOf(search, tried);
    if (minutes <= best) [letters, best] = [tried, minutes];
  }
  return { ...search, letters, minutes: [first, best] };
}

/** Correlation of goodness with the sum of both paces over pairs of jobs, less the means of each running one. */
function correlation(letters: string): number {
  const programs = programsOf(FIT);
  const pairs = [...letters].flatMap((running) => {
    const beside = [...letters].flatMap((next) => {
      const [a, b] = [programs[running]?.load, programs[next]?.load];
      if (a === undefined || b === undefined) return [];
      const { load, paces } = contended([a, b], NODE);
      return [{ goodness: goodness(load, NODE.most) ?? NaN, pace: sum([...paces]) }];
    });
    const means = { goodness: mean(beside.map((p) => p.goodness)), pace: mean(beside.map((p) => p.pace)) };
    return beside.map((p) => ({ goodness: p.goodness - means.goodness, pace: p.pace - means.pace }));
  });
  return sampleCorrelation(
    pairs.map((p) => p.goodness),
    pairs.map((p) => p.pace),
  );
}

if (options.worker) answerOrders(answerOf);
else {
  console.log(machine());
  for (const letters of ['JKLM', 'ABCDEFGHI'])
    console.log(`goodness and pace of pairs of ${letters}: correlation ${correlation(letters).toFixed(2)}`);
  const searches = (Object.keys(QUEUES) as QueueName[]).map((queue): Search => ({
    queue,
    steps: Number(options.steps),
    seeds: Number(options.seeds),
  }));
  const crew = { script: fileURLToPath(import.meta.url), procs: Number(options.procs) };
  await inProcesses<Search, Found>(crew, searches, ({ queue, letters, minutes: [first, best] }) => {
    console.log(`'${queue}': '${letters}',  // ${first.toFixed(1)} to ${best.toFixed(1)} minutes`);
  });
}
