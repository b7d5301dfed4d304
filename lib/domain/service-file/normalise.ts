import { EbbError } from '../../kernel/errors.ts';
import { seconds, type Seconds } from '../../kernel/units.ts';
import { nearestHint } from '../nearest-name.ts';
import type { Checkpoint, JobSpec } from '../job.ts';
import {
  REPLICA_AHEAD_S,
  REVISION_LABEL,
  SERVICE_LABEL,
  type HealthCheck,
  type ReplicaAmount,
  type ServiceSpec,
  type UpdateRule,
} from '../service.ts';
import { findingsOf, refuse, type FileKind, type Finding, type Locate } from '../job-file/findings.ts';
import { normalise as normaliseJob, type NormaliseOptions } from '../job-file/normalise.ts';
import { REPLICA_KEYS, serviceFileJsonSchema, serviceFileSchema, type ServiceFile } from './schema.ts';

const SERVICE_FILE: FileKind = {
  name: 'service file',
  page: 'docs/reference/service-file.md',
  code: 'service-file.invalid',
};

const DEFAULT_HEALTH: HealthCheck = {
  path: '/',
  intervalS: seconds(5),
  timeoutS: seconds(2),
  graceS: seconds(60),
  failures: 3,
};
const DEFAULT_DRAIN_S: Seconds = seconds(30);
const DEFAULT_PERCENT = 95;
const DEFAULT_MAX = 10;
const DEFAULT_SURGE: ReplicaAmount = { share: 0.25 };
const NONE: ReplicaAmount = { count: 0 };
const NOTHING_TO_SAVE: Checkpoint = { signal: 'SIGTERM', graceS: seconds(1), everyS: null };
/** Variables that each replica is given. */
const GIVEN = ['PORT'];

export interface ServiceOptions extends NormaliseOptions {
  /** Names of the scaling policies; null: the name is not checked. */
  readonly scalings: readonly string[] | null;
}

/** True for a file of class `service`. */
export const isServiceFile = (json: unknown): boolean =>
  typeof json === 'object' && json !== null && (json as { readonly class?: unknown }).class === 'service';

/** Service of a service file. Pure. Throws only EbbError `service-file.invalid`, with every finding. */
export function normaliseService(json: unknown, options: ServiceOptions, locate: Locate = () => null): ServiceSpec {
  const parsed = serviceFileSchema.safeParse(json);
  if (!parsed.success) {
    const findings = findingsOf(parsed.error, json, serviceFileJsonSchema);
    throw refuse(findings.map(asServiceFinding), locate, SERVICE_FILE);
  }
  const file = parsed.data;
  const spec = specOf(file, replicaOf(json, options, locate));
  const findings = findingsIn(file, spec, options);
  if (findings.length > 0) throw refuse(findings, locate, SERVICE_FILE);
  return spec;
}

const asServiceFinding = (finding: Finding): Finding => ({ ...finding, code: 'service-file.invalid' });

/** Job of one replica, from the keys that it shares with a job file. */
function replicaOf(json: unknown, options: NormaliseOptions, locate: Locate): JobSpec {
  const keys = Object.entries(json as Record<string, unknown>).filter(([key]) => REPLICA_KEY_SET.has(key));
  try {
    const job = normaliseJob(Object.fromEntries(keys), options, locate);
    return {
      ...job,
      class: 'service',
      // The controller begins another replica, later each time, where one fails.
      // A lost replica has lost no work: plans take it as one that saves all of it when it is warned.
      stages: job.stages.map((stage) => ({
        ...stage,
        name: 'replica',
        retries: 0,
        expectedRuntimeS: REPLICA_AHEAD_S,
        checkpoint: NOTHING_TO_SAVE,
      })),
    };
  } catch (error) {
    if (!(error instanceof EbbError) || error.code === 'internal') throw error;
    throw new EbbError('service-file.invalid', { ...error.facts, next: `correct it; ${SERVICE_FILE.page} helps` });
  }
}

