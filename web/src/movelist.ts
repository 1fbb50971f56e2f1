// The list of moves with variations.

import { button, h, redraw } from './dom';
import type { Session } from './session';
import type { GameNode } from './tree';

export class MoveList {
  readonly element = h('div', { class: 'moves', role: 'group', 'aria-label': 'Moves', tabindex: 0 });

  constructor(private readonly session: Session) {}

  draw(): void {
    const { tree } = this.session;
    const parts: Node[] = [];
    if (tree.root.comment) parts.push(h('span', { class: 'comment' }, tree.root.comment));
    this.line(tree.root, parts, true);
    redraw(
      this.element,
      ...(parts.length ? parts : [h('p', { class: 'faint' }, 'No moves yet.')])
    );
    const current = this.element.querySelector<HTMLElement>('[aria-current]');
    if (current) {
      const top = current.offsetTop - this.element.offsetTop;
      if (top < this.element.scrollTop || top > this.element.scrollTop + this.element.clientHeight - 30)
        this.element.scrollTop = top - this.element.clientHeight / 2;
    } else this.element.scrollTop = 0;
  }

  private line(node: GameNode, parts: Node[], isFirst: boolean): void {
    let one = node;
    let numbered = isFirst;
    while (one.children.length) {
      const [main, ...others] = one.children;
      parts.push(this.move(main, numbered));
      numbered = false;
      for (const other of others) {
        const inner: Node[] = [this.move(other, true)];
        this.line(other, inner, false);
        parts.push(h('span', { class: 'variation' }, '(', ...inner, ')'));
        numbered = true;
      }
      one = main;
    }
  }

  private move(node: GameNode, numbered: boolean): Node {
    const { session } = this;
    const number = session.number(node);
    const current = node === session.tree.current;
    const element = button(node.written || node.uci, () => void session.go(node), {
      class: `move${mark(node) ? ` ${mark(node)}` : ''}`,
      'aria-current': current ? 'true' : null,
      title: node.score ? `value ${node.score.text}` : null,
    });
    return h(
      'span',
      { class: 'pair' },
      numbered || number.endsWith('.') ? h('span', { class: 'number' }, number) : null,
      element,
      node.comment ? h('span', { class: 'comment' }, node.comment) : null
    );
  }
}

/** Loss of value for the mover from which on a move is a mistake. */
const MISTAKE = 0.25;
const BLUNDER = 0.5;

export function mark(node: GameNode): '' | 'mistake' | 'blunder' {
  const before = node.parent?.score;
  if (!before || !node.score || !node.parent) return '';
  const turn = node.parent.position?.turn ?? 0;
  const loss = (before.value - node.score.value) * (turn ? -1 : 1);
  return loss >= BLUNDER ? 'blunder' : loss >= MISTAKE ? 'mistake' : '';
}

/** Buttons to the beginning, back, forward and to the end. */
export function stepButtons(session: Session): HTMLElement {
  const go = (node: GameNode | undefined) => {
    if (node) void session.go(node);
  };
  return h(
    'div',
    { class: 'steps', role: 'group', 'aria-label': 'Go through the moves' },
    button('|◀', () => go(session.tree.root), { 'aria-label': 'To the beginning' }),
    button('◀', () => go(session.tree.current.parent), { 'aria-label': 'Back' }),
    button('▶', () => go(session.tree.current.children[0]), { 'aria-label': 'Forward' }),
    button('▶|', () => go(session.tree.current.end), { 'aria-label': 'To the end' })
  );
}
