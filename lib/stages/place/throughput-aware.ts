import { compareText } from '../../kernel/compare.ts';
import type { Placement } from '../../domain/plan.ts';
import { dominantShare, fits, minusResources, type Resources } from '../../domain/resources.ts';
import { brokenConstraint } from '../../domain/constraints.ts';
import type { StageSpec } from '../../domain/job.ts';
import { LEAST_USD_PER_HOUR } from '../../policy/on-demand-bids.ts';
import { usdPerHourOf } from '../../domain/pool.ts';
import type { DecisionContext, Host, PlacePolicy, TaskToPlace } from '../../policy/contracts.ts';
import { neighbourLearner } from '../../policy/colocation/neighbour-learner.ts';
import { withOneMore, worthTogether, type Priced } from '../../policy/colocation/throughput.ts';
import { templateOf } from '../../policy/colocation/together.ts';

interface Filled {
  readonly host: Host;
  free: Resources;
  tenants: readonly Priced[];
  worth: number;
}

/** A task of some template, and the price of the cheapest instance on which it fits alone. */
type Known = Pick<Priced, 'template' | 'usdPerHour'>;

/**
 * The instance on which a task adds most to the sum of throughput-normalised reservation prices; none where it takes
 * more from its neighbours than it adds (Eva). Gangs whole or not at all. O(tasks x hosts with room x templates of a
 * host squared).
 */
export const throughputAware: PlacePolicy = (tasks, hosts, context) => {
  const belief = context.beliefs.of(neighbourLearner);
  const known = knownIn(context);
  const worthOf = (tenants: readonly Priced[], { pool }: Host): number =>
    worthTogether(tenants, { belief, type: pool.type });
  const filled = hosts
    .filter((h) => tasks.some((t) => fits(t.need, h.free)))
    .toSorted((a, b) => compareText(a.on, b.on))
    .map((host): Filled => {
      const tenants = tenantsOf(host, context, known);
      return { host, free: host.free, tenants, worth: worthOf(tenants, host) };
    });
  const put = (task: TaskToPlace): (() => void) | null => {
    const of = known.waiting(task);
    let best: { readonly on: Filled; readonly tenants: readonly Priced[]; readonly worth: number } | null = null;
    for (const on of filled) {
      if (!fits(task.need, on.free) || !task.allowed(on.host)) continue;
      const part = Math.min(1, dominantShare(task.need, on.host.capacity));
      const tenants = withOneMore(on.tenants, { ...of, part });
      const worth = worthOf(tenants, on.host);
      const isBetter = worth > on.worth && (best === null || worth - on.worth > best.worth - best.on.worth);
      if (isBetter) best = { on, tenants, worth };
    }
    if (best === null) return null;
    const { on, tenants, worth } = best;
    const before = { free: on.free, tenants: on.tenants, worth: on.worth };
    Object.assign(on, { free: minusResources(on.free, task.need), tenants, worth });
    placements.push({ task: task.task, group: task.group, on: on.host.on, reason: REASON });
    return () => {
      Object.assign(on, before);
      placements.pop();
    };
  };
  const placements: Placement[] = [];
  const units = Map.groupBy(tasks, (t) => t.gang ?? t);
  for (const unit of units.values()) {
    const undo: (() => void)[] = [];
    for (const task of unit) {
      const back = put(task);
      if (back !== null) undo.push(back);
      else {
        for (const u of undo.toReversed()) u();
        break;
      }
    }
  }
  return placements;
};

const REASON = 'there it adds most to what the tasks of an instance are worth together';

interface KnownTasks {
  readonly waiting: (task: TaskToPlace) => Known;
  readonly running: (template: string, stage: StageSpec, need: Resources) => Known;
}

function knownIn({ snapshot }: DecisionContext): KnownTasks {
  const groups = new Map(snapshot.groups.map((g) => [g.id, g]));
  const byPrice = snapshot.pools
    .map(({ pool, quote }) => ({ pool, usdPerHour: Math.max(usdPerHourOf(pool, quote), LEAST_USD_PER_HOUR) }))
    .sort((a, b) => a.usdPerHour - b.usdPerHour);
  const prices = new Map<string, number>();
  const priceOf = ({ constraints }: StageSpec, need: Resources): number => {
    const key = `${JSON.stringify(need)} ${JSON.stringify(constraints)}`;
    let usd = prices.get(key);
    if (usd === undefined) {
      const cheapest = byPrice.find(
        ({ pool }) => fits(need, pool.type.capacity) && brokenConstraint(constraints, pool) === null,
      );
      prices.set(key, (usd = cheapest?.usdPerHour ?? LEAST_USD_PER_HOUR));
    }
    return usd;
  };
  return {
    waiting: (task) => {
      const group = groups.get(task.group);
      const job = group === undefined ? undefined : snapshot.jobs.get(group.job);
      if (group === undefined || job === undefined) return { template: task.group, usdPerHour: 1 };
      return { template: templateOf(job, group.stage), usdPerHour: priceOf(group.stage, group.need) };
    },
    running: (template, stage, need) => ({ template, usdPerHour: priceOf(stage, need) }),
  };
}

function tenantsOf({ on, capacity }: Host, { snapshot }: DecisionContext, known: KnownTasks): readonly Priced[] {
  return (snapshot.instances.get(on)?.attempts ?? []).reduce<readonly Priced[]>((tenants, { attempt, stage }) => {
    const job = snapshot.jobs.get(attempt.job);
    if (job === undefined || attempt.state === 'stopping') return tenants;
    const part = Math.min(1, dominantShare(attempt.resources, capacity));
    return withOneMore(tenants, { ...known.running(templateOf(job, stage), stage, attempt.resources), part });
  }, []);
}
