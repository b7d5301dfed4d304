/**
 * Answers of the HTTP API. Views have these types, tests validate answers with them, and the OpenAPI document is
 * generated from them (lib/api/openapi.ts). Requests are in lib/api/requests.ts.
 *
 * Instants are ISO 8601 strings in UTC named `...At`, in engine time: a replayed market has its own calendar. Those
 * that clients compute with are also in milliseconds, named `...Ms`. Money is in US dollars (`...Usd`), durations are
 * seconds (`...S`), memory and disk MiB. A value that does not exist yet is null, never absent.
 */
import { z } from 'zod';
// Types only: `.meta()` gets its OpenAPI keys without the generator.
import type {} from 'zod-openapi';
import { ERROR_CODES, type ErrorCode } from '../kernel/errors.ts';
import { COST_KEYS } from '../domain/costs.ts';
import { WAIT_REASONS } from '../domain/plan.ts';

const instant = z.iso.datetime().describe('Engine time, ISO 8601, UTC.').meta({ example: '2026-03-01T12:00:00.000Z' });
const usd = z.number().describe('US dollars.');
const seconds = z.number().describe('Seconds of engine time.');
const count = z.int().nonnegative();

// ---------------------------------------------------------------------------------------------------------- problems

const codes = Object.keys(ERROR_CODES) as [ErrorCode, ...ErrorCode[]];

export const issue = z
  .object({
    at: z.string().describe('Where: a path such as `stages[1].resources.memory`, or `query.limit`.'),
    message: z.string(),
  })
  .meta({ id: 'Issue' });

export const problem = z
  .object({
    type: z.string().describe('Stable URN of the code.').meta({ example: 'urn:ebbtide:error:not-found' }),
    title: z.string().describe('What the code means, the same for each occurrence.'),
    status: z.int().describe('The HTTP status.'),
    detail: z.string().describe('What failed, got and allowed in one sentence.'),
    code: z.enum(codes),
    what: z.string().describe('What failed.'),
    got: z.string().optional().describe('What it got.'),
    allowed: z.string().optional().describe('What is allowed.'),
    next: z.string().optional().describe('The next step.'),
    at: z.string().optional().describe('Where in the input.'),
    issues: z.array(issue).optional().describe('Every finding, when several were reported at once.'),
    retryable: z.boolean().describe('Whether the same request may succeed later.'),
    requestId: z.string().describe('Also in the header `x-request-id` and in the log.'),
  })
  .meta({ id: 'Problem', description: 'RFC 9457 problem details.' });
export type Problem = z.infer<typeof problem>;

// -------------------------------------------------------------------------------------------------------------- jobs

export const resourcesView = z
  .object({
    cpus: z.number().describe('vCPUs; thousandths are possible.'),
    memoryMiB: z.number(),
    gpus: z.number(),
    diskMiB: z.number(),
  })
  .meta({ id: 'Resources' });
export type ResourcesView = z.infer<typeof resourcesView>;

export const jobClass = z.enum(['deadline', 'best-effort', 'service']);
export const jobState = z.enum(['pending', 'running', 'held', 'succeeded', 'failed', 'cancelled']);

export const taskCounts = z
  .object({
    total: count,
    pending: count.describe('Never tried yet.'),
    waiting: count.describe('Tried, to be tried again.'),
    running: count,
    succeeded: count,
    failed: count,
    cancelled: count,
  })
  .meta({ id: 'TaskCounts' });
export type TaskCounts = z.infer<typeof taskCounts>;

export const callerView = z
  .object({
    id: z
      .string()
      .describe('ARN of an IAM principal, `cognito:USER`, or on one machine `uid:NUMBER` or `address:IP`.')
      .meta({ example: 'arn:aws:iam::111122223333:user/ana' }),
    name: z.string().nullable().describe('Of a user of the machine.'),
    requestId: z.string().describe('The request by which it was asked, as in the access log.'),
  })
  .meta({ id: 'Caller' });
export type CallerView = z.infer<typeof callerView>;

