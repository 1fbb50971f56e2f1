// A short manual.

import { h } from './dom';

const KEYS: [string, string][] = [
  ['Tab', 'to the board, the hands and the buttons'],
  ['arrow keys', 'on the board: to another square, which a screen reader speaks'],
  ['Enter or space', 'take the piece of the square, or put it there; on a piece in hand: take it'],
  ['Escape', 'let go'],
  ['← and →', 'outside of the board: back and forward in the game'],
  ['f', 'flip the board'],
];

export class HelpView {
  readonly element = h(
    'div',
    { class: 'card prose' },
    h('h1', {}, 'Help'),
    h(
      'p',
      {},
      'Everything on this page is computed by the program that you started; nothing is sent anywhere else.'
    ),
    h('h2', {}, 'Keys'),
    h('dl', { class: 'facts' }, ...KEYS.flatMap(([key, text]) => [h('dt', {}, key), h('dd', {}, text)])),
    h('h2', {}, 'Numbers'),
    h(
      'p',
      {},
      'A value is from −1 (lost) to +1 (won). Lines of play show it for the player to move, the curve of a game for the first player. Beside each line are the visits of the search and the prior of the net.'
    ),
    h(
      'p',
      {},
      'In a game, a move that loses 0.25 of value or more for its player is marked ?, one that loses 0.5 or more ??.'
    ),
    h('h2', {}, 'More'),
    h(
      'p',
      {},
      'The manual is docs/web.md of the sources. ',
      h('a', { href: '/files/protocol.json' }, 'The messages of this page'),
      ' are described for programs (AsyncAPI), so that one of yours can ask the same questions.'
    )
  );

  show(): void {
    // nothing changes
  }

  hide(): void {
    // nothing runs
  }
}
