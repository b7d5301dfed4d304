import { randomExponential } from 'd3-random';
import type { RequestRules, Served } from '../../lib/drivers/sim/services/request-queue.ts';
import type { Uniform } from '../../lib/kernel/random.ts';

/**
 * The exact model that lib/drivers/sim/services/request-queue.ts stands for: each request arrives at its own time and
 * goes to the replica with the fewest requests per vCPU, whose vCPUs take them in turn. `load`: requests per second of
 * each stretch of seconds; `replicas`: vCPUs of each.
 */
export function requestByRequest(
  { serviceS, targetS, queuePerVcpu }: RequestRules,
  random: Uniform,
  {
    load,
    replicas,
  }: { readonly load: readonly (readonly [seconds: number, rps: number])[]; readonly replicas: readonly number[] },
): Served {
  // Of each vCPU the time when it is free.
  const free = replicas.map((vcpus) => new Array<number>(vcpus).fill(0));
  let [arrived, slow, rejected, fromS] = [0, 0, 0, 0];
  for (const [seconds, rps] of load) {
    const gap = randomExponential.source(random)(rps);
    for (let atS = fromS + gap(); atS < fromS + seconds; atS += gap()) {
      arrived++;
      const of = leastLoaded(free, atS);
      const next = of.reduce((least, s, i) => (s < (of[least] ?? Infinity) ? i : least), 0);
      const startS = Math.max(atS, of[next] ?? 0);
      if ((startS - atS) / serviceS > queuePerVcpu) {
        rejected++;
        slow++;
        continue;
      }
      of[next] = startS + serviceS;
      if (startS + serviceS - atS > targetS) slow++;
    }
    fromS += seconds;
  }
  return { arrived, slow, rejected };
}

/** The replica with the least work per vCPU. */
const leastLoaded = (free: readonly number[][], atS: number): number[] => {
  const work = (of: readonly number[]): number => of.reduce((sum, s) => sum + Math.max(0, s - atS), 0) / of.length;
  return free.reduce((least, of) => (work(of) < work(least) ? of : least), free[0] ?? []);
};