const jobSummaryFields = {
  id: z.string().meta({ example: 'j-1h2k3m4n5p6q7r8' }),
  name: z.string(),
  owner: z.string(),
  labels: z.record(z.string(), z.string()),
  class: jobClass,
  template: z.string().describe('What recurring jobs share: owner / templated name / program.'),
  state: jobState,
  stateReason: z.string().nullable().describe('Why it ended as it did, or why it is held.'),
  submittedAt: instant,
  deadlineAt: instant.nullable(),
  startedAt: instant.nullable(),
  finishedAt: instant.nullable(),
  /** Met or missed; null if undecided or without a deadline. */
  onTime: z.boolean().nullable().describe('Whether it succeeded by its deadline; null while open or without one.'),
  endedLate: z.boolean().describe('Whether it failed because it came too late to be worth anything.'),
  cancelRequested: z.boolean(),
  submittedBy: callerView.nullable().describe('Who submitted it; null where that was not recorded.'),
  cancelledBy: callerView.nullable().describe('Who asked first that it be cancelled.'),
  tasks: taskCounts,
};

export const jobSummary = z.object(jobSummaryFields).meta({ id: 'JobSummary' });
export type JobSummary = z.infer<typeof jobSummary>;

export const admissionView = z
  .object({
    feasible: z.boolean().describe('False when the deadline cannot be met even starting now on on-demand capacity.'),
    notes: z.array(z.string()),
  })
  .meta({ id: 'Admission' });

export const stageView = z
  .object({
    name: z.string(),
    dependsOn: z.array(z.string()),
    gang: z.boolean(),
    command: z.array(z.string()),
    workdir: z.string(),
    resources: resourcesView,
    retries: count,
    timeoutS: seconds.nullable(),
    tasks: taskCounts,
  })
  .meta({ id: 'Stage' });
export type StageView = z.infer<typeof stageView>;

export const remarkView = z
  .object({
    stage: z.string(),
    text: z.string().describe('Such as: no file matches a pattern of its outputs.'),
    tasks: count.describe('How many tasks it is true of.'),
  })
  .meta({ id: 'Remark' });
export type RemarkView = z.infer<typeof remarkView>;

export const jobView = z
  .object({
    ...jobSummaryFields,
    asOf: instant.describe('Engine time of this answer.'),
    maxCostUsd: usd.nullable(),
    after: z.array(z.string()).describe('Ids of the jobs that must have succeeded before.'),
    admission: admissionView,
    remarks: z.array(remarkView).optional().describe('About tasks that succeeded. Absent: none.'),
    stages: z.array(stageView),
    headline: z
      .string()
      .nullable()
      .describe('First sentence of the latest explanation, or how the job ended; null before the first plan.'),
  })
  .meta({ id: 'Job' });
export type JobView = z.infer<typeof jobView>;

export const submitAnswer = z
  .object({
    outcome: z
      .enum(['created', 'repeated'])
      .describe('repeated: the same Idempotency-Key came with the same body before; `job` is what it made then.'),
    job: jobSummary,
    admission: admissionView,
  })
  .meta({ id: 'SubmitAnswer' });
export type SubmitAnswer = z.infer<typeof submitAnswer>;

export const batchResult = z
  .object({
    index: count.describe('Position in the request.'),
    outcome: z.enum(['created', 'repeated', 'refused']),
    job: jobSummary.nullable(),
    admission: admissionView.nullable(),
    problem: problem.nullable().describe('Why it was refused.'),
  })
  .meta({ id: 'BatchResult' });

export const batchAnswer = z
  .object({ created: count, repeated: count, refused: count, results: z.array(batchResult) })
  .meta({ id: 'BatchAnswer' });
export type BatchAnswer = z.infer<typeof batchAnswer>;

export const cancelAnswer = z
  .object({
    outcome: z.enum(['requested', 'already-cancelled']),
    job: jobSummary,
  })
  .meta({ id: 'CancelAnswer' });
export type CancelAnswer = z.infer<typeof cancelAnswer>;

