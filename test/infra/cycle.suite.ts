import { beforeAll, describe, expect, it } from '@jest/globals';
import type { Template } from 'aws-cdk-lib/assertions';
import type { z } from 'zod';
import {
  actInput,
  confirmInput,
  cycleStart,
  gaveUpInput,
  isolateInput,
  estimateInput,
  forecastInput,
  recordInput,
  solveInput,
} from '../../lib/drivers/aws/cycle/messages.ts';
import { shown } from './policies.ts';
import { run, tasksOf, type Invoke, type Machine } from './states.ts';
import { resourcesOf, synthesis } from './synthesis.ts';

const fault = (name: string): Error => Object.assign(new Error(name), { name });

/**
 * Answers as lib/drivers/aws/cycle/messages.ts describes them; each step refuses an input that is not what it takes.
 */
function steps(over: Partial<Record<string, (input: Record<string, unknown>, call: number) => unknown>> = {}): {
  invoke: Invoke;
  calls: string[];
} {
  const calls: string[] = [];
  const snapshotted = { began: '2026-01-05T12:00:00.000Z', observedMs: 2, seen: 3, token: 4, dueInMs: 5 };
  const answers: Record<string, readonly [z.ZodObject, (input: Record<string, unknown>) => unknown]> = {
    Snapshot: [
      cycleStart,
      ({ execution, round }) => ({ idle: false, execution, round, ...snapshotted, observation: 's3:observation' }),
    ],
    Estimate: [estimateInput, () => ({ runtime: 's3:runtime' })],
    Forecast: [forecastInput, () => ({ market: 's3:market' })],
    Solve: [
      solveInput,
      ({ observation: _, runtime: __, market: ___, ...state }) => ({ ...state, decision: 's3:decision' }),
    ],
    Isolate: [isolateInput, ({ observation: _, market: __, ...state }) => ({ ...state, decision: 's3:decision' })],
    Record: [
      recordInput,
      ({ decision: _, ...state }) => ({
        ...state,
        keys: 's3:keys',
        batches: [
          { from: 0, to: 25 },
          { from: 25, to: 30 },
        ],
        left: 0,
      }),
    ],
    Act: [actInput, ({ batch }) => ({ outcomes: `s3:outcomes-${(batch as { from: number }).from}` })],
    Acquire: [gaveUpInput, () => null],
    Confirm: [confirmInput, ({ execution, round }) => ({ again: false, execution, round: (round as number) + 1 })],
  };
  const invoke: Invoke = (resource, given) => {
    const name = /EbbtideFunctions(\w+?)[\dA-F]{8}/.exec(resource)?.[1] ?? '';
    const [schema, answer] = answers[name] ?? [];
    if (schema === undefined || answer === undefined) throw new Error(`no step ${resource}`);
    calls.push(name);
    const input = schema.parse(given);
    const changed = over[name]?.(input, calls.filter((c) => c === name).length);
    return changed ?? answer(input);
  };
  return { invoke, calls };
}

const ONCE = ['Snapshot', 'Estimate', 'Forecast', 'Solve', 'Record', 'Act', 'Act', 'Confirm'];

