// The search tree, opened level by level.

import { connection } from './connection';
import { button, disclosure, h, replace } from './dom';
import { scoreText } from './play';
import type { Session } from './session';

interface Branch {
  move: string;
  visits: number;
  prior: number;
  value: number;
  mate: number;
  open: boolean;
}

export class TreeBox {
  private readonly body = h('div', {});
  private readonly problem = h('small', { class: 'problem', role: 'alert' });
  readonly element: HTMLElement;

  constructor(
    private readonly session: Session,
    private readonly net: () => string
  ) {
    this.element = disclosure(
      'What each visit went to',
      'The tree of the search of this position. Each move shows its visits, the prior of the net, and its value for the player who makes it.',
      button('Show the tree as it is now', () => void this.open([], this.body)),
      this.problem,
      this.body
    );
  }

  clear(): void {
    replace(this.body);
    this.problem.textContent = '';
  }

  private async open(line: string[], into: HTMLElement): Promise<void> {
    try {
      const answer = await connection.ask({
        type: 'tree',
        ...this.session.game(),
        net: this.net(),
        line,
      });
      this.problem.textContent = '';
      const branches = (answer.moves as Branch[]).filter(one => one.visits > 0 || one.mate);
      const most = Math.max(...branches.map(one => one.visits), 1);
      if (!branches.length) {
        replace(into, h('small', {}, 'Nothing was searched below yet.'));
        return;
      }
      replace(into, h('ul', { class: 'tree' }, ...branches.map(one => this.branch(line, one, most))));
    } catch (error) {
      this.problem.textContent = (error as Error).message;
    }
  }

  private branch(line: string[], one: Branch, most: number): HTMLElement {
    const below = h('div', {});
    const fill = h('span', { class: 'fill', 'aria-hidden': 'true' });
    fill.style.width = `${(100 * one.visits) / most}%`;
    const toggle = button(
      one.move,
      () => {
        const isOpen = below.childElementCount > 0;
        toggle.setAttribute('aria-expanded', String(!isOpen));
        if (isOpen) replace(below);
        else void this.open([...line, one.move], below);
      },
      { 'aria-expanded': one.open ? 'false' : null, disabled: !one.open }
    );
    const value = one.mate ? `#${one.mate}` : scoreText(one.value);
    return h(
      'li',
      {},
      h(
        'span',
        { class: 'share' },
        fill,
        toggle,
        h(
          'span',
          { class: 'text' },
          `${one.visits.toLocaleString('en')} visits · ${(100 * one.prior).toFixed(1)} % · ${value}`
        )
      ),
      below
    );
  }
}
