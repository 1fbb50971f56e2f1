// Play a game against a net.

import { Board } from './board';
import { announce, button, field, h, replace, select } from './dom';
import { GameBox, chooseNotation, moveBox, notationChoices } from './gamebox';
import { MoveList, stepButtons } from './movelist';
import { preferences } from './preferences';
import type { Session } from './session';
import { talk, type Stream } from './talk';
import type { SearchAnswer } from './types';
import { listName, opponentChoices, serverName, variantChoices } from './variants';

const LEVELS = [
  { value: 'elo:800', text: '1 · beginner' },
  { value: 'elo:1100', text: '2' },
  { value: 'elo:1400', text: '3' },
  { value: 'elo:1700', text: '4' },
  { value: 'elo:2000', text: '5 · about 250 nodes' },
  { value: 'nodes:800', text: '6 · 800 nodes' },
  { value: 'nodes:3000', text: '7 · 3,000 nodes' },
  { value: 'seconds:5', text: '8 · 5 seconds' },
  { value: 'nodes:1', text: 'the net alone, 1 node' },
];
const CLOCKS = [
  { value: '', text: 'none' },
  { value: '60+1', text: '1 minute + 1 second' },
  { value: '180+2', text: '3 minutes + 2 seconds' },
  { value: '600+5', text: '10 minutes + 5 seconds' },
];
const SIDES = [
  { value: '0', text: 'first player' },
  { value: '1', text: 'second player' },
  { value: 'random', text: 'random' },
  { value: 'both', text: 'both: no opponent' },
];

interface Clock {
  left: [number, number];
  increment: number;
  since: number;
}

export class PlayView {
  readonly element: HTMLElement;
  private readonly board: Board;
  private readonly list: MoveList;
  private readonly box: GameBox;
  private readonly settings = h('div', { class: 'settings' });
  private readonly bars = [h('div', { class: 'player' }), h('div', { class: 'player' })];
  private readonly status = h('p', { class: 'status', role: 'status' });
  private readonly controls = h('div', { class: 'row wrap controls' });
  private thinking: Stream | undefined;
  private side: 0 | 1 | -1 = 0;
  private net = 'packaged';
  private level = 'elo:1400';
  private ended: { result: string; reason: string } | undefined;
  private clock: Clock | undefined;
  private timer = 0;

  constructor(
    private readonly session: Session,
    private readonly navigate: (path: string) => void
  ) {
    this.board = new Board(uci => void this.move(uci));
    this.list = new MoveList(session);
    this.box = new GameBox(
      session,
      () => ({
        white: this.name(0),
        black: this.name(1),
        result: this.result,
        termination: this.ended?.reason ?? '',
      }),
      () => this.begin()
    );
    this.level = preferences.play('level', 'elo:1400');
    this.element = h(
      'div',
      { class: 'game' },
      h('div', { class: 'table' }, this.board.element),
      h(
        'div',
        { class: 'side' },
        this.settings,
        this.status,
        this.controls,
        stepButtons(session),
        this.list.element,
        moveBox(session, uci => void this.move(uci)),
        this.box.element
      )
    );
    this.board.element.prepend(this.bars[1]);
    this.board.element.append(this.bars[0]);
    session.onchange(() => this.draw());
    document.addEventListener('visibilitychange', () => this.tick());
  }

  /** Show the game of the session; the page was opened or came back. */
  show(): void {
    if (this.net === 'packaged' || !this.session.look) this.net = this.usualNet();
    if (!this.session.look) return;
    this.drawSettings();
    this.draw();
    void this.think();
  }

  hide(): void {
    this.stopThinking();
    this.stopClock();
  }

  private usualNet(): string {
    const choices = opponentChoices(this.session.variant);
    const kept = preferences.play('net', 'packaged');
    return (choices.find(one => one.value === kept) ?? choices[0])?.value ?? 'uniform';
  }

  /** Start the game that the session has, from its beginning. */
  begin(): void {
    this.stopThinking();
    this.ended = undefined;

    const chosen = preferences.play('side', '0');
    this.side =
      chosen === 'both'
        ? -1
        : chosen === 'random'
          ? ((Math.random() < 0.5 ? 0 : 1) as 0 | 1)
          : (Number(chosen) as 0 | 1);
    this.net = this.usualNet();
    this.board.flip(this.side === 1);
    this.startClock();
    if (this.side !== -1) this.warm();
    this.drawSettings();
    this.draw();
    void this.think();
  }

