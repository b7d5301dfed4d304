import { describe, expect, it } from '@jest/globals';
import { placedInS3 } from '../../../../lib/drivers/aws/fleet/job-files.ts';
import { logUrl } from '../../../../lib/drivers/aws/fleet/log-place.ts';
import { parseReport } from '../../../../lib/drivers/aws/fleet/report.ts';
import { normaliseJob } from '../../../../lib/domain/job-file/job-file.ts';
import type { EbbError } from '../../../../lib/kernel/errors.ts';

const OPTIONS = { baseDir: '/home/ana/render', defaultOwner: 'ana' };
const placed = (file: object) => placedInS3(normaliseJob({ name: 'j', ...file }, OPTIONS), 'bucket', 'j-1');
const refusal = (file: object): EbbError => {
  try {
    placed(file);
  } catch (error) {
    return error as EbbError;
  }
  throw new Error('was taken');
};

describe('files of a job in a deployment', () => {
  it('lie where the job says, or in a folder of its own', () => {
    const { spec, notes } = placed({
      stages: [
        { name: 'cut', command: 'x', workdir: 's3://scenes/raw', inputs: '*.tif', outputs: 'tiles/**' },
        { name: 'sum', command: 'x', dependsOn: 'cut', outputs: 'sum.csv' },
        { name: 'draw', command: 'x', dependsOn: 'sum', inputs: 'sum.csv', outputs: 's3://scenes/plots/*.png' },
      ],
    });
    expect(spec.stages.map((s) => s.workdir)).toEqual([
      's3://scenes/raw',
      's3://bucket/work/j-1',
      's3://bucket/work/j-1',
    ]);
    expect(notes).toEqual([
      'outputs of sum go to s3://bucket/work/j-1/',
      'the image of cut, sum, draw must have the AWS CLI: its files are in S3',
    ]);
    expect(placed({ command: 'x' }).notes).toEqual([]);
  });

  it('on the machine that submits are refused, with what to do', () => {
    const error = refusal({ command: 'x', inputs: ['scene/**', 's3://b-1/k'] });
    expect(error.code).toBe('job-file.invalid');
    expect(error.facts).toMatchObject({ at: 'stages.main.inputs', next: expect.stringContaining('workdir: s3://') });
    expect(error.message).toContain('scene/** would be read from /home/ana/render');
    // Nothing before it puts anything where it would look.
    const late = { name: 'b', command: 'x', dependsOn: 'a', inputs: 'x' };
    expect(refusal({ stages: [{ name: 'a', command: 'x' }, late] }).facts.at).toBe('stages.b.inputs');
    expect(refusal({ stages: [{ name: 'a', command: 'x', outputs: 's3://bkt/x' }, late] }).facts.at).toBe(
      'stages.b.inputs',
    );
  });

  it('and commands that no program can be given are refused together', () => {
    const error = refusal({
      command: ['sh', 'x'],
      env: { BIG: 'é'.repeat(65_536) },
      outputs: ['**/'.repeat(9) + 'a', 's3://b'],
    });
    expect(error.facts.issues?.map((i) => i.at)).toEqual([
      'stages.main.outputs',
      'stages.main.outputs',
      'stages.main.env',
    ]);
    expect(error.facts.issues?.at(-1)?.message).toContain('131071');
  });

  it('says when ECS would not take the command as it is', () => {
    expect(placed({ command: ['sh', '-c', 'x'.repeat(5000)] }).notes).toEqual([]);
    expect(placed({ command: ['sh', '-c', 'x'.repeat(9000)] }).notes[0]).toContain('8192 characters');
  });
});

describe('what a task reports', () => {
  it('is unknown unless both amounts are there', () => {
    const usage = (text: string) => parseReport(`mark ${text}`).usage;
    expect(usage('max-rss-bytes 1048576 cpu-microseconds 2500000')).toEqual({ maxRssMiB: 1, cpuS: 2.5 });
    expect(usage('max-rss-bytes 1048576')).toBeNull();
    expect(usage('max-rss-bytes -1 cpu-microseconds 5')).toBeNull();
    expect(usage('max-rss-bytes 1e99 cpu-microseconds 5')).toBeNull();
    expect(usage('')).toBeNull();
  });

  const line = (load: string): string => `mark max-rss-bytes 1048576 cpu-microseconds 2500000 load ${load}`;

  it('has the load of the container and of the machine', () => {
    const load = parseReport(line('500,4,2000,1000,100,2000,4000,1000000,6000,500,1000,500,250000')).usage?.load;
    expect(load?.vcpus).toBe(4);
    expect(load?.machine).toEqual({
      cpu: 0.5,
      ioWait: 0.2,
      diskRead: 204_800,
      diskWritten: 409_600,
      netReceived: 200,
      netSent: 100,
    });
    expect(load?.own).toEqual({
      cpu: 0.5,
      ioWait: 0.05,
      diskRead: 1200,
      diskWritten: 100,
      netReceived: 200,
      netSent: 100,
    });
  });

  it('takes idle ticks where the kernel has no PSI, and the machine’s stalls for a container without its own', () => {
    const load = parseReport(line('500,4,2000,1000,100,1,1,-,1,1,1,1,-')).usage?.load;
    expect([load?.machine.ioWait, load?.own.ioWait]).toEqual([0.05, 0.05]);
  });

  it.each([
    ['nothing', ''],
    ['too few numbers', '1,2,3'],
    ['too many', '500,4,2000,1000,100,1,1,1,1,1,1,1,1,1'],
    ['no time', '0,4,2000,1000,100,1,1,1,1,1,1,1,1'],
    ['no vCPUs', '500,0,2000,1000,100,1,1,1,1,1,1,1,1'],
    ['a clock that went back', '500,4,-2000,1000,100,1,1,1,1,1,1,1,1'],
    ['words', 'a,b,c,d,e,f,g,h,i,j,k,l,m'],
  ])('has no load of %s', (_, load) => {
    expect(parseReport(line(load)).usage).toEqual({ maxRssMiB: 1, cpuS: 2.5 });
  });

  it('counts what went back as nothing', () => {
    const load = parseReport(line('500,4,2000,1000,100,-5,4000,1,6000,-1,1000,500,1')).usage?.load;
    expect([load?.machine.diskRead, load?.own.diskWritten]).toEqual([0, 0]);
    expect(load?.own.diskRead).toBe(1200);
  });

  it('is a sentence, however much a program writes there', () => {
    expect(parseReport('mark why output a b was not made')).toEqual({ usage: null, why: 'output a b was not made' });
    expect(parseReport('mark max-rss-bytes 1048576 cpu-microseconds 2500000 why output why was not made')).toEqual({
      usage: { maxRssMiB: 1, cpuS: 2.5 },
      why: 'output why was not made',
    });
    expect(parseReport(`mark why ${'x'.repeat(10_000)}`).why).toHaveLength(500);
    expect(parseReport('\0\0why').why).toBeNull();
  });
});

describe('the page of a log', () => {
  it('is in the console of its partition, names encoded as the console does', () => {
    const of = (region: string) => logUrl({ region, logGroup: 'Ebb/Tasks' }, 'ebb/task/0f');
    expect(of('eu-central-1')).toBe(
      'https://eu-central-1.console.aws.amazon.com/cloudwatch/home?region=eu-central-1#logsV2:log-groups/log-group/Ebb$252FTasks/log-events/ebb$252Ftask$252F0f',
    );
    expect(of('cn-north-1')).toMatch(/^https:\/\/console\.amazonaws\.cn\//);
    expect(of('us-gov-west-1')).toMatch(/^https:\/\/console\.amazonaws-us-gov\.com\//);
  });
});
