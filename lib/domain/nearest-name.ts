import { distance } from 'fastest-levenshtein';

/** Names further away than this are not a misspelling, however long they are. */
const MOST_DISTANCE = 3;

/** Other words for keys, which no distance finds. */
const SYNONYMS: Readonly<Record<string, string>> = {
  ram: 'memory',
  mem: 'memory',
  cores: 'cpu',
  vcpu: 'cpu',
  vcpus: 'cpu',
  cmd: 'command',
  args: 'command',
  run: 'command',
  count: 'tasks',
  array: 'tasks',
  environment: 'env',
  cwd: 'workdir',
  budget: 'maxCost',
  due: 'deadline',
};

/**
 * The allowed name that `name` most likely means: a misspelling or another word for it. Null when none is near. One
 * letter in three may be wrong: `ram` is no misspelling of `cpu`.
 */
export function nearestName(name: string, allowed: readonly string[]): string | null {
  const lower = name.toLowerCase();
  const synonym = Object.hasOwn(SYNONYMS, lower) ? SYNONYMS[lower] : undefined;
  if (synonym !== undefined && allowed.includes(synonym)) return synonym;
  let best: string | null = null;
  let least = Infinity;
  for (const candidate of allowed) {
    // The lengths alone already differ by too much.
    if (Math.abs(lower.length - candidate.length) > MOST_DISTANCE) continue;
    const wrong = misspelt(lower, candidate.toLowerCase());
    const most = Math.min(MOST_DISTANCE, Math.max(1, Math.floor(Math.max(name.length, candidate.length) / 3)));
    if (wrong <= most && wrong < least && wrong < Math.max(name.length, candidate.length)) {
      least = wrong;
      best = candidate;
    }
  }
  return best;
}

/** Edits between two names; neighbours that changed places are one. */
function misspelt(a: string, b: string): number {
  const edits = distance(a, b);
  if (edits !== 2 || a.length !== b.length) return edits;
  const first = [...a].findIndex((letter, i) => letter !== b[i]);
  return a[first] === b[first + 1] && a[first + 1] === b[first] ? 1 : edits;
}

/** `did you mean X?` where a name is near, else the names that are allowed. */
export function nearestHint(name: string, allowed: readonly string[]): string {
  const near = nearestName(name, allowed);
  return near === null ? `allowed: ${allowed.join(', ')}` : didYouMean(near);
}

/** The same where it is said already that these are the allowed ones. */
export function nearestOrAll(name: string, allowed: readonly string[]): string {
  const near = nearestName(name, allowed);
  return near === null ? allowed.join(', ') : didYouMean(near);
}

const didYouMean = (name: string): string => `did you mean ${name}?`;