  /** Have the net loaded while the first move is thought about. */
  private warm(): void {
    talk
      .ask({ type: 'policy', ...this.session.game(this.session.tree.root), net: this.net })
      .catch(() => undefined);
  }

  private async newGame(variant = listName(this.session.variant)): Promise<void> {
    this.stopThinking();
    try {
      await this.session.open(await serverName(variant));
      preferences.variant = variant;
      this.begin();
    } catch (error) {
      this.status.textContent = (error as Error).message;
    }
  }

  // --- moves -----------------------------------------------------------------------------------

  private get isTurn(): boolean {
    const turn = this.session.position?.turn;
    return this.side === -1 || turn === this.side;
  }

  private get isOver(): boolean {
    return !!this.ended || !!this.session.tree.current.end.position?.outcome;
  }

  private get atEnd(): boolean {
    return !this.session.tree.current.children.length;
  }

  private get result(): string {
    return this.ended?.result ?? this.session.tree.current.end.position?.outcome?.result ?? '*';
  }

  private async move(uci: string): Promise<void> {
    if (!this.isTurn || this.ended || !this.atEnd) {
      this.draw();
      return;
    }
    this.press();
    await this.session.play(uci);
    await this.think();
  }

  /** Let the opponent move if it is its turn. */
  private async think(): Promise<void> {
    const { session } = this;
    if (this.thinking || this.isTurn || this.isOver || !this.atEnd || !session.look) return;
    const node = session.tree.current;
    const [kind, number] = this.level.split(':');
    const message: Record<string, unknown> = {
      type: 'search',
      ...session.game(),
      net: this.net,
      [kind]: Number(number),
    };
    if (this.clock && kind !== 'elo')
      message.clock = {
        left: Math.max(this.clock.left[session.position!.turn], 0),
        increment: this.clock.increment,
      };
    const stream = talk.stream(message);
    this.thinking = stream;
    this.draw();
    try {
      const answer = (await stream.done) as SearchAnswer;
      if (this.thinking !== stream) return;
      this.thinking = undefined;
      if (answer.best && session.tree.current.end === node && !this.ended) {

        this.press();
        session.tree.current = node;
        await session.play(answer.best);
      }
    } catch (error) {
      this.thinking = undefined;
      this.status.textContent = (error as Error).message;
    }
    this.draw();
    if (this.side === -1) return;
    await this.think();
  }

  private stopThinking(): void {
    this.thinking?.drop();
    this.thinking = undefined;
  }

  private takeBack(): void {
    const { session } = this;
    this.stopThinking();
    this.ended = undefined;
    let node = session.tree.current.end;
    const first = session.position ? session.tree.root.position?.turn : 0;
    const turnAt = (depth: number) => ((first ?? 0) + depth) % 2;
    if (node.parent) node = node.parent;
    if (this.side !== -1 && turnAt(node.depth) !== this.side && node.parent) node = node.parent;
    node.children = [];
    void session.go(node).then(() => this.think());
  }

  private resign(): void {
    this.stopThinking();
    const loser = this.side === -1 ? (this.session.position?.turn ?? 0) : this.side;
    this.end(loser ? '1-0' : '0-1', 'resignation');
  }

  private end(result: string, reason: string): void {
    this.ended = { result, reason };
    this.stopClock();
    announce(`${result}, ${reason}`);
    this.draw();
  }

  // --- clock -----------------------------------------------------------------------------------

  private startClock(): void {
    this.stopClock();
    const text = preferences.play('clock', '');
    if (!text) {
      this.clock = undefined;
      return;
    }
    const [base, increment] = text.split('+').map(Number);
    this.clock = { left: [base, base], increment, since: performance.now() };
    this.timer = window.setInterval(() => this.tick(), 200);
  }

  private stopClock(): void {
    window.clearInterval(this.timer);
  }

  /** Take the time since the last look from the player to move. */
  private tick(): void {
    const { clock, session } = this;
    if (!clock || this.isOver || !session.position) return;
    const now = performance.now();
    const end = session.tree.current.end;
    // the clock runs from each player's second move on
    if (end.depth >= 2) {
      const turn = (end.position?.turn ?? session.position.turn) as 0 | 1;
      clock.left[turn] -= (now - clock.since) / 1000;
      if (clock.left[turn] <= 0) {
        clock.left[turn] = 0;
        this.stopThinking();
        this.end(turn ? '1-0' : '0-1', 'time forfeit');
      }
    }
    clock.since = now;
    this.drawBars();
  }