export const releaseAnswer = z.object({ job: jobSummary }).meta({ id: 'ReleaseAnswer' });
export type ReleaseAnswer = z.infer<typeof releaseAnswer>;

// ------------------------------------------------------------------------------------------------ tasks and attempts

export const taskState = z.enum(['pending', 'waiting', 'running', 'succeeded', 'failed', 'cancelled']);

export const taskView = z
  .object({
    stage: z.string(),
    index: count,
    state: taskState.describe('pending: never tried; waiting: tried, to be tried again.'),
    attempts: count.describe('Attempts so far, interruptions included.'),
    failures: count.describe('Failures so far: what `retries` is compared with.'),
    keptS: seconds.describe('Running time whose result a checkpoint keeps.'),
    notBeforeAt: instant.nullable().describe('Back-off after a failure.'),
  })
  .meta({ id: 'Task' });
export type TaskView = z.infer<typeof taskView>;

const attemptOutcome = z.enum([
  'succeeded',
  'failed',
  'timed-out',
  'interrupted',
  'preempted',
  'moved',
  'cancelled',
  'superseded',
]);

export const attemptView = z
  .object({
    id: z.string(),
    stage: z.string(),
    index: count,
    number: z.int().positive().describe('1 for the first attempt of its task.'),
    role: z
      .enum(['original', 'copy', 'pilot'])
      .describe(
        'copy: its task ran already; the first attempt to succeed wins. pilot: it tells how long its siblings run.',
      ),
    instance: z.string(),
    resources: resourcesView,
    state: z.enum(['starting', 'running', 'stopping', 'ended']),
    outcome: attemptOutcome
      .nullable()
      .describe(
        'interrupted: by the market; preempted: by a plan; moved: by a plan, to go on elsewhere. None is a failure.',
      ),
    placedAt: instant,
    startedAt: instant.nullable(),
    endedAt: instant.nullable(),
    exitCode: z.int().nullable(),
    exitSignal: z.string().nullable(),
    reason: z.string().nullable(),
    resumedFromS: seconds.describe('Work that earlier attempts left in the checkpoint.'),
    keptS: seconds.describe('Running time of this attempt that its last checkpoint keeps.'),
    goesTo: z.string().nullable().describe('Instance to which it moves, or moved; null: it does not move.'),
    leavingAt: instant.nullable().describe('Order to stop for its move: from then on it makes no progress.'),
    movedFrom: z.string().nullable().describe('Attempt from which it went on here by a move.'),
    reservedAt: instant.nullable().describe('Since when room was kept for it here, if it moved here.'),
    usage: z
      .object({ maxRssMiB: z.number(), cpuS: z.number() })
      .nullable()
      .describe('Null: unknown. It never stands for nothing used.'),
    logUrl: z.string().nullable().describe('A page for people that shows its log, where the provider has one.'),
  })
  .meta({ id: 'Attempt' });
export type AttemptView = z.infer<typeof attemptView>;

export const logView = z
  .object({
    job: z.string(),
    stage: z.string(),
    index: count,
    attempt: z.string(),
    number: z.int().positive(),
    stream: z.enum(['stdout', 'stderr']),
    offset: count,
    text: z.string(),
    nextOffset: count.describe('Pass as `offset` to go on.'),
    totalBytes: count.describe('Length of the log as far as it was read: above nextOffset while more follows.'),
    merged: z.boolean().describe('Both outputs are one log here, and this is it, whichever was asked for.'),
    url: z.string().nullable().describe('A page for people that shows the log, where the provider has one.'),
    ended: z
      .boolean()
      .describe(
        'The attempt has ended: nothing follows once nextOffset reaches totalBytes. A later attempt may exist.',
      ),
    latest: z
      .boolean()
      .describe(
        'Whether it tells how its task fares: it succeeded, or is the newest that lives, or failed or ended last.',
      ),
    outcome: attemptOutcome.nullable().describe('How the attempt ended; null: it has not.'),
    reason: z.string().nullable().describe('Why it ended as it did.'),
  })
  .meta({ id: 'Log' });
