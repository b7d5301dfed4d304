export interface Candidate {
  readonly value: string;
  readonly about: string;
}

/** Completion by the shell itself when there are no candidates. */
export type Paths = 'files' | 'folders' | 'none';

export interface Completion {
  readonly candidates: readonly Candidate[];
  readonly paths: Paths;
}
