/** The frame of a benchmark on clusters: its runs in processes, and what is written and drawn of them. */
import { fileURLToPath } from 'node:url';
import { machine } from '../figures.ts';
import { answerOrders, inProcesses } from '../processes.ts';
import { stamp } from '../record.ts';
import type { Comparison } from './record.ts';
import { drawAgain, keep, partOf, pathOf, type Part } from './results.ts';

/** Options of every benchmark on clusters, for `parseArgs`. */
export const OPTIONS = {
  part: { type: 'string', default: 'report' },
  procs: { type: 'string', default: '2' },
  json: { type: 'string' },
  html: { type: 'string' },
  draw: { type: 'boolean', default: false },
  worker: { type: 'boolean', default: false },
} as const;

interface Given {
  readonly part: string;
  readonly procs: string;
  readonly json?: string | undefined;
  readonly html?: string | undefined;
  readonly draw: boolean;
  readonly worker: boolean;
}

interface Run {
  readonly preset: string;
  readonly seed: number;
}

export interface ClusterBench<
  Order extends Run,
  Answer extends Order & { readonly figures: { readonly tookS: number } },
> extends Pick<Comparison, 'title' | 'about'> {
  /** Of its files, and after `bench:`. */
  readonly name: string;
  /** The file that the command runs: `import.meta.url`. */
  readonly url: string;
  readonly seeds: number;
  readonly ordersOf: (seeds: readonly number[]) => readonly Order[];
  readonly answerOf: (order: Order) => Promise<Answer>;
  /** What tells its orders apart beside preset and seed, for progress. */
  readonly labelOf: (order: Order) => string;
  readonly resultOf: (answers: readonly Answer[], part: Part) => Promise<Pick<Comparison, 'figures' | 'tables'>>;
}

/** Seeds of the two parts have nothing in common. */
const FIRST_SEED = { tune: 1, report: 101 } as const satisfies Readonly<Record<Part, number>>;

/** Answers orders, draws what is written, or runs all, as the options say. */
export async function mainOf<
  Order extends Run,
  Answer extends Order & { readonly figures: { readonly tookS: number } },
>(bench: ClusterBench<Order, Answer>, given: Given): Promise<void> {
  if (given.worker) return answerOrders(bench.answerOf);
  const part = partOf(given.part);
  const files = { path: given.json ?? pathOf(bench.name, part), html: given.html ?? `out/${bench.name}.html` };
  if (given.draw) return drawAgain(files);
  const began = performance.now();
  console.log(machine());
  const orders = bench.ordersOf(Array.from({ length: bench.seeds }, (_, i) => FIRST_SEED[part] + i));
  const crew = { script: fileURLToPath(bench.url), procs: Number(given.procs) };
  const answers = await inProcesses<Order, Answer>(crew, orders, (answer, done) => {
    const took = `${answer.figures.tookS.toFixed(1)} s`;
    console.error(
      `${done} of ${orders.length}: ${answer.preset}, ${bench.labelOf(answer)}, seed ${answer.seed}: ${took}`,
    );
  });
  const { title, about, name } = bench;
  const command = `npm run bench:${name}${part === 'tune' ? ' -- --part tune' : ''}`;
  await keep({ title, about, command, part, ...stamp(), ...(await bench.resultOf(answers, part)) }, files);
  console.log(`\ntook ${((performance.now() - began) / 1000).toFixed(0)} s`);
}
