// What the visitor chose, kept by the browser.

const KEY = 'variant-ai';

interface Saved {
  theme?: 'light' | 'dark';
  style?: string;
  variant?: string;
  notations?: Record<string, string>;
  play?: Record<string, string>;
  specs?: { name: string; text: string }[];
}

const MOST_SPECS = 20;

let saved: Saved = {};

function load(): void {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(KEY) ?? '{}');
    if (found && typeof found === 'object') saved = found as Saved;
  } catch {
    // a browser that keeps nothing: what was chosen lasts as long as the page
  }
}

/** Change what is kept. It is read again first: another tab may have changed it. */
function change(edit: (kept: Saved) => void): void {
  load();
  edit(saved);
  try {
    localStorage.setItem(KEY, JSON.stringify(saved));
  } catch {
    // as above
  }
}

load();
window.addEventListener('storage', event => {
  if (event.key === KEY) load();
});

export const preferences = {
  get theme(): 'light' | 'dark' | undefined {
    return saved.theme;
  },
  set theme(value) {
    change(kept => (kept.theme = value));
  },
  get style(): string {
    return saved.style ?? 'own';
  },
  set style(value: string) {
    change(kept => (kept.style = value));
  },
  get variant(): string | undefined {
    return saved.variant;
  },
  set variant(value) {
    change(kept => (kept.variant = value));
  },
  notation(variant: string): string {
    return saved.notations?.[variant] ?? 'san';
  },
  setNotation(variant: string, notation: string): void {
    change(kept => (kept.notations = { ...kept.notations, [variant]: notation }));
  },
  play(name: string, fallback: string): string {
    return saved.play?.[name] ?? fallback;
  },
  setPlay(name: string, value: string): void {
    change(kept => (kept.play = { ...kept.play, [name]: value }));
  },
  get specs(): { name: string; text: string }[] {
    return Array.isArray(saved.specs) ? saved.specs : [];
  },
  /** Keep a spec. Return the name of the oldest one if it has to go. */
  keepSpec(name: string, text: string): string | undefined {
    let gone: string | undefined;
    change(kept => {
      const specs = [{ name, text }, ...this.specs.filter(one => one.name !== name)];
      gone = specs[MOST_SPECS]?.name;
      kept.specs = specs.slice(0, MOST_SPECS);
    });
    return gone;
  },
};
