/**
 * What runs as the first process of a task's container: it gives the program the same treatment as local mode does. ECS knows
 * one way to stop a task, SIGTERM and later SIGKILL; the program may want another signal first, to save its work, and time
 * for it. And ECS knows no limit on running time. A POSIX shell is all that an image must have (`sh`, `kill`, `sleep`).
 *
 * The program runs in the background, where a shell that is no terminal's has it ignore SIGINT unless it handles that
 * itself. `wait` returns when a trapped signal comes: it is repeated until the program has really ended.
 */
const SCRIPT = `mkdir -p "$EBB_CHECKPOINT_DIR" 2>/dev/null
"$@" &
program=$!
late=
stop() {
  trap '' TERM
  if [ -z "$EBB_CHECKPOINT_SIGNAL" ]; then kill -s TERM "$program" 2>/dev/null; return; fi
  kill -s "$EBB_CHECKPOINT_SIGNAL" "$program" 2>/dev/null
  { sleep "$EBB_CHECKPOINT_GRACE_S"; kill -s TERM "$program"; } >/dev/null 2>&1 &
}
trap stop TERM
trap 'late=1; stop' ALRM
if [ -n "$EBB_TIMEOUT_S" ]; then { sleep "$EBB_TIMEOUT_S"; kill -s ALRM $$; } >/dev/null 2>&1 & fi
while :; do wait "$program"; code=$?; kill -0 "$program" 2>/dev/null || break; done
if [ -n "$late" ] && [ "$code" -ne 0 ]; then code=124; fi
exit "$code"`;

/** The container's command line. */
export const entrypoint = (command: readonly string[]): string[] => ['sh', '-c', SCRIPT, 'ebb', ...command];
