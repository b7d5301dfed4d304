/**
 * Texts of users, tasks and services on their way to a terminal. A terminal obeys control characters: a log could
 * rewrite lines above it, change the title, answer for the user or hide what follows. Everything that `ebb` prints goes
 * through here (lib/cli/output.ts).
 */

/** C0, DEL and C1 controls, and the bidirectional overrides, which show a text in another order than it is. */
// oxlint-disable-next-line no-control-regex -- those are the ones that it is about
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;
/** Colours as the views write them, or a control character. */
// oxlint-disable-next-line no-control-regex -- as above
const COLOR_OR_CONTROL = /\u001b\[([\d;]{0,16})m|[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;
/** Select Graphic Rendition (ECMA-48, 8.3.117): weights, underline, inverse and the 16 colours. 8 would hide text. */
const HARMLESS = /^(?:0|[1-47]|9|2[2-79]|3[0-79]|4[0-79]|9[0-7]|10[0-7])?$/;

const shown = (control: string): string => {
  const code = control.charCodeAt(0).toString(16);
  return code.length > 2 ? `\\u${code.padStart(4, '0')}` : `\\x${code.padStart(2, '0')}`;
};

/** One line of foreign text with its control characters made visible. */
export const visible = (text: string): string => text.replaceAll(CONTROL, shown);

/** Text of our own with foreign text in it: line ends, tabs and colours stay, every other control is shown. */
export const terminalText = (text: string): string =>
  text.replaceAll(COLOR_OR_CONTROL, (found, codes?: string) => {
    if (found === '\n' || found === '\t') return found;
    if (codes === undefined) return shown(found);
    return codes.split(';').every((code) => HARMLESS.test(code)) ? found : shown(found[0] ?? '') + found.slice(1);
  });

/** Text for a stream: a terminal gets no control characters, files and pipes get the text as it is. */
export const textFor = ({ isTTY }: { readonly isTTY?: boolean }, text: string): string =>
  isTTY === true ? terminalText(text) : text;

/**
 * Output of a program, piece by piece. Colours are dropped, for they can hide text; a carriage return, with which a
 * program writes over its own line, begins a new line. Other controls are shown, except tabs and line ends.
 */
export class ForeignOutput {
  /** The last piece ended with a carriage return, whose line feed may follow. */
  #isReturned = false;

  take(piece: string): string {
    if (piece === '') return '';
    const joined = this.#isReturned && piece.startsWith('\n') ? piece.slice(1) : piece;
    this.#isReturned = piece.endsWith('\r');
    return (
      joined
        // oxlint-disable-next-line no-control-regex -- as above
        .replaceAll(/\u001b\[[\d;:]{0,32}m/g, '')
        .replaceAll(/\r+\n?/g, '\n')
        .replaceAll(CONTROL, (control) => (control === '\n' || control === '\t' ? control : shown(control)))
    );
  }
}

/** JSON that a terminal can show: JSON itself lets DEL, C1 and overrides through. The same value when it is read. */
export const plainJson = (json: string): string =>
  json.replaceAll(CONTROL, (control) =>
    control < ' ' ? control : `\\u${control.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
