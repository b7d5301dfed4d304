/**
 * Backend of the API's handlers in a Lambda. The process lives on between requests, so prices and histories are kept
 * and read again when old. It may freeze as soon as it has answered, so a wake-up is sent before the answer.
 */
import { SQSClient } from '@aws-sdk/client-sqs';
import type { MiddlewareObj } from '@middy/core';
import type { AttemptId } from '../../kernel/ids.ts';
import { once } from '../../kernel/once.ts';
import { raw } from '../../kernel/units.ts';
import { invariant } from '../../kernel/errors.ts';
import { admitter } from '../../cycle/admit/admission.ts';
import { provideBackend } from '../provided-backend.ts';
import { composeLearners } from '../../cycle/learn/compose-learners.ts';
import { runtimeLearner } from '../../stages/estimate/runtime-learner.ts';
import type { Backend, Health } from '../../ports/backend.ts';
import type { Market } from '../../ports/market.ts';
import { lambdaClock } from '../../drivers/aws/lambda/clock.ts';
import { limitsOf } from '../../drivers/aws/compose/environment.ts';
import { processStore, uniform, wallMs, type StoreParts } from '../../drivers/aws/compose/compose-store.ts';
import { logStreamOf, logUrl } from '../../drivers/aws/fleet/log-place.ts';
import type { Pool } from '../../domain/pool.ts';
import type { AwsPrices } from '../../drivers/aws/market/aws-market.ts';
import { ARCHIVE_PREFIX } from '../../drivers/aws/store/keys.ts';
import { placedInS3 } from '../../drivers/aws/fleet/job-files.ts';
import { takeTime } from '../../drivers/aws/lambda/remaining.ts';
import { trigger } from '../../drivers/aws/cycle/trigger.ts';
import { deployedServices } from './aws-services.ts';

/** Greatest age of prices and histories for an answer, wall ms. Prices are fetched every ten minutes. */
const REFRESH_MS = 30_000;
/** Time for which pools that quoted a price count as still quoting, for admission, wall ms. */
const ADMISSION_MS = 1000;

/** Backend of this process, and the work before and after each request. */
export interface DeployedBackend {
  readonly backend: Backend;
  /** Before a request: reads again what is too old. */
  refresh(): Promise<void>;
  /** After a request: waits for messages on their way. */
  settle(): Promise<void>;
}

export function composeBackend(of: StoreParts = processStore()): DeployedBackend {
  const { EBB_REGION: region, EBB_CLOCK: anchor, EBB_CONFIG: config } = of.environment;
  const clock = lambdaClock(anchor);
  // The service's address, not the queue's: one setting says where AWS is.
  const sqs = new SQSClient({ region, useQueueUrlAsEndpoint: false });
  const learners = composeLearners();
  const history = learners.of(runtimeLearner);
  const startedMs = wallMs();
  let known: AwsPrices | null = null;
  let readMs = -Infinity;
  let waking: Promise<void> | null = null;
  const prices = (): AwsPrices => invariant(known, 'prices are read before the first request');
  const admission = admissionOfLate(() => prices(), {
    open: () => market.pools().filter((p) => market.quote(p.id, clock.now()) !== null),
    make: (pools) => admitter({ pools, limits: limitsOf(config), config: config.settings, history }),
  });
  const market = marketOf(prices);
  const services = deployedServices(of, (spec) => admission()(spec, clock.now()));
  const backend: Backend = {
    store: of.store(),
    clock,
    random: uniform,
    market,
    fleet: readingOf(of, () => prices().trace),
    access: { ownerIsCaller: config.ownerIsCaller, admins: config.admins },
    limits: limitsOf(config),
    history: { days: config.settings.historyDays, archive: `s3://${of.environment.EBB_BUCKET}/${ARCHIVE_PREFIX}` },
    place: (spec, job) => placedInS3(spec, of.environment.EBB_BUCKET, job),
    admit: async (spec) => admission()(spec, clock.now()),
    forecast: async (pools) => (await import('./deployment-forecasts.ts')).forecastsOf(of, market, pools),
    wake: () => {
      waking ??= wakeUnlessAwaited(of, sqs);
    },
    ...(services === null ? {} : { services: services.backend }),
    health: () => healthOf(of, prices(), startedMs),
  };
  return {
    backend,
    refresh: async () => {
      // Absolute difference: a clock that was set back also counts as old.
      if (Math.abs(wallMs() - readMs) < REFRESH_MS) return;
      const [read] = await Promise.all([of.market().prices(), learners.recall(of.store(), [runtimeLearner])]);
      known = read;
      readMs = wallMs();
    },
    settle: async () => {
      const sent = waking;
      waking = null;
      await sent;
      await services?.settle();
    },
  };
}

