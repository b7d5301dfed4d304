/**
 * A policy is data and a function: name, origin, its own settings, questions to forecasts, learners, and the decision
 * of one stage. Presets (presets.ts) name one for each stage.
 */
import { z } from 'zod';
import { schedulerConfig, type SchedulerConfig } from '../domain/config.ts';
import type { Pool } from '../domain/pool.ts';
import type { StageName } from '../domain/preset-spec.ts';
import type { Asks } from './asks.ts';
import type { MovePolicy, SceneContext, Stages } from './contracts.ts';
import type { Solver } from './solver.ts';

/** Function of a policy, or several functions for a stage with several moments. */
export type Contract<Stage extends StageName> = Stages<Solver>[Stage];

export interface Policy<Stage extends StageName = StageName, Settings extends z.ZodObject = z.ZodObject> {
  readonly name: string;
  /** One line for lists. */
  readonly about: string;
  /** Paper and section, or documentation; `ours` where it is this project's own. */
  readonly source: string;
  /** Settings of its own. If a preset gives one that the deployment has too, it overrides the deployment's. */
  readonly settings: Settings;
  /** Learners whose beliefs it reads. */
  readonly learners: readonly string[];
  readonly asks: Asks;
  /**
   * Pools in which a policy of `scale` may ever buy; absent: any. Pools in which a preset never buys are not appraised:
   * work planned there would wait for ever, beside instances that are bought elsewhere and given back.
   */
  readonly buys?: (pool: Pool) => boolean;
  /**
   * True for a policy of `queue` under which waiting tasks may take slots of ended ones between decisions, where a
   * driver does that (local mode). Absent: they wait for the next decision.
   */
  readonly reusesSlots?: true;
  /** Called once per preset, with settings checked by the schema. */
  readonly decide: (settings: z.output<Settings>) => Contract<Stage>;
}

const NO_SETTINGS = z.strictObject({});

type Tunable = keyof SchedulerConfig;

/** Description of a policy whose function needs no settings beyond the deployment's. */
interface Described {
  readonly name: string;
  readonly about: string;
  readonly source: string;
  /** Settings of the deployment that a preset may give to this policy alone. */
  readonly tunes?: readonly Tunable[];
  readonly learners?: readonly string[];
  readonly asks?: Asks;
  readonly buys?: (pool: Pool) => boolean;
  readonly reusesSlots?: true;
}

/** A policy whose function finds its settings in the context's `config`. */
export function policy<Stage extends StageName>(
  _stage: Stage,
  { tunes = [], learners = [], asks = {}, ...of }: Described,
  contract: Contract<Stage>,
): Policy<Stage> {
  return {
    ...of,
    settings: tunes.length === 0 ? NO_SETTINGS : tunables(tunes),
    learners,
    asks,
    decide: () => contract,
  };
}

/** Each may be absent: then the deployment's holds. */
function tunables(keys: readonly Tunable[]): z.ZodObject {
  const shape = schedulerConfig.shape;
  return z.strictObject(
    Object.fromEntries(keys.map((key) => [key, (shape[key] as z.ZodDefault<z.ZodType>).unwrap().optional()])),
  );
}

/**
 * The same contract with each context that it is given changed first. The context is the first argument of every
 * function but `place`, where it is the last.
 */
export function withContext<Stage extends StageName>(
  stage: Stage,
  contract: Contract<Stage>,
  change: <C extends SceneContext>(context: C) => C,
): Contract<Stage> {
  const all: Contract<StageName> = contract;
  if (stage === 'move') {
    const { propose, begin, returning, vacate } = all as MovePolicy;
    const changed: MovePolicy = {
      propose: (context) => propose(change(context)),
      begin: (input) => begin(change(input)),
      returning: (context) => returning(change(context)),
      vacate: (input) => vacate(change(input)),
    };
    return changed as Contract<Stage>;
  }
  if (stage === 'place') {
    const place = all as Contract<'place'>;
    const changed: Contract<'place'> = (tasks, hosts, context) => place(tasks, hosts, change(context));
    return changed as Contract<Stage>;
  }
  const decide = all as (context: SceneContext, ...rest: readonly unknown[]) => unknown;
  const changed = (context: SceneContext, ...rest: readonly unknown[]): unknown => decide(change(context), ...rest);
  return changed as unknown as Contract<Stage>;
}
