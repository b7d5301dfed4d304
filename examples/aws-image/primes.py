"""Counts primes in a range that a file names; saves how far it has come, and goes on from there."""

import json
import os
import signal
import sys

state_file = os.path.join(os.environ["EBB_CHECKPOINT_DIR"], "state.json")
ranges, index = sys.argv[1], int(sys.argv[2])
with open(ranges, encoding="utf-8") as lines:
    first, last = map(int, lines.read().split("\n")[index].split())

state = {"next": first, "primes": 0}
if os.path.exists(state_file):
    with open(state_file, encoding="utf-8") as saved:
        state = json.load(saved)
    print(f"going on from {state['next']}", flush=True)


def save():
    # Under another name first: what is uploaded is whole.
    with open(state_file + ".tmp", "w", encoding="utf-8") as out:
        json.dump(state, out)
    os.replace(state_file + ".tmp", state_file)


def give_way(_signal, _frame):
    save()
    print(f"gave way at {state['next']}", flush=True)
    sys.exit(143)


signal.signal(signal.SIGUSR1, give_way)

while state["next"] <= last:
    n = state["next"]
    is_prime = n > 1 and all(n % d for d in range(2, int(n**0.5) + 1))
    # Both at once, so that a signal between them finds no half of a step.
    state = {"next": n + 1, "primes": state["primes"] + is_prime}
    if n % 200_000 == 0:
        save()

os.makedirs("counts", exist_ok=True)
with open(f"counts/{index}.txt", "w", encoding="utf-8") as out:
    out.write(f"{first} {last} {state['primes']}\n")
