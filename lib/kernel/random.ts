import { uniformFloat64 } from 'pure-rand/distribution/uniformFloat64';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';

/** Uniform draws in [0, 1). Also the interface of d3-random's sources. */
export type Uniform = () => number;

/**
 * Named, seeded streams: the same (seed, name) gives the same draws whatever else is drawn, so adding a consumer of
 * randomness changes nothing for the others.
 */
export function randomStream(seed: number, name: string): Uniform {
  const generator = xoroshiro128plus((seed ^ hash32(name)) | 0);
  return () => uniformFloat64(generator);
}

/** FNV-1a, 32 bits: stable names to seeds and short ids. Not for security. */
export function hash32(text: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  return h >>> 0;
}
