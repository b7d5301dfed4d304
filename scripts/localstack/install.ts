/**
 * LocalStack without Docker: LocalStack in a virtual environment, and the machine's Java in place of LocalStack's
 * download. DynamoDB Local comes from Maven Central, because LocalStack's download is not pinned; so does JSONata for
 * Step Functions. Every file is pinned by hash (requirements.txt, installer.txt, maven/*.sha256). All checkouts share
 * one installation per set of pins.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { copyFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { answers, installOnce, makeVenv, missingPython, must } from '../installation.ts';

const HERE = fileURLToPath(new URL('.', import.meta.url));
/** Oldest Java for DynamoDB Local 2.6. */
const JAVA_AT_LEAST = 17;
/** Java version in the path where LocalStack looks for its download. */
const JAVA_EXPECTED = '21';
/** Folder where LocalStack looks for its release of JSONata. */
const JSONATA_FOLDER = join('jsonata', '0.9.7');
const PINS = [
  ...['requirements.txt', join('..', 'installer.txt')],
  ...['dynamodb.sha256', 'jsonata.sha256', 'IdleAgent.java', 'log4j2.xml'].map((name) => join('maven', name)),
];
const COPY_JARS = 'org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies';

export interface Installation {
  readonly python: string;
  /** Folder that LocalStack expects as `usr/lib/localstack` below its root. */
  readonly libraries: string;
  /** Files that Python and LocalStack keep between runs. */
  readonly cache: string;
}

/** Way to run LocalStack here. `missing`: what is not installed, for people. */
export type Way =
  | { readonly mode: 'docker' }
  | { readonly mode: 'host'; readonly javaHome: string }
  | { readonly mode: null; readonly missing: string };

/**
 * Services that are needed. `stores`: DynamoDB and S3. `functions`: all services, including Lambda, with functions on
 * this machine. There they reach other local servers, which a container's functions would not.
 */
export type Need = 'stores' | 'functions';

/** Way for a need. For stores: Docker if an engine answers, else Python with Java and Maven, else none. */
export function wayToRun(need: Need): Way {
  if (need === 'stores' && answers('docker', ['version', '--format', '{{.Server.Version}}'])) return { mode: 'docker' };
  const javaHome = findJavaHome();
  const python = missingPython();
  const lacks = [
    ...(python === null ? [] : [python]),
    ...(javaHome === null ? [`JDK of version ${JAVA_AT_LEAST} or later`] : []),
    ...(find('mvn') === null ? ['Maven'] : []),
  ];
  return javaHome === null || lacks.length > 0
    ? {
        mode: null,
        missing: `${need === 'stores' ? 'no Docker engine answers, and ' : ''}there is no ${lacks.join(', no ')}`,
      }
    : { mode: 'host', javaHome };
}

function find(program: string): string | null {
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  return folders.map((f) => join(f, program)).find((path) => existsSync(path)) ?? null;
}

function findJavaHome(): string | null {
  const javac = find('javac');
  if (javac === null) return null;
  const { stdout } = spawnSync(javac, ['-version'], { encoding: 'utf8', timeout: 20_000 });
  if (Number(/javac (\d+)/.exec(stdout)?.[1] ?? 0) < JAVA_AT_LEAST) return null;
  return dirname(dirname(realpathSync(javac)));
}

/** Installation, made if missing (some 20 s with a fast registry). Safe for concurrent calls. */
export async function install(javaHome: string): Promise<Installation> {
  const files = PINS.map((name) => join(HERE, name));
  const home = await installOnce({ name: 'localstack', files, more: javaHome }, async (folder) => {
    // Parallel halves: they use different registries and take about equally long.
    await Promise.all([makeVenv(join(folder, 'venv'), join(HERE, 'requirements.txt')), installJava(folder, javaHome)]);
  });
  return {
    python: join(home, 'venv', 'bin', 'python'),
    libraries: join(home, 'libraries'),
    cache: join(home, 'cache'),
  };
}

async function installJava(home: string, javaHome: string): Promise<void> {
  const libraries = join(home, 'libraries');
  const target = join(libraries, 'dynamodb-local', '2');
  rmSync(libraries, { recursive: true, force: true });
  mkdirSync(join(libraries, 'java'), { recursive: true });
  symlinkSync(javaHome, join(libraries, 'java', JAVA_EXPECTED));
  await copyJars('dynamodb', join(target, 'DynamoDBLocal_lib'));
  await makeLauncher(home, target);
  await copyJars('jsonata', join(libraries, JSONATA_FOLDER));
}

async function copyJars(project: string, folder: string): Promise<void> {
  await must('mvn', [
    ...['-q', '-B', COPY_JARS, '-DincludeScope=runtime'],
    ...['-f', join(HERE, 'maven', `${project}.xml`), `-DoutputDirectory=${folder}`],
  ]);
  verify(folder, join(HERE, 'maven', `${project}.sha256`));
}

/** Checks that exactly the pinned jars are there, each with its hash. */
function verify(jars: string, pins: string): void {
  const pinned = new Map(
    readFileSync(pins, 'utf8')
      .trim()
      .split('\n')
      .map((line) => line.split(/\s+/).reverse() as [string, string]),
  );
  const found = readdirSync(jars);
  for (const name of found) {
    const hash = createHash('sha256')
      .update(readFileSync(join(jars, name)))
      .digest('hex');
    if (pinned.get(name) !== hash)
      throw new Error(`${name} has the hash ${hash}, pinned is ${pinned.get(name) ?? 'none'}`);
  }
  if (found.length !== pinned.size) throw new Error(`${found.length} files came, ${pinned.size} are pinned`);
}

/** Jar that names the others, in place of DynamoDB Local's own and of LocalStack's agent. */
async function makeLauncher(home: string, target: string): Promise<void> {
  const build = mkdtempSync(join(home, 'launcher-'));
  const manifest = join(build, 'MANIFEST.MF');
  const names = readdirSync(join(target, 'DynamoDBLocal_lib')).sort();
  await must('javac', ['-d', build, join(HERE, 'maven', 'IdleAgent.java')]);
  copyFileSync(join(HERE, 'maven', 'log4j2.xml'), join(build, 'log4j2.xml'));
  writeFileSync(
    manifest,
    [
      'Main-Class: com.amazonaws.services.dynamodbv2.local.main.ServerRunner',
      'Premain-Class: IdleAgent',
      'Class-Path: .',
      // Continued lines begin with a blank; the second blank separates names.
      ...names.map((name) => `  DynamoDBLocal_lib/${name}`),
      '',
    ].join('\n'),
  );
  const jar = join(build, 'launcher.jar');
  const content = ['-C', build, 'IdleAgent.class', '-C', build, 'log4j2.xml'];
  await must('jar', ['--create', '--file', jar, '--manifest', manifest, ...content]);
  copyFileSync(jar, join(target, 'ddb-local-loader-0.1.jar'));
  renameSync(jar, join(target, 'DynamoDBLocal.jar'));
  rmSync(build, { recursive: true });
}
