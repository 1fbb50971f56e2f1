// Lines of play of a search, and the bar with the chances of a win. Both change several times a second,
// so their elements stay and change what they say: a click or the focus is not lost.

import { connection } from './connection';
import { button, h, replace } from './dom';
import { scoreText } from './play';
import type { Session } from './session';
import type { GameNode } from './tree';
import type { Line, SearchAnswer } from './types';

const SHOWN_PLIES = 10;

interface Row {
  element: HTMLElement;
  score: HTMLElement;
  moves: HTMLElement;
  about: HTMLElement;
}

export class LinesBox {
  private readonly bar = h('div', { class: 'wdl', role: 'img', hidden: true });
  private readonly list = h('ol', { class: 'lines-of-play' });
  private readonly rows: Row[] = [];
  private readonly parts = ['first', 'draw', 'second'].map(name => h('span', { class: name }));
  private answer: SearchAnswer | undefined;
  private written: string[][] = [];
  private writing = false;
  readonly elements = [this.bar, this.list];

  constructor(private readonly session: Session) {
    this.bar.append(...this.parts);
  }

  clear(): void {
    this.answer = undefined;
    this.written = [];
    this.rows.length = 0;
    replace(this.list);
    this.bar.hidden = true;
  }

  /** Show an answer of the search of a position. */
  show(node: GameNode, answer: SearchAnswer): void {
    this.answer = answer;
    this.draw();
    void this.write(node, answer);
  }

  /** Write the lines in the notation that was chosen, not more often than answers arrive. */
  private async write(node: GameNode, answer: SearchAnswer): Promise<void> {
    if (this.writing) return;
    this.writing = true;
    try {
      const found = await connection.ask({
        type: 'line',
        ...this.session.game(node),
        notation: this.session.notation,
        lines: answer.lines.map(line => line.pv.slice(0, SHOWN_PLIES)),
      });
      if (this.answer === answer) {
        this.written = found.lines as string[][];
        this.draw();
      }
    } catch {
      // the position changed
    } finally {
      this.writing = false;
    }
  }

  private draw(): void {
    const lines = this.answer?.lines ?? [];
    while (this.rows.length > lines.length) this.rows.pop()!.element.remove();
    while (this.rows.length < lines.length) this.rows.push(this.row(this.rows.length));
    for (const [index, line] of lines.entries()) {
      const { score, moves, about } = this.rows[index];
      score.className = line.value >= 0 ? 'good' : 'bad';
      score.textContent = lineScore(line);
      moves.textContent = (this.written[index] ?? line.pv.slice(0, SHOWN_PLIES)).join(' ');
      about.textContent = `${line.visits.toLocaleString('en')} · ${(100 * line.prior).toFixed(0)} %`;
    }
    if (lines.length) this.drawBar(lines[0], this.session.position?.turn ?? 0);
  }

  private row(index: number): Row {
    const play = () => {
      const line = this.answer?.lines[index];
      if (line) void this.session.play(line.move);
    };
    const score = h('strong');
    const moves = button('', play, { class: 'pv', title: 'Play the first move' });
    const about = h('small');
    const element = h('li', {}, score, moves, about);
    this.list.append(element);
    return { element, score, moves, about };
  }

  private drawBar(line: Line, turn: 0 | 1): void {
    const [win, draw, loss] = line.wdl ?? [(1 + line.value) / 2, 0, (1 - line.value) / 2];
    const shares = turn ? [loss, draw, win] : [win, draw, loss];
    const names = this.session.look?.players ?? ['first', 'second'];
    for (const [index, share] of shares.entries()) {
      this.parts[index].style.width = `${100 * share}%`;
      this.parts[index].textContent = share > 0.12 ? `${Math.round(100 * share)}` : '';
    }
    this.bar.hidden = false;
    this.bar.setAttribute(
      'aria-label',
      `${names[0]} wins ${Math.round(100 * shares[0])} %, draw ${Math.round(100 * shares[1])} %, ${names[1]} wins ${Math.round(100 * shares[2])} %`
    );
  }
}

function lineScore(line: Line): string {
  return line.mate === null ? scoreText(line.value) : `#${line.mate}`;
}
