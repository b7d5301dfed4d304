/** Paths of the API that the command line uses; documented in full by /api/openapi.json. */
const job = (ref: string): string => `/api/jobs/${encodeURIComponent(ref)}`;
const service = (name: string): string => `/api/services/${encodeURIComponent(name)}`;

export const routes = {
  jobs: '/api/jobs',
  batch: '/api/jobs/batch',
  job,
  cancel: (ref: string): string => `${job(ref)}/cancel`,
  release: (ref: string): string => `${job(ref)}/release`,
  tasks: (ref: string): string => `${job(ref)}/tasks`,
  attempts: (ref: string): string => `${job(ref)}/attempts`,
  failures: (ref: string): string => `${job(ref)}/failures`,
  logs: (ref: string): string => `${job(ref)}/logs`,
  explain: (ref: string): string => `${job(ref)}/explain`,
  jobCosts: (ref: string): string => `${job(ref)}/cost`,
  costs: '/api/costs',
  pools: '/api/pools',
  forecasts: '/api/forecasts',
  drift: '/api/forecasts/drift',
  instances: '/api/instances',
  plans: '/api/plans',
  neighbours: '/api/neighbours',
  health: '/api/health',
  services: '/api/services',
  service,
  scaleService: (name: string): string => `${service(name)}/scale`,
  explainService: (name: string): string => `${service(name)}/explain`,
} as const;
