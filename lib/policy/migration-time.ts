import { raw, seconds, type Seconds } from '../kernel/units.ts';
import type { SchedulerConfig } from '../domain/config.ts';
import type { Resources } from '../domain/resources.ts';

/** Transfer rate of a container's memory, bytes per second (Stratus, section 3.3.1). */
const BYTES_PER_S = 160e6;
const BYTES_PER_MIB = 2 ** 20;

/**
 * Expected time without progress of a task that moves: its requested memory is transferred, and it reads its checkpoint
 * (Stratus, section 3.3.1).
 */
export const migrationTime = (
  { memory }: Pick<Resources, 'memory'>,
  { restoreS }: Pick<SchedulerConfig, 'restoreS'>,
): Seconds => seconds((raw(memory) * BYTES_PER_MIB) / BYTES_PER_S + restoreS);
