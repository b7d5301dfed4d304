/**
 * Values of `env` as a file that ECS' agent reads when a task starts (`environmentFiles` of an override): the override
 * holds its ARN, so that DescribeTasks, ECS' events and CloudTrail have no value. The agent fetches it with the
 * execution role; the image needs nothing for it.
 *
 * The agent takes a line `NAME=VALUE` as it stands, knows no line breaks in values, drops empty ones, and its versions
 * differ in what they make of a further `=` (amazon-ecs-agent, agent/taskresource/envFiles). So there is one variable,
 * of which every other character is an escape for `printf %b` (POSIX); the entrypoint makes the variables of it
 * (entrypoint.ts).
 */
import { quoted } from './entrypoint.ts';

/** The variable that the entrypoint reads. */
const NAME = 'EBB_ENV';
/** The agent reads lines of at most 64 KiB (bufio.MaxScanTokenSize). */
const MAX_LINE = 65_000;
/** Names that a shell gives a meaning of its own, or does not let be set: such variables are given as they are. */
const SHELLS_OWN =
  /^(?:_|IFS|OPTIND|OPTARG|PPID|LINENO|E?UID|GROUPS|SECONDS|RANDOM|SRANDOM|SHELLOPTS|BASH.*|FUNCNAME|DIRSTACK|HISTCMD|EPOCH.*)$/;

export interface PartedEnvironment {
  /** For the file; empty: there is none. */
  readonly content: string;
  /** What cannot be in it. */
  readonly rest: Readonly<Record<string, string>>;
}

/** Null where all together is too long for a file. */
export function partedEnvironment(env: Readonly<Record<string, string>>): PartedEnvironment | null {
  const entries = Object.entries(env);
  const rest = Object.fromEntries(entries.filter(([name]) => SHELLS_OWN.test(name)));
  const assignments = entries
    .filter(([name]) => !SHELLS_OWN.test(name))
    .map(([name, value]) => `export ${name}=${quoted(value)}`);
  if (assignments.length === 0) return { content: '', rest };
  const line = `${NAME}=${escaped(assignments.join('\n'))}`;
  return line.length > MAX_LINE ? null : { content: `${line}\n`, rest };
}

/** Bytes that are no letter, digit or plain mark, as `\0ooo`. */
function escaped(text: string): string {
  let out = '';
  for (const byte of Buffer.from(text)) {
    const char = String.fromCharCode(byte);
    out += /[\w./:,@+-]/.test(char) ? char : `\\0${byte.toString(8).padStart(3, '0')}`;
  }
  return out;
}
