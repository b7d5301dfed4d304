export interface CompleteOptions {
  /** The word at the cursor is not begun: for shells that drop empty arguments. */
  readonly next?: boolean;
}
