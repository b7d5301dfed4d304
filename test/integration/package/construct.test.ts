/**
 * The package as somebody else's CDK app sees it: packed, unpacked far from this tree, without esbuild and without our
 * sources' development dependencies; its construct is type-checked and synthesised there.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const MODULES = join(ROOT, 'node_modules');

const APP = `import { App, Stack } from 'aws-cdk-lib';
import { Role, AccountRootPrincipal } from 'aws-cdk-lib/aws-iam';
import { Ebbtide, EbbtideData, type EbbtideProps, type MetricKey } from 'ebbtide';

const app = new App();
const stack = new Stack(app, 'Mine');
const data = new EbbtideData(stack, 'Data', { keepData: false });
const props: EbbtideProps = { families: ['c6i', 'm6i'], budgetUsdPerDay: 20, data };
const ebbtide = new Ebbtide(stack, 'Ebbtide', props);
ebbtide.grantSubmit(new Role(stack, 'Ci', { assumedBy: new AccountRootPrincipal() }));
ebbtide.metricQueueDepth().createAlarm(stack, 'TooMuchWaiting', { threshold: 1000, evaluationPeriods: 3 });
const key: MetricKey = 'waste';
ebbtide.metric(key).createAlarm(stack, 'Waste', { threshold: 5, evaluationPeriods: 1 });
app.synth();
`;
/** What a user's compiler must refuse. */
const WRONG = [
  ["new Ebbtide(stack, 'E2', { families: 'c6i' });", 'string'],
  ["new Ebbtide(stack, 'E3', { budget: 20 });", 'budget'],
  ["ebbtide.metric('nothing');", 'nothing'],
] as const;

describe('the package in an app of somebody else', () => {
  const root = mkdtempSync(join(tmpdir(), 'ebb-package-'));
  const app = join(root, 'app');
  beforeAll(() => {
    const tarball = packed(join(root, 'source'));
    mkdirSync(join(app, 'node_modules', '@types'), { recursive: true });
    run(app, 'tar', ['-xf', tarball]);
    cpSync(join(app, 'package'), join(app, 'node_modules', 'ebbtide'), { recursive: true });
    const kept = readdirSync(MODULES).filter(
      (name) => !name.startsWith('.') && !/^(?:esbuild|@esbuild|@types)$/.test(name),
    );
    for (const name of kept) symlinkSync(join(MODULES, name), join(app, 'node_modules', name));
    symlinkSync(join(MODULES, '@types', 'node'), join(app, 'node_modules', '@types', 'node'));
    writeFileSync(join(app, 'package.json'), JSON.stringify({ name: 'mine', type: 'module' }));
    const options = { strict: true, module: 'nodenext', target: 'es2024', types: ['node'], skipLibCheck: false };
    writeFileSync(
      join(app, 'tsconfig.json'),
      JSON.stringify({ compilerOptions: options, files: ['app.ts', 'wrong.ts'] }),
    );
    writeFileSync(join(app, 'app.ts'), APP);
    const wrong = WRONG.map(([line]) => line).join('\n');
    writeFileSync(join(app, 'wrong.ts'), `${APP.replace('app.synth();\n', '')}${wrong}\n`);
  }, 600_000);
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  it('has types that a strict compiler takes, and that refuse what is wrong', () => {
    const { stdout } = spawnSync(process.execPath, [join(MODULES, 'typescript', 'bin', 'tsc'), '--noEmit'], {
      cwd: app,
      encoding: 'utf8',
    });
    // Declarations of others are not ours to mend.
    const found = stdout.split('\n').filter((line) => /^(?:app|wrong)\.ts|^node_modules\/ebbtide/.test(line));
    expect(found).toEqual(WRONG.map(([, what]) => expect.stringMatching(new RegExp(`^wrong\\.ts.*${what}`))));
  }, 300_000);

  it('is synthesised without esbuild and without a compiler, code of the functions included', () => {
    const outdir = join(app, 'cdk.out');
    run(app, process.execPath, ['--disable-warning=ExperimentalWarning', 'app.ts'], { CDK_OUTDIR: outdir });
    const template = JSON.parse(readFileSync(join(outdir, 'Mine.template.json'), 'utf8')) as {
      Resources: Record<string, { Type: string; Properties: { Code?: { S3Key: string } } }>;
    };
    const functions = Object.values(template.Resources).filter((r) => r.Type === 'AWS::Lambda::Function');
    expect(functions.length).toBeGreaterThan(12);
    for (const { Properties } of functions) {
      const asset = join(outdir, `asset.${(Properties.Code?.S3Key ?? '').replace('.zip', '')}`);
      expect(readdirSync(asset)).toContain('index.mjs');
    }
  }, 300_000);
});

/** Built and packed in a copy, so that this tree's own dist/ is left alone. Returns the tarball. */
function packed(source: string): string {
  mkdirSync(source);
  const files = ['bin', 'lib', 'lambdas', 'scripts', 'package.json', 'package-lock.json', 'tsconfig.json', 'LICENSE'];
  for (const file of [...files, 'tsconfig.build.json', 'tsconfig.types.json']) {
    cpSync(join(ROOT, file), join(source, file), { recursive: true, preserveTimestamps: true });
  }
  symlinkSync(MODULES, join(source, 'node_modules'));
  run(source, process.execPath, ['scripts/build.mjs', '--unchecked']);
  run(source, 'npm', ['pack', '--silent']);
  const [tarball] = readdirSync(source).filter((file) => file.endsWith('.tgz'));
  if (tarball === undefined) throw new Error('nothing was packed');
  return join(source, tarball);
}

function run(cwd: string, command: string, args: readonly string[], more: Record<string, string> = {}): void {
  const env = { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '', ...more };
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, env, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${status}\n${stdout}\n${stderr}`);
}
