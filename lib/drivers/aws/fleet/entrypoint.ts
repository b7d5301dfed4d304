/** Exit code of a successful attempt whose outputs another attempt publishes. A program's own code 205 becomes 1. */
export const SUPERSEDED_CODE = 205;

/** Reason of a copy that ends because the AWS CLI of its image knows no conditional writes. */
export const CANNOT_CLAIM =
  'the AWS CLI of the image knows no conditional writes: a copy cannot be told from its original';
/** Last words of a reason that begins with the attempt that holds the claim. */
export const PUBLISHES = 'publishes its outputs';

/**
 * First process of a task's container. It treats the program as local mode does. As part of the task definition it
 * always has the deployment's version.
 * Images need a POSIX shell: `sh`, its built-ins, `kill`, `sleep`, `mkdir`, `touch`, `mv`, `rm`, `date`. S3 needs the
 * AWS CLI in the image (examples/aws-image), on PATH or where `EBB_AWS_CLI` says; `no` means none.
 *
 *   fetch   values of the job's environment (environment-file.ts), an order that was too long for ECS, the latest checkpoint,
 *           the inputs
 *   run     the program, in the background; beside it a watcher, which samples memory every second, uploads a changed checkpoint
 *           and then writes its mark
 *   put     outputs after exit code 0, else the last checkpoint; then a log line with usage and the reason of a failure
 *
 * Claims. Attempts of one task that run side by side form a round, and one of them publishes outputs. That is the first
 * to write the round's claim, an object that S3 writes only if none exists ("conditional writes"). It uploads outputs
 * to their places once. Another attempt reads the claim, uploads nothing and exits with SUPERSEDED_CODE, which is no
 * failure.
 * A claim costs one PUT; a loser also reads it. A failed upload gives the claim back. An attempt that dies between
 * claim and exit has not succeeded. Its round then publishes nothing, the task runs again, and the next round has its
 * own claim.
 * CLIs before August 2024 have no conditional writes. There an original publishes without a claim, and a copy ends
 * before its program begins, so the original has no rival.
 *
 * Signals. ECS stops a task with SIGTERM only. It ends `fetch`. In `run` it becomes the program's own signal, then
 * SIGTERM and SIGKILL when the grace period is over. In `put` it has no effect: ECS' SIGKILL ends an upload
 * (`stopTimeout`). ECS has no limit on running time, so a timer sends SIGALRM, which is also a stop, with exit code
 * 124.
 *
 * Copies of tasks with a checkpoint. Nobody resumes a copy, so it saves nothing and has no grace. A copy that has
 * succeeded writes a mark and removes the original's checkpoint. A stopped original asks for this mark while its
 * program saves. With the mark, the program ends at once and nothing is uploaded.
 *
 * Receivers are the same as in local mode. Processes that handle the checkpoint signal receive it. All processes
 * receive other signals, because a command is often a shell above the program. After the command has ended, the rest is
 * killed at once, or after the grace period if the task is being stopped.
 *
 * Shells without a terminal make background processes ignore SIGINT unless these handle it. `wait` returns at a trapped
 * signal, so it is repeated until the program has ended. A program that ended during the trap is gone, but the shell
 * keeps its status for the next `wait` (127: already returned).
 *
 * Uploads. `-nt` may compare whole seconds, so a second passes between the stamp of the next comparison and the upload.
 * `aws s3 sync` skips files that are not newer than the object, so changed files get the stamp's time.
 * A second pass deletes what the program removed, so that an interrupted first pass has deleted nothing. Uploads take
 * at most a twentieth of the running time: each costs requests and a day's storage of what it replaces.
 *
 * The watcher ends when a file appears. The signal only interrupts its sleep, and may come before its trap is set.
 *
 * The report begins on a new line, whatever the program printed last. The awslogs driver makes no event of an empty
 * line.
 *
 * Memory is measured as in local mode: pages of processes, without the kernel's file cache. So is the load: counters of
 * the container's cgroup and network, and of the machine, which the kernel shows in every container, are read before
 * the program and after it (report.ts has their order).
 */
