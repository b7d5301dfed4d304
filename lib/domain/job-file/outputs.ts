import { expandBraces, segmentsOf } from '../globs.ts';
import type { StageSpec } from '../job.ts';
import { isS3Uri } from '../s3-uri.ts';
import type { Finding } from './findings.ts';
import { expandIndex } from './index-expansion.ts';

/** A path without wildcards that a stage writes. */
interface Written {
  readonly stage: number;
  /** Index of the pattern in the stage's `outputs`. */
  readonly entry: number;
  readonly path: string;
  /** Path with its folder: equal for equal places, `{index}` as it stands. */
  readonly place: string;
}

const INDEX = '{index}';
/** Limit of the listed findings: nobody reads more. */
const MAX_FINDINGS = 50;
/** Numbers of a path that are tried as an index. */
const MAX_NUMBERS = 32;

/**
 * Output paths that several tasks could write at the same time: one path for all tasks of a stage, or one path for two
 * stages that may run side by side. Patterns with wildcards are left out, because their files are unknown; so are
 * folders, which end with a slash. O(paths), and O(stages) for each path that several stages write.
 */
export function outputFindings(
  stages: readonly StageSpec[],
  pathOf: (stage: number, entry: number) => Finding['path'],
): Finding[] {
  const written = stages.flatMap(pathsOf);
  const findings: Finding[] = [];
  const found = ({ stage, entry }: Written, message: string): void =>
    void findings.push({ code: 'job-file.invalid', path: pathOf(stage, entry), message });
  for (const one of written) {
    const { name = '', tasks = 1 } = stages[one.stage] ?? {};
    if (findings.length >= MAX_FINDINGS) break;
    if (tasks > 1 && !one.path.includes(INDEX)) {
      found(
        one,
        `each of the ${tasks} tasks of stage ${name} would write ${one.path}: put {index} into the path${FOLDER}`,
      );
    }
  }
  const byPlace = Map.groupBy(written, (w) => w.place);
  const ancestors = ancestorsOf(stages);
  const isOrdered = (a: number, b: number): boolean => ancestors[a]?.has(b) === true || ancestors[b]?.has(a) === true;
  for (const one of written) {
    const rivals = [...(byPlace.get(one.place) ?? []), ...indexed(one, byPlace, stages)];
    // The later of two stages is the one that is refused, once.
    const rival = rivals.find((r) => r.stage !== one.stage && !isOrdered(r.stage, one.stage) && isFirst(r, one));
    if (rival === undefined) continue;
    if (findings.length >= MAX_FINDINGS) break;
    const [name, other] = [stages[one.stage]?.name ?? '', stages[rival.stage]?.name ?? ''];
    found(
      one,
      `stages ${other} and ${name} would both write ${one.path} at the same time: give each a path of its own, let one depend on the other${FOLDER}`,
    );
  }
  return findings;
}

const FOLDER = ', or end it with `/` if it is a folder in which each task puts files under names of its own';

/** Between a plain path and one with an index, the plain one is refused; between equal ones the later. */
const isFirst = (rival: Written, one: Written): boolean => rival.place !== one.place || rival.stage < one.stage;

function pathsOf({ workdir, outputs }: StageSpec, stage: number): Written[] {
  const seen = new Set<string>();
  return outputs.flatMap((pattern, entry) =>
    (expandBraces(pattern) ?? []).flatMap((path): Written[] => {
      const names = segmentsOf(path);
      if (path.endsWith('/') || names.some((s) => s.is !== 'name')) return [];
      const place = isS3Uri(path) ? path : `${workdir}/${names.map((s) => (s.is === 'name' ? s.name : '')).join('/')}`;
      if (seen.has(place)) return [];
      seen.add(place);
      return [{ stage, entry, path, place }];
    }),
  );
}

/**
 * Paths with an index that become this plain path for one of their tasks: `out/7.txt` is `out/{index}.txt` of task 7.
 */
function indexed(
  { place }: Written,
  byPlace: ReadonlyMap<string, readonly Written[]>,
  stages: readonly StageSpec[],
): readonly Written[] {
  const numbers = place.matchAll(/(?<!\d)(?:0|[1-9]\d{0,4})(?!\d)/g).take(MAX_NUMBERS);
  return [...numbers].flatMap(({ 0: digits, index: at }) => {
    const template = place.slice(0, at) + INDEX + place.slice(at + digits.length);
    return (byPlace.get(template) ?? []).filter(
      (w) => Number(digits) < (stages[w.stage]?.tasks ?? 0) && expandIndex(template, Number(digits)) === place,
    );
  });
}

/** For each stage, all stages that end before it starts. Dependencies have no circle. */
function ancestorsOf(stages: readonly StageSpec[]): readonly ReadonlySet<number>[] {
  const numbers = new Map(stages.map((s, i) => [s.name, i]));
  const known: ReadonlySet<number>[] = [];
  const of = (stage: number): ReadonlySet<number> => {
    const before = (stages[stage]?.dependsOn ?? []).flatMap((name) => numbers.get(name) ?? []);
    return (known[stage] ??= new Set(before.flatMap((b) => [b, ...of(b)])));
  };
  return stages.map((_, i) => of(i));
}
