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
  queueDepth: { name: 'QueueDepth', unit: 'Count', from: 'snapshot', about: 'Tasks that wait, at the last look.' },
  runningTasks: { name: 'RunningTasks', unit: 'Count', from: 'snapshot', about: 'Tasks that run, at the last look.' },
  liveInstances: { name: 'LiveInstances', unit: 'Count', from: 'snapshot', about: 'Instances that are held.' },
  heldJobs: {
    name: 'HeldJobs',
    unit: 'Count',
    from: 'snapshot',
    about: 'Jobs that are held because no decision could be made on them; written while there are any, and once after.',
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
    about:
      'Capacity reservations of the configuration that cannot be used: all of them where EC2 does not say what they are.',
  },
  spendRate: {
    name: 'SpendRate',
    unit: 'None',
    by: 'option',
    from: 'snapshot',
    about: 'USD per hour that the held instances cost now, by purchase option.',
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
    about: 'Executions of the cycle that failed, were not heard of any more, or could not be started.',
  },
  cycleTime: { name: 'CycleTime', unit: 'Milliseconds', from: 'confirm', about: 'From look to confirm.' },
  solverGap: {
    name: 'SolverGap',
    unit: 'None',
    from: 'solve',
    about: 'Dollars that the plan may leave on the table, as a fraction of its value; 0 is proven best.',
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
    about: 'Forecasts made without the trained model that is deployed, because it cannot be used.',
  },
  bidsByHistory: {
    name: 'BidsByHistory',
    unit: 'Count',
    from: 'forecast',
    about: 'Bids that the trained model was to answer and history did, as where a price was not reported for long.',
  },
  interruptions: {
    name: 'Interruptions',
    unit: 'Count',
    from: 'observe',
    about: 'Spot instances that EC2 announced to take back.',
  },
  endedExpected: {
    name: 'EndedExpected',
    unit: 'Count',
    from: 'snapshot',
    about:
      'Of spot instances that ended: interruptions that the forecasts they were bought by expected while they were held.',
  },
  endedInterrupted: {
    name: 'EndedInterrupted',
    unit: 'Count',
    from: 'snapshot',
    about: 'Of the same instances: those that an interruption ended.',
  },
  effectsDenied: {
    name: 'EffectsDenied',
    unit: 'Count',
    from: 'act',
    about:
      'Launches, starts, stops and releases that AWS denied for a right, or a part of the deployment, that is missing.',
  },
  launchesInvalid: {
    name: 'LaunchesInvalid',
    unit: 'Count',
    from: 'act',
    about: 'Launches that EC2 refused as invalid: no other time or pool mends them.',
  },
  leakedInstances: {
    name: 'LeakedInstances',
    unit: 'Count',
    from: 'sweep',
    about:
      'Instances that nobody wants and that cost money: with the deployment’s tag, but unknown to its store (each is ended), or refused by EC2 to be ended.',
  },
} as const satisfies Record<string, MetricFacts>;

export type MetricKey = keyof typeof METRICS;
