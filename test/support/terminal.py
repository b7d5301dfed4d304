"""Drives a program in a pseudo-terminal.

usage: terminal.py LIMIT_S COMMAND... < STEPS

STEPS is a JSON list, taken in order:
  {"wait": TEXT}                  until the terminal has shown the text since the step before
  {"send": TEXT}                  types it
  {"lines": COUNT, "in": FILE}    until the file has so many lines, and the terminal is quiet

Prints all that the terminal showed; ends with 1, and what it waited for on standard error, when LIMIT_S is over.
"""

import json, os, pty, select, signal, sys, time

limit = time.monotonic() + float(sys.argv[1])
command = sys.argv[2:]
steps = json.load(sys.stdin)
QUIET_S = 0.2

pid, terminal = pty.fork()
if pid == 0:
    os.execvp(command[0], command)
# 80 columns, 40 lines.
import fcntl, struct, termios

fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
shown = b""
since = 0


def read(wait_s):
    """Takes what the terminal shows within the time; False where it showed nothing."""
    global shown
    ready, _, _ = select.select([terminal], [], [], wait_s)
    if not ready:
        return False
    try:
        piece = os.read(terminal, 65536)
    except OSError:
        piece = b""
    shown += piece
    if piece == b"":
        time.sleep(0.05)
    return piece != b""


def lines_in(path):
    try:
        with open(path, "rb") as file:
            return file.read().count(b"\n")
    except FileNotFoundError:
        return 0


def until(holds, what):
    while not holds():
        if time.monotonic() > limit:
            sys.stdout.buffer.write(shown)
            sys.stdout.flush()
            sys.stderr.write("waited in vain for %s\n" % what)
            os.kill(pid, signal.SIGKILL)
            sys.exit(1)
        read(0.05)


for step in steps:
    if "send" in step:
        since = len(shown)
        os.write(terminal, step["send"].encode())
    elif "wait" in step:
        text = step["wait"].encode()
        until(lambda: text in shown[since:], repr(step["wait"]))
    else:
        until(lambda: lines_in(step["in"]) >= step["lines"], "%d lines" % step["lines"])
        while read(QUIET_S):
            pass
while read(QUIET_S):
    pass
os.kill(pid, signal.SIGHUP)
os.kill(pid, signal.SIGKILL)
os.waitpid(pid, 0)
sys.stdout.buffer.write(shown)
