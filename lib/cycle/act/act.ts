import { invariant, messageOf } from '../../kernel/errors.ts';
import type { EffectKey } from '../../kernel/ids.ts';
import type { Attempt, StageSpec } from '../../domain/job.ts';
import type { Effect, EffectOutcome } from '../../domain/plan.ts';
import type { Fleet, StartRequest } from '../../ports/fleet.ts';
import type { EffectRecord } from '../../ports/store.ts';

import type { WorkingState } from '../state/working-state.ts';

type Kind = Effect['kind'];
type Of<K extends Kind> = Extract<Effect, { kind: K }>;

/**
 * Performs intents in the order stop, release, launch, start, so that freed capacity comes first. One outcome per
 * effect. Every call repeats safely under its key, so acting again on intents left open by a crash is the recovery.
 */
export async function act(
  fleet: Fleet,
  state: WorkingState,
  records: readonly EffectRecord[],
): Promise<Map<EffectKey, EffectOutcome>> {
  const outcomes = new Map<EffectKey, EffectOutcome>();
  const of = <K extends Kind>(kind: K): Of<K>[] =>
    records.flatMap((r) => (r.effect.kind === kind ? [r.effect as Of<K>] : []));
  const note = (effects: readonly Effect[], results: readonly EffectOutcome[]): void =>
    effects.forEach((e, i) => outcomes.set(e.key, invariant(results[i], 'a fleet answers every request')));

  const stops = of('stop').filter((e) => stillRuns(state, e, outcomes));
  if (stops.length > 0) {
    note(
      stops,
      await fleet.stop(
        stops.map((e) => ({
          key: e.key,
          attempt: e.attempt,
          why: e.why,
          instance: attemptOf(state, e.attempt).instance,
          ...(e.to === undefined ? {} : { to: e.to }),
        })),
      ),
    );
  }
  const releases = of('release');
  if (releases.length > 0)
    note(releases, await fleet.release(releases.map((e) => ({ key: e.key, instance: e.instance }))));
  const launches = of('launch');
  if (launches.length > 0) {
    note(
      launches,
      await fleet.launch(
        launches.map(({ key, instance, allocation, pool, bid }) => ({ key, instance, allocation, pool, bid })),
      ),
    );
  }
  // Asked for without its instance a start would be refused, and its attempt end, while the launch is tried again.
  const unlaunched = new Set(launches.flatMap((e) => (outcomes.get(e.key)?.status === 'failed' ? [e.instance] : [])));
  const running = of('start').filter((e) => stillRuns(state, e, outcomes));
  const starts = running.filter((e) => !unlaunched.has(e.instance));
  for (const e of running) {
    if (unlaunched.has(e.instance)) outcomes.set(e.key, { status: 'failed', detail: 'its instance is not launched' });
  }
  const texts = new TaskTexts();
  const sound: Of<'start'>[] = [];
  const requests: StartRequest[] = [];
  for (const e of starts) {
    try {
      requests.push(startRequest(state, e, texts));
      sound.push(e);
    } catch (error) {
      // A faulty record of one job must not keep others from starting.
      const detail = `its start cannot be asked for: ${messageOf(error)}`;
      outcomes.set(e.key, { status: 'refused', why: 'job-fault', detail });
    }
  }
  if (sound.length > 0) note(sound, await fleet.start(requests));
  return outcomes;
}

/** An intent about an attempt that has ended meanwhile has nothing left to do. */
function stillRuns(
  state: WorkingState,
  effect: Of<'stop'> | Of<'start'>,
  outcomes: Map<EffectKey, EffectOutcome>,
): boolean {
  const attempt = state.attempts.get(effect.attempt);
  if (attempt !== undefined && attempt.state !== 'ended') return true;
  outcomes.set(effect.key, { status: 'refused', why: 'instance-gone', detail: 'the attempt has ended' });
  return false;
}

const attemptOf = (state: WorkingState, id: Of<'stop'>['attempt']) =>
  invariant(state.attempts.get(id), `attempt ${id} is not active`);

function startRequest(state: WorkingState, effect: Of<'start'>, texts: TaskTexts): StartRequest {
  const { task } = effect;
  const job = invariant(state.jobs.get(task.job), `job ${task.job} is not active`);
  const stage = invariant(
    job.spec.stages.find((s) => s.name === task.stage),
    `job ${job.id} has no stage ${task.stage}`,
  );
  const attempt = attemptOf(state, effect.attempt);
  return {
    key: effect.key,
    attempt: effect.attempt,
    instance: effect.instance,
    ...texts.of(stage, task.index),
    ...(stage.secrets === undefined ? {} : { secrets: stage.secrets }),
    workdir: stage.workdir,
    resources: stage.resources,
    ...(stage.image === undefined ? {} : { image: stage.image }),
    ...(stage.port === undefined ? {} : { port: stage.port }),
    timeoutS: stage.timeoutS,
    // A replica has nothing to save: it serves to the end, and its controller drains it first.
    checkpoint: job.spec.class === 'service' ? null : stage.checkpoint,
    ...(attempt.role === undefined ? {} : { role: attempt.role }),
    task: { job: task.job, stage: task.stage, index: task.index, number: attempt.number, ...roundOf(attempt) },
  };
}

const roundOf = ({ round }: Attempt) => (round === undefined ? {} : { round });

type Texts = Pick<StartRequest, 'command' | 'env' | 'inputs' | 'outputs'>;

/** Texts of tasks with their index filled in. The search for stages with the index in a text runs once. */
class TaskTexts {
  readonly #indexed = new Map<StageSpec, boolean>();

  /** The stage's own records, if none of them has the index. */
  of(stage: StageSpec, index: number): Texts {
    const { command, env, inputs, outputs } = stage;
    if (!this.#isIndexed(stage)) return { command, env, inputs, outputs };
    const fill = (text: string): string => text.replaceAll('{index}', String(index));
    return {
      command: command.map(fill),
      env: Object.fromEntries(Object.entries(env).map(([name, value]) => [name, fill(value)])),
      inputs: inputs.map(fill),
      outputs: outputs.map(fill),
    };
  }

  #isIndexed(stage: StageSpec): boolean {
    let known = this.#indexed.get(stage);
    if (known === undefined) {
      const { command, env, inputs, outputs } = stage;
      known = [...command, ...Object.values(env), ...inputs, ...outputs].some((text) => text.includes('{index}'));
      this.#indexed.set(stage, known);
    }
    return known;
  }
}
