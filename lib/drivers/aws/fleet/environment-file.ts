/**
 * Values of `env` as a file that the ECS agent reads when a task starts (`environmentFiles` of an override). The
 * override only holds the file's ARN, so DescribeTasks, ECS events and CloudTrail show no value. The agent reads it
 * with the execution role; the image needs nothing for it.
 *
 * The agent takes lines `NAME=VALUE` literally, without line breaks in values, and drops empty values. Its versions
 * treat a second `=` differently (amazon-ecs-agent, agent/taskresource/envFiles). So the file has one variable, with
 * all other characters escaped for `printf %b` (POSIX). The entrypoint sets the variables from it (entrypoint.ts).
 */
import { quoted } from './entrypoint.ts';

/** Variable that the entrypoint reads. */
const NAME = 'EBB_ENV';
/** Longest line that the agent reads is 64 KiB (bufio.MaxScanTokenSize). */
const MAX_LINE = 65_000;
/** Names with a meaning for shells, or that shells refuse to set. Such variables stay overrides. */
const SHELLS_OWN =
  /^(?:_|IFS|OPTIND|OPTARG|PPID|LINENO|E?UID|GROUPS|SECONDS|RANDOM|SRANDOM|SHELLOPTS|BASH.*|FUNCNAME|DIRSTACK|HISTCMD|EPOCH.*)$/;

export interface PartedEnvironment {
  /** Content of the file; empty: no file. */
  readonly content: string;
  /** Variables that the file cannot hold. */
  readonly rest: Readonly<Record<string, string>>;
}

/** Parts of an environment; null if it is too long for a file. */
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

/** Text with all bytes but letters, digits and plain marks as `\0ooo`. */
function escaped(text: string): string {
  let out = '';
  for (const byte of Buffer.from(text)) {
    const char = String.fromCharCode(byte);
    out += /[\w./:,@+-]/.test(char) ? char : `\\0${byte.toString(8).padStart(3, '0')}`;
  }
  return out;
}
