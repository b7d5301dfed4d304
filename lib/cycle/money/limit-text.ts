import type { Limits } from '../../domain/snapshot.ts';

/** Next step for work that the vCPU limit holds up: how the limit is raised, where the driver says so. */
export const raisesLimit = ({ raisedBy }: Limits): string => raisedBy ?? 'allow more vCPUs at once';
