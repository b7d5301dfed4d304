/** Services of `ebb simulate`, with the requests that reach them. */
import { resolve } from 'node:path';
import { EbbError } from '../../kernel/errors.ts';
import { vcpusIn } from '../../kernel/units.ts';
import { normaliseService } from '../../domain/service-file/service-file.ts';
import type { ServiceSpec } from '../../domain/service.ts';
import { loadScalings } from '../../drivers/local/policies/load-policies.ts';
import { TRIBUTARY_REQUESTS } from '../../drivers/sim/services/request-queue.ts';
import type { SimulatedService } from '../../drivers/sim/services/sim-traffic.ts';
import { SCALING_NAMES } from '../../stages/services/scalings.ts';
import { openRequests } from '../../workload/requests/open.ts';
import { firstMinutes, meanRps, scaledTo, type RequestTrace } from '../../workload/requests/trace.ts';
import { readServiceSources } from '../service-source.ts';
import type { SimulateOptions } from '../flags/simulate-flags.ts';

const DAY_MINUTES = 1440;
/** Flags that say something of requests alone. */
const OF_REQUESTS = { requests: '--requests', rate: '--rate', for: '--for', requestTime: '--request-time' } as const;

export interface ServicesOrdered {
  readonly services: readonly SimulatedService[];
  /** Assumptions about their requests, for people. */
  readonly notes: readonly string[];
}

/**
 * Each service of the files gets the same requests. Throws EbbError: `usage` for flags that do not go together,
 * `service-file.invalid`, `workload.invalid` for the trace.
 */
export async function servicesOf(
  options: SimulateOptions,
  cwd: string,
  policyModules: string[],
): Promise<ServicesOrdered> {
  const { service: paths = [] } = options;
  if (paths.length === 0) {
    expectNoRequests(options);
    return { services: [], notes: [] };
  }
  if (options.replay !== undefined) {
    throw new EbbError('usage', {
      what: 'a record has no requests to its services, so they cannot be replayed beside its jobs',
      got: '--replay with --service',
      next: 'leave one out',
    });
  }
  const scalings = [...SCALING_NAMES, ...(await loadScalings({ policyModules })).map(({ name }) => name)];
  const sources = await readServiceSources(paths, { cwd, stdin: process.stdin });
  const specs = sources.map(({ text }) =>
    normaliseService(JSON.parse(text), { baseDir: cwd, defaultOwner: 'unknown', scalings }),
  );
  expectApart(specs);
  const trace = await requestsOf(options, cwd);
  const services = specs.map((spec): SimulatedService => ({
    spec,
    perMinute: trace.perMinute,
    serviceS: options.requestTime ?? requestTimeOf(spec),
    queuePerVcpu: TRIBUTARY_REQUESTS.queuePerVcpu,
  }));
  return { services, notes: [...trace.notes, ...services.map((of) => noteOf(of, trace))] };
}

function expectNoRequests(options: SimulateOptions): void {
  const idle = Object.entries(OF_REQUESTS).flatMap(([key, flag]) =>
    options[key as keyof typeof OF_REQUESTS] === undefined ? [] : [flag],
  );
  if (idle.length === 0) return;
  throw new EbbError('usage', {
    what: 'requests need a service that they reach',
    got: idle.join(', '),
    next: 'name its file with --service',
  });
}

function expectApart(specs: readonly ServiceSpec[]): void {
  const twice = specs.find(({ name }, i) => specs.findIndex((of) => of.name === name) < i);
  if (twice === undefined) return;
  throw new EbbError('usage', {
    what: 'two services have one name',
    got: twice.name,
    next: 'rename one, or name its file once',
  });
}

async function requestsOf(options: SimulateOptions, cwd: string): Promise<RequestTrace> {
  const { requests, rate } = options;
  const minutes = options.for === undefined ? null : Math.ceil(options.for / 60);
  if (requests === undefined) {
    if (rate === undefined) {
      throw new EbbError('usage', {
        what: 'nobody asks the service: neither a trace of requests nor a rate was given',
        got: '--service alone',
        next: 'add --requests FILE, or --rate with requests per second',
      });
    }
    const perMinute = new Float64Array(minutes ?? DAY_MINUTES).fill(60 * rate);
    return { name: `${rate} rps`, perMinute, notes: [] };
  }
  const whole = await openRequests(resolve(cwd, requests));
  const trace = minutes === null ? whole : firstMinutes(whole, minutes);
  if (rate === undefined) return trace;
  if (meanRps(trace) > 0) return scaledTo(trace, rate);
  throw new EbbError('workload.invalid', {
    what: 'a trace without requests has no shape that --rate could scale',
    got: `${trace.name}, its first ${trace.perMinute.length} minutes`,
    next: 'leave out --rate, or take a longer part with --for',
  });
}

/** Time of a request on a vCPU: with the stated capacity a replica is busy all the time. */
function requestTimeOf({ capacityRps, replica }: ServiceSpec): number {
  const vcpus = replica.stages.reduce((sum, { resources }) => sum + vcpusIn(resources.cpu), 0);
  return capacityRps === null ? TRIBUTARY_REQUESTS.serviceS : vcpus / capacityRps;
}

function noteOf({ spec, serviceS }: SimulatedService, trace: RequestTrace): string {
  const hours = (trace.perMinute.length / 60).toPrecision(3);
  return `${spec.name}: ${meanRps(trace).toPrecision(3)} requests per second on average for ${hours} h (${trace.name}), each of ${Number(serviceS.toPrecision(3))} s of a vCPU; ${TRIBUTARY_REQUESTS.queuePerVcpu} wait per vCPU at most.`;
}
