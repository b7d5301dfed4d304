import { policy } from '../../policy/policy.ts';

/** Which running tasks get a second attempt. */
export const SPECULATE = [
  policy('speculate', { name: 'none', about: 'every task runs once', source: 'baseline' }, () => []),
];
