/** Replaces each `{index}` of a text by the index of the task: the only placeholder of the job file. */
export const expandIndex = (text: string, index: number): string => text.replaceAll('{index}', String(index));
