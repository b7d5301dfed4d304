import { resolve } from 'node:path';
import type { HealthView } from '../../api/schemas.ts';
import type { ServiceView } from '../../api/services/schemas.ts';
import { generateLoad, type LoadResult } from '../../drivers/local/traffic/load-generator.ts';
import { EbbError } from '../../kernel/errors.ts';
import { randomStream } from '../../kernel/random.ts';
import { openRequests } from '../../workload/requests/open.ts';
import { meanRps, scaledTo, type RequestTrace } from '../../workload/requests/trace.ts';
import type { Action, Context } from '../context.ts';
import type { LoadFlags } from '../flags/service-flags.ts';
import { dollars, duration, plural } from '../format.ts';
import { json } from '../output.ts';
import { routes } from '../routes.ts';
import { onStopRequest } from '../signals.ts';
import { counting } from '../views/counting.ts';
import { latencyText } from '../views/service-views.ts';

/** Where requests go: a service of an engine, or any address. */
interface Aim {
  readonly url: string;
  /** Latency of the service's target; null: of an address nothing is known. */
  readonly slowS: number | null;
  /** Seconds of market time per wall second. */
  readonly speed: number;
  /** Name of the service; null for an address. */
  readonly service: string | null;
}

/** `ebb load`: requests at a rate, or as a trace has them, and how they were answered. */
export const load: Action<LoadFlags> = async (context, [target = ''], options) => {
  const { world, output, json: asJson } = context;
  const trace = options.trace === undefined ? null : await openRequests(resolve(world.cwd, options.trace));
  const forS = options.for ?? null;
  const aim = await aimAt(context, target);
  const rate = rateOf(trace, { ...options, forS, speed: options.speed ?? aim.speed });
  for (const note of trace?.notes ?? []) output.note(note);
  const stop = new AbortController();
  const unlisten = onStopRequest(() => stop.abort());
  const progress = await counting(output);
  try {
    const result = await generateLoad({
      url: aim.url,
      path: options.path,
      rateAt: rate.at,
      random: randomStream(options.seed, 'load'),
      signal: stop.signal,
      slowS: aim.slowS,
      onProgress: (so) => progress.show(() => progressText(so, rate)),
    });
    progress.close();
    const service = aim.service === null ? null : await serviceOf(context, aim.service);
    if (asJson) json(output, { ...result, ...(service === null ? {} : { cost: service.cost }) });
    else output.line(resultText(result, { aim, service }));
  } finally {
    progress.close();
    unlisten();
  }
};

async function aimAt(context: Context, target: string): Promise<Aim> {
  if (/^https?:\/\//.test(target)) {
    if (!URL.canParse(target)) throw new EbbError('usage', { what: 'this is no URL', got: target });
    return { url: new URL(target).origin, slowS: null, speed: 1, service: null };
  }
  const service = await serviceOf(context, target);
  if (service.url === null) {
    throw new EbbError('conflict', {
      what: 'the service has no address yet',
      got: target,
      next: `wait until it has one: \`ebb service status ${target}\``,
    });
  }
  const { market } = await (await context.client()).get<HealthView>(routes.health);
  return { url: service.url, slowS: service.target.latencyS, speed: market.speed, service: service.name };
}

const serviceOf = async (context: Context, name: string): Promise<ServiceView> =>
  (await context.client()).get<ServiceView>(routes.service(name));

interface Rate {
  /** Requests per second at a wall second; null: over. */
  readonly at: (s: number) => number | null;
  /** Wall seconds; Infinity: until Ctrl-C. */
  readonly lengthS: number;
}

const USUAL_RPS = 10;

function rateOf(
  trace: RequestTrace | null,
  { rate, forS, speed }: Pick<LoadFlags, 'rate'> & { readonly forS: number | null; readonly speed: number },
): Rate {
  if (trace === null) {
    const lengthS = forS ?? Infinity;
    return { lengthS, at: (s) => (s >= lengthS ? null : (rate ?? USUAL_RPS)) };
  }
  const { perMinute } = scaledTo(trace, rate ?? meanRps(trace));
  const lengthS = Math.min(forS ?? Infinity, (perMinute.length * 60) / speed);
  const minuteAt = (s: number): number => perMinute[Math.floor((s * speed) / 60)] ?? NaN;
  // A minute that the trace does not know has no requests: nobody knows how many there were.
  return { lengthS, at: (s) => (s >= lengthS ? null : (Number.isNaN(minuteAt(s)) ? 0 : minuteAt(s)) / 60) };
}

function progressText({ wallS, sent, answered, slow, errors, broken }: LoadResult, { lengthS }: Rate): string {
  const of = lengthS === Infinity ? '' : ` of ${duration(lengthS)}`;
  const bad = total(errors) + total(broken);
  return `${duration(wallS)}${of}: ${sent} sent, ${answered} answered, ${slow} slow, ${bad} failed`;
}

const total = (counts: Readonly<Record<string, number>>): number => Object.values(counts).reduce((a, b) => a + b, 0);

function resultText(
  result: LoadResult,
  { aim, service }: { readonly aim: Aim; readonly service: ServiceView | null },
): string {
  const { sent, answered, slow, wallS, withheld, errors, broken } = result;
  const failed = total(errors) + total(broken);
  const [half, most, nearlyAll] = [result.p50S, result.p95S, result.p99S].map(latencyText);
  const share = sent === 0 ? 0 : (100 * (slow + failed)) / sent;
  const kinds = Object.entries({ ...errors, ...broken }).map(([kind, n]) => `${n} x ${kind}`);
  const lines = [
    `${plural(sent, 'request')} in ${duration(wallS)} (${(sent / Math.max(wallS, 0.001)).toFixed(1)} rps): ${answered} answered, ${failed} failed${kinds.length === 0 ? '' : ` (${kinds.join(', ')})`}`,
    `latency p50 ${half}, p95 ${most}, p99 ${nearlyAll}`,
    ...(aim.slowS === null ? [] : [`${share.toFixed(2)} % slow or failed (over ${latencyText(aim.slowS)}: ${slow})`]),
    ...(withheld === 0 ? [] : [`${withheld} requests were not sent: too many were under way`]),
  ];
  if (service !== null) {
    const { totalUsd, onDemandUsd } = service.cost;
    lines.push(
      `${service.name} has cost ${dollars(totalUsd)} since it began; on demand its work alone is ${dollars(onDemandUsd)}`,
    );
  }
  return lines.join('\n');
}