export type LogView = z.infer<typeof logView>;

export const failureView = z
  .object({
    stage: z.string(),
    index: count,
    final: z.boolean().describe('Whether the task has failed for good. False: it is tried again.'),
    attempt: z.int().positive().describe('Number of the attempt that failed last.'),
    outcome: z.enum(['failed', 'timed-out']),
    exitCode: z.int().nullable(),
    exitSignal: z.string().nullable(),
    reason: z.string().nullable().describe('Exit status, signal, or missing part, in words.'),
    endedAt: instant.nullable(),
    alike: count.describe('Other tasks of the stage that failed for the same reason.'),
    stderr: z
      .string()
      .nullable()
      .describe('Its last lines, 10 and 2 KiB at most; null: it wrote none, or they are gone.'),
    merged: z.boolean().describe('Both outputs are one log here: `stderr` has lines of both.'),
  })
  .meta({ id: 'Failure' });
export type FailureView = z.infer<typeof failureView>;

export const failureList = z
  .object({
    job: z.string(),
    total: count.describe('Tasks that failed and have no attempt that succeeded or lives.'),
    items: z.array(failureView).describe('Tasks that failed for good first, then the latest first.'),
  })
  .meta({ id: 'FailureList' });
export type FailureList = z.infer<typeof failureList>;

// --------------------------------------------------------------------------------------------------- pools, instances

const bid = z.union([z.number().nonnegative(), z.literal('uncapped')]).describe('USD per hour, or uncapped.');
export const purchaseOption = z.enum(['reserved', 'on-demand', 'spot']);

export const poolView = z
  .object({
    id: z.string().meta({ example: 'c5.large/us-east-1a/spot' }),
    instanceType: z.string(),
    family: z.string(),
    generation: count,
    arch: z.enum(['x86_64', 'arm64']),
    zone: z.string(),
    option: purchaseOption,
    capacity: resourcesView,
    priceUsdPerHour: usd.nullable().describe('Price now; null while the market quotes none.'),
    lowUsdPerHour: usd.nullable().describe('Lowest price of the last 24 hours.'),
    highUsdPerHour: usd.nullable().describe('Highest price of the last 24 hours.'),
    onDemandUsdPerHour: usd,
    liveInstances: count.describe('How many instances of it are held now.'),
    reservedInstances: count.optional().describe('Of a reserved pool: how many instances are reserved.'),
  })
  .meta({ id: 'Pool' });
export type PoolView = z.infer<typeof poolView>;

export const instanceState = z.enum(['requested', 'starting', 'ready', 'warned', 'releasing', 'ended']);

export const instanceView = z
  .object({
    id: z.string(),
    allocation: z.string().describe('The launch that made it.'),
    pool: z.string(),
    instanceType: z.string(),
    zone: z.string(),
    option: purchaseOption,
    bid,
    state: instanceState,
    requestedAt: instant,
    launchedAt: instant.nullable().describe('Billing starts here.'),
    readyAt: instant.nullable(),
    warnedAt: instant.nullable().describe('When the interruption notice came.'),
    goneAt: instant.nullable().describe('When the notice says that it will be gone.'),
    rebalance: z.boolean().describe('A rebalance recommendation came.'),
    endedAt: instant.nullable(),
    endCause: z.enum(['interrupted', 'released', 'lost', 'failed']).nullable(),
    marketCause: z
      .enum(['capacity', 'price'])
      .nullable()
      .describe('Of one that was interrupted, or whose launch was refused: no capacity, or a price above the bid.'),
    costUsd: usd
      .nullable()
      .describe('The final bill, or the amount accrued until now; null when nothing is billed yet.'),
    running: z
      .array(z.object({ attempt: z.string(), job: z.string(), stage: z.string(), index: count }))
      .describe('Attempts on it that have not ended.'),
    boughtFor: z
      .array(
        z.object({
          job: z.string(),
          name: z.string().nullable().describe('Null for a job that is no longer kept.'),
          part: z.number().describe('Part of the purchase that was for this job; parts sum to 1.'),
        }),
      )
      .describe(
        'Jobs that it was bought for, the largest part first: those share its start-up. Empty where that was not recorded.',
      ),
  })
  .meta({ id: 'Instance' });