const REPLICA_KEY_SET: ReadonlySet<string> = new Set(REPLICA_KEYS);

function specOf(file: ServiceFile, replica: JobSpec): ServiceSpec {
  const { health = {}, utility = 'linear' } = file;
  return {
    name: replica.name,
    owner: replica.owner,
    labels: replica.labels,
    replica,
    target: { latencyS: file.target.latency, percent: file.target.percent ?? DEFAULT_PERCENT },
    capacityRps: file.capacity?.perReplica ?? null,
    concurrency: file.concurrency ?? null,
    scaling: file.scaling ?? 'reactive',
    min: file.min ?? 1,
    max: file.max ?? Math.max(DEFAULT_MAX, file.min ?? 1),
    health: {
      path: health.path ?? DEFAULT_HEALTH.path,
      intervalS: health.interval ?? DEFAULT_HEALTH.intervalS,
      timeoutS: health.timeout ?? DEFAULT_HEALTH.timeoutS,
      graceS: health.grace ?? DEFAULT_HEALTH.graceS,
      failures: health.failures ?? DEFAULT_HEALTH.failures,
    },
    drainS: file.drain ?? DEFAULT_DRAIN_S,
    update: updateOf(file.update),
    utility: utility === 'linear' ? null : utility,
    port: file.port ?? null,
  };
}

const updateOf = ({ maxSurge, maxUnavailable }: NonNullable<ServiceFile['update']> = {}): UpdateRule => ({
  maxSurge: maxSurge ?? DEFAULT_SURGE,
  maxUnavailable: maxUnavailable ?? NONE,
});

function findingsIn(file: ServiceFile, spec: ServiceSpec, { scalings }: ServiceOptions): readonly Finding[] {
  const findings: Finding[] = [];
  const invalid = (path: Finding['path'], message: string, atKey = false): void => {
    findings.push({ code: 'service-file.invalid', path, message, atKey });
  };
  if (spec.min > spec.max) invalid(['min'], `must be at most \`max\`; got ${spec.min}, and \`max\` is ${spec.max}`);
  if (scalings !== null && !scalings.includes(spec.scaling)) {
    invalid(
      ['scaling'],
      `no scaling policy is called ${JSON.stringify(spec.scaling)}; ${nearestHint(spec.scaling, scalings)}`,
    );
  }
  const { maxSurge, maxUnavailable } = spec.update;
  if (isNone(maxSurge) && isNone(maxUnavailable)) {
    invalid(['update'], 'leaves no way to update: give `maxSurge` or `maxUnavailable` more than 0');
  }
  for (const name of GIVEN) {
    const { env, secrets = {} } = spec.replica.stages[0] ?? { env: {} };
    if (Object.hasOwn(env, name)) invalid(['env', name], 'is given to each replica by Ebbtide: leave it out', true);
    if (Object.hasOwn(secrets, name)) invalid(['secrets', name], 'is given to each replica: leave it out', true);
  }
  for (const label of [SERVICE_LABEL, REVISION_LABEL]) {
    if (Object.hasOwn(spec.labels, label))
      invalid(['labels', label], 'is a label of Ebbtide’s own: leave it out', true);
  }
  if (spec.utility !== null && !spec.utility.every((point, i, all) => isAfter(all[i - 1], point))) {
    invalid(['utility'], 'must have points whose shares ascend and whose utilities never fall');
  }
  if (file.target.percent !== undefined && file.target.percent <= 1) {
    invalid(['target', 'percent'], `is in per cent: write ${file.target.percent * 100} for that share`);
  }
  return findings;
}

const isNone = (amount: ReplicaAmount): boolean => ('count' in amount ? amount.count : amount.share) === 0;

const isAfter = (before: readonly [number, number] | undefined, [share, utility]: readonly [number, number]): boolean =>
  before === undefined || (share > before[0] && utility >= before[1]);
