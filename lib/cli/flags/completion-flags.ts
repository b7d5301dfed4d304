export interface CompleteOptions {
  /** No word is begun at the cursor: for shells that drop empty arguments. */
  readonly next?: boolean;
}
