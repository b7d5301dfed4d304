/** Use cases of services: apply, list, show, scale, delete, explain. */
import { EbbError } from '../../kernel/errors.ts';
import { recordOf, type Asker } from '../../domain/caller.ts';
import { templateOf } from '../../domain/job-features.ts';
import type { Instance } from '../../domain/instance.ts';
import { nearestName } from '../../domain/nearest-name.ts';
import { specOf, type Service, type ServiceSpec } from '../../domain/service.ts';
import { normaliseService } from '../../domain/service-file/normalise.ts';
import { SERVICE_LIMITS } from '../../domain/service-file/schema.ts';
import { applied, deleted, newService, scaledTo } from '../../cycle/services/changes.ts';
import { liveInstances } from '../../cycle/services/facts.ts';
import { callerText } from '../../domain/caller.ts';
import type { Backend, ServicesBackend } from '../../ports/backend.ts';
import type { NewEvent } from '../../ports/store.ts';
import { checkMayChangeOwned, checkOwner } from '../access.ts';
import { costsBy } from '../costs.ts';
import { UNKNOWN_SUBMITTER } from '../job-input.ts';
import { unusableTexts } from '../text-check.ts';
import { quoted } from '../validate.ts';
import { explanationView, iso } from '../views.ts';
import type { ApplyAnswer, ServiceAnswer, ServiceExplanationView, ServiceListView, ServiceView } from './schemas.ts';
import { serviceViewOf, summaryView } from './views.ts';

/** Tries of a change, each on the record as it is then. */
const MOST_TRIES = 20;

export interface Applying {
  readonly body: unknown;
  readonly bodyText: string;
  readonly caller: Asker | null;
}

/**
 * Makes the service be as the file says. Durable when it resolves. Throws `service-file.invalid`, errors of admission,
 * and `forbidden` for a service of somebody else.
 */
export async function applyService(of: Backend, { body, bodyText, caller }: Applying): Promise<ApplyAnswer> {
  const services = turnedOn(of);
  const spec = readServiceFile(of, services, { body, bodyText, caller });
  checkOwner(of.access, spec, caller);
  const admission = await services.admit(spec);
  const by = caller === null ? {} : { by: recordOf(caller) };
  const asking = { atMs: of.clock.now(), ...by };
  const { service, outcome } = await changed(
    of,
    spec.name,
    (now) => {
      if (now === null) return { next: newService(spec, asking), outcome: 'created' as const };
      checkMayChangeService(of, now, caller);
      const next = applied(now, spec, asking);
      return next === null ? { next, outcome: 'unchanged' as const } : { next, outcome: 'updated' as const };
    },
    { caller, what: (s) => `revision ${specOf(s).number} applied` },
  );
  services.wake();
  return {
    outcome,
    service: summaryView(service, await services.address(service.name)),
    admission: { feasible: admission.feasible, notes: [...admission.notes] },
  };
}

function readServiceFile(
  of: Backend,
  { scalings }: ServicesBackend,
  { body, bodyText, caller }: Applying,
): ServiceSpec {
  const issues = unusableTexts(body, bodyText);
  if (issues.length > 0) {
    throw new EbbError('service-file.invalid', {
      what: 'the service file has texts that no program can be given',
      issues,
      allowed: 'Unicode without NUL',
    });
  }
  const { baseDir, defaultOwner } = of.submitter ?? UNKNOWN_SUBMITTER;
  return normaliseService(body, {
    baseDir,
    defaultOwner: caller === null ? defaultOwner : (caller.name ?? caller.id),
    scalings,
  });
}

export async function listServices(of: Backend): Promise<ServiceListView> {
  const services = turnedOn(of);
  const all = await of.store.services();
  const items = await Promise.all(all.map(async (s) => summaryView(s, await services.address(s.name))));
  return { items, asOf: iso(of.clock.now()) };
}

export async function showService(of: Backend, name: string): Promise<ServiceView> {
  const services = turnedOn(of);
  const service = await findService(of, name);
  return serviceViewOf(service, {
    url: await services.address(name),
    now: of.clock.now(),
    cost: await costOf(of, service),
    instances: await instancesOf(of, service),
  });
}

/** `replicas`: a fixed number, or null for the scaling policy. */
export async function scaleService(
  of: Backend,
  name: string,
  { replicas, caller }: { readonly replicas: number | null; readonly caller: Asker | null },
): Promise<ServiceAnswer> {
  return changeThere(of, name, {
    caller,
    what: replicas === null ? 'the scaling policy decides again' : `set to ${replicas} replicas`,
    change: (service) => {
      const { max } = specOf(service).spec;
      if (replicas !== null && replicas > max) throw tooMany(replicas, max);
      return service.fixedReplicas === replicas ? null : scaledTo(service, replicas);
    },
  });
}

export async function deleteService(of: Backend, name: string, caller: Asker | null): Promise<ServiceAnswer> {
  return changeThere(of, name, {
    caller,
    what: 'is to be deleted',
    change: (service) => (service.isDeleting ? null : deleted(service)),
  });
}

