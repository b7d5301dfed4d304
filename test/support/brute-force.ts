/**
 * The cheapest schedule of a few tasks on a grid of slots, by trying every place of every task in every slot. Shares no
 * code with the lower bound and the oracle that it checks.
 */
export interface GridTask {
  readonly cpus: number;
  /** Slots of work. */
  readonly work: number;
  readonly saves: boolean;
}

export interface Grid {
  readonly slots: number;
  /** Slots of set-up of each attempt. */
  readonly setup: number;
  /** vCPUs of a machine: the only type. */
  readonly machine: number;
  /** USD of a machine for one slot, by pool and slot; null: no capacity. */
  readonly usd: readonly (readonly (number | null)[])[];
  readonly tasks: readonly GridTask[];
}

/** Pool of each slot; -1: nowhere. */
type Course = readonly number[];

/** USD; null: the tasks cannot all be done. */
export function cheapestByBruteForce(grid: Grid): number | null {
  const courses = grid.tasks.map((task) => coursesOf(grid, task));
  let best: number | null = null;
  const choose = (chosen: readonly Course[]): void => {
    const next = courses[chosen.length];
    if (next === undefined) {
      const usd = costOf(grid, chosen);
      if (best === null || usd < best) best = usd;
      return;
    }
    for (const course of next) choose([...chosen, course]);
  };
  choose([]);
  return best;
}

function coursesOf({ slots, setup, usd }: Grid, { work, saves }: GridTask): readonly Course[] {
  const found: Course[] = [];
  const go = (course: Course, state: { readonly done: number; readonly setUp: number }): void => {
    if (state.done >= work) {
      found.push(course);
      return;
    }
    if (course.length === slots) return;
    const slot = course.length;
    const kept = saves ? state.done : 0;
    go([...course, -1], { done: kept, setUp: 0 });
    usd.forEach((prices, pool) => {
      if (prices[slot] === null) return;
      const stays = course.at(-1) === pool;
      const before = stays ? state : { done: kept, setUp: 0 };
      const isSetUp = before.setUp >= setup;
      go([...course, pool], isSetUp ? { ...before, done: before.done + 1 } : { ...before, setUp: before.setUp + 1 });
    });
  };
  go([], { done: 0, setUp: 0 });
  return found;
}

/** Tasks of one pool and slot share machines as well as they can: exact for sizes of one and of all vCPUs. */
function costOf({ slots, usd, tasks, machine }: Grid, courses: readonly Course[]): number {
  let sum = 0;
  for (let slot = 0; slot < slots; slot++) {
    usd.forEach((prices, pool) => {
      const cpus = courses.reduce((n, course, i) => n + (course[slot] === pool ? (tasks[i]?.cpus ?? 0) : 0), 0);
      sum += Math.ceil(cpus / machine) * (prices[slot] ?? 0);
    });
  }
  return sum;
}
