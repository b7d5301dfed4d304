// An engine to be killed: launches an instance, sends it a task and reports. Argument: the bench's directory.
import { join } from 'node:path';
import { scaledClock } from '../../lib/kernel/clock.ts';
import { attemptId, effectKey, instanceId } from '../../lib/kernel/ids.ts';
import { epochMs, mib, milliCpu, raw, usdPerHour } from '../../lib/kernel/units.ts';
import { poolKey } from '../../lib/domain/pool.ts';
import { createLocalFleet } from '../../lib/drivers/local/fleet/local-fleet.ts';
import { capacityOf } from '../../lib/market/capacity-truth.ts';
import { traceOf } from '../../lib/market/price-steps.ts';

const [, , dir = ''] = process.argv;
const startMs = Date.UTC(2026, 0, 5, 12);
const trace = traceOf({ name: 'engine', startMs: epochMs(startMs), endMs: epochMs(startMs + 86_400_000) }, [
  {
    type: {
      name: 'c5.large',
      family: 'c5',
      generation: 5,
      arch: 'x86_64',
      capacity: { cpu: milliCpu(2000), memory: mib(4096), gpus: 0, disk: mib(20_000) },
    },
    zone: 'calm',
    onDemandUsdPerHour: 0.1,
    prices: { atMs: Float64Array.of(startMs), usdPerHour: Float64Array.of(0.03) },
    availability: null,
  },
]);
const SPEED = 100;
const clock = scaledClock(
  {
    epochMs: () => Date.now(),
    monotonicMs: () => performance.now(),
    setTimer: (ms, fire) => {
      const timer = setTimeout(fire, ms);
      return () => clearTimeout(timer);
    },
  },
  { wallMs: Date.now(), engineMs: startMs + 1000, speed: SPEED },
);
const fleet = createLocalFleet({
  dir: join(dir, 'fleet'),
  truth: capacityOf(trace, { billing: 'per-second', refundRule: 'none' }),
  clock,
  speed: SPEED,
});
const instance = instanceId('i-0001');
const pool = poolKey('c5.large', 'calm', 'spot');
await fleet.launch([{ key: effectKey('launch/1'), instance, pool, bid: usdPerHour(0.05) }]);
await fleet.start([
  {
    key: effectKey('start/1.1'),
    attempt: attemptId('1.1'),
    instance,
    command: ['sh', '-c', 'sleep 0.5; printf "made it"'],
    env: {},
    workdir: dir,
    inputs: [],
    outputs: [],
    resources: { cpu: milliCpu(500), memory: mib(128), gpus: 0, disk: mib(0) },
    timeoutS: null,
    checkpoint: null,
    task: { job: 'job', stage: 'main', index: 1, number: 1 },
  },
]);
console.log(`started at ${raw(clock.now())}`);
setInterval(() => undefined, 1000);
