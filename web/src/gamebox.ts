// FEN, PGN, a typed move, sharing: what play and analysis have in common beside the board.

import { connection } from './connection';
import { button, copied, field, h, notice, savedFile } from './dom';
import { preferences } from './preferences';
import type { GameFacts, Session } from './session';
import { linkTo } from './share_link';

/** A field to type a move in any notation of the variant. refusal: why there can be no move now. */
export function moveBox(
  session: Session,
  play: (uci: string) => void,
  refusal: () => string = () => ''
): HTMLElement {
  const input = h('input', {
    type: 'text',
    autocomplete: 'off',
    spellcheck: 'false',
    maxlength: 20,
  });
  const hint = () => {
    const move = session.position?.legal[0];
    input.placeholder = move ? `such as ${move}` : '';
  };
  hint(); // the game may be open already
  const problem = h('small', { class: 'problem', role: 'alert' });
  session.onchange(() => {
    hint();
    problem.textContent = '';
  });
  const send = async () => {
    const text = input.value.trim();
    if (!text) return;
    problem.textContent = refusal();
    if (problem.textContent) return;
    try {
      const answer = await connection.ask({ type: 'line', ...session.game(), text });
      input.value = '';
      play(String(answer.move));
    } catch (error) {
      problem.textContent = (error as Error).message;
    }
  };
  const form = h(
    'form',
    {
      class: 'movebox',
      onsubmit: (event: Event) => {
        event.preventDefault();
        void send();
      },
    },
    field('Type a move', h('div', { class: 'row' }, input, h('button', { type: 'submit' }, 'Play'))),
    problem
  );
  // the label belongs to the input, not to the row
  input.id = `move-${Math.random().toString(36).slice(2, 8)}`;
  form.querySelector('label')!.setAttribute('for', input.id);
  return form;
}

export interface Names {
  white: string;
  black: string;
  result: string;
  termination: string;
}

/** FEN and PGN, in and out. */
export class GameBox {
  private readonly fen = h('input', { type: 'text', spellcheck: 'false', maxlength: 1000 });
  private readonly problem = h('small', { class: 'problem', role: 'alert' });
  readonly element: HTMLElement;

  constructor(
    private readonly session: Session,
    private readonly names: () => Names,
    private readonly opened: () => void
  ) {
    this.fen.addEventListener('change', () =>
      this.tried(() => this.load(this.fen.value.trim() || null, []))
    );
    const text = h('textarea', {
      rows: 4,
      spellcheck: 'false',
      'aria-label': 'A game as PGN or a list of moves',
      placeholder: 'Paste a game: PGN, or the formats that variant-ai import reads',
    });
    this.element = h(
      'details',
      { class: 'gamebox' },
      h('summary', {}, 'Position and game as text'),
      field('FEN', this.fen, 'Change it to set up a position; empty: the start position.'),
      h(
        'div',
        { class: 'row wrap' },
        button('Copy FEN', () => void copied(this.fen.value)),
        button('Copy PGN', () => void copied(this.pgn())),
        button('Save PGN', () => this.tried(() => this.save())),
        button('Copy link', () => void copied(linkTo(this.session)))
      ),
      field('Game', text),
      h(
        'div',
        { class: 'row' },
        button('Open this game', () => this.tried(() => this.read(text.value)))
      ),
      this.problem
    );
  }

  draw(): void {
    if (document.activeElement !== this.fen) this.fen.value = this.session.position?.fen ?? '';
  }

  /** Do something; if it fails, the box says why. */
  private tried(action: () => Promise<void>): void {
    this.problem.textContent = '';
    action().catch((error: Error) => (this.problem.textContent = error.message));
  }

  private async load(fen: string | null, moves: string[], facts: GameFacts = {}): Promise<void> {
    await this.session.open(this.session.variant, fen, moves, facts);
    this.opened();
  }

  private async read(text: string): Promise<void> {
    const { session } = this;
    const game = await connection.ask({ type: 'read', variant: session.variant, text });
    const moves = game.moves as string[];
    const [result, white, black] = [game.result, game.white, game.black].map(one => String(one ?? ''));
    const ended = result === '*' ? undefined : { result, reason: 'as the pasted game says' };
    await this.load(game.fen as string | null, moves, { white, black, ended });
    session.comment(game.comments as Record<string, string>);
    notice(`${moves.length} moves read`);
  }

  private async pgn(): Promise<string> {
    const { session } = this;
    const names = this.names();
    const answer = await connection.ask({
      type: 'pgn',
      ...session.game(session.tree.current.end),
      notation: session.notation,
      tags: {
        Event: 'Game in the browser',
        White: names.white,
        Black: names.black,
        Date: new Date().toISOString().slice(0, 10).replaceAll('-', '.'),
        Result: names.result,
        Termination: names.termination,
      },
    });
    return String(answer.pgn);
  }

  private async save(): Promise<void> {
    savedFile(`${this.session.look?.name ?? 'game'}.pgn`, await this.pgn());
  }
}

export function notationChoices(session: Session): { value: string; text: string }[] {
  return (session.look?.notations ?? ['san']).map(value => ({ value, text: value }));
}

export function chooseNotation(session: Session, value: string): void {
  preferences.setNotation(session.look?.name ?? '', value);
  void session.rewrite();
}
