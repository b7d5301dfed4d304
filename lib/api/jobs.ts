import type { z } from 'zod';
import { raw } from '../kernel/units.ts';
import type { Backend } from '../ports/backend.ts';
import type { JobFilter } from '../ports/store.ts';
import { boundedPage } from './bounded.ts';
import { findJob } from './find-job.ts';
import type { jobsQuery, plansQuery } from './requests.ts';
import type { ExplanationView, HealthView, JobList, JobView, PlanList, RootView } from './schemas.ts';
import { explanationView, iso, isoOf, jobSummary, jobView, planView } from './views.ts';

export async function listJobs(of: Backend, query: z.output<typeof jobsQuery>): Promise<JobList> {
  const asOf = iso(of.clock.now());
  return boundedPage(query.limit, async (limit) => {
    const page = await of.store.jobs(filterOf(query), limit, query.cursor ?? null);
    return { items: page.items.map(jobSummary), next: page.next, asOf };
  });
}

function filterOf(query: z.output<typeof jobsQuery>): JobFilter {
  const equals = query.label?.indexOf('=') ?? -1;
  return {
    ...(query.state === undefined ? {} : { states: query.state }),
    ...(query.owner === undefined ? {} : { owner: query.owner }),
    ...(query.name === undefined ? {} : { name: query.name }),
    ...(query.label === undefined
      ? {}
      : { label: { key: query.label.slice(0, equals), value: query.label.slice(equals + 1) } }),
  };
}

export async function showJob(of: Backend, ref: string): Promise<JobView> {
  const job = await findJob(of, ref);
  return jobView(job, await of.store.explanation(job.id), of.clock.now());
}

export async function explainJob(of: Backend, ref: string): Promise<ExplanationView> {
  const job = await findJob(of, ref);
  return explanationView(job, await of.store.explanation(job.id));
}

export async function listPlans(of: Backend, query: z.output<typeof plansQuery>): Promise<PlanList> {
  return boundedPage(query.limit, async (limit) => {
    const page = await of.store.plans(limit, query.cursor ?? null);
    return { items: page.items.map(planView), next: page.next };
  });
}

/** Start page for a client that has the address only. */
export async function showRoot(of: Backend): Promise<RootView> {
  const { version } = await of.health();
  return {
    name: 'Ebbtide',
    version,
    about: 'Batch jobs on EC2 spot, on-demand and reserved capacity. Submit a job file as JSON with POST api/jobs.',
    links: {
      document: 'api/openapi.json',
      health: 'api/health',
      jobs: 'api/jobs',
      events: 'api/events',
      costs: 'api/costs',
      pools: 'api/pools',
      instances: 'api/instances',
      plans: 'api/plans',
    },
  };
}

export async function showHealth(of: Backend): Promise<HealthView> {
  const h = await of.health();
  const now = of.clock.now();
  return {
    status: h.status,
    detail: h.detail,
    version: h.version,
    now: iso(now),
    nowMs: raw(now),
    engineStartedAt: isoOf(h.engineStartedMs),
    lastCycleAt: h.lastCycleMs === null ? null : isoOf(h.lastCycleMs),
    market: {
      name: h.market.name,
      from: isoOf(h.market.fromMs),
      to: isoOf(h.market.toMs),
      speed: h.market.speed,
    },
    preset: h.preset,
    disk: h.disk,
  };
}