export type InstanceView = z.infer<typeof instanceView>;

// -------------------------------------------------------------------------------------------------------------- costs

const money = {
  workUsd: usd.describe('Kept by a success or a checkpoint, or still running.'),
  wastedUsd: usd.describe('Lost past the last checkpoint.'),
  speculativeUsd: usd.describe('Attempts beside the one of their task that succeeded first.'),
  movedUsd: usd.describe(
    'Time of moves, without progress: from the order to stop, and while room is kept on the target.',
  ),
  idleUsd: usd.describe('Paid and unused: start-up, gaps, unused capacity. Part of the job that caused it.'),
  totalUsd: usd,
  onDemandUsd: usd.describe(
    'The useful work (not what was wasted, speculative, moved or idle) at on-demand prices of the instance types it ran on.',
  ),
  instanceHours: z.number(),
};

const next = z.string().nullable().describe('Pass as `cursor` to go on; null at the end.');

export const costRow = z
  .object({
    key: z
      .string()
      .describe(
        'Job id, owner, id of the caller who submitted, pool or template; `(idle)` for idle time that no job caused, or all of it with `idle=apart`; `(unknown)` for jobs whose caller was not recorded; `(aged out)` for jobs, callers and templates of what is no longer kept.',
      ),
    ...money,
  })
  .meta({ id: 'CostRow' });
export type CostRowView = z.infer<typeof costRow>;

export const costTotal = z.object(money).meta({ id: 'CostTotal' });

export const costReport = z
  .object({
    by: z.enum(COST_KEYS),
    asOf: instant,
    rows: z.array(costRow).describe('Most expensive first: settled time, and amounts accrued on live instances.'),
    next,
    total: costTotal.describe('Of all rows, also those of other pages.'),
  })
  .meta({ id: 'CostReport' });
export type CostReport = z.infer<typeof costReport>;

export const jobCostView = z
  .object({
    job: z.string(),
    owner: z.string(),
    submittedBy: callerView.nullable().describe('Who submitted the job; null where that was not recorded.'),
    asOf: instant,
    settled: z.boolean().describe('False while an attempt runs or an instance of it is not billed yet.'),
    rows: z.array(costRow).describe('One per pool.'),
    accruedUsd: usd.describe('Estimate of what open attempts have cost until now, not in the rows.'),
    total: costTotal.describe('Rows and accrued together.'),
    maxCostUsd: usd.nullable(),
  })
  .meta({ id: 'JobCost' });
export type JobCostView = z.infer<typeof jobCostView>;

// --------------------------------------------------------------------------------------------- plans and explanations

export const solveView = z
  .object({
    used: z.enum(['milp', 'greedy']),
    status: z.enum(['optimal', 'feasible', 'no-solution', 'infeasible', 'failed', 'not-needed']),
    objective: z
      .number()
      .describe(
        'Expected worth less cost, US dollars. Where room is short, best-effort jobs count less the more work they have left (`shortJobsFirst`).',
      ),
    greedyObjective: z.number(),
    bound: z.number().nullable(),
    boundKind: z.enum(['lagrangian', 'mip']).nullable(),
    gap: z.number().nullable().describe('(bound - objective) / |bound|.'),
    gapOfCost: z.number().nullable().describe('(bound - objective) / expected cost of what the plan starts.'),
    variables: count,
    constraints: count,
    elapsedMs: z.number(),
  })
  .meta({ id: 'Solve' });

