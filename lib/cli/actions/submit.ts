import { randomUUID } from 'node:crypto';
import type { SubmitAnswer } from '../../api/schemas.ts';
import { EbbError, ERROR_CODES } from '../../kernel/errors.ts';
import { sendBatches, type BatchResult, type KeyedSource } from '../batches.ts';
import type { Client } from '../client.ts';
import type { Action, Context } from '../context.ts';
import { fromProblem, renderError } from '../failure.ts';
import { duration, plural } from '../format.ts';
import { allGood, namingFile, readAllSources, type BadSource, type JobSource } from '../job-source.ts';
import { json, type Output } from '../output.ts';
import { routes } from '../routes.ts';
import { endedByStop } from '../signals.ts';
import { text } from '../views/text-table.ts';
import { counting, type Counting } from '../views/counting.ts';
import type { SubmitOptions } from '../flags/job-flags.ts';

/** Most jobs that are listed one by one; above it, only sums and errors are shown. */
const MOST_LISTED = 100;
const MOST_ERRORS = 20;
const MOST_NOTES = 5;

/**
 * All files are read before the first is sent: an error in the second must not leave the first running. One job is one
 * request, several are sent in batches (batches.ts).
 */
export const submit: Action<SubmitOptions> = async (context, files, options) => {
  const { world, output, json: asJson, client } = context;
  const progress = await counting(output);
  try {
    const all = await readAllSources(files, world, (read) =>
      progress.show(() => `read ${amount(read)} of ${amount(files.length)} files`),
    );
    const [only] = all;
    if (all.length === 1 && only !== undefined && 'text' in only) {
      const answer = await submitOne(await client(), only, options.key);
      if (asJson) json(output, answer);
      else report(output, answer);
      return 0;
    }
    const sources =
      options.keepGoing === true ? all : allGood(all, { wayOn: ', or submit the others with --keep-going' });
    return await submitAll(context, {
      sources,
      key: options.key ?? randomUUID(),
      isChosen: options.key !== undefined,
      progress,
    });
  } finally {
    progress.close();
  }
};

/** Problems of the job file are reported with the file's name before their place. */
export const submitOne = (engine: Client, source: JobSource, key: string | undefined): Promise<SubmitAnswer> =>
  namingFile(source.label, () =>
    engine.post<SubmitAnswer>(routes.jobs, {
      bodyText: source.text,
      headers: key === undefined ? {} : { 'idempotency-key': key },
    }),
  );

interface Order {
  readonly sources: readonly (JobSource | BadSource)[];
  /** Common prefix of idempotency keys: job number i has `key/i`. */
  readonly key: string;
  readonly isChosen: boolean;
  readonly progress: Counting;
}

/** Outcome of one job. */
type Outcome = { readonly label: string } & (
  | { readonly result: BatchResult & { readonly outcome: 'created' | 'repeated' } }
  | { readonly error: EbbError; readonly result: BatchResult | null }
);

/** Exit code: 0, or that of the first refused job. */
async function submitAll(context: Context, order: Order): Promise<number> {
  const { output } = context;
  const { sources, key, progress } = order;
  const since = performance.now();
  const outcomes: (Outcome | undefined)[] = sources.map((s) => ('error' in s ? { ...s, result: null } : undefined));
  const wayOn = `go on with the same command and --key ${key}: no job is made twice`;
  const due = sources.flatMap((source, index): KeyedSource[] =>
    'text' in source ? [{ source, key: `${key}/${index}`, index }] : [],
  );
  let taken = 0;
  let sent = 0;
  const engine = await context.client();
  const said = (): string => {
    progress.close();
    return `stopped: ${amount(taken)} of ${amount(sources.length)} jobs were taken, the next ones may have been; ${wayOn}`;
  };
  try {
    await endedByStop(output, said, async () => {
      const onWait = (error: EbbError): void => output.note(`${error.facts.what}: trying again`);
      for await (const batch of sendBatches(engine, due, { onWait })) {
        for (const { job, answer } of batch) {
          const outcome = outcomeOf(job.source.label, answer);
          outcomes[job.index] = outcome;
          if (!('error' in outcome)) taken += 1;
        }
        sent += batch.length;
        progress.show(() => `submitted ${amount(sent)} of ${amount(due.length)} jobs`);
      }
    });
  } catch (error) {
    if (!(error instanceof EbbError) || sent === 0) throw error;
    const what = `${error.facts.what}, after ${amount(taken)} of ${amount(sources.length)} jobs were taken`;
    throw new EbbError(error.code, { ...error.facts, what, next: wayOn });
  }
  progress.close();
  const all = outcomes.filter((o) => o !== undefined);
  if (context.json) json(output, all.map(asData));
  else reportAll(context, all, { tookS: (performance.now() - since) / 1000, order });
  const refused = all.find((o) => 'error' in o);
  return refused === undefined ? 0 : ERROR_CODES[refused.error.code].exit;
}

