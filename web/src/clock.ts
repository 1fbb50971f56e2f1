// The clock of a game. The browser keeps it, so that it continues when the page is loaded again.

const KEY = 'variant-ai-clock';

interface Kept {
  game: string;
  base: number;
  increment: number;
  left: [number, number];
}

export class GameClock {
  private since = performance.now();

  private constructor(
    private readonly base: number,
    private readonly increment: number,
    /** Seconds of both players. */
    readonly left: [number, number]
  ) {}

  /** A new clock, such as `180+2`; none for an empty text. */
  static of(text: string): GameClock | undefined {
    if (!text) return undefined;
    const [base, increment] = text.split('+').map(Number);
    return new GameClock(base, increment, [base, base]);
  }

  /** The clock that was kept for a game, if this tab kept one. */
  static kept(game: string): GameClock | undefined {
    try {
      const kept = JSON.parse(sessionStorage.getItem(KEY) ?? 'null') as Kept | null;
      if (kept?.game === game) return new GameClock(kept.base, kept.increment, kept.left);
    } catch {
      // a browser that keeps nothing
    }
    return undefined;
  }

  keep(game: string): void {
    const { base, increment, left } = this;
    try {
      sessionStorage.setItem(KEY, JSON.stringify({ game, base, increment, left }));
    } catch {
      // a browser that keeps nothing
    }
  }

  /** For the server, which plans the time of a move. */
  message(turn: 0 | 1): { left: number; increment: number } {
    return { left: Math.max(this.left[turn], 0), increment: this.increment };
  }

  /** Let no time have passed: the clock stood still. */
  restart(): void {
    this.since = performance.now();
  }

  /** Take the time since the last look from a player, from nobody before the clock runs. */
  take(turn: 0 | 1 | undefined): void {
    const now = performance.now();
    if (turn !== undefined) this.left[turn] = Math.max(this.left[turn] - (now - this.since) / 1000, 0);
    this.since = now;
  }

  /** A player has moved. */
  press(turn: 0 | 1): void {
    this.left[turn] += this.increment;
  }

  /** Give the whole time again to who has none left: a move was taken back. */
  refill(): void {
    for (const turn of [0, 1]) if (this.left[turn] <= 0) this.left[turn] = this.base;
  }
}
