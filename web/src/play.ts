// Play a game against a net.

import { Board } from './board';
import { GameClock } from './clock';
import { connection, type Stream } from './connection';
import { announce, button, field, h, redraw, replace, select } from './dom';
import { GameBox, chooseNotation, moveBox, notationChoices } from './gamebox';
import { MoveList, stepButtons } from './movelist';
import { preferences } from './preferences';
import type { Session } from './session';
import type { GameTree } from './tree';
import type { SearchAnswer } from './types';
import { listName, opponentChoices, searchLimit, serverName, variantChoices } from './variants';

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
const RESIGNATION = 'resignation';
const SIDES = [
  { value: '0', text: 'first player' },
  { value: '1', text: 'second player' },
  { value: 'random', text: 'random' },
  { value: 'both', text: 'both: no opponent' },
];

export class PlayView {
  readonly element: HTMLElement;
  private readonly board: Board;
  private readonly list: MoveList;
  private readonly box: GameBox;
  private readonly settings = h('div', { class: 'settings' });
  private readonly bars = [h('div', { class: 'player' }), h('div', { class: 'player' })];
  private readonly status = h('p', { class: 'status', role: 'status' });
  private readonly controls = h('div', { class: 'row wrap controls' });
  private readonly again = button('Try again', () => this.tryAgain(), { class: 'main' });
  private readonly back = button('Take back', () => void this.takeBack());
  private readonly giveUp = button('Resign', () => this.resign());
  /** The game that is played; another one in the session has to be taken over first. */
  private tree: GameTree | undefined;
  private shown = false;
  private thinking: Stream | undefined;
  /** Why the opponent did not move; it does not try again by itself. */
  private failed = '';
  private net = 'packaged';
  private level = 'elo:1400';
  private clock: GameClock | undefined;
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
        termination: session.facts.ended?.reason ?? '',
      }),
      () => this.begin()
    );
    this.level = preferences.play('level', 'elo:1400');
    replace(
      this.controls,
      this.again,
      this.board.pass,
      button('New game', () => void this.newGame(), { class: 'main' }),
      this.back,
      this.giveUp,
      button('Flip', () => this.flip()),
      button('Analyse', () => this.navigate('/analyse'))
    );
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
        moveBox(session, uci => void this.move(uci), () => this.refusal),
        this.box.element
      )
    );
    this.board.element.prepend(this.bars[1]);
    this.board.element.append(this.bars[0]);
    session.onchange(() => {
      if (!this.shown || this.tree !== session.tree) return;
      this.draw();
      void this.think();
    });
    document.addEventListener('visibilitychange', () => this.tick());
    window.addEventListener('pagehide', () => this.keepClock());
  }

  /** Show the game of the session; the page was opened or came back. */
  show(): void {
    const { session } = this;
    this.shown = true;
    if (!session.look) return;
    if (this.tree === session.tree) {
      this.runClock();
      this.drawSettings();
      this.draw();
      void this.think();
    } else if (session.facts.side === undefined) this.begin();
    else {
      this.clock = GameClock.kept(session.address);
      this.takeOver();
    }
  }

  hide(): void {
    this.keepClock();
    this.shown = false;
    this.stopThinking();
    this.stopClock();
  }

  private get side(): 0 | 1 | -1 {
    return this.session.facts.side ?? 0;
  }

  private usualNet(): string {
    const choices = opponentChoices(this.session.variant);
    const kept = preferences.play('net', 'packaged');
    return (choices.find(one => one.value === kept) ?? choices[0])?.value ?? 'uniform';
  }

  /** Play the game that the session has, by the settings. */
  begin(): void {
    const { facts } = this.session;
    if (!facts.ended) facts.white = facts.black = undefined; // others began it
    const chosen = preferences.play('side', '0');
    facts.side =
      chosen === 'both'
        ? -1
        : chosen === 'random'
          ? ((Math.random() < 0.5 ? 0 : 1) as 0 | 1)
          : (Number(chosen) as 0 | 1);
    this.clock = GameClock.of(preferences.play('clock', ''));
    this.takeOver();
  }

  /** Sit down at the game of the session. */
  private takeOver(): void {
    this.stopThinking();
    this.failed = '';
    this.tree = this.session.tree;
    this.net = this.usualNet();
    this.board.flip(this.side === 1);
    this.runClock();
    if (this.side !== -1 && !this.isOver) this.warm();
    this.drawSettings();
    this.draw();
    void this.think();
  }

  /** Have the net loaded while the first move is thought about. */
  private warm(): void {
    connection
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
      this.session.error = (error as Error).message;
      this.drawSettings();
      this.draw();
      void this.think();
    }
  }

  // --- moves -----------------------------------------------------------------------------------

  private get isTurn(): boolean {
    const turn = this.session.position?.turn;
    return this.side === -1 || turn === this.side;
  }

  private get isOver(): boolean {
    const { facts, tree } = this.session;
    return !!facts.ended || !!tree.current.end.position?.outcome;
  }

  private get atEnd(): boolean {
    return !this.session.tree.current.children.length;
  }

  private get result(): string {
    const { facts, tree } = this.session;
    return facts.ended?.result ?? tree.current.end.position?.outcome?.result ?? '*';
  }

  /** Why the visitor cannot move; empty: it is the visitor's turn. */
  private get refusal(): string {
    if (this.isOver) return 'The game is over.';
    if (!this.atEnd) return 'An earlier position: go to the end of the moves to play on.';
    return this.isTurn ? '' : "It is the opponent's turn.";
  }

  private async move(uci: string): Promise<void> {
    if (this.refusal) {
      this.draw();
      return;
    }
    this.press();
    if (!this.isOver) await this.session.play(uci); // else the time was up
  }

  /** Let the opponent move if it is its turn. */
  private async think(): Promise<void> {
    const { session } = this;
    if (!this.shown || !session.look || this.thinking || this.failed) return;
    if (session.shown !== session.tree.current) return; // a step is under way
    if (this.isTurn || this.isOver || !this.atEnd) return;
    const node = session.tree.current;
    const [kind, wanted] = this.level.split(':');
    const most = kind === 'nodes' || kind === 'seconds' ? searchLimit(kind) : Infinity;
    const message: Record<string, unknown> = {
      type: 'search',
      ...session.game(),
      net: this.net,
      [kind]: Math.min(Number(wanted), most),
    };
    if (this.clock && kind !== 'elo') message.clock = this.clock.message(session.position!.turn);
    const stream = connection.stream(message);
    this.thinking = stream;
    this.draw();
    try {
      const answer = (await stream.done) as SearchAnswer;
      if (this.thinking !== stream) return;
      if (!answer.best) throw new Error('The opponent found no move.');
      if (session.tree.current.end === node) {
        this.press();
        if (this.isOver) return; // the time was up
        session.tree.current = node;
        await session.play(answer.best);
        this.failed = session.error;
      }
    } catch (error) {
      if (this.thinking === stream) this.failed = (error as Error).message;
    }
    if (this.thinking !== stream) return;
    this.thinking = undefined;
    this.draw();
    await this.think();
  }

  private tryAgain(): void {
    this.failed = this.session.error = '';
    this.draw();
    void this.think();
  }

  private stopThinking(): void {
    this.thinking?.drop();
    this.thinking = undefined;
  }

  private async takeBack(): Promise<void> {
    const { session } = this;
    this.stopThinking();
    this.failed = '';
    const { ended } = session.facts;
    let node = session.tree.current.end;
    const moved = ended?.reason !== RESIGNATION; // else that is taken back
    if (moved && node.parent) node = node.parent;
    if (moved && this.side !== -1 && session.turnAt(node.depth) !== this.side && node.parent) node = node.parent;
    session.facts.ended = undefined;
    await session.cut(node);
    if (session.error) session.facts.ended = ended;
    else this.clock?.refill();
    this.runClock();
    this.draw();
  }

  private resign(): void {
    const { session } = this;
    this.stopThinking();
    const loser = this.side === -1 ? session.turnAt(session.tree.current.end.depth) : this.side;
    this.end(loser ? '1-0' : '0-1', RESIGNATION);
  }

  private end(result: string, reason: string): void {
    this.session.facts.ended = { result, reason };
    announce(`${result}, ${reason}`);
    this.draw();
  }

  // --- clock -----------------------------------------------------------------------------------

  private runClock(): void {
    this.stopClock();
    if (!this.clock || this.isOver) return;
    this.clock.restart();
    this.timer = window.setInterval(() => this.tick(), 200);
  }

  private keepClock(): void {
    if (!this.shown || this.tree !== this.session.tree) return;
    this.tick();
    this.clock?.keep(this.session.address);
  }

  private stopClock(): void {
    window.clearInterval(this.timer);
  }

  /** Take the time since the last look from the player to move. */
  private tick(): void {
    const { clock, session } = this;
    if (!clock || !this.shown || this.isOver) return;
    const { end } = session.tree.current;
    // the clock runs from each player's second move on
    const turn = end.depth >= 2 ? session.turnAt(end.depth) : undefined;
    clock.take(turn);
    if (turn !== undefined && clock.left[turn] <= 0) {
      this.stopThinking();
      this.end(turn ? '1-0' : '0-1', 'time forfeit');
    }
    this.drawBars();
  }

  /** A move is made at the end of the game. */
  private press(): void {
    const { clock, session } = this;
    if (!clock) return;
    this.tick();
    const { depth } = session.tree.current.end;
    if (depth >= 2) clock.press(session.turnAt(depth));
  }

  // --- drawing ---------------------------------------------------------------------------------

  private name(colour: 0 | 1): string {
    const { ended, white, black } = this.session.facts;
    const other = ended && (colour ? black : white); // of a game that was pasted
    if (other) return other;
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
    if (!session.look || !this.shown) return;
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
    const { ended } = session.facts;
    this.status.textContent =
      session.error ||
      this.failed ||
      (ended
        ? `${ended.result}, ${ended.reason}`
        : outcome
          ? `${outcome.result}, ${outcome.reason}${outcome.detail ? ` (${outcome.detail})` : ''}`
          : this.thinking
            ? 'The opponent thinks …'
            : this.isTurn || !this.atEnd
              ? this.refusal || 'Your move.'
              : '');
    this.status.classList.toggle('over', this.isOver);
    if (this.isOver) this.stopClock();
    this.again.hidden = !this.failed;
    this.back.disabled = !session.tree.current.end.parent && ended?.reason !== RESIGNATION;
    this.giveUp.disabled = this.isOver;
    session.keepAddress();
  }

  flip(): void {
    this.board.flip();
    this.draw();
  }

  private drawSettings(): void {
    const { session } = this;
    const chosen = preferences.play('side', '0');
    const side = chosen === 'random' ? chosen : this.side === -1 ? 'both' : String(this.side);
    const remember = (name: string) => (value: string) => {
      preferences.setPlay(name, value);
      this.begin();
    };
    redraw(
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
          this.tryAgain();
        })
      ),
      field(
        'Strength',
        select(LEVELS, this.level, value => {
          preferences.setPlay('level', value);
          this.level = value;
          if (this.failed) this.tryAgain();
        })
      ),
      field('You are', select(SIDES, side, remember('side'))),
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
