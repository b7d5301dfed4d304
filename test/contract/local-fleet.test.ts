import { LocalFleetBench } from '../support/local-fleet.ts';
import { fleetContract } from './fleet.ts';

fleetContract('local supervisors, real processes', {
  toleranceS: Infinity,
  make: async (startMs) => new LocalFleetBench(startMs),
});
