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

function load(): Saved {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(KEY) ?? '{}');
    return found && typeof found === 'object' ? (found as Saved) : {};
  } catch {
    return {};
  }
}

const saved = load();

function save(): void {
  try {
    localStorage.setItem(KEY, JSON.stringify(saved));
  } catch {
    // a browser that keeps nothing
  }
}

export const preferences = {
  get theme(): 'light' | 'dark' | undefined {
    return saved.theme;
  },
  set theme(value) {
    saved.theme = value;
    save();
  },
  get style(): string {
    return saved.style ?? 'own';
  },
  set style(value: string) {
    saved.style = value;
    save();
  },
  get variant(): string | undefined {
    return saved.variant;
  },
  set variant(value) {
    saved.variant = value;
    save();
  },
  notation(variant: string): string {
    return saved.notations?.[variant] ?? 'san';
  },
  setNotation(variant: string, notation: string): void {
    saved.notations = { ...saved.notations, [variant]: notation };
    save();
  },
  play(name: string, fallback: string): string {
    return saved.play?.[name] ?? fallback;
  },
  setPlay(name: string, value: string): void {
    saved.play = { ...saved.play, [name]: value };
    save();
  },
  get specs(): { name: string; text: string }[] {
    return Array.isArray(saved.specs) ? saved.specs : [];
  },
  keepSpec(name: string, text: string): void {
    saved.specs = [{ name, text }, ...this.specs.filter(one => one.name !== name)].slice(0, 20);
    save();
  },
};
