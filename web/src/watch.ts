// Runs of `train` and `reinforce`: curves, ladder, and games of a generation on the board.

import { Board } from './board';
import { chart, COLOURS, type Series } from './chart';
import { connection } from './connection';
import { button, h, redraw, replace, select } from './dom';
import { preferences } from './preferences';
import { Session } from './session';
import type { Answer } from './types';
import { keepNet, variantChoices } from './variants';

const EVERY = 5000;

interface Run {
  name: string;
  changed: number;
  kind?: 'train' | 'reinforce';
  variant?: string;
  net?: boolean;
  error?: string;
}

interface Curve {
  title: string;
  series: { name: string; points: [number, number][] }[];
}

interface Shown extends Answer, Run {
  name: string;
  facts: [string, string][];
  curves: Curve[];
  ladder: [number, number, number][];
  generations: number[];
}

interface RunGame {
  number: number;
  result: string;
  termination: string;
  fen: string | null;
  moves: string[];
  values: (number | null)[] | null;
}

export class WatchView {
  readonly element: HTMLElement;
  private readonly list = h('ul', { class: 'runs' });
  private readonly body = h('div', { class: 'run' });
  private readonly replay = new Replay();
  private timer = 0;
  private chosen = '';
  private generation = 0;

  constructor(
    private readonly session: Session,
    private readonly navigate: (path: string) => void
  ) {
    this.element = h(
      'div',
      { class: 'watch' },
      h('section', { class: 'card', 'aria-label': 'Runs' }, h('h1', {}, 'Runs'), this.list),
      this.body
    );
  }

  async show(): Promise<void> {
    window.clearInterval(this.timer);
    this.timer = window.setInterval(() => void this.refresh(), EVERY);
    if (!this.list.hasChildNodes()) replace(this.list, h('li', { class: 'faint' }, 'Loading …'));
    await this.refresh(); // the visitor may leave meanwhile
  }

  hide(): void {
    window.clearInterval(this.timer);
    this.replay.stop();
  }

  private async refresh(): Promise<void> {
    try {
      const answer = await connection.ask({ type: 'runs' });
      const runs = answer.runs as Run[];
      for (const run of runs)
        if (run.net && run.variant) keepNet(run.variant, `run:${run.name}`, `Run ${run.name}`);
      if (!this.chosen && runs.length) this.chosen = runs[0].name;
      const changed = JSON.stringify([runs, this.chosen]);
      if (this.list.dataset.shown !== changed) {
        this.list.dataset.shown = changed;
        this.drawList(runs);
        if (this.chosen) await this.load();
      }
    } catch (error) {
      delete this.list.dataset.shown; // the next answer replaces this
      replace(this.list, h('li', { class: 'problem' }, (error as Error).message));
    }
  }

  private drawList(runs: Run[]): void {
    if (!runs.length) {
      replace(
        this.list,
        h(
          'li',
          { class: 'faint' },
          'There is no run yet. `variant-ai reinforce -V NAME --minutes 10` starts one in the folder runs/; `variant-ai web --runs FOLDER` shows those of another folder.'
        )
      );
      return;
    }
    redraw(
      this.list,
      ...runs.map(run =>
        h(
          'li',
          {},
          button(
            run.name,
            () => {
              this.chosen = run.name;
              this.generation = 0;
              void this.refresh();
            },
            { 'aria-current': run.name === this.chosen ? 'true' : null }
          ),
          h(
            'small',
            {},
            run.error ??
              `${run.variant}, ${run.kind === 'train' ? 'training' : 'self-play'}, ${ago(run.changed)}`
          )
        )
      )
    );
  }

  private async load(): Promise<void> {
    const { chosen } = this;
    try {
      const shown = await connection.ask<Shown>({ type: 'run', run: chosen });
      if (chosen !== this.chosen) return;
      this.draw(shown);
    } catch (error) {
      replace(this.body, h('p', { class: 'problem card' }, (error as Error).message));
    }
  }

  private draw(shown: Shown): void {
    const problem = h('p', { class: 'problem', role: 'alert' });
    const play = () => {
      problem.textContent = '';
      this.play(shown).catch((error: Error) => {
        problem.textContent = variantChoices().some(one => one.value === shown.variant)
          ? error.message
          : `The server does not have the variant ${shown.variant}: save its spec in ~/.config/variant-ai/specs and start the server again.`;
      });
    };
    const parts: HTMLElement[] = [
      h(
        'section',
        { class: 'card' },
        h('h1', {}, shown.name),
        h(
          'dl',
          { class: 'facts' },
          ...[['variant', shown.variant ?? ''], ...shown.facts].flatMap(([name, value]) => [
            h('dt', {}, name),
            h('dd', {}, value),
          ])
        ),
        shown.net
          ? button('Play against its newest net', play, { class: 'main' })
          : h('p', { class: 'faint' }, 'There is no net to play against yet.'),
        problem
      ),
    ];
    if (shown.generations.length) parts.push(this.games(shown));
    if (shown.ladder.length > 1) parts.push(this.ladder(shown));
    const by = shown.kind === 'train' ? 'step' : 'generation';
    parts.push(
      h(
        'section',
        { class: 'card' },
        h('h2', {}, `Curves, by ${by}`),
        h(
          'div',
          { class: 'curves' },
          ...shown.curves.map(curve => h('div', {}, h('h3', {}, curve.title), drawn(curve, by)))
        )
      )
    );
    redraw(this.body, ...parts);
  }

