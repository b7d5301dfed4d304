import type { Backend } from '../ports/backend.ts';
import { neighbourLearner } from '../policy/colocation/neighbour-learner.ts';
import { exportedRows } from '../policy/colocation/neighbours-file.ts';
import type { Normal } from '../policy/colocation/slowdowns.ts';
import type { NeighboursView } from './schemas.ts';
import { iso } from './views.ts';

/** Templates named for a group; the others are counted. */
const MOST_NAMED = 10;
/** Half of a 95 % interval of a normal distribution, in standard deviations. */
const Z = 1.96;

/** Groups of programs, and how well they share machines, as learned so far. O(templates + groups^2). */
export async function showNeighbours(of: Backend, { rows: withRows = false } = {}): Promise<NeighboursView> {
  const learner = neighbourLearner({ isKept: false });
  const rows = await of.store.memory(learner.prefix);
  learner.restore(rows);
  const belief = learner.belief();
  const templates = Map.groupBy(belief.templates(), (t) => t.group);
  const ids = belief.groups.map((g) => g.id);
  const groups = belief.groups.map(({ id, centre }) => {
    const [cpu = 0, disk = 0, network = 0, waiting = 0, memory = 0] = centre;
    const members = (templates.get(id) ?? []).toSorted((a, b) => b.count - a.count);
    return {
      id,
      profile: { cpu, disk, network, waiting, memory },
      templates: members.slice(0, MOST_NAMED).map((t) => t.template),
      templateCount: members.length,
      attempts: members.reduce((sum, t) => sum + t.count, 0),
    };
  });
  const pairs = ids.flatMap((running) => {
    const chances = belief.chances(running, ids);
    return ids.map((next, i) => {
      const theta = belief.pair(running, next);
      return { running, next, chance: Math.min(1, chances[i] ?? 0), slowdown: theta === null ? null : factorOf(theta) };
    });
  });
  return { groups, pairs, ...(withRows ? { rows: exportedRows(rows) } : {}), asOf: iso(of.clock.now()) };
}

/** log(1 + exposure) beside neighbours that take all of a device. */
const ALL_OF_IT = Math.LN2;

function factorOf(theta: Normal) {
  const mean = ALL_OF_IT * theta.mean;
  const spread = ALL_OF_IT * Z * Math.sqrt(theta.variance);
  return { factor: Math.exp(mean), low: Math.exp(mean - spread), high: Math.exp(mean + spread) };
}