  private press(): void {
    const { clock, session } = this;
    if (!clock) return;
    this.tick();
    if (session.tree.current.depth >= 2) clock.left[session.position!.turn] += clock.increment;
  }

  // --- drawing ---------------------------------------------------------------------------------

  private name(colour: 0 | 1): string {
    if (this.side === -1 || colour === this.side) return 'You';
    return opponentChoices(this.session.variant).find(one => one.value === this.net)?.text ?? this.net;
  }

  private drawBars(): void {
    const { session, board } = this;
    if (!session.look) return;
    for (const colour of [0, 1] as const) {
      const bar = this.bars[(colour === 1) === board.flipped ? 0 : 1];
      const turn = !this.isOver && session.position?.turn === colour;
      const thinks = turn && !!this.thinking;
      const left = this.clock?.left[colour];
      bar.classList.toggle('turn', turn);
      replace(
        bar,
        h('span', { class: `dot ${colour ? 'second' : 'first'}`, 'aria-hidden': 'true' }),
        h('strong', {}, this.name(colour)),
        h('span', { class: 'faint' }, session.look.players[colour]),
        thinks ? h('span', { class: 'faint thinking' }, 'thinking …') : null,
        left === undefined ? null : h('span', { class: `clock${left < 20 ? ' low' : ''}` }, clockText(left))
      );
    }
  }

  private draw(): void {
    const { session, board } = this;
    if (!session.look || !this.element.isConnected) return;
    board.setVariant(session.look);
    if (session.position)
      board.setPosition(
        session.position,
        session.tree.current.uci || undefined,
        this.isOver || !this.atEnd ? 'none' : this.side === -1 ? 'both' : this.side
      );
    this.drawBars();
    this.list.draw();
    this.box.draw();
    const outcome = session.tree.current.end.position?.outcome;
    this.status.textContent =
      session.error ||
      (this.ended
        ? `${this.ended.result}, ${this.ended.reason}`
        : outcome
          ? `${outcome.result}, ${outcome.reason}${outcome.detail ? ` (${outcome.detail})` : ''}`
          : this.thinking
            ? 'The opponent thinks …'
            : this.isTurn
              ? 'Your move.'
              : '');
    this.status.classList.toggle('over', this.isOver);
    if (this.isOver) this.stopClock();
    replace(
      this.controls,
      board.passButton(),
      button('New game', () => void this.newGame(), { class: 'main' }),
      button('Take back', () => this.takeBack(), { disabled: !session.tree.current.end.parent }),
      button('Resign', () => this.resign(), { disabled: this.isOver }),
      button('Flip', () => this.flip()),
      button('Analyse', () => this.navigate('/analyse'))
    );
    history.replaceState(null, '', `${location.pathname}?${session.address}`);
  }

  flip(): void {
    this.board.flip();
    this.draw();
  }

  private drawSettings(): void {
    const { session } = this;
    const remember = (name: string) => (value: string) => {
      preferences.setPlay(name, value);
      this.begin();
    };
    replace(
      this.settings,
      field(
        'Variant',
        select(variantChoices(), listName(session.variant), value => void this.newGame(value), {
          'data-control': 'variant',
        })
      ),
      field(
        'Opponent',
        select(opponentChoices(session.variant), this.net, value => {
          preferences.setPlay('net', value);
          this.stopThinking();
          this.net = value;
          this.draw();
          void this.think();
        })
      ),
      field(
        'Strength',
        select(LEVELS, this.level, value => {
          preferences.setPlay('level', value);
          this.level = value;
        })
      ),
      field('You are', select(SIDES, preferences.play('side', '0'), remember('side'))),
      field('Clock', select(CLOCKS, preferences.play('clock', ''), remember('clock'))),
      field(
        'Pieces',
        select(
          Object.entries(session.look?.styles ?? {}).map(([value, text]) => ({ value, text })),
          preferences.style,
          value => {
            preferences.style = value;
            void session.restyle();
          }
        )
      ),
      field(
        'Notation',
        select(notationChoices(session), session.notation, value => chooseNotation(session, value))
      )
    );
  }
}

export function scoreText(value: number): string {
  return `${value >= 0 ? '+' : '−'}${Math.abs(value).toFixed(2)}`;
}

function clockText(seconds: number): string {
  const whole = Math.max(Math.ceil(seconds), 0);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`;
}