const SCRIPT = `if [ -n "$EBB_ENV" ]; then eval "$(printf %b "$EBB_ENV")"; fi
unset EBB_ENV
ebb_tmp=\${TMPDIR:-/tmp}/ebb.$$
ebb_cgroup=\${EBB_CGROUP:-/sys/fs/cgroup} ebb_root=$EBB_ROOT ebb_cli=\${EBB_AWS_CLI:-aws}
ebb_inputs=$EBB_INPUTS ebb_outputs=$EBB_OUTPUTS ebb_order=$EBB_ORDER ebb_report=$EBB_REPORT
ebb_claim=$EBB_CLAIM ebb_copy=$EBB_COPY ebb_done=$EBB_DONE ebb_original=$EBB_ORIGINAL_URI
unset EBB_INPUTS EBB_OUTPUTS EBB_ORDER EBB_REPORT EBB_CLAIM EBB_COPY EBB_DONE EBB_ORIGINAL_URI
ebb_phase=fetch ebb_child= ebb_watcher= ebb_program= ebb_timers= ebb_stopped= ebb_late= ebb_why= ebb_saves= ebb_asks= ebb_aws= ebb_cpu_before=

ebb_wait() {
  while :; do
    wait "$1"
    ebb_status=$?
    if [ "$ebb_status" -le 128 ]; then return "$ebb_status"; fi
    if kill -0 "$1" 2>/dev/null; then continue; fi
    wait "$1" 2>/dev/null
    ebb_again=$?
    if [ "$ebb_again" -ne 127 ]; then ebb_status=$ebb_again; fi
    return "$ebb_status"
  done
}
ebb_do() {
  "$@" &
  ebb_child=$!
  ebb_wait "$ebb_child"
}
ebb_stat() {
  ebb_line=
  { read -r ebb_line <"/proc/$1/stat"; } 2>/dev/null
  set -- $1 \${ebb_line##*) }
  ebb_pid=\${ebb_line%% *} ebb_state=$2 ebb_parent=$3 ebb_group=$4
}
ebb_signal() {
  ebb_found=1
  ebb_stat self
  if [ -z "$ebb_group" ]; then
    kill -s "$1" "$ebb_program" 2>/dev/null
    return
  fi
  ebb_self=$ebb_pid ebb_ours=$ebb_group
  for ebb_proc in /proc/[0-9]*; do
    ebb_stat "\${ebb_proc#/proc/}"
    if [ "$ebb_group" != "$ebb_ours" ] || [ "$ebb_pid" = "$$" ] || [ "$ebb_pid" = "$ebb_self" ] || [ "$ebb_state" = Z ]; then continue; fi
    case " $ebb_watcher $ebb_timers " in *" $ebb_pid "* | *" $ebb_parent "*) continue ;; esac
    if [ -n "$2" ]; then
      ebb_caught=0
      { while read -r ebb_name ebb_value; do
        if [ "$ebb_name" = SigCgt: ]; then ebb_caught=\${ebb_value#????????}; fi
      done <"/proc/$ebb_pid/status"; } 2>/dev/null
      if [ $(((0x$ebb_caught >> ($2 - 1)) & 1)) -eq 0 ]; then continue; fi
    fi
    if kill -s "$1" "$ebb_pid" 2>/dev/null; then ebb_found=0; fi
  done
  return "$ebb_found"
}
ebb_stop() {
  ebb_stopped=1
  case $ebb_phase in
  fetch) [ -z "$ebb_child" ] || kill -s TERM "$ebb_child" 2>/dev/null ;;
  run)
    ebb_grace=0
    if [ -n "$EBB_CHECKPOINT_SIGNAL" ] && [ -z "$ebb_copy" ]; then
      case $EBB_CHECKPOINT_SIGNAL in INT) ebb_number=2 ;; USR1) ebb_number=10 ;; USR2) ebb_number=12 ;; *) ebb_number=15 ;; esac
      ebb_signal "$EBB_CHECKPOINT_SIGNAL" "$ebb_number"
      ebb_grace=$EBB_CHECKPOINT_GRACE_S
    fi
    { sleep "$ebb_grace"; ebb_signal TERM; sleep 5; ebb_signal KILL; } >/dev/null 2>&1 &
    ebb_timers="$ebb_timers $!"
    if [ -n "$ebb_saves" ] && [ -n "$ebb_done" ]; then
      ebb_ask >/dev/null 2>&1 &
      ebb_asks=$!
      ebb_timers="$ebb_timers $!"
    fi
    trap : TERM ALRM
    ;;
  esac
}
ebb_ask() {
  if "$ebb_cli" s3 cp "$ebb_done" - --only-show-errors; then
    : >"$ebb_tmp/done"
    ebb_signal TERM
  fi
  : >"$ebb_tmp/asked"
}
ebb_tell() {
  ebb_said= ebb_cpu_after=$(ebb_cpu)
  if [ "$ebb_rss" -gt 0 ] && [ -n "$ebb_cpu_before" ] && [ -n "$ebb_cpu_after" ]; then
    ebb_said=" max-rss-bytes $ebb_rss cpu-microseconds $((ebb_cpu_after - ebb_cpu_before))$(ebb_load $ebb_load_before $(ebb_counters))"
  fi
  if [ -n "$ebb_why" ]; then
    set -f
    IFS='
'
    set -- $ebb_why
    IFS=' '
    ebb_said="$ebb_said why $*"
  fi
  [ -z "$ebb_said" ] || printf '\\n%s\\n' "$ebb_report$ebb_said"
}
ebb_leave() {
  ebb_phase=put
  trap : TERM ALRM
  ebb_ticks=0 ebb_rss=0
  [ ! -r "$ebb_tmp/usage" ] || read -r ebb_ticks ebb_rss <"$ebb_tmp/usage"
  if [ -n "$ebb_report" ] && { [ -n "$ebb_why" ] || [ "$ebb_ticks" -ge 10 ]; }; then
    (ebb_tell)
  fi
  rm -rf "$ebb_tmp"
  exit "$1"
}
ebb_fail() {
  [ -z "$ebb_stopped" ] || ebb_leave 143
  ebb_why=$1
  echo "ebb: $1" >&2
  ebb_leave "\${2:-1}"
}
ebb_need() {
  [ -n "$ebb_aws" ] || ebb_fail "the image has no aws command, and $1: put the AWS CLI into it, as examples/aws-image does" 127
}

ebb_get_path() {
  if ebb_do "$ebb_cli" s3 cp "$1" "./$2" --only-show-errors 2>"$ebb_tmp/error"; then return; fi
  [ -z "$ebb_stopped" ] || ebb_leave 143
  if ebb_do "$ebb_cli" s3 cp "$1/" "./$2/" --recursive --no-progress >"$ebb_tmp/got" && [ -s "$ebb_tmp/got" ]; then return; fi
  cat "$ebb_tmp/error" >&2
  ebb_fail "input $2 could not be had from $1"
}
ebb_get_glob() {
  ebb_from=$1 ebb_to=$2 ebb_pattern=$3
  shift 3
  ebb_do "$ebb_cli" s3 cp "$ebb_from" "./$ebb_to" --recursive --no-progress --exclude '*' "$@" >"$ebb_tmp/got" ||
    ebb_fail "input $ebb_pattern could not be had from $ebb_from"
  [ -s "$ebb_tmp/got" ] || ebb_fail "input pattern $ebb_pattern matches nothing at $ebb_from"
}
ebb_conditional() {
  "$ebb_cli" s3api put-object --if-none-match '*' "$@"
}
ebb_can_claim() {
  ebb_conditional --bucket none --key none --generate-cli-skeleton >/dev/null 2>&1
}
ebb_claimed() {
  ebb_place=\${ebb_claim#s3://} ebb_publisher=
  printf %s "$EBB_ATTEMPT" >"$ebb_tmp/claim"
  for ebb_wait_s in 1 2 4; do
    if ebb_conditional --bucket "\${ebb_place%%/*}" --key "\${ebb_place#*/}" --body "$ebb_tmp/claim" >/dev/null 2>"$ebb_tmp/error"; then return 0; fi
    ebb_publisher=$("$ebb_cli" s3 cp "$ebb_claim" - --only-show-errors 2>/dev/null)
    if [ -n "$ebb_publisher" ]; then [ "$ebb_publisher" = "$EBB_ATTEMPT" ]; return; fi
    if ! ebb_can_claim; then
      ebb_claim=
      return 0
    fi
    sleep "$ebb_wait_s"
  done
  cat "$ebb_tmp/error" >&2
  return 1
}
ebb_put_path() {
  if [ -n "$ebb_checking" ]; then
    [ -e "./$1" ] || ebb_missing="$ebb_missing\${ebb_missing:+, }$1"
  elif [ -d "./$1" ]; then
    "$ebb_cli" s3 cp "./$1/" "$2/" --recursive --no-follow-symlinks --only-show-errors || ebb_unput=$1
  else
    "$ebb_cli" s3 cp "./$1" "$2" --only-show-errors || ebb_unput=$1
  fi
}
ebb_put_glob() {
  if [ -n "$ebb_checking" ]; then return; fi
  ebb_from=$1 ebb_to=$2 ebb_pattern=$3
  shift 3
  : >"$ebb_tmp/put"
  if [ -d "./$ebb_from" ]; then
    "$ebb_cli" s3 cp "./$ebb_from" "$ebb_to" --recursive --no-follow-symlinks --no-progress --exclude '*' "$@" >"$ebb_tmp/put" || ebb_unput=$ebb_pattern
  fi
  [ -s "$ebb_tmp/put" ] || ebb_unmatched="$ebb_unmatched\${ebb_unmatched:+, }$ebb_pattern"
}

ebb_touch() {
  for ebb_file in "$1"/*; do
    case $ebb_file in *.tmp | *.part) continue ;; esac
    if [ -d "$ebb_file" ]; then
      (ebb_touch "$ebb_file")
    elif [ "$ebb_file" -nt "$ebb_tmp/stamp" ]; then
      : >"$ebb_tmp/changed"
      touch -c -r "$ebb_tmp/next" "$ebb_file" 2>/dev/null
    fi
  done
}
ebb_sync() {
  "$ebb_cli" s3 sync "$EBB_CHECKPOINT_DIR" "$EBB_CHECKPOINT_URI" --only-show-errors --exclude '.*' --exclude '*/.*' --exclude '*.tmp' --exclude '*.part' "$@"
}
ebb_save() {
  rm -f "$ebb_tmp/changed"
  : >"$ebb_tmp/next"
  sleep "$1"
  ebb_touch "$EBB_CHECKPOINT_DIR"
  [ -e "$ebb_tmp/changed" ] || return 0
  if ! ebb_sync; then
    echo "ebb: the checkpoint could not be uploaded" >&2
    return 1
  fi
  mv "$ebb_tmp/next" "$ebb_tmp/stamp"
  : >"$ebb_tmp/kept"
  echo | "$ebb_cli" s3 cp - "$EBB_CHECKPOINT_MARK" --only-show-errors
  ebb_sync --delete
}

ebb_sample() {
  ebb_stat=
  if [ -r "$ebb_cgroup/memory.max" ]; then
    ebb_stat=$ebb_cgroup/memory.stat
  elif [ -r "$ebb_cgroup/memory/memory.limit_in_bytes" ]; then
    ebb_stat=$ebb_cgroup/memory/memory.stat
  fi
  if [ -z "$ebb_stat" ]; then return; fi
  ebb_now=0
  while read -r ebb_name ebb_value; do
    case $ebb_name in anon | shmem | total_rss) ebb_now=$((ebb_now + ebb_value)) ;; esac
  done <"$ebb_stat"
  if [ "$ebb_now" -gt "$ebb_rss" ]; then ebb_rss=$ebb_now; fi
}
ebb_cpu() {
  if [ -r "$ebb_cgroup/memory.max" ] && [ -r "$ebb_cgroup/cpu.stat" ]; then
    while read -r ebb_name ebb_value; do
      if [ "$ebb_name" = usage_usec ]; then echo "$ebb_value"; fi
    done <"$ebb_cgroup/cpu.stat"
  elif [ -r "$ebb_cgroup/cpuacct/cpuacct.usage" ]; then
    read -r ebb_value <"$ebb_cgroup/cpuacct/cpuacct.usage"
    echo $((ebb_value / 1000))
  fi
}
ebb_pressure() {
  ebb_stall=-
  if [ ! -r "$1" ]; then return; fi
  { while read -r ebb_name ebb_value; do
    if [ "$ebb_name" = some ]; then ebb_stall=\${ebb_value##*total=}; fi
  done <"$1"; } 2>/dev/null
}
ebb_counters() {
  ebb_read=0 ebb_written=0 ebb_got=0 ebb_sent=0 ebb_cpus=0 ebb_all= ebb_sectors=0 ebb_sectors_written=0
  if [ -r "$ebb_cgroup/io.stat" ]; then
    while read -r ebb_name ebb_value; do
      for ebb_pair in $ebb_value; do
        case $ebb_pair in
        rbytes=*) ebb_read=$((ebb_read + \${ebb_pair#*=})) ;;
        wbytes=*) ebb_written=$((ebb_written + \${ebb_pair#*=})) ;;
        esac
      done
    done <"$ebb_cgroup/io.stat"
  elif [ -r "$ebb_cgroup/blkio/blkio.throttle.io_service_bytes" ]; then
    while read -r ebb_name ebb_kind ebb_value; do
      case $ebb_kind in
      Read) ebb_read=$((ebb_read + ebb_value)) ;;
      Write) ebb_written=$((ebb_written + ebb_value)) ;;
      esac
    done <"$ebb_cgroup/blkio/blkio.throttle.io_service_bytes"
  else
    return
  fi
  read -r ebb_up ebb_rest <"$ebb_root/proc/uptime"
  while read -r ebb_name ebb_user ebb_nice ebb_system ebb_idle ebb_iowait ebb_irq ebb_softirq ebb_steal ebb_rest; do
    case $ebb_name in
    cpu)
      ebb_busy=$((ebb_user + ebb_nice + ebb_system + ebb_irq + ebb_softirq + ebb_steal))
      ebb_all=$((ebb_busy + ebb_idle + ebb_iowait)) ebb_waits=$ebb_iowait
      ;;
    cpu*) ebb_cpus=$((ebb_cpus + 1)) ;;
    *) break ;;
    esac
  done <"$ebb_root/proc/stat"
  if [ -z "$ebb_all" ] || [ -z "$ebb_up" ]; then return; fi
  while read -r ebb_a ebb_b ebb_name ebb_c ebb_d ebb_in ebb_e ebb_f ebb_g ebb_out ebb_rest; do
    case $ebb_name in loop* | ram* | zram* | dm-* | md* | sr* | fd*) continue ;; esac
    if [ ! -e "$ebb_root/sys/block/$ebb_name" ]; then continue; fi
    ebb_sectors=$((ebb_sectors + ebb_in)) ebb_sectors_written=$((ebb_sectors_written + ebb_out))
  done <"$ebb_root/proc/diskstats"
  while read -r ebb_line; do
    case $ebb_line in *'|'* | lo:*) continue ;; *:*) ;; *) continue ;; esac
    set -- \${ebb_line#*:}
    ebb_got=$((ebb_got + $1)) ebb_sent=$((ebb_sent + $9))
  done <"$ebb_root/proc/net/dev"
  ebb_pressure "$ebb_root/proc/pressure/io"
  ebb_machine_stall=$ebb_stall
  ebb_pressure "$ebb_cgroup/io.pressure"
  echo "\${ebb_up%.*}\${ebb_up#*.} $ebb_cpus $ebb_all $ebb_busy $ebb_waits $ebb_sectors $ebb_sectors_written $ebb_machine_stall $ebb_read $ebb_written $ebb_got $ebb_sent $ebb_stall"
}
ebb_load() {
  if [ $# -ne 26 ]; then return; fi
  ebb_said=
  for ebb_n in 1 2 3 4 5 6 7 8 9 10 11 12 13; do
    eval "ebb_a=\\\${$ebb_n} ebb_b=\\\${$((ebb_n + 13))}"
    if [ "$ebb_n" = 2 ] || [ "$ebb_b" = - ]; then
      ebb_said=$ebb_said,$ebb_b
    elif [ "$ebb_a" = - ]; then
      ebb_said=$ebb_said,-
    else
      ebb_said=$ebb_said,$((ebb_b - ebb_a))
    fi
  done
  echo " load \${ebb_said#,}"
}
ebb_killed_for_memory() {
  for ebb_file in "$ebb_cgroup/memory.events" "$ebb_cgroup/memory/memory.oom_control"; do
    [ -r "$ebb_file" ] || continue
    while read -r ebb_name ebb_value; do
      if [ "$ebb_name" = oom_kill ] && [ "$ebb_value" -gt 0 ]; then return 0; fi
    done <"$ebb_file"
  done
  return 1
}
ebb_watch() {
  ebb_nap= ebb_ticks=0 ebb_rss=0 ebb_since=0 ebb_pause=$EBB_CHECKPOINT_PAUSE_S
  trap '[ -z "$ebb_nap" ] || kill "$ebb_nap" 2>/dev/null' TERM
  trap : ALRM
  while [ ! -e "$ebb_tmp/over" ]; do
    ebb_sample
    echo "$ebb_ticks $ebb_rss" >"$ebb_tmp/usage"
    sleep 1 >/dev/null 2>&1 &
    ebb_nap=$!
    wait "$ebb_nap"
    ebb_nap=
    ebb_ticks=$((ebb_ticks + 1)) ebb_since=$((ebb_since + 1))
    if [ ! -e "$ebb_tmp/over" ] && [ -n "$ebb_saves" ] && [ "$ebb_since" -ge "$ebb_pause" ]; then
      ebb_since=0
      ebb_began=$(date +%s)
      ebb_save 1
      ebb_pause=$((($(date +%s) - ebb_began - 2) * 20))
      if [ "$ebb_pause" -lt "$EBB_CHECKPOINT_PAUSE_S" ]; then ebb_pause=$EBB_CHECKPOINT_PAUSE_S; fi
    fi
  done
}

trap ebb_stop TERM
trap 'ebb_late=1; ebb_stop' ALRM
mkdir -p "$ebb_tmp" || exit 1
mkdir -p "$EBB_CHECKPOINT_DIR" 2>/dev/null
if [ "$PWD" = / ] && mkdir -p /ebb/work 2>/dev/null; then cd /ebb/work || exit 1; fi
if [ "$ebb_cli" != no ] && command -v "$ebb_cli" >/dev/null 2>&1; then ebb_aws=1; fi
if [ -n "$ebb_order" ]; then
  ebb_need 'command and environment are longer than ECS takes'
  ebb_do "$ebb_cli" s3 cp "$ebb_order" "$ebb_tmp/order" --only-show-errors || ebb_fail "the command could not be had from $ebb_order"
  . "$ebb_tmp/order"
fi
if [ -n "$ebb_aws" ] && [ -n "$EBB_CHECKPOINT_SIGNAL" ] && [ "$EBB_CHECKPOINT_SYNC" != no ] && [ -z "$ebb_copy" ]; then
  ebb_saves=1
  if [ "$EBB_TASK_ATTEMPT" != 1 ]; then
    ebb_do "$ebb_cli" s3 sync "$EBB_CHECKPOINT_URI" "$EBB_CHECKPOINT_DIR" --only-show-errors || ebb_fail 'the checkpoint could not be had from S3'
    : >"$ebb_tmp/kept"
  fi
fi
EBB_RESUMED=0
for ebb_file in "$EBB_CHECKPOINT_DIR"/*; do
  if [ -e "$ebb_file" ]; then EBB_RESUMED=1; fi
done
export EBB_RESUMED
if [ -n "$ebb_inputs$ebb_outputs" ]; then ebb_need 'the task has inputs or outputs'; fi
if [ -n "$ebb_copy" ] && [ -n "$ebb_claim" ] && ! ebb_can_claim; then
  ebb_fail '${CANNOT_CLAIM}' ${SUPERSEDED_CODE}
fi
eval "$ebb_inputs"
: >"$ebb_tmp/stamp"
if [ "$EBB_RESUMED" = 1 ]; then ebb_do sleep 1; else touch -t 200001010000 "$ebb_tmp/stamp"; fi
[ -z "$ebb_stopped" ] || ebb_leave 143

ebb_cpu_before=$(ebb_cpu) ebb_load_before=$(ebb_counters 2>/dev/null)
"$@" &
ebb_program=$!
ebb_phase=run
[ -z "$ebb_stopped" ] || ebb_stop
if [ -n "$EBB_TIMEOUT_S" ]; then
  { sleep "$EBB_TIMEOUT_S"; kill -s ALRM $$; } >/dev/null 2>&1 &
  ebb_timers="$ebb_timers $!"
fi
ebb_watch &
ebb_watcher=$!
ebb_wait "$ebb_program"
ebb_code=$?
trap : TERM ALRM
if [ -n "$ebb_stopped" ]; then
  while ebb_signal 0; do sleep 0.1 2>/dev/null || sleep 1; done
else
  ebb_signal KILL
fi
ebb_phase=put
ebb_tries=0
while [ -n "$ebb_asks" ] && [ ! -e "$ebb_tmp/asked" ] && [ "$ebb_tries" -lt 50 ]; do
  ebb_tries=$((ebb_tries + 1))
  sleep 0.1 2>/dev/null || sleep 1
done
for ebb_timer in $ebb_timers; do kill -s TERM "$ebb_timer" 2>/dev/null; done
: >"$ebb_tmp/over"
kill -s TERM "$ebb_watcher" 2>/dev/null
ebb_wait "$ebb_watcher"

ebb_checking=1 ebb_missing= ebb_unput= ebb_unmatched=
case $ebb_code in
0)
  eval "$ebb_outputs"
  if [ -n "$ebb_missing" ]; then
    if [ -n "$ebb_stopped" ]; then ebb_code=143; else ebb_code=1 ebb_why="output $ebb_missing was not made"; fi
  else
    ebb_checking=
    if [ -z "$ebb_claim" ] || ebb_claimed; then
      eval "$ebb_outputs"
      [ -z "$ebb_unmatched" ] || ebb_why="no file matches $ebb_unmatched among its outputs"
      if [ -n "$ebb_unput" ]; then
        ebb_code=1 ebb_why="output $ebb_unput could not be uploaded"
        [ -z "$ebb_claim" ] || "$ebb_cli" s3 rm "$ebb_claim" --only-show-errors
      fi
    elif [ -n "$ebb_publisher" ]; then
      ebb_code=${SUPERSEDED_CODE} ebb_why="$ebb_publisher ${PUBLISHES}"
    else
      ebb_code=1 ebb_why="its outputs could not be claimed at $ebb_claim"
    fi
  fi
  ;;
${SUPERSEDED_CODE}) ebb_code=1 ebb_why="exit code ${SUPERSEDED_CODE}" ;;
126) ebb_why="exit code 126: $1 cannot be executed" ;;
127) ebb_why="exit code 127: is $1 in the image, or missing from inputs?" ;;
137) if ebb_killed_for_memory; then ebb_why='ran out of memory: ask for more in resources.memory'; fi ;;
esac
if [ -n "$ebb_saves" ]; then
  if [ "$ebb_code" -ne 0 ]; then
    [ -e "$ebb_tmp/done" ] || ebb_save 0
  elif [ -e "$ebb_tmp/kept" ]; then
    "$ebb_cli" s3 rm "$EBB_CHECKPOINT_URI" --recursive --only-show-errors
  fi
fi
if [ -n "$ebb_aws" ] && [ -n "$ebb_original" ] && [ "$ebb_code" -eq 0 ]; then
  echo | "$ebb_cli" s3 cp - "$ebb_done" --only-show-errors
  if [ "$EBB_CHECKPOINT_SYNC" != no ]; then "$ebb_cli" s3 rm "$ebb_original" --recursive --only-show-errors; fi
fi
if [ -n "$ebb_late" ] && [ "$ebb_code" -ne 0 ] && [ "$ebb_code" -ne ${SUPERSEDED_CODE} ]; then ebb_code=124; fi
[ -z "$ebb_why" ] || echo "ebb: $ebb_why" >&2
ebb_leave "$ebb_code"`;

/** `entryPoint` of every task definition. An image's own entrypoint would take the command as its argument. */
export const ENTRY_POINT: readonly string[] = ['sh', '-c', SCRIPT, 'ebb'];

/** Text as one shell word. */
export const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
