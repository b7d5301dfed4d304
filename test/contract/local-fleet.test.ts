import { LocalFleetBench, SPEED } from '../support/local-fleet.ts';
import { fleetContract } from './fleet.ts';

fleetContract('local supervisors, real processes', {
  toleranceS: Infinity,
  hasReserved: true,
  make: async (startMs, slower) => new LocalFleetBench(startMs, { speed: SPEED / slower }),
});
