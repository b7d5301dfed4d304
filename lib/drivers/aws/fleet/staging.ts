/**
 * Shell words for a task's inputs and outputs (entrypoint.ts). Patterns are below a working directory in S3, or whole
 * `s3://` URIs. The last folder of a URI without a wildcard serves as its working directory.
 *
 * The AWS CLI's wildcards choose the objects ("Use of Exclude and Include Filters", AWS CLI Command Reference, s3).
 * There `*` and `?` also match slashes, so a pattern of fixed depth excludes everything deeper. `**` needs no
 * exclusion. Braces with alternatives of several depths, or two adjacent stars, may match more than in local mode.
 */
import { expandBraces, globFault } from '../../../domain/globs.ts';
import { parseS3Uri, s3Uri, type S3Uri } from '../../../domain/s3-uri.ts';
import { quoted } from './entrypoint.ts';

const WILD = /[*?[{]/;
/** Most AWS CLI patterns that one pattern with braces or `**` may become. Each is a few words of a command line. */
const MAX_FILTERS = 256;

/** Folder of a pattern's files, and their names within it. */
type Place =
  | { readonly is: 'path'; readonly uri: string; readonly path: string }
  | { readonly is: 'glob'; readonly uri: string; readonly folder: string; readonly filters: readonly string[] };

/** Reason why a pattern is unusable with S3; null if usable. */
export function unusablePattern(pattern: string): string | null {
  if (/^s3:/i.test(pattern)) {
    const parsed = parseS3Uri(pattern);
    if (parsed === null) return 'is no URI such as s3://bucket/folder/*.csv';
    if (parsed.key === '') return 'names a whole bucket: give a key, or `/**` for all of it';
  }
  const fault = globFault(pattern);
  if (fault !== null) return fault;
  const count = filterCount(expandBraces(pattern) ?? []);
  return count > MAX_FILTERS
    ? `becomes ${count < 1e15 ? count : 'more than 10^15'} patterns of the AWS CLI, at most ${MAX_FILTERS} are allowed: write fewer braces or fewer \`**\``
    : null;
}

/** Shell words that fetch the inputs. `workdir`: a folder in S3. */
export const inputScript = (workdir: string, patterns: readonly string[]): string =>
  patterns
    .map((pattern) => {
      const place = placeOf(workdir, pattern);
      return place.is === 'path'
        ? words('ebb_get_path', place.uri, place.path)
        : words('ebb_get_glob', place.uri, place.folder, pattern, ...place.filters);
    })
    .join('\n');

/** Shell words that upload the outputs. */
export const outputScript = (workdir: string, patterns: readonly string[]): string =>
  patterns
    .map((pattern) => {
      const place = placeOf(workdir, pattern);
      return place.is === 'path'
        ? words('ebb_put_path', place.path, place.uri)
        : words('ebb_put_glob', place.folder, place.uri, pattern, ...place.filters);
    })
    .join('\n');

const words = (name: string, ...rest: readonly string[]): string => [name, ...rest.map(quoted)].join(' ');

function placeOf(workdir: string, pattern: string): Place {
  const { base, rest } = based(workdir, pattern);
  const segments = rest.split('/').filter((segment) => segment !== '' && segment !== '.');
  const firstWild = segments.findIndex((segment) => WILD.test(segment));
  const names = firstWild < 0 ? segments : segments.slice(0, firstWild);
  if (firstWild < 0) return { is: 'path', uri: below(base, names), path: names.join('/') };
  return {
    is: 'glob',
    uri: `${below(base, names)}/`,
    folder: names.length === 0 ? '.' : `${names.join('/')}/`,
    filters: filtersOf(segments.slice(firstWild).join('/')),
  };
}

function based(workdir: string, pattern: string): { readonly base: S3Uri; readonly rest: string } {
  const own = parseS3Uri(pattern);
  if (own === null) return { base: parseS3Uri(workdir) ?? { bucket: workdir, key: '' }, rest: pattern };
  const wildAt = own.key.search(WILD);
  const cut = own.key.lastIndexOf('/', wildAt < 0 ? own.key.length : wildAt);
  return {
    base: { bucket: own.bucket, key: cut < 0 ? '' : own.key.slice(0, cut) },
    rest: own.key.slice(cut + 1),
  };
}

const below = ({ bucket, key }: S3Uri, segments: readonly string[]): string =>
  s3Uri({ bucket, key: [key, ...segments].filter((s) => s !== '').join('/') });

function filtersOf(pattern: string): readonly string[] {
  const found = cliPatterns(pattern);
  const includes = found.flatMap((each) => ['--include', each]);
  const depths = new Set(found.map((each) => each.split('/').length));
  const [depth] = depths;
  if (depths.size !== 1 || depth === undefined || pattern.includes('**')) return includes;
  return [...includes, '--exclude', `${'*/'.repeat(depth)}*`];
}

/**
 * AWS CLI patterns for one of ours. A pattern over the limits, which submission refuses, stands for itself and matches
 * nothing.
 */
function cliPatterns(pattern: string): readonly string[] {
  const plain = expandBraces(pattern);
  return plain === null || filterCount(plain) > MAX_FILTERS ? [pattern] : plain.flatMap(withoutDoubleStars);
}

/** Number of filters: each `**` that is a whole folder doubles the patterns. */
const filterCount = (plain: readonly string[]): number =>
  plain.reduce((sum, each) => sum + 2 ** [...each.matchAll(DOUBLE_STAR)].length, 0);

/** `**` in the middle of a pattern. Counted before expansion. */
const DOUBLE_STAR = /(?<=^|\/)\*\*\//g;

/** Alternatives with `**` as folders and without. */
function withoutDoubleStars(alternative: string): readonly string[] {
  const plain = alternative.replaceAll('[^', '[!').replace(/(^|\/)\*\*$/, '$1*');
  return plain
    .split(DOUBLE_STAR)
    .reduce<readonly string[]>(
      (heads, part, i) => (i === 0 ? [part] : heads.flatMap((head) => [`${head}${part}`, `${head}*/${part}`])),
      [],
    );
}