export const forecastOrigin = z
  .object({
    chosen: z.string().describe('`history`, `model`, a version of a model, or `oracle`.'),
    refused: z
      .string()
      .nullable()
      .describe('Why the chosen model cannot be asked; null where it can, or none was chosen.'),
    version: z.string().nullable().describe('Of the trained model that answered; null: history did.'),
    byModel: count.describe('Bids that the model answered.'),
    byHistory: z
      .array(z.object({ why: z.string(), bids: count }))
      .describe('Bids that the model was to answer and history did, by reason.'),
    capacity: z
      .object({
        chosen: z.string().describe('`model`, or a version of a model of capacity.'),
        refused: z.string().nullable().describe('Why the chosen model cannot be asked; null where it can.'),
        version: z
          .string()
          .nullable()
          .describe('Of the trained model that answered; null: observed interruptions did.'),
        byModel: count.describe('Spot pools that the model answered.'),
        byObserved: z
          .array(z.object({ why: z.string(), pools: count }))
          .describe('Spot pools that the model was to answer and observed interruptions did, by reason.'),
      })
      .optional()
      .describe('The same of the risk that capacity ends; absent where no model was chosen for it.'),
  })
  .meta({ id: 'ForecastOrigin' });

const priceDrivers = z
  .object({
    aboveUsd: z.number().describe('Bid above the price, USD per hour.'),
    lastAboveS: seconds.nullable().describe('Since the price was above the bid; null: not within `knownS`.'),
    knownS: seconds.describe('Of history that was looked at.'),
    range24hUsd: z.number().describe('Highest less lowest price of 24 hours, USD per hour.'),
  })
  .meta({ id: 'PriceDrivers' });

export const poolForecast = z
  .object({
    pool: z.string(),
    priceUsdPerHour: usd,
    bids: z.array(
      z.object({
        bid,
        horizonS: z.array(seconds).describe('Ascending.'),
        pInterrupted: z.array(z.number()).describe('P(interrupted within each horizon).'),
        reason: z.string(),
        drivers: priceDrivers.nullable().describe('Null for an uncapped bid.'),
      }),
    ),
  })
  .meta({ id: 'PoolForecast' });
export type PoolForecastView = z.infer<typeof poolForecast>;

export const driftRisk = z.enum(['any', 'capacity']);
const drift = z
  .object({
    instances: count,
    hours: z.number().describe('For which they were held, together.'),
    expected: z.number().describe('Interruptions that their forecasts add up to over that time.'),
    observed: count.describe('Interruptions that came.'),
    ratio: z
      .object({ value: z.number(), low: z.number(), high: z.number() })
      .nullable()
      .describe(
        'Observed by expected with its 95 % interval, for which instances of a pool that are taken at once are one event; 1 where forecasts are right. Null: nothing was expected.',
      ),
  })
  .meta({ id: 'Drift' });

export const driftView = z
  .object({
    by: z.string().nullable().describe('Source of the forecasts; null: any.'),
    risk: driftRisk.describe('Which interruptions: all, or for want of capacity.'),
    asOf: instant,
    overall: drift,
    pools: z.array(z.object({ pool: z.string(), drift })).describe('The most expected interruptions first.'),
    morePools: count.describe('Pools that are left out.'),
  })
  .meta({
    id: 'ForecastDrift',
    description: 'Interruptions of spot instances, as they were forecast and as they came.',
  });
export type DriftView = z.infer<typeof driftView>;

const moveUsd = {
  savedUsd: z.number().nullable().describe('What the policy expects a move to save; null: it does not say.'),
  riskUsd: z
    .number()
    .nullable()
    .describe('Expected loss by a risk that the move takes; null: the policy does not say.'),
};
const movePlace = z.object({
  instance: z.string().nullable().describe('Null: it is to be bought, or not decided.'),
  pool: z.string().nullable().describe('Null: not decided, or not known any more.'),
});

const taskRef = z.object({ job: z.string(), stage: z.string(), index: count });
export const effectView = z
  .discriminatedUnion('kind', [
    z.object({ kind: z.literal('launch'), instance: z.string(), pool: z.string(), bid, reason: z.string() }),
    z.object({
      kind: z.literal('start'),
      attempt: z.string(),
      task: taskRef,
      instance: z.string(),
      role: z.enum(['original', 'copy', 'pilot']),
      reason: z.string(),
    }),
    z.object({
      kind: z.literal('stop'),
      attempt: z.string(),
      why: z.enum(['preempted', 'cancelled', 'timed-out', 'superseded']),
      to: z.string().nullable().describe('Instance on which its task goes on; null: wherever there is room.'),
      ...moveUsd,
      reason: z.string(),
    }),
    z.object({ kind: z.literal('release'), instance: z.string(), reason: z.string() }),
  ])
  .meta({ id: 'Effect' });

