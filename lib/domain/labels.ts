/** Form of the keys of labels, of jobs and of machines. */
export const LABEL_KEY = /^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$/;
export const LABEL_TEXT = 'must be 1 to 63 letters, digits, ., _, - or /';
