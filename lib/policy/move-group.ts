import { groupId, type GroupId } from '../kernel/ids.ts';
import type { PlannedMove } from './contracts.ts';

/** The group under which the work of a move is appraised, placed and bought for. */
export const moveGroup = (m: Pick<PlannedMove, 'running'>): GroupId => groupId(`move/${m.running.attempt.id}`);
