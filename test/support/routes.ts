import { attemptId, instanceId } from '../../lib/kernel/ids.ts';
import { seconds } from '../../lib/kernel/units.ts';
import type { Route, Target } from '../../lib/ports/traffic.ts';

/** A replica that listens on `port`, on an instance and in an attempt of its own. */
export const targetOn = (replica: number, port: number, over: Partial<Target> = {}): Target => ({
  replica,
  instance: instanceId(`i-${replica}`),
  attempt: attemptId(`a-${replica}`),
  port,
  mode: 'serve',
  ...over,
});

/** A route of the service `web` to these replicas. */
export const routeTo = (targets: readonly Target[], over: Partial<Route> = {}): Route => ({
  service: 'web',
  target: { latencyS: seconds(1), percent: 95 },
  health: { path: '/', intervalS: seconds(1), timeoutS: seconds(1), graceS: seconds(10), failures: 3 },
  concurrency: null,
  drainS: seconds(3),
  port: null,
  targets,
  ...over,
});
