/**
 * Ebbtide on AWS as its user has it: deployed by the CDK, used with `ebb` through API Gateway, on a market that interrupts.
 * EventBridge, Step Functions, SQS, DynamoDB, S3 and the Lambdas are LocalStack's, EC2 and ECS the double's.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { CostReport, ExplanationView, JobView, PoolList, SubmitAnswer } from '../../../lib/api/schemas.ts';
import { describeOnLocalStack } from '../../support/localstack.ts';
import { FAMILIES, REGION, rehearsalMarket, rehearsalStart } from './rehearsal-market.ts';
import { Rehearsal } from './rehearsal.ts';

const SPEED = 20;
const DEPLOYED_WITHIN_MS = 300_000;
const DONE_WITHIN_MS = 360_000;
/** Wall seconds: 15 minutes of the market, more than any spot instance lives. */
const WORK_S = 45;

describeOnLocalStack(
  'a deployment, from its job file to its ledger',
  (on) => {
    let rehearsal: Rehearsal;
    // Stands for what the tasks of a deployment have in S3 or EFS: it outlives their instances.
    const kept = mkdtempSync(join(tmpdir(), 'ebb-rehearsal-kept-'));
    let job = '';

    beforeAll(async () => {
      const stage = {
        trace: rehearsalMarket(),
        from: rehearsalStart,
        speed: SPEED,
        region: REGION,
        families: FAMILIES,
      };
      rehearsal = await Rehearsal.begin(on.endpoint, stage);
    }, DEPLOYED_WITHIN_MS);
    afterAll(async () => {
      await rehearsal.end();
      rmSync(kept, { recursive: true, force: true });
    }, 60_000);

    async function ask<T>(...args: string[]): Promise<T> {
      const { code, stdout, stderr } = await rehearsal.ebb(...args, '--json');
      if (code !== 0) throw new Error(`ebb ${args.join(' ')} ended with ${code}: ${stderr}`);
      return JSON.parse(stdout) as T;
    }

    async function until<T>(what: string, look: () => Promise<T | null>, withinMs: number): Promise<T> {
      const patience = performance.now() + withinMs;
      for (;;) {
        const found = await look();
        if (found !== null) return found;
        if (performance.now() > patience) throw new Error(`not within ${withinMs / 1000} s: ${what}`);
        await new Promise((resolve) => setTimeout(resolve, 1000));
      }
    }

    it('takes a job, once however often it is sent', async () => {
      const steps = `n=$(cat "$KEPT" 2>/dev/null || echo 0)
        while [ $n -lt ${WORK_S} ]; do sleep 1; n=$((n+1)); echo $n > "$KEPT"; echo step $n; done; echo finished`;
      const file = rehearsal.file('long', {
        deadline: '3h',
        command: ['sh', '-c', steps],
        env: { KEPT: join(kept, 'steps') },
        resources: { cpu: 1, memory: '512MiB' },
        expectedRuntime: `${(WORK_S * SPEED) / 60}m`,
        checkpoint: { signal: 'SIGUSR1', grace: '1s', every: '1m' },
      });
      // Prices are asked for by the clock; before they are known nothing can be bought.
      await until(
        'prices are known',
        async () => ((await ask<PoolList>('pools')).items.length > 0 ? true : null),
        240_000,
      );
      const first = await ask<SubmitAnswer>('submit', file, '--key', 'one');
      const again = await ask<SubmitAnswer>('submit', file, '--key', 'one');
      expect(first.outcome).toBe('created');
      expect(again).toMatchObject({ outcome: 'repeated', job: { id: first.job.id } });
      job = first.job.id;
    }, 300_000);

    it(
      'buys an instance, runs the task, survives interruptions, and finishes',
      async () => {
        const ended = await until(
          'the job has ended',
          async () => {
            const { job: now } = await ask<{ job: JobView }>('status', job);
            return now.state === 'pending' || now.state === 'running' ? null : now;
          },
          DONE_WITHIN_MS,
        );
        expect(ended).toMatchObject({ state: 'succeeded', onTime: true });
        expect(readFileSync(join(kept, 'steps'), 'utf8').trim()).toBe(String(WORK_S));
        const warnings = rehearsal.double.events.filter(
          (event) => event['detail-type'] === 'EC2 Spot Instance Interruption Warning',
        );
        expect(warnings.length).toBeGreaterThan(0);
      },
      DONE_WITHIN_MS + 30_000,
    );

    it('serves what the task printed, why it ran where it ran, and what it cost', async () => {
      const logs = await rehearsal.ebb('logs', job);
      expect(logs).toMatchObject({ code: 0, stderr: '' });
      expect(logs.stdout).toContain('finished');
      const why = await ask<ExplanationView>('explain', job);
      expect(JSON.stringify(why)).toContain('c5.large');
      const cost = await until(
        'the ledger is settled',
        async () => {
          const report = await ask<CostReport>('cost', '--by', 'job');
          return report.rows.some((row) => row.key === job) ? report : null;
        },
        120_000,
      );
      expect(cost.total.totalUsd).toBeGreaterThan(0);
    }, 180_000);

    it('gives every instance back', async () => {
      const states = () => {
        const newest = new Map<string, string>();
        for (const event of rehearsal.double.events) {
          if (event['detail-type'] !== 'EC2 Instance State-change Notification') continue;
          const { 'instance-id': id, state } = event.detail as { 'instance-id': string; state: string };
          newest.set(id, state);
        }
        return [...newest.values()];
      };
      const alive = () => states().filter((state) => state !== 'terminated');
      await until('no instance is left', () => Promise.resolve(alive().length === 0 ? true : null), 180_000);
      // At least the one that was interrupted, and the one that took its work over.
      expect(states().length).toBeGreaterThan(1);
      expect(alive()).toEqual([]);
    }, 200_000);
  },
  'functions',
);
