import type { Limits } from '../../domain/snapshot.ts';

/** Next step for work that the vCPU limit holds up: the way to raise the limit, if the driver names one. */
export const raisesLimit = ({ raisedBy }: Limits): string => raisedBy ?? 'allow more vCPUs at once';
