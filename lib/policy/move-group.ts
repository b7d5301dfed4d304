import { groupId, type GroupId } from '../kernel/ids.ts';
import type { PlannedMove } from './contracts.ts';

/** Group of a move's work for appraisal, placement and purchase. */
export const moveGroup = (m: Pick<PlannedMove, 'running'>): GroupId => groupId(`move/${m.running.attempt.id}`);

/** True for a group that `moveGroup` names. */
export const isMoveGroup = (id: GroupId): boolean => id.startsWith('move/');
