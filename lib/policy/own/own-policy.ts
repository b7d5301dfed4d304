/** A policy of the user's own, as its module gives it. Experimental: the form may change between minor versions. */
import { z } from 'zod';
import type { Pool } from '../../domain/pool.ts';
import { policyName, STAGES, type StageName } from '../../domain/preset-spec.ts';
import { EbbError } from '../../kernel/errors.ts';
import type { Asks } from '../asks.ts';
import type { Contract, Policy } from '../policy.ts';

/** Definition of one policy by its module. `decide` is called once for each preset that names it. */
export interface OwnPolicySpec<Stage extends StageName = StageName, Settings extends z.ZodObject = z.ZodObject> {
  readonly stage: Stage;
  /** Lower-case letters, digits and dashes. No shipped policy of the stage has it. */
  readonly name: string;
  /** One line for lists. */
  readonly about: string;
  /** Paper and section, or documentation. Absent: `your own`. */
  readonly source?: string;
  /** A strict Zod object (`kit.z.strictObject`). Absent: no settings. */
  readonly settings?: Settings;
  /** Names of learners whose beliefs it reads. Absent: none. */
  readonly learners?: readonly string[];
  /** Its questions to the market's forecast. Absent: none; any question then throws. */
  readonly asks?: Asks;
  /** Pools in which a policy of `scale` may ever buy. Absent: any. Other pools are not appraised. */
  readonly buys?: (pool: Pool) => boolean;
  /** Of a policy of `queue`: waiting tasks may take slots of ended ones between decisions. Absent: they may not. */
  readonly reusesSlots?: true;
  readonly decide: (settings: z.output<Settings>) => Contract<Stage>;
}

/**
 * A shipped policy as a module gets it. A policy that spreads it inherits its settings, learners, questions (`asks`),
 * its pools (`buys`) and whether slots are reused.
 */
export interface ShippedPolicy<Stage extends StageName = StageName>
  extends
    Required<Omit<OwnPolicySpec<Stage>, 'buys' | 'reusesSlots' | 'decide'>>,
    Pick<Policy<Stage>, 'buys' | 'reusesSlots'> {
  /** Default settings: those of the deployment. Throws for settings that it does not have. */
  readonly decide: (settings?: Readonly<Record<string, unknown>>) => Contract<Stage>;
}

/** The same, checked, with the module that it comes from. */
export interface OwnPolicy<Stage extends StageName = StageName> extends Policy<Stage> {
  readonly stage: Stage;
  readonly from: string;
}

const isFunction = (value: unknown): boolean => typeof value === 'function';

const form = z.strictObject({
  stage: z.enum(STAGES),
  name: policyName,
  about: z.string().min(1).max(200),
  source: z.string().max(200).default('your own'),
  settings: z
    .custom<z.ZodObject>((value) => value instanceof z.ZodObject, 'must be made with kit.z.strictObject')
    .optional(),
  learners: z.array(z.string()).max(32).default([]),
  asks: z
    .strictObject({
      bids: z.custom<NonNullable<Asks['bids']>>(isFunction, 'must be a function').optional(),
      held: z.literal(true).optional(),
      horizon: z.union([z.literal('any'), z.number().positive()]).optional(),
      prices: z.literal(true).optional(),
      correlations: z.literal(true).optional(),
      capacity: z.literal(true).optional(),
      drivers: z.literal(true).optional(),
    })
    .refine(({ bids, held, horizon }) => (bids === undefined && held === undefined) || horizon !== undefined, {
      message: 'with `bids` or `held` it needs a `horizon`: seconds, or any',
    })
    .default({}),
  buys: z.custom<NonNullable<Policy['buys']>>(isFunction, 'must be a function').optional(),
  reusesSlots: z.literal(true).optional(),
  decide: z.custom<Policy['decide']>(isFunction, 'must be a function'),
});

/** Checks the definition from a module. `from`: the module, for messages. Throws `usage` with all findings at once. */
export function ownPolicy(given: unknown, from: string): OwnPolicy {
  const parsed = form.safeParse(given);
  if (!parsed.success) {
    throw new EbbError('usage', {
      what: `${from} gives a policy that is none`,
      issues: parsed.error.issues.map((issue) => ({ at: issue.path.join('.') || 'policy', message: issue.message })),
      next: 'see docs/write-a-policy.md',
    });
  }
  const { settings = z.strictObject({}), ...policy } = parsed.data;
  return { ...policy, settings, from } as unknown as OwnPolicy;
}
