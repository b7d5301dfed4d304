/**
 * Metrics of a deployment in CloudWatch. Lambdas emit them (embedded metric format); the dashboard and alarms of
 * lib/infra read them. Their names are only here, so that no graph asks for a missing one.
 *
 * Every metric has the dimension `service`, the deployment's name (Powertools sets it). Metrics with `by` have one
 * more. CloudWatch bills each name and dimension value per hour in which it was written (0.30 USD a month). So the list
 * is short, no dimension is unbounded (owner, job, pool), and nothing is written without work.
 */
export const METRIC_NAMESPACE = 'Ebbtide';

/** Message of log lines with the cost of a job; the dashboard sums them. */
export const BOOKED = 'booked';

/** Message of log lines with the forecast of an ended instance; the dashboard sums them by pool. */
export const HELD = 'held';

/** Dimension of every metric. Its value is POWERTOOLS_SERVICE_NAME. */
export const SERVICE_DIMENSION = 'service';

export interface MetricFacts {
  readonly name: string;
  /** Unit in CloudWatch's words; money has none. */
  readonly unit: 'Count' | 'Seconds' | 'Milliseconds' | 'None';
  /** Further dimension with few values. */
  readonly by?: 'option';
  /** Lambda that writes it. */
  readonly from: string;
  readonly about: string;
}

export const METRICS = {
  queueDepth: { name: 'QueueDepth', unit: 'Count', from: 'snapshot', about: 'Waiting tasks at the last snapshot.' },
  runningTasks: { name: 'RunningTasks', unit: 'Count', from: 'snapshot', about: 'Running tasks at the last snapshot.' },
  liveInstances: { name: 'LiveInstances', unit: 'Count', from: 'snapshot', about: 'Held instances.' },
  heldJobs: {
    name: 'HeldJobs',
    unit: 'Count',
    from: 'snapshot',
    about: 'Held jobs, on which no decision could be made. Written while there are any, and once after.',
  },
  priceAge: {
    name: 'PriceAge',
    unit: 'Seconds',
    from: 'snapshot',
    about: 'Age of the newest price check when a decision used it.',
  },
  reservationsUnusable: {
    name: 'ReservationsUnusable',
    unit: 'Count',
    from: 'prices',
    about: 'Unusable capacity reservations of the configuration: all of them if EC2 does not describe them.',
  },
  spendRate: {
    name: 'SpendRate',
    unit: 'None',
    by: 'option',
    from: 'snapshot',
    about: 'Current USD per hour of held instances, by purchase option.',
  },
  onDemandRate: {
    name: 'OnDemandRate',
    unit: 'None',
    from: 'snapshot',
    about: 'USD per hour that the same instances would cost on demand.',
  },
  spentToday: {
    name: 'SpentToday',
    unit: 'None',
    from: 'snapshot',
    about: 'USD spent on instances since midnight UTC, running ones included.',
  },
  cycleFaults: {
    name: 'CycleFaults',
    unit: 'Count',
    from: 'observe',
    about: 'Executions of the cycle that failed, died, or could not be started.',
  },
  cycleTime: { name: 'CycleTime', unit: 'Milliseconds', from: 'confirm', about: 'From snapshot to confirm.' },
  solverGap: {
    name: 'SolverGap',
    unit: 'None',
    from: 'solve',
    about: 'Bound on the value that the plan may miss, as a fraction of its value; 0 is proven optimal.',
  },
  jobsInTime: { name: 'JobsInTime', unit: 'Count', from: 'confirm', about: 'Jobs that ended in time.' },
  jobsLate: { name: 'JobsLate', unit: 'Count', from: 'confirm', about: 'Jobs that ended late or were given up.' },
  waste: {
    name: 'Waste',
    unit: 'None',
    from: 'confirm',
    about: 'USD of instances that ended: start-up, idle time and lost work.',
  },
  interruptionsExpected: {
    name: 'InterruptionsExpected',
    unit: 'Count',
    from: 'forecast',
    about: 'Interruptions that the forecast expects of the held spot instances within the next hour.',
  },
  modelsRefused: {
    name: 'ModelsRefused',
    unit: 'Count',
    from: 'forecast',
    about: 'Forecasts without the deployed trained model, because it is unusable.',
  },
  bidsByHistory: {
    name: 'BidsByHistory',
    unit: 'Count',
    from: 'forecast',
    about: 'Bids that history answered in place of the trained model, for example after a long time without a price.',
  },
  interruptions: {
    name: 'Interruptions',
    unit: 'Count',
    from: 'observe',
    about: 'Interruption warnings of EC2 for spot instances.',
  },
  endedExpected: {
    name: 'EndedExpected',
    unit: 'Count',
    from: 'snapshot',
    about: 'Interruptions of ended spot instances that their forecasts at purchase expected.',
  },
  endedInterrupted: {
    name: 'EndedInterrupted',
    unit: 'Count',
    from: 'snapshot',
    about: 'Ended spot instances that were interrupted.',
  },
  effectsDenied: {
    name: 'EffectsDenied',
    unit: 'Count',
    from: 'act',
    about: 'Launches, starts, stops and releases that AWS denied: a right or a part of the deployment is missing.',
  },
  launchesInvalid: {
    name: 'LaunchesInvalid',
    unit: 'Count',
    from: 'act',
    about: 'Launches that EC2 refused as invalid. No other time or pool helps.',
  },
  leakedInstances: {
    name: 'LeakedInstances',
    unit: 'Count',
    from: 'sweep',
    about:
      'Unwanted instances that cost money: those with the deployment’s tag that its store does not know (each is ended), and those that EC2 refuses to end.',
  },
} as const satisfies Record<string, MetricFacts>;

export type MetricKey = keyof typeof METRICS;