function outcomeOf(label: string, answer: BatchResult | EbbError): Outcome {
  if (answer instanceof EbbError) return { label, error: placedIn(label, answer), result: null };
  const { outcome, problem } = answer;
  if (outcome !== 'refused') return { label, result: { ...answer, outcome } };
  return { label, error: placedIn(label, fromProblem(problem ?? {}, problem?.status ?? 500)), result: answer };
}

function placedIn(label: string, { code, facts }: EbbError): EbbError {
  const { at } = facts;
  return new EbbError(code, { ...facts, at: at === undefined ? label : `${label} ${at}` });
}

/** JSON form: the answer to a single submission; refused jobs have a reason in place of a job. */
function asData(of: Outcome): object {
  if ('error' in of && of.result === null) {
    const { code, facts } = of.error;
    const { cause: _, ...told } = facts;
    return { source: of.label, outcome: 'refused', job: null, admission: null, problem: { code, ...told } };
  }
  const { index: _, ...rest } = of.result ?? { index: 0 };
  return { source: of.label, ...rest };
}

function report(output: Output, { outcome, job, admission }: SubmitAnswer): void {
  const { colors } = output;
  const verb = outcome === 'created' ? 'submitted' : 'was submitted before';
  output.line(`${colors.green('✓')} ${text(job.name)} ${verb}: ${colors.bold(job.id)}`);
  for (const note of admission.notes) output.note(`  ${admission.feasible ? '' : colors.yellow('warning: ')}${note}`);
}

function reportAll(
  { output }: Context,
  all: readonly Outcome[],
  { tookS, order }: { readonly tookS: number; readonly order: Order },
): void {
  const { colors } = output;
  const answers = all.flatMap((o): SubmitAnswer[] => ('error' in o ? [] : answerIn(o.result)));
  const refused = all.filter((o) => 'error' in o);
  if (all.length <= MOST_LISTED) for (const answer of answers) report(output, answer);
  else reportNotes(output, answers);
  for (const { error } of refused.slice(0, MOST_ERRORS)) output.note(renderError(error, output));
  if (refused.length > MOST_ERRORS) output.note(`and ${amount(refused.length - MOST_ERRORS)} more; --json shows all`);
  if (all.length <= MOST_LISTED && refused.length === 0) return;
  const repeated = answers.filter((a) => a.outcome === 'repeated').length;
  const parts = [
    `${plural(answers.length - repeated, 'job')} submitted in ${duration(tookS)}`,
    ...(repeated === 0 ? [] : [`${amount(repeated)} submitted before`]),
    ...(refused.length === 0 ? [] : [`${amount(refused.length)} refused`]),
  ];
  output.line(`${refused.length === 0 ? colors.green('✓') : colors.red('✗')} ${parts.join(', ')}`);
  if (refused.length > 0 && !order.isChosen) {
    output.note(`correct them, then repeat the command with --key ${order.key}: only they are submitted`);
  }
}

const answerIn = ({
  outcome,
  job,
  admission,
}: BatchResult & { readonly outcome: 'created' | 'repeated' }): SubmitAnswer[] =>
  job === null || admission === null ? [] : [{ outcome, job, admission }];

/** Each note once, with its number of jobs. */
function reportNotes(output: Output, answers: readonly SubmitAnswer[]): void {
  const jobs = new Map<string, number>();
  for (const { admission } of answers) {
    for (const note of admission.notes) {
      const shown = `${admission.feasible ? '' : output.colors.yellow('warning: ')}${note}`;
      jobs.set(shown, (jobs.get(shown) ?? 0) + 1);
    }
  }
  const most = [...jobs].sort((a, b) => b[1] - a[1]);
  for (const [note, count] of most.slice(0, MOST_NOTES)) output.note(`  ${plural(count, 'job')}: ${note}`);
  if (most.length > MOST_NOTES) output.note(`  and ${amount(most.length - MOST_NOTES)} more notes; --json shows all`);
}

const amount = (n: number): string => n.toLocaleString('en-US');
