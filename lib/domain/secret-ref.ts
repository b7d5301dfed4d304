/**
 * References to secrets, as job files write them: a name, or `ssm:` and a name. The driver decides where a value is
 * kept: AWS in Secrets Manager or Parameter Store, local mode in a file or in the engine's environment.
 */
export const SECRET_REF = /^(?:ssm:)?[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/;

export interface SecretRef {
  readonly store: 'secretsmanager' | 'ssm';
  readonly name: string;
}

export const secretRef = (text: string): SecretRef =>
  text.startsWith('ssm:') ? { store: 'ssm', name: text.slice('ssm:'.length) } : { store: 'secretsmanager', name: text };

/** Beginning of the names that a deployment's tasks may be given: `ebbtide/NAME/`. */
export const secretPrefix = (deployment: string): string => `ebbtide/${deployment}/`;
