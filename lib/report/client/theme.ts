import { byId } from './dom.ts';
import type { Theme } from './palette.ts';

const CHOICES = ['auto', 'light', 'dark'] as const;
type Choice = (typeof CHOICES)[number];

/**
 * Light or dark theme: that of the reader's system, or the choice of the switch. The address keeps the choice
 * (`#theme=dark`), because a file opened from disk may have no other storage. Print is always light.
 */
export class ThemeSwitch {
  readonly #system = matchMedia('(prefers-color-scheme: dark)');
  readonly #changed: () => void;
  #choice: Choice;
  #printing = false;

  constructor(changed: () => void) {
    this.#changed = changed;
    const asked = /\btheme=(\w+)/.exec(location.hash)?.[1];
    this.#choice = CHOICES.find((c) => c === asked) ?? 'auto';
    const select = byId('theme', HTMLSelectElement);
    select.value = this.#choice;
    select.addEventListener('change', () => {
      this.#choice = CHOICES.find((c) => c === select.value) ?? 'auto';
      history.replaceState(null, '', this.#choice === 'auto' ? '#' : `#theme=${this.#choice}`);
      this.#apply();
    });
    this.#system.addEventListener('change', () => this.#apply());
    addEventListener('beforeprint', () => this.#print(true));
    addEventListener('afterprint', () => this.#print(false));
    document.documentElement.dataset['theme'] = this.theme;
  }

  get theme(): Theme {
    if (this.#printing) return 'light';
    if (this.#choice !== 'auto') return this.#choice;
    return this.#system.matches ? 'dark' : 'light';
  }

  #print(now: boolean): void {
    this.#printing = now;
    this.#apply();
  }

  #apply(): void {
    document.documentElement.dataset['theme'] = this.theme;
    this.#changed();
  }
}
