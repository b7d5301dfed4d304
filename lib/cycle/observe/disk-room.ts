/**
 * Tells people of the disk budget: the event `disk-budget` once for each level reached, and when tasks may start again.
 * The last message is in the store's memory, so that no engine repeats it. Drivers without a disk keep nothing.
 */
import type { EpochMs } from '../../kernel/units.ts';
import { LOW_PERCENT, type DiskLevel, type DiskState } from '../../domain/disk-budget.ts';
import type { Store } from '../../ports/store.ts';
import type { WorkingState } from '../state/working-state.ts';

/** Prefix of its rows in the store's memory. */
export const DISK_PREFIX = 'disk/';
const TOLD = `${DISK_PREFIX}told`;
const PERCENT: Readonly<Record<DiskLevel, number | null>> = { enough: null, low: LOW_PERCENT, 'used-up': 100 };

export class DiskRoom {
  readonly #disk: () => DiskState | null;
  #told: DiskLevel = 'enough';

  constructor(disk: () => DiskState | null) {
    this.#disk = disk;
  }

  async recall(store: Pick<Store, 'memory'>): Promise<void> {
    const told = (await store.memory(TOLD)).get(TOLD);
    this.#told = told === 'low' || told === 'used-up' ? told : 'enough';
  }

  /** Why no task may start; null: tasks may. */
  get held(): string | null {
    const disk = this.#disk();
    return disk?.level === 'used-up' ? disk.text : null;
  }

  tell(state: WorkingState, at: EpochMs): void {
    const disk = this.#disk();
    if (disk === null || disk.level === this.#told) return;
    const { level, text, use } = disk;
    const { usedBytes, budgetBytes, freeBytes } = use;
    const again = this.#told === 'used-up' ? 'there is room on the disk again, and tasks start' : null;
    this.#told = level;
    state.putMemory(TOLD, level);
    if (level === 'enough' && again === null) return;
    state.event('disk-budget', at, {
      text: again === null ? text : `${again}: ${text}`,
      data: { level, percent: PERCENT[level], usedBytes, budgetBytes, freeBytes },
    });
  }
}
