// The input planes of the net, as small pictures.

import { connection } from './connection';
import { button, disclosure, h, replace } from './dom';
import type { Session } from './session';

const CELL = 6;

export class PlanesBox {
  private readonly body = h('div', { class: 'planes' });
  private readonly problem = h('small', { class: 'problem', role: 'alert' });
  readonly element: HTMLElement;

  constructor(
    private readonly session: Session,
    private readonly net: () => string
  ) {
    this.element = disclosure(
      'What the net sees',
      'The input planes of this position, from the view of the player to move, whose first rank is below.',
      button('Show the input planes', () => void this.open()),
      this.problem,
      this.body
    );
  }

  refresh(): void {
    if ((this.element as HTMLDetailsElement).open && this.body.childElementCount) void this.open();
  }

  private async open(): Promise<void> {
    const node = this.session.tree.current;
    try {
      const answer = await connection.ask({ type: 'planes', ...this.session.game(), net: this.net() });
      if (node !== this.session.tree.current) return;
      this.problem.textContent = '';
      const files = answer.files as number;
      const ranks = answer.ranks as number;
      const names = answer.names as string[];
      replace(
        this.body,
        ...(answer.planes as number[][]).map((plane, index) =>
          h('figure', {}, picture(plane, files, ranks, names[index]), h('figcaption', {}, names[index]))
        )
      );
    } catch (error) {
      this.problem.textContent = (error as Error).message;
    }
  }
}

/** Draw a value for each square, from the rank of the player to move upwards. */
export function picture(
  plane: number[],
  files: number,
  ranks: number,
  label: string,
  most = 1
): HTMLCanvasElement {
  const canvas = h('canvas', {
    width: files * CELL,
    height: ranks * CELL,
    role: 'img',
    'aria-label': `${label}: ${plane.filter(value => value).length} squares`,
  });
  const context = canvas.getContext('2d')!;
  plane.forEach((value, square) => {
    const strength = Math.min(Math.abs(value) / most, 1);
    const colour = value < 0 ? '176 74 52' : '28 110 140';
    context.fillStyle = strength ? `rgb(${colour} / ${25 + 75 * strength}%)` : '#e9e4da';
    const row = ranks - 1 - Math.floor(square / files);
    context.fillRect((square % files) * CELL, row * CELL, CELL - 1, CELL - 1);
  });
  return canvas;
}
