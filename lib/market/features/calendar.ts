/** Calendar of an instant: day of the week and time of day in UTC, working hours in three zones of the world. */

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/**
 * The paper has a feature for each of "all three time zones" and names none. In these zones most users of us-east-1 and
 * us-west-2 work: both coasts of the United States, and Central Europe.
 */
const WORKPLACES = ['America/New_York', 'America/Los_Angeles', 'Europe/Berlin'] as const;
/** Working hours: 9:00 to 17:00, Monday to Friday, local time. */
const FIRST_HOUR = 9;
const PAST_HOUR = 17;

const clocks = WORKPLACES.map(
  (timeZone) => new Intl.DateTimeFormat('en-US', { timeZone, hourCycle: 'h23', weekday: 'short', hour: '2-digit' }),
);

export interface Calendar {
  readonly weekdaySin: number;
  readonly weekdayCos: number;
  readonly timeOfDaySin: number;
  readonly timeOfDayCos: number;
  /** 1 within working hours, else 0: New York, Los Angeles, Berlin. */
  readonly working: readonly [newYork: number, losAngeles: number, berlin: number];
}

/** Formatting a date is slow, and all pools ask about the same instants: the last hours asked for are kept. */
const MOST_KNOWN = 24 * 14;

export class Calendars {
  readonly #working = new Map<number, Calendar['working']>();

  /** Days and times on circles, so that Sunday is beside Monday and 23:59 beside 0:00. */
  at(ms: number): Calendar {
    const weekday = (Math.floor(ms / DAY_MS) + 4) % 7; // 1970-01-01 was a Thursday; 0 is Sunday.
    const day = (2 * Math.PI * weekday) / 7;
    const time = (2 * Math.PI * (ms % DAY_MS)) / DAY_MS;
    return {
      weekdaySin: Math.sin(day),
      weekdayCos: Math.cos(day),
      timeOfDaySin: Math.sin(time),
      timeOfDayCos: Math.cos(time),
      working: this.#workingAt(Math.floor(ms / HOUR_MS)),
    };
  }

  /** All three zones are whole hours from UTC, so an hour of UTC is one hour of each. */
  #workingAt(hour: number): Calendar['working'] {
    let found = this.#working.get(hour);
    if (found === undefined) {
      if (this.#working.size >= MOST_KNOWN) this.#working.clear();
      const [newYork = 0, losAngeles = 0, berlin = 0] = clocks.map((clock) => isWorking(clock, hour * HOUR_MS));
      this.#working.set(hour, (found = [newYork, losAngeles, berlin]));
    }
    return found;
  }
}

function isWorking(clock: Intl.DateTimeFormat, ms: number): number {
  const parts = clock.formatToParts(ms);
  const part = (type: 'weekday' | 'hour'): string => parts.find((p) => p.type === type)?.value ?? '';
  const hour = Number(part('hour'));
  const isWeekend = part('weekday').startsWith('S');
  return !isWeekend && hour >= FIRST_HOUR && hour < PAST_HOUR ? 1 : 0;
}