  private ladder(shown: Shown): HTMLElement {
    const points = shown.ladder.map(([number, elo]) => [number, elo] as [number, number]);
    return h(
      'section',
      { class: 'card' },
      h('h2', {}, 'Elo, from matches between the generations'),
      chart([{ name: 'Elo', colour: COLOURS[2], points }], {
        label: `Elo of ${points.length} generations`,
        zero: 0,
        width: 640,
        height: 190,
      }),
      h(
        'div',
        { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': 'Table of Elo' },
        h(
          'table',
          {},
          h('thead', {}, h('tr', {}, ...['generation', 'Elo', 'error'].map(text => h('th', { scope: 'col' }, text)))),
          h(
            'tbody',
            {},
            ...shown.ladder
              .slice(-12)
              .reverse()
              .map(([number, elo, error]) =>
                h('tr', {}, ...[String(number), elo.toFixed(0), `± ${error.toFixed(0)}`].map(text => h('td', {}, text)))
              )
          )
        )
      )
    );
  }

  private games(shown: Shown): HTMLElement {
    const list = h('ul', { class: 'rungames' });
    const open = async (generation: number, first = 0) => {
      try {
        const answer = await connection.ask({ type: 'games', run: shown.name, generation, first });
        const games = answer.games as RunGame[];
        const next = first + games.length;
        more.hidden = !games.length || next >= Number(answer.count);
        more.onclick = () => void open(generation, next);
        if (!first) replace(list);
        list.append(
          ...games.map(game =>
            h(
              'li',
              {},
              button(
                `Game ${game.number}: ${game.result}, ${game.termination || 'unfinished'}, ${game.moves.length} plies`,
                () => void this.replay.open(String(answer.variant), game)
              )
            )
          )
        );
        if (games.length && !this.replay.isOpen) await this.replay.open(String(answer.variant), games[0]);
      } catch (error) {
        replace(list, h('li', { class: 'problem' }, (error as Error).message));
      }
    };
    const more = h('button', { type: 'button', hidden: true }, 'More games');
    const newest = shown.generations[shown.generations.length - 1];
    const chosen = this.generation || newest;
    void open(chosen);
    const choice = select(
      [...shown.generations].reverse().map(number => ({ value: String(number), text: `generation ${number}` })),
      String(chosen),
      value => {
        this.generation = Number(value);
        void open(this.generation);
      },
      { 'aria-label': 'Generation' }
    );
    return h(
      'section',
      { class: 'card' },
      h('h2', {}, 'Games of self-play'),
      h('div', { class: 'replay' }, this.replay.element, h('div', {}, choice, list, more))
    );
  }

  private async play(shown: Shown): Promise<void> {
    await this.session.open(shown.variant ?? '');
    preferences.setPlay('net', `run:${shown.name}`);
    this.navigate('/');
  }
}

/** A small board on which a game plays itself. */
class Replay {
  private readonly session = new Session();
  private readonly board = new Board(() => undefined);
  private readonly caption = h('p', { class: 'faint' });
  private timer = 0;
  readonly element: HTMLElement;

  constructor() {
    const { session } = this;
    const step = (by: number) => {
      this.stop();
      const { current } = session.tree;
      const next = by > 0 ? current.children[0] : current.parent;
      if (next) void session.go(next);
    };
    this.element = h(
      'div',
      { class: 'small' },
      this.board.element,
      this.caption,
      h(
        'div',
        { class: 'row' },
        button('◀', () => step(-1), { 'aria-label': 'Back' }),
        button('Play', () => this.play(), { 'aria-label': 'Play the game' }),
        button('▶', () => step(1), { 'aria-label': 'Forward' })
      )
    );
    session.onchange(() => this.draw());
  }

  get isOpen(): boolean {
    return !!this.session.look;
  }

  async open(variant: string, game: RunGame): Promise<void> {
    this.stop();
    try {
      await this.session.open(variant, game.fen, game.moves);
      this.play();
    } catch (error) {
      this.caption.textContent = (error as Error).message;
    }
  }

  private play(): void {
    this.stop();
    const { tree } = this.session;
    if (!tree.current.children.length) void this.session.go(tree.root);
    const next = () => {
      const node = this.session.tree.current.children[0];
      if (node) void this.session.go(node);
      else this.stop();
    };
    this.timer = window.setInterval(next, 900);
  }

  stop(): void {
    window.clearInterval(this.timer);
  }

  private draw(): void {
    const { session, board } = this;
    if (!session.look || !session.position) return;
    board.setVariant(session.look);
    const node = session.tree.current;
    board.setPosition(session.position, node.uci || undefined, 'none');
    const { outcome } = session.position;
    this.caption.textContent = node.parent
      ? `${session.number(node)} ${node.written}${outcome ? ` ${outcome.result}` : ''}`
      : 'Start';
  }
}

function drawn(curve: Curve, by: string): HTMLElement {
  const series: Series[] = curve.series.map((one, index) => ({
    name: one.name,
    colour: COLOURS[index % COLOURS.length],
    points: one.points,
  }));
  return chart(series, { label: `${curve.title}, by ${by}`, width: 420, height: 170 });
}

function ago(changed: number): string {
  const minutes = (Date.now() / 1000 - changed) / 60;
  if (minutes < 1) return 'changed just now';
  if (minutes < 90) return `changed ${Math.round(minutes)} minutes ago`;
  if (minutes < 60 * 36) return `changed ${Math.round(minutes / 60)} hours ago`;
  return `changed ${Math.round(minutes / 1440)} days ago`;
}
