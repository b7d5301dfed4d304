import { attemptId, effectKey, type InstanceId } from '../../lib/kernel/ids.ts';
import { mib, milliCpu } from '../../lib/kernel/units.ts';
import type { StartRequest } from '../../lib/ports/fleet.ts';

/** An order of the first attempt of a small task that sleeps. */
export function sleepOrder(of: {
  readonly job: string;
  readonly index: number;
  readonly instance: InstanceId;
  readonly sleepS: number;
}): StartRequest {
  const { job, index, instance, sleepS } = of;
  const attempt = attemptId(`${job}.main.${index}.1`);
  return {
    key: effectKey(`start ${attempt}`),
    attempt,
    instance,
    command: ['sleep', String(sleepS)],
    env: {},
    workdir: '/tmp',
    inputs: [],
    outputs: [],
    resources: { cpu: milliCpu(250), memory: mib(64), gpus: 0, disk: mib(0) },
    timeoutS: null,
    checkpoint: null,
    task: { job, stage: 'main', index, number: 1 },
  };
}