describe('the cycle', () => {
  let main: Template;
  let machine: Machine;
  beforeAll(() => {
    ({ main } = synthesis());
    const [found] = Object.values(resourcesOf(main, 'AWS::StepFunctions::StateMachine'));
    machine = JSON.parse(shown(found?.Properties['DefinitionString'])) as Machine;
  });

  it('hands each step what it takes, and ends', () => {
    const { invoke, calls } = steps();
    expect(run(machine, { execution: 'c-1', round: 0 }, invoke).state).toBe('Done');
    expect(calls).toEqual(ONCE);
  });

  it('does nothing more when there is nothing to do', () => {
    const { invoke, calls } = steps({ Snapshot: () => ({ idle: true }) });
    expect(run(machine, { execution: 'c-1', round: 0 }, invoke).state).toBe('Done');
    expect(calls).toEqual(['Snapshot']);
  });

  it('acts on nothing and confirms it when nothing was recorded', () => {
    const { invoke, calls } = steps({
      Record: ({ decision: _, ...state }) => ({ ...state, keys: 's3:keys', batches: [], left: 0 }),
    });
    run(machine, { execution: 'c-1', round: 0 }, invoke);
    expect(calls).toEqual(ONCE.filter((name) => name !== 'Act'));
  });

  it('takes another snapshot, as the next round, when something happened meanwhile', () => {
    const rounds: unknown[] = [];
    const ran: number[] = [];
    const { invoke, calls } = steps({
      Snapshot: ({ round }) => void rounds.push(round),
      Confirm: ({ execution, round, began, entered }, call) => {
        ran.push(Date.parse(String(entered)) - Date.parse(String(began)));
        return call < 3 ? { again: true, execution, round: (round as number) + 1 } : undefined;
      },
    });
    expect(run(machine, { execution: 'c-1', round: 0 }, invoke).state).toBe('Done');
    expect(calls).toEqual([...ONCE, ...ONCE, ...ONCE]);
    expect(rounds).toEqual([0, 1, 2]);
    // How long it has run by then, by one clock.
    expect(ran).toEqual([7500, 7500, 7500]);
  });

  it.each(['Snapshot', 'Estimate', 'Forecast', 'Solve', 'Record', 'Act', 'Confirm'])(
    '%s is tried again after faults that pass, and not after others',
    (step) => {
      const isComputing = step === 'Estimate' || step === 'Solve';
      for (const name of [
        'aws.unavailable',
        'too-many-requests',
        'conflict',
        'Lambda.ServiceException',
        ...(isComputing ? [] : ['Sandbox.Timedout']),
      ]) {
        const { invoke, calls } = steps({
          [step]: (_, call) => {
            if (call === 1) throw fault(name);
          },
        });
        expect(run(machine, { execution: 'c-1', round: 0 }, invoke).state).toBe('Done');
        expect(calls.filter((c) => c === step)).toHaveLength(step === 'Act' ? 3 : 2);
      }
      for (const name of [...(isComputing ? [] : ['internal']), 'aws.refused', 'store.newer', 'superseded', 'late']) {
        const { invoke, calls } = steps({
          [step]: () => {
            throw fault(name);
          },
        });
        expect(run(machine, { execution: 'c-1', round: 0 }, invoke).state).toBe('Failed');
        expect(calls.filter((c) => c === step)).toHaveLength(1);
        // The next execution need not wait until this one is taken for dead.
        expect(calls.at(-1)).toBe('Acquire');
      }
    },
  );

  it.each(['Estimate', 'Solve'])(
    'isolates the jobs behind it when %s throws or runs out of time, and goes on',
    (step) => {
      for (const name of ['internal', 'Sandbox.Timedout', 'Runtime.ExitError']) {
        const { invoke, calls } = steps({
          [step]: () => {
            throw fault(name);
          },
        });
        expect(run(machine, { execution: 'c-1', round: 0 }, invoke).state).toBe('Done');
        const before =
          step === 'Solve' ? ['Snapshot', 'Estimate', 'Forecast', 'Solve'] : ['Snapshot', 'Estimate', 'Forecast'];
        expect(calls).toEqual([...before, 'Isolate', 'Record', 'Act', 'Act', 'Confirm']);
      }
    },
  );

  it('gives up where no job is to blame', () => {
    const { invoke, calls } = steps({
      Solve: () => {
        throw fault('internal');
      },
      Isolate: () => {
        throw fault('internal');
      },
    });
    expect(run(machine, { execution: 'c-1', round: 0 }, invoke).state).toBe('Failed');
    expect(calls.slice(-2)).toEqual(['Isolate', 'Acquire']);
  });

  it.each(['Snapshot', 'Estimate', 'Solve', 'Record', 'Act', 'Confirm'])(
    'ends without a fault when %s finds itself overtaken',
    (step) => {
      const { invoke, calls } = steps({
        [step]: () => {
          throw fault('fenced');
        },
      });
      expect(run(machine, { execution: 'c-1', round: 0 }, invoke).state).toBe('Overtaken');
      expect(calls.filter((c) => c === step)).toHaveLength(1);
    },
  );

  it('fails as well when its place cannot be freed', () => {
    const { invoke, calls } = steps({
      Snapshot: () => {
        throw fault('internal');
      },
      Acquire: () => {
        throw fault('aws.unavailable');
      },
    });
    expect(run(machine, { execution: 'c-1', round: 0 }, invoke).state).toBe('Failed');
    expect(calls.filter((c) => c === 'Acquire')).toHaveLength(5);
  });

  it('waits for each function as long as that may take to come up and to answer, and not without end', () => {
    const timeouts = new Map(
      Object.entries(resourcesOf(main, 'AWS::Lambda::Function')).map(([id, { Properties: p }]) => [id, p['Timeout']]),
    );
    const tasks = tasksOf(machine);
    expect(tasks.map(([name]) => name).sort()).toEqual(
      ['ActOnBatch', 'Confirm', 'Estimate', 'Forecast', 'GiveUp', 'Isolate', 'Snapshot', 'Record', 'Solve'].sort(),
    );
    for (const [, { Resource, TimeoutSeconds }] of tasks) {
      const timeoutS = Number(timeouts.get(/\{(\w+)\.Arn\}/.exec(Resource ?? '')?.[1] ?? ''));
      // Ten seconds is what a function may take to come up.
      expect(TimeoutSeconds).toBeGreaterThan(timeoutS + 10);
      expect(TimeoutSeconds).toBeLessThan(timeoutS + 30);
      expect(TimeoutSeconds).toBeLessThan(machine.TimeoutSeconds ?? 0);
    }
  });

  it('tells every step when the execution began, so that none begins that could not end in time', () => {
    const told: unknown[] = [];
    const { invoke } = steps(
      Object.fromEntries(
        ['Snapshot', 'Estimate', 'Forecast', 'Solve', 'Record', 'Act', 'Confirm'].map((step) => [
          step,
          ({ began }: Record<string, unknown>) => void told.push(began),
        ]),
      ),
    );
    run(machine, { execution: 'c-1', round: 0 }, invoke);
    expect(told).toEqual(ONCE.map(() => '2026-01-05T12:00:00.000Z'));
  });

  it('frees its place when more is handed on than the state machine carries', () => {
    const { invoke, calls } = steps({
      Act: () => {
        throw fault('States.DataLimitExceeded');
      },
    });
    expect(run(machine, { execution: 'c-1', round: 0 }, invoke).state).toBe('Failed');
    expect(calls.at(-1)).toBe('Acquire');
  });

  it('does not ask again where no answer came in time: the next execution does', () => {
    const { invoke, calls } = steps({
      Solve: () => {
        throw fault('States.Timeout');
      },
    });
    expect(run(machine, { execution: 'c-1', round: 0 }, invoke).state).toBe('Failed');
    expect(calls.slice(-2)).toEqual(['Solve', 'Acquire']);
  });

  it('is an Express machine that ends in time, with a name that its steps know', () => {
    main.hasResourceProperties('AWS::StepFunctions::StateMachine', {
      StateMachineType: 'EXPRESS',
      StateMachineName: 'ebbtide-cycle',
      TracingConfiguration: { Enabled: false },
      LoggingConfiguration: { Level: 'ERROR', IncludeExecutionData: false },
    });
    expect(machine.TimeoutSeconds).toBeLessThan(300);
    expect(machine.States['Act']?.MaxConcurrency).toBe(4);
    const told = Object.values(resourcesOf(main, 'AWS::Lambda::Function')).flatMap((f) => {
      const { Variables } = f.Properties['Environment'] as { Variables: Record<string, unknown> };
      const arn = Variables['EBB_STATE_MACHINE'];
      return arn === undefined ? [] : [shown(arn)];
    });
    expect(told.length).toBeGreaterThan(10);
    expect(new Set(told)).toEqual(
      new Set(['arn:{AWS::Partition}:states:{AWS::Region}:{AWS::AccountId}:stateMachine:ebbtide-cycle']),
    );
  });
});
