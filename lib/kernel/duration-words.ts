import { raw, type Seconds } from './units.ts';

/** A duration for people. */
export function wordsForDuration(d: Seconds): string {
  const s = raw(d);
  if (s < 1) return `${Math.round(s * 1000)} ms`;
  if (s < 120) return `${oneDecimal(s)} s`;
  if (s < 7200) return `${oneDecimal(s / 60)} min`;
  if (s < 172_800) return `${oneDecimal(s / 3600)} h`;
  return `${oneDecimal(s / 86_400)} days`;
}

const oneDecimal = (x: number): number => Math.round(x * 10) / 10;