export const planView = z
  .object({
    id: z.string(),
    at: instant,
    token: z.int().describe('Fencing token of the engine that made it.'),
    preset: z.string(),
    effects: z.array(effectView),
    jobs: z.array(z.string()).describe('Ids of the jobs that it explains.'),
    forecast: forecastOrigin
      .nullable()
      .describe('How the market was forecast; null where that was not needed or not kept.'),
    solve: solveView,
  })
  .meta({ id: 'Plan' });
export type PlanView = z.infer<typeof planView>;

export const waitReason = z.enum(WAIT_REASONS);

export const explanationView = z
  .object({
    job: z.string(),
    name: z.string(),
    state: jobState,
    at: instant.nullable().describe('When the plan that says so was made; null before the first one.'),
    headline: z.string(),
    waiting: z.array(
      z.object({
        stage: z.string(),
        tasks: count,
        why: waitReason,
        detail: z.string(),
        wouldChange: z.string(),
        expectedStartAt: instant.nullable(),
      }),
    ),
    placed: z.array(z.object({ stage: z.string(), tasks: count, pool: z.string(), why: z.string() })),
    copies: z
      .array(
        z.object({
          stage: z.string(),
          index: count,
          state: z.enum(['runs', 'starts', 'waits', 'dropped']),
          why: z.string(),
        }),
      )
      .describe('Copies of running tasks, besides placements. dropped: no room for it now.'),
    moves: z
      .array(
        z.object({
          stage: z.string(),
          index: count,
          from: movePlace,
          to: movePlace,
          state: z
            .enum(['waits', 'saves', 'arrives'])
            .describe('waits: for its target. saves: it stops and writes its checkpoint. arrives: it starts there.'),
          why: z.string(),
          ...moveUsd,
        }),
      )
      .describe('Tasks that go on elsewhere from their checkpoints.'),
    considered: z.array(
      z.object({
        pool: z.string(),
        bid,
        priceUsdPerHour: usd,
        pInterrupted: z.number(),
        pLate: z.number(),
        expectedCostUsd: usd,
        verdict: z.string(),
      }),
    ),
    excluded: z.array(z.object({ constraint: z.string(), pools: count })),
    forecast: z
      .array(
        z.object({
          pool: z.string(),
          bid,
          pWithinHour: z.number().describe('P(interrupted within an hour).'),
          reason: z.string(),
          drivers: priceDrivers.nullable(),
        }),
      )
      .describe('Of the spot pools that the job runs in, or else could best run in; the first few.'),
    runtime: z.object({ medianS: seconds, p90S: seconds, basis: z.string() }).nullable(),
    admission: admissionView,
  })
  .meta({ id: 'Explanation' });
export type ExplanationView = z.infer<typeof explanationView>;

// ------------------------------------------------------------------------------------------------- events, health

export const eventView = z
  .object({
    sequence: z.int().nonnegative(),
    at: instant,
    atMs: z.number(),
    type: z.string(),
    job: z.string().nullable(),
    text: z.string().describe('One sentence.'),
    data: z.record(z.string(), z.unknown()),
  })
  .meta({ id: 'Event' });
export type EventView = z.infer<typeof eventView>;

