/**
 * Variables that a task inherits from the engine's environment: programs need them to find one another and to know
 * their user, language and time zone. Nothing else, so that credentials of the person who started the engine (AWS_*,
 * tokens) do not reach the jobs of others. A job asks for more with its own `env`. docs/local-mode.md lists the names.
 */
const INHERITED: ReadonlySet<string> = new Set([
  'PATH',
  'HOME',
  'USER',
  'LOGNAME',
  'SHELL',
  'LANG',
  'LANGUAGE',
  'TZ',
  'TMPDIR',
]);
const LOCALE = /^LC_[A-Z]+$/;

export const inheritedBy = (env: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(env).filter(([name]) => INHERITED.has(name) || LOCALE.test(name)));
