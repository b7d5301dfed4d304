/**
 * Presets as data: the name of one policy per stage. The shipped ones are lib/policy/presets.ts; users write their own
 * in `presets`.
 */
import { z } from 'zod';
import { presetSettings } from './preset-settings.ts';

/** The stages of a decision, in its order. */
export const STAGES = [
  'estimate',
  'value',
  'appraise',
  'move',
  'plan',
  'order',
  'place',
  'queue',
  'speculate',
  'scale',
] as const;
export type StageName = (typeof STAGES)[number];

const NAME = /^[a-z0-9][a-z0-9-]{0,62}$/;
/** Names of policies and of users' presets. */
export const policyName = z
  .string()
  .regex(NAME, 'must be lower-case letters, digits and dashes, no dash first, at most 63');

/** A policy by its name, or with settings of its own beside the name. */
const policyRef = z.union([policyName, z.looseObject({ policy: policyName })]);
export type PolicyRef = z.infer<typeof policyRef>;

const stageRefs = Object.fromEntries(STAGES.map((stage) => [stage, policyRef.optional()])) as {
  readonly [Stage in StageName]: z.ZodOptional<typeof policyRef>;
};

export const presetSpec = z.strictObject({
  about: z.string().max(200).optional().describe('One line for lists.'),
  source: z.string().max(200).optional().describe('Paper and section, or product, that it follows; for lists.'),
  extends: policyName.optional().describe('Preset that decides every stage that is not named here.'),
  forecast: z
    .string()
    .regex(/^[\w][\w.-]{0,63}$/)
    .optional()
    .describe('How prices are forecast where the setting `forecast` is `preset`.'),
  settings: presetSettings
    .optional()
    .describe('Settings of the deployment that several stages read; they hold wherever these are read.'),
  ...stageRefs,
});
export type PresetSpec = z.infer<typeof presetSpec>;

/** Users' presets by name; at most 32. */
export const presetSpecs = z
  .record(policyName, presetSpec)
  .refine((of) => Object.keys(of).length <= 32, { message: 'at most 32 presets' });