export const healthView = z
  .object({
    status: z
      .enum(['ok', 'degraded'])
      .describe(
        'degraded: no cycle has come to its end for too long, the last ones failed, or the disk is full; `detail` says why.',
      ),
    detail: z.string().nullable().describe('Why it is degraded, one sentence; null where it is not.'),
    version: z.string(),
    now: instant.describe('Engine time.'),
    nowMs: z.number(),
    engineStartedAt: instant,
    lastCycleAt: instant.nullable(),
    market: z.object({ name: z.string(), from: instant, to: instant, speed: z.number() }),
    preset: z.string(),
    disk: z
      .object({
        level: z
          .enum(['enough', 'low', 'used-up'])
          .describe(
            'low: 80 % of the budget are used. used-up: no task starts and no job is accepted until there is room.',
          ),
        usedBytes: count.describe("What the engine's folder uses."),
        budgetBytes: count.describe('The most that it may use (`--disk`).'),
        freeBytes: count.describe('Free on its file system.'),
        reserveBytes: count.describe('The part of it that is never deleted.'),
      })
      .nullable()
      .describe("How full the disk of local mode's engine is; null before it is measured, and on AWS."),
  })
  .meta({ id: 'Health' });
export type HealthView = z.infer<typeof healthView>;

// ------------------------------------------------------------------------------------------------- lists

const link = z.string().describe('Relative to the address of this answer.');
export const rootView = z
  .object({
    name: z.literal('Ebbtide'),
    version: z.string(),
    about: z.string(),
    links: z.object({
      document: link.describe('The OpenAPI document of every route, relative to the address of this answer.'),
      health: link,
      jobs: link,
      events: link,
      costs: link,
      pools: link,
      instances: link,
      plans: link,
    }),
  })
  .meta({ id: 'Root' });
export type RootView = z.infer<typeof rootView>;

export const jobList = z.object({ items: z.array(jobSummary), next, asOf: instant }).meta({ id: 'JobList' });
export const taskList = z.object({ job: z.string(), items: z.array(taskView), next }).meta({ id: 'TaskList' });
export const attemptList = z.object({ job: z.string(), items: z.array(attemptView), next }).meta({ id: 'AttemptList' });
export const forecastList = z
  .object({ origin: forecastOrigin.nullable(), items: z.array(poolForecast), next, asOf: instant })
  .meta({ id: 'ForecastList' });
export type ForecastList = z.infer<typeof forecastList>;
export const poolList = z.object({ items: z.array(poolView), next, asOf: instant }).meta({ id: 'PoolList' });
export const instanceList = z
  .object({ items: z.array(instanceView), next, asOf: instant })
  .meta({ id: 'InstanceList' });
const part = z.number().min(0).max(1);
export const neighboursView = z
  .object({
    groups: z
      .array(
        z.object({
          id: z.string(),
          profile: z
            .object({ cpu: part, disk: part, network: part, waiting: part, memory: part })
            .describe(
              'What its programs use: of the vCPUs and the memory that they ask for, of the machine’s disk and network.',
            ),
          templates: z.array(z.string()).describe('Those with the most attempts, at most 10.'),
          templateCount: count,
          attempts: count.describe('Attempts that were measured.'),
        }),
      )
      .describe('Programs that use machines alike.'),
    pairs: z.array(
      z.object({
        running: z.string().describe('Group of a program that runs.'),
        next: z.string().describe('Group of a program beside it.'),
        chance: part.describe('That it is the next to begin beside the running one, by what was good before.'),
        slowdown: z
          .object({ factor: z.number(), low: z.number(), high: z.number() })
          .nullable()
          .describe(
            'How much longer `running` takes beside one of `next` that takes all of a device, with a 95 % interval; null: not measured.',
          ),
      }),
    ),
    rows: z
      .record(z.string(), z.string())
      .optional()
      .describe('With `rows=true`: all that is stored, for another engine to begin with.'),
    asOf: instant,
  })
  .meta({ id: 'Neighbours' });
export type NeighboursView = z.infer<typeof neighboursView>;
export const planList = z.object({ items: z.array(planView), next }).meta({ id: 'PlanList' });
export type JobList = z.infer<typeof jobList>;
export type TaskList = z.infer<typeof taskList>;
export type AttemptList = z.infer<typeof attemptList>;
export type PoolList = z.infer<typeof poolList>;
export type InstanceList = z.infer<typeof instanceList>;
export type PlanList = z.infer<typeof planList>;
