import { policy } from '../../policy/policy.ts';

/** Running tasks that get a second attempt. */
export const SPECULATE = [
  policy('speculate', { name: 'none', about: 'every task runs once', source: 'baseline' }, () => []),
];
