import { VirtualClock } from '../../lib/kernel/clock.ts';
import { plus, raw, seconds } from '../../lib/kernel/units.ts';
import { MemoryFleet } from '../../lib/drivers/sim/memory-fleet.ts';
import { fleetContract, SAVES, truth, type FleetDriver, type Program } from './fleet.ts';

/** Programs travel as JSON in the command, and the script reads them there. */
async function make(startMs: Parameters<typeof plus>[0]): Promise<FleetDriver> {
  const clock = new VirtualClock(startMs);
  const fleet = new MemoryFleet({
    truth,
    clock,
    script: ({ command }) => {
      const program = JSON.parse(command[0] ?? '{}') as Program;
      return {
        runtimeS: seconds(program.finishesInS === undefined ? program.runtimeS : 400),
        exitCode: program.exitCode,
        checkpointEveryS: program.checkpointEveryS === undefined ? null : seconds(program.checkpointEveryS),
        stopsInS: seconds(program.finishesInS === undefined ? 1 : 1000),
        ...(program.prints === undefined ? {} : { stdout: program.prints }),
      };
    },
  });
  return {
    fleet,
    now: () => clock.now(),
    program: (p) => ({
      command: [JSON.stringify(p)],
      env: {},
      workdir: '/',
      checkpoint:
        p.checkpointEveryS === undefined
          ? null
          : p.finishesInS === undefined
            ? SAVES
            : { ...SAVES, graceS: seconds(110) },
    }),
    until: async (what, done, withinS = 1000) => {
      const end = plus(clock.now(), seconds(withinS));
      for (; ; await clock.advanceTo(plus(clock.now(), seconds(1)))) {
        const seen = await fleet.observe(new Map());
        if (done(seen)) return seen;
        if (raw(clock.now()) > raw(end)) throw new Error(`no ${what} in: ${JSON.stringify(seen)}`);
      }
    },
    close: () => fleet.close(),
  };
}

fleetContract('in memory, virtual clock', { toleranceS: 1e-6, hasReserved: true, make });
