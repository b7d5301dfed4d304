/**
 * Supply of a STRL expression: partitions of resource space-time (JamaisVu section 4.1.1).
 * A partition is a class of capacity whose units are alike: free room on the instances of a pool, the vCPU quota of all
 * new instances, the remaining money of a job. *Renewable* partitions offer their capacity anew in each slot;
 * *non-renewable* ones are used up once over the whole window (the terms of resource-constrained scheduling).
 */
export type PartitionId = string;

export interface Partition {
  readonly id: PartitionId;
  readonly renewable: boolean;
  /** Resources that it counts, e.g. RESOURCE_KINDS; rows are named by them. */
  readonly kinds: readonly string[];
  /** `capacity[slot][kind]`; a non-renewable partition has one entry. */
  readonly capacity: readonly (readonly number[])[];
}

export interface Supply {
  /** Slots of the window; slot 0 is this cycle. */
  readonly slots: number;
  readonly partitions: readonly Partition[];
}

/** Amount that one unit takes of a partition in each slot of its run (once, if the partition is non-renewable). */
export interface Draw {
  readonly partition: PartitionId;
  /** One amount per resource of the partition. */
  readonly perUnit: readonly number[];
}

/** Sparse use of supply rows by one unit: `coefficient[i]` on row `row[i]`. */
export interface RowUse {
  /** Draws of one unit. */
  readonly draws: readonly Draw[];
  readonly row: Int32Array;
  readonly coefficient: Float64Array;
}

/**
 * Supply rows, numbered: one per partition, kind and slot (one per partition and kind if non-renewable). The same
 * numbers serve the MILP, the greedy fill and the Lagrangian bound.
 */
export interface SupplyRows {
  readonly count: number;
  readonly capacity: Float64Array;
  /** First row of the same partition and slot; these rows are consecutive. */
  readonly block: Int32Array;
  readonly name: (row: number) => string;
  /**
   * Use by one unit that runs in slots [start, finish); slots past the window are cut off. Zero amounts are left out.
   * Shared between callers: not to be written to.
   */
  readonly use: (draws: readonly Draw[], start: number, finish: number) => RowUse;
}

export function supplyRows(supply: Supply): SupplyRows {
  const firstRow = new Map<PartitionId, { readonly first: number; readonly partition: Partition }>();
  const capacity: number[] = [];
  const block: number[] = [];
  for (const partition of supply.partitions) {
    if (firstRow.has(partition.id)) throw new RangeError(`partition ${partition.id} is there twice`);
    firstRow.set(partition.id, { first: capacity.length, partition });
    const slots = partition.renewable ? supply.slots : 1;
    for (let slot = 0; slot < slots; slot++) {
      const first = capacity.length;
      partition.kinds.forEach((_, kind) => {
        capacity.push(partition.capacity[slot]?.[kind] ?? 0);
        block.push(first);
      });
    }
  }
  const owners = [...firstRow.values()];
  const uses = new Map<string, RowUse>();
  const byContent = (draws: readonly Draw[], start: number, end: number): RowUse => {
    const key = `${draws.map((d) => `${d.partition}:${d.perUnit.join()}`).join(';')}@${start}-${end}`;
    let use = uses.get(key);
    if (use === undefined) uses.set(key, (use = usedRows(firstRow, draws, [start, end])));
    return use;
  };
  const bySingleDraw = new Map<Draw, Map<number, RowUse>>();
  return {
    count: capacity.length,
    capacity: Float64Array.from(capacity),
    block: Int32Array.from(block),
    name: (row) => rowName(owners, row),
    use: (draws, start, finish) => {
      // Groups with equal needs draw alike: of 100,000 uses in a large plan 2,000 differ, so sharing saves memory.
      const end = Math.min(finish, supply.slots);
      const [only] = draws;
      if (only === undefined || draws.length > 1) return byContent(draws, start, end);
      let known = bySingleDraw.get(only);
      if (known === undefined) bySingleDraw.set(only, (known = new Map<number, RowUse>()));
      const period = start * (supply.slots + 1) + end;
      let use = known.get(period);
      if (use === undefined) known.set(period, (use = byContent(draws, start, end)));
      return use;
    },
  };
}

function usedRows(
  firstRow: ReadonlyMap<PartitionId, { readonly first: number; readonly partition: Partition }>,
  draws: readonly Draw[],
  [start, end]: readonly [number, number],
): RowUse {
  const rows: number[] = [];
  const coefficients: number[] = [];
  for (const draw of draws) {
    const owner = firstRow.get(draw.partition);
    if (owner === undefined) throw new RangeError(`no partition ${draw.partition}`);
    const { first, partition } = owner;
    const from = partition.renewable ? start : 0;
    const to = partition.renewable ? end : 1;
    for (let slot = from; slot < to; slot++) {
      draw.perUnit.forEach((amount, kind) => {
        if (amount === 0) return;
        rows.push(first + slot * partition.kinds.length + kind);
        coefficients.push(amount);
      });
    }
  }
  return { draws, row: Int32Array.from(rows), coefficient: Float64Array.from(coefficients) };
}

function rowName(owners: readonly { readonly first: number; readonly partition: Partition }[], row: number): string {
  const owner = owners.findLast((o) => o.first <= row);
  if (owner === undefined) return `supply_${row}`;
  const { partition, first } = owner;
  const kind = partition.kinds[(row - first) % partition.kinds.length] ?? '';
  const slot = Math.floor((row - first) / partition.kinds.length);
  return `supply_${partition.id}_${kind}${partition.renewable ? `_t${slot}` : ''}`;
}