/** A change of a service that is there. `change`: null if nothing changes. */
async function changeThere(
  of: Backend,
  name: string,
  {
    caller,
    what,
    change,
  }: {
    readonly caller: Asker | null;
    readonly what: string;
    readonly change: (service: Service) => Service | null;
  },
): Promise<ServiceAnswer> {
  const services = turnedOn(of);
  await findService(of, name);
  const { service } = await changed(
    of,
    name,
    (now) => {
      const there = expectThere(now, name);
      checkMayChangeService(of, there, caller);
      return { next: change(there), outcome: null };
    },
    { caller, what: () => what },
  );
  services.wake();
  return { service: summaryView(service, await services.address(name)) };
}

export async function explainService(of: Backend, name: string): Promise<ServiceExplanationView> {
  turnedOn(of);
  const service = await findService(of, name);
  const replicas = await Promise.all(
    service.replicas.map(async ({ number, phase, detail, job: id }) => {
      const job = await of.store.job(id);
      const explanation = job === null ? null : explanationView(job, await of.store.explanation(id));
      return { number, phase, detail, explanation };
    }),
  );
  const { replicas: wanted, reason } = service.wanted;
  return {
    name,
    headline: `${service.state}: ${service.detail}`,
    scaling: `${wanted} ${wanted === 1 ? 'replica is' : 'replicas are'} wanted: ${reason}`,
    replicas,
  };
}

function turnedOn({ services }: Backend): ServicesBackend {
  if (services !== undefined) return services;
  throw new EbbError('job.not-in-version', {
    what: 'services are not turned on in this deployment',
    allowed: 'jobs',
    next: 'Set `services` in ebbtide.config.yaml and deploy again, or run the service with `ebb up` on a machine.',
  });
}

async function findService(of: Backend, name: string): Promise<Service> {
  const service = await of.store.service(name);
  if (service !== null) return service;
  const near = nearestName(
    name,
    (await of.store.services()).map((s) => s.name),
  );
  throw noSuchService(name, near);
}

function expectThere(service: Service | null, name: string): Service {
  if (service !== null) return service;
  throw noSuchService(name, null);
}

const noSuchService = (name: string, near: string | null): EbbError =>
  new EbbError('not-found', {
    what: 'no such service',
    got: quoted(name),
    next: near === null ? 'List the services: GET /api/services, `ebb service list`.' : `Did you mean ${quoted(near)}?`,
  });

/** A change by compare-and-set, made anew where another write came between. `next` null: nothing changes. */
async function changed<Outcome>(
  { store, clock }: Backend,
  name: string,
  change: (now: Service | null) => { readonly next: Service | null; readonly outcome: Outcome },
  event: { readonly caller: Asker | null; readonly what: (service: Service) => string },
): Promise<{ readonly service: Service; readonly outcome: Outcome }> {
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const now = await store.service(name);
    const { next, outcome } = change(now);
    if (next === null) return { service: expectThere(now, name), outcome };
    if (await store.putService(next, [askedEvent(next, event, clock.now())])) return { service: next, outcome };
  }
  throw new EbbError('too-many-requests', {
    what: 'the service keeps changing; nothing was written',
    got: quoted(name),
    next: 'Try again.',
  });
}

const askedEvent = (
  service: Service,
  { caller, what }: { readonly caller: Asker | null; readonly what: (service: Service) => string },
  atMs: NewEvent['atMs'],
): NewEvent => ({
  atMs,
  type: 'service-asked',
  job: null,
  text: `service ${service.name}: ${what(service)}${caller === null ? '' : ` by ${callerText(caller)}`}`,
  data: { service: service.name, ...(caller === null ? {} : { caller: caller.id, requestId: caller.requestId }) },
});

const checkMayChangeService = (of: Backend, service: Service, caller: Asker | null): void => {
  const { spec, by } = specOf(service);
  const what = { kind: 'service' as const, name: service.name, owner: spec.owner, submitter: by?.id };
  checkMayChangeOwned(of.access, what, caller);
};

const tooMany = (replicas: number, max: number): EbbError =>
  new EbbError('usage', {
    what: 'more replicas than the service may have',
    got: String(replicas),
    allowed: `0 to ${max} (\`max\` of the service file, at most ${SERVICE_LIMITS.replicas})`,
    next: 'Raise `max` in the service file and apply it.',
  });

/**
 * Costs since the service began. Replicas of a revision share one template, because their names differ in a number
 * alone; another revision may run another program, and has a template of its own.
 */
async function costOf(of: Backend, service: Service): Promise<ServiceView['cost']> {
  const templates = new Set(
    service.revisions.map(({ spec }) => templateOf({ ...spec.replica, name: `${service.name}-1` })),
  );
  const rows = (await costsBy(of, { by: 'template', idle: 'shared' })).filter((row) => templates.has(row.key));
  const sum = (name: keyof ServiceView['cost']): number => rows.reduce((total, row) => total + row[name], 0);
  return {
    totalUsd: sum('totalUsd'),
    idleUsd: sum('idleUsd'),
    onDemandUsd: sum('onDemandUsd'),
    instanceHours: sum('instanceHours'),
  };
}

async function instancesOf({ store }: Backend, { replicas }: Service): Promise<ReadonlyMap<number, Instance>> {
  const live = await liveInstances(store);
  const found = new Map<number, Instance>();
  for (const { number, job } of replicas) {
    const attempt = (await store.attempts(job)).find((a) => a.state !== 'ended');
    const instance = attempt === undefined ? undefined : live.get(attempt.instance);
    if (instance !== undefined) found.set(number, instance);
  }
  return found;
}