/** Logs and bills. The parts for reading are loaded at first use: submission needs none of them. */
function readingOf(of: StoreParts, prices: () => AwsPrices['trace']): Backend['fleet'] {
  const { EBB_REGION: region, EBB_LOG_GROUP: logGroup, EBB_CONFIG: config } = of.environment;
  const place = { region, logGroup };
  const reading = once(async () => {
    const { readingFleet } = await import('../../drivers/aws/fleet/reading-fleet.ts');
    const shown = async (): Promise<AwsPrices['trace']> => prices();
    const logOf = async (id: AttemptId): Promise<string | null> => (await of.store().attempt(id))?.log ?? null;
    return readingFleet({ table: of.table(), ...place, logOf, nowMs: wallMs, prices: shown, rules: config.settings });
  });
  return {
    logs: async (...asked) => (await reading()).logs(...asked),
    logEnd: async (...asked) => (await reading()).logEnd(...asked),
    logUrl: (log) => logUrl(place, logStreamOf(log)),
    bill: async (...asked) => (await reading()).bill(...asked),
  };
}

/** The market of the last read. */
const marketOf = (prices: () => AwsPrices): Market => ({
  pools: () => prices().market.pools(),
  quote: (...asked) => prices().market.quote(...asked),
  history: (...asked) => prices().market.history(...asked),
  completeUntil: () => prices().market.completeUntil?.() ?? null,
});

type Admit = ReturnType<typeof admitter>;

/** Latest admission, reused while prices are the same. Jobs of a batch share its findings. */
function admissionOfLate(
  prices: () => AwsPrices,
  of: { readonly open: () => readonly Pool[]; readonly make: (open: readonly Pool[]) => Admit },
): () => Admit {
  let last: { readonly admit: Admit; readonly of: AwsPrices; readonly madeMs: number } | null = null;
  return () => {
    const nowMs = wallMs();
    if (last !== null && last.of === prices() && Math.abs(nowMs - last.madeMs) < ADMISSION_MS) return last.admit;
    const admit = of.make(of.open());
    last = { admit, of: prices(), madeMs: nowMs };
    return admit;
  };
}

/** Durable jobs are accepted even if the queue does not answer: the clock finds them. */
async function wakeUnlessAwaited(of: StoreParts, sqs: SQSClient): Promise<void> {
  const isAwaited = await of
    .wake()
    .isAwaited()
    .catch(() => false);
  if (isAwaited) return;
  await trigger(sqs, of.environment.EBB_TRIGGER_QUEUE, 'submitted').catch(() => of.wake().want());
}

async function healthOf(of: StoreParts, { trace, checkedMs }: AwsPrices, startedMs: number): Promise<Health> {
  const { EBB_CLOCK: anchor, EBB_CONFIG: config, EBB_VERSION: version } = of.environment;
  const [last, isLate] = await Promise.all([of.store().plans(1, null), of.wake().isLate()]);
  const [plan] = last.items;
  return {
    status: isLate ? 'degraded' : 'ok',
    detail: isLate ? 'a due cycle has not begun, or a running one has died' : null,
    version,
    engineStartedMs: startedMs,
    lastCycleMs: plan === undefined ? null : raw(plan.atMs),
    market: {
      name: trace.name,
      fromMs: raw(trace.startMs),
      toMs: checkedMs ?? raw(trace.endMs),
      speed: anchor?.speed ?? 1,
    },
    preset: config.settings.preset,
    disk: null,
  };
}

/**
 * Middleware of the API's handlers in a deployment. It runs within the API's own middleware, so that its errors are
 * answered like any fault.
 */
export function deployedBackend(compose: () => DeployedBackend = composeBackend): MiddlewareObj {
  let deployed: DeployedBackend | null = null;
  return {
    before: async ({ context }) => {
      takeTime(context);
      if (deployed === null) {
        deployed = compose();
        provideBackend(deployed.backend);
      }
      await deployed.refresh();
    },
    after: () => deployed?.settle(),
  };
}
