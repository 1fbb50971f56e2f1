// A board with hands: chessgroundx, with pictures of the variant, and usable by keyboard.

import { Chessground } from 'chessgroundx';
import type { Api } from 'chessgroundx/api';
import type * as cg from 'chessgroundx/types';
import type { DrawShape } from 'chessgroundx/draw';
import { announce, button, h, replace } from './dom';
import { pictureClass } from './pictures';
import { keyOf, readMove, roleOf, squareOf, squaresOf, type Move } from './squares';
import type { Description, Position } from './types';

const COLOURS = ['white', 'black'] as const;

export interface Arrow {
  uci: string;
  /** 0 to 1. */
  weight: number;
  brush: 'best' | 'other' | 'policy';
}

export type Movable = 'none' | 'both' | 0 | 1;

export class Board {
  readonly element: HTMLElement;
  private readonly frame = h('div', { class: 'frame' });
  private readonly pockets = [h('div', { class: 'pocket' }), h('div', { class: 'pocket' })];
  private readonly cursor = h('div', { class: 'cursor', hidden: true });
  private readonly prompt = h('div', { class: 'prompt', hidden: true, role: 'status' });
  /** Hidden unless the player may pass. */
  readonly pass = button('Pass', () => this.onmove(this.position!.passes[0]), { hidden: true });
  private api: Api | undefined;
  private look: Description | undefined;
  private position: Position | undefined;
  private last: string | undefined;
  private movable: Movable = 'none';
  private arrows: Arrow[] = [];
  private at: [number, number] = [0, 0];
  private walls: Move[] = [];
  flipped = false;

  constructor(private readonly onmove: (uci: string) => void) {
    this.frame.tabIndex = 0;
    this.frame.setAttribute('role', 'application');
    this.frame.setAttribute('aria-label', 'Board');
    this.frame.addEventListener('keydown', event => this.key(event));
    this.frame.addEventListener('blur', () => (this.cursor.hidden = true));
    this.element = h('div', { class: 'board' }, this.pockets[0], this.frame, this.pockets[1]);
  }

  setVariant(look: Description): void {
    const old = this.look;
    this.look = look;
    this.element.className = `board ${pictureClass(look)}${look.lines ? ' lines' : ''}`;
    this.element.style.setProperty('--files', String(look.files));
    this.element.style.setProperty('--ranks', String(look.ranks));
    this.element.style.setProperty('--hand', String(look.hand?.length ?? 1));
    this.element.style.setProperty('--rows', String(look.ranks + (look.hand ? 2 : 0)));
    const hand = (one: Description) => one.hand?.join();
    if (old && old.files === look.files && old.ranks === look.ranks && hand(old) === hand(look)) {
      if (this.position) this.draw();
      return;
    }
    this.position = undefined;
    this.last = undefined;
    this.at = [0, 0];
    this.api?.destroy();
    this.build();
  }

  private build(): void {
    const look = this.look!;
    const fresh = h('div', { class: 'cg' });
    replace(
      this.frame,
      h('div', { class: 'ranks', 'aria-hidden': 'true' }),
      h('div', { class: 'holder' }, fresh, this.cursor, this.prompt),
      h('div', { class: 'files', 'aria-hidden': 'true' })
    );
    const roles = (look.hand ?? []) as cg.Role[];
    this.api = Chessground(fresh, {
      fen: look.start,
      dimensions: { width: look.files, height: look.ranks },
      orientation: this.flipped ? 'black' : 'white',
      coordinates: false,
      autoCastle: false,
      addPieceZIndex: false,
      animation: { enabled: !matchMedia('(prefers-reduced-motion: reduce)').matches, duration: 180 },
      movable: {
        free: false,
        color: undefined,
        rookCastle: true,
        events: {
          after: (orig, dest) => this.moved(orig, dest),
          afterNewPiece: (piece, dest) => this.dropped(piece, dest),
        },
      },
      premovable: { enabled: false },
      draggable: { showGhost: true },
      pocketRoles: look.hand ? { white: roles, black: roles } : undefined,
      events: { select: key => this.selected(key) },
      drawable: {
        brushes: {
          green: { key: 'g', color: '#15781B', opacity: 1, lineWidth: 10 },
          red: { key: 'r', color: '#882020', opacity: 1, lineWidth: 10 },
          blue: { key: 'b', color: '#003088', opacity: 1, lineWidth: 10 },
          yellow: { key: 'y', color: '#e68f00', opacity: 1, lineWidth: 10 },
          best: { key: 'best', color: '#1c6e8c', opacity: 0.9, lineWidth: 12 },
          other: { key: 'other', color: '#3f8f5f', opacity: 0.75, lineWidth: 10 },
          policy: { key: 'policy', color: '#8a4fa8', opacity: 0.8, lineWidth: 10 },
          paleBlue: { key: 'pb', color: '#003088', opacity: 0.4, lineWidth: 15 },
          paleGreen: { key: 'pg', color: '#15781B', opacity: 0.4, lineWidth: 15 },
          paleRed: { key: 'pr', color: '#882020', opacity: 0.4, lineWidth: 15 },
          paleGrey: { key: 'pgr', color: '#4a4a4a', opacity: 0.35, lineWidth: 15 },
        },
      },
    });
    this.coordinates();
    this.hands();
  }

  /** Show a position. last: the move that led to it. */
  setPosition(position: Position, last: string | undefined, movable: Movable): void {
    this.position = position;
    this.last = last;
    this.movable = movable;
    this.draw();
  }

  setArrows(arrows: Arrow[]): void {
    this.arrows = arrows;
    this.drawArrows();
  }

  flip(flipped = !this.flipped): void {
    if (flipped === this.flipped) return;
    this.flipped = flipped;
    if (!this.look) return; // it is drawn so later
    this.api?.set({ orientation: flipped ? 'black' : 'white' });
    this.coordinates();
    this.hands();
    this.drawArrows();
  }

  private draw(): void {
    const { api, position } = this;
    if (!api || !position) return;
    this.walls = [];
    this.prompt.hidden = true;
    const dests = new Map<cg.Orig, cg.Key[]>();
    const mine =
      this.movable === 'both' || (this.movable !== 'none' && this.movable === position.turn);
    for (const uci of mine ? position.legal : []) {
      const move = readMove(uci);
      if (!move || (move.orig as string) === move.dest) continue;
      const found = dests.get(move.orig);
      if (!found) dests.set(move.orig, [move.dest]);
      else if (!found.includes(move.dest)) found.push(move.dest);
    }
    this.pass.hidden = !mine || !position.passes.length;
    const turn = COLOURS[position.turn];
    api.set({
      fen: position.fen,
      turnColor: turn,
      lastMove: squaresOf(this.last),
      check: position.check.map(keyOf),
      movable: { color: mine ? turn : undefined, dests },
    });
    api.state.selectable.selected = undefined;
    api.state.dom.redraw();
    this.hands();
    this.drawArrows();
  }

  private drawArrows(): void {
    // while a wall is placed, its squares are shown instead of the arrows
    const shapes: DrawShape[] = this.walls.map(move => ({ orig: wallOf(move), brush: 'yellow' }));
    if (shapes.length) {
      this.api?.setAutoShapes(shapes);
      return;
    }
    for (const arrow of [...this.arrows].reverse()) {
      const move = readMove(arrow.uci);
      if (!move) continue;
      const modifiers = { lineWidth: 4 + 12 * arrow.weight };
      if (move.drop)
        shapes.push(
          { orig: move.dest, brush: arrow.brush, modifiers },
          {
            orig: move.dest,
            piece: { role: move.drop, color: COLOURS[this.position?.turn ?? 0], scale: 0.6 },
          }
        );
      else shapes.push({ orig: move.orig as cg.Key, dest: move.dest, brush: arrow.brush, modifiers });
    }
    this.api?.setAutoShapes(shapes);
  }

  private coordinates(): void {
    const look = this.look!;
    const files = [...Array(look.files).keys()].map(i => String.fromCharCode(97 + i));
    const ranks = [...Array(look.ranks).keys()].map(i => String(i + 1)).reverse();
    if (this.flipped) {
      files.reverse();
      ranks.reverse();
    }
    replace(this.frame.querySelector('.files')!, ...files.map(text => h('span', {}, text)));
    replace(this.frame.querySelector('.ranks')!, ...ranks.map(text => h('span', {}, text)));
  }

  // --- hands -----------------------------------------------------------------------------------

  private hands(): void {
    const look = this.look;
    for (const [place, element] of this.pockets.entries()) {
      element.hidden = !look?.hand;
      if (!look?.hand) continue;
      const colour = ((place === 1) === this.flipped ? 1 : 0) as 0 | 1;
      const counts = this.position?.hands[colour] ?? look.hand.map(() => 0);
      element.setAttribute('role', 'group');
      element.setAttribute('aria-label', `Hand of ${look.players[colour]}`);
      const kind = `${colour} ${look.hand.join()}`;
      if (element.dataset.kind !== kind) {
        element.dataset.kind = kind;
        replace(element, ...look.hand.map(role => this.handPiece(role as cg.Role, colour, place)));
      }
      look.hand.forEach((role, index) => {
        const slot = element.children[index] as HTMLButtonElement;
        const count = counts[index] ?? 0;
        const usable =
          count > 0 &&
          this.position?.turn === colour &&
          (this.movable === 'both' || this.movable === colour);
        slot.dataset.count = String(count);
        slot.disabled = !usable;
        slot.classList.toggle('empty', count === 0);
        slot.setAttribute('aria-label', `${look.names[role] ?? role}, ${count} in hand`);
        slot.setAttribute('aria-pressed', 'false');
        slot.querySelector('.count')!.textContent = count > 1 ? String(count) : '';
      });
    }
  }

  private handPiece(role: cg.Role, colour: 0 | 1, place: number): HTMLElement {
    const piece: cg.Piece = { role, color: COLOURS[colour] };
    const side = place === 1 ? 'ally' : 'enemy';
    const slot = h(
      'button',
      { type: 'button', class: 'slot', 'data-role': role },
      h('span', { class: 'cg-wrap pic' }, h('piece' as 'span', { class: `${role} ${piece.color} ${side}` })),
      h('span', { class: 'count' })
    );
    let from: [number, number] | undefined;
    slot.addEventListener('click', () => {
      if (this.api?.state.draggable.current) return;
      const selected = this.api?.state.selectable.selected;
      const again = typeof selected === 'object' && selected.role === role;
      this.api?.selectPocket(again ? null : piece);
      this.press(again ? undefined : slot);
      if (!again) {
        announce(`${this.look?.names[role]} chosen: choose a square`);
        if (slot.matches(':focus-visible')) this.frame.focus();
      }
    });
    slot.addEventListener('pointerdown', event => {
      if (event.pointerType === 'mouse' && event.button === 0) from = [event.clientX, event.clientY];
    });
    slot.addEventListener('mousemove', event => {
      if (!from || !(event.buttons & 1)) return;
      if (Math.hypot(event.clientX - from[0], event.clientY - from[1]) < 4) return;
      from = undefined;
      event.preventDefault();
      this.api?.selectPocket(null);
      this.api?.dragNewPiece(piece, true, event as unknown as cg.MouchEvent);
    });
    for (const end of ['mouseup', 'mouseleave']) slot.addEventListener(end, () => (from = undefined));
    return slot;
  }

  private press(slot: HTMLElement | undefined): void {
    for (const one of this.element.querySelectorAll('.slot'))
      one.setAttribute('aria-pressed', String(one === slot));
  }

  // --- moves -----------------------------------------------------------------------------------

  private moved(orig: cg.Key, dest: cg.Key): void {
    this.choose(move => !move.drop && move.orig === orig && move.dest === dest);
  }

  private dropped(piece: cg.Piece, dest: cg.Key): void {
    this.press(undefined);
    this.choose(move => move.drop === piece.role && move.dest === dest);
  }

  private choose(fits: (move: Move) => boolean): void {
    const moves = (this.position?.legal ?? []).map(readMove).filter((m): m is Move => !!m && fits(m));
    // first the piece, then the square of the wall
    const pieces = new Map<string, Move[]>();
    for (const move of moves) {
      const piece = pieceOf(move);
      pieces.set(piece, [...(pieces.get(piece) ?? []), move]);
    }
    if (!moves.length) this.draw();
    else if (pieces.size > 1) this.choosePiece([...pieces.values()]);
    else this.place(moves);
  }

  private place(moves: Move[]): void {
    if (moves.length === 1) this.onmove(moves[0].uci);
    else this.chooseWall(moves);
  }

  /** Ask which piece a piece becomes. choices: moves by that piece. */
  private choosePiece(choices: Move[][]): void {
    const look = this.look!;
    const colour = COLOURS[this.position!.turn];
    const side = (this.position!.turn === 1) === this.flipped ? 'ally' : 'enemy';
    const piece = this.api!.state.boardState.pieces.get(choices[0][0].dest);
    const dialog = h('dialog', { class: 'promotion', 'aria-label': 'Choose a piece' });
    const finish = (moves: Move[] | undefined) => {
      dialog.close();
      dialog.remove();
      this.frame.focus();
      if (moves) this.place(moves);
      else this.draw();
    };
    for (const moves of choices) {
      const suffix = pieceOf(moves[0]);
      const role = becomes(suffix, piece?.role);
      const name = suffix
        ? (look.names[role] ?? suffix)
        : `${look.names[role] ?? 'piece'}, unchanged`;
      dialog.append(
        h(
          'button',
          {
            type: 'button',
            title: name,
            'aria-label': name,
            'data-move': moves[0].uci,
            onclick: () => finish(moves),
          },
          h('span', { class: 'cg-wrap pic' }, h('piece' as 'span', { class: `${role} ${colour} ${side}` })),
          h('span', { class: 'name' }, name)
        )
      );
    }
    dialog.addEventListener('cancel', event => {
      event.preventDefault();
      finish(undefined);
    });
    dialog.addEventListener('click', event => {
      if (event.target === dialog) finish(undefined);
    });
    this.element.append(dialog);
    dialog.showModal();
  }

  /** Ask where a move places its wall: the next square that is clicked. */
  private chooseWall(moves: Move[]): void {
    this.walls = moves;
    this.prompt.textContent = 'Choose a square for the wall';
    this.prompt.hidden = false;
    announce(this.prompt.textContent);
    this.drawArrows();
  }

  private selected(key: cg.Key): void {
    if (!this.walls.length) return;
    const found = this.walls.find(move => wallOf(move) === key);
    this.walls = [];
    this.prompt.hidden = true;
    if (found) this.onmove(found.uci);
    else this.draw();
  }

  // --- keyboard --------------------------------------------------------------------------------

  private key(event: KeyboardEvent): void {
    const steps: Record<string, [number, number]> = {
      ArrowLeft: [-1, 0],
      ArrowRight: [1, 0],
      ArrowUp: [0, 1],
      ArrowDown: [0, -1],
    };
    const look = this.look;
    if (!look || event.ctrlKey || event.metaKey || event.altKey || event.target !== this.frame) return;
    const step = steps[event.key];
    if (step) {
      const sign = this.flipped ? -1 : 1;
      this.at = [
        Math.max(0, Math.min(look.files - 1, this.at[0] + sign * step[0])),
        Math.max(0, Math.min(look.ranks - 1, this.at[1] + sign * step[1])),
      ];
    } else if (event.key === 'Enter' || event.key === ' ') {
      const key = this.cursorKey();
      if (this.walls.length) this.selected(key);
      else this.api?.selectSquare(key);
    } else if (event.key === 'Escape') {
      if (this.walls.length) this.draw(); // the piece goes back
      this.api?.selectSquare(null);
      this.press(undefined);
      this.cursor.hidden = true;
      return;
    } else return;
    event.preventDefault();
    event.stopPropagation();
    this.showCursor();
    if (step) announce(this.spoken(this.cursorKey()));
  }

  private cursorKey(): cg.Key {
    return keyOf(`${String.fromCharCode(97 + this.at[0])}${this.at[1] + 1}`);
  }

  private showCursor(): void {
    const look = this.look!;
    const column = this.flipped ? look.files - 1 - this.at[0] : this.at[0];
    const row = this.flipped ? this.at[1] : look.ranks - 1 - this.at[1];
    this.cursor.hidden = false;
    this.cursor.style.left = `${(100 * column) / look.files}%`;
    this.cursor.style.top = `${(100 * row) / look.ranks}%`;
  }

  private spoken(key: cg.Key): string {
    const look = this.look!;
    const piece = this.api?.state.boardState.pieces.get(key);
    const name = piece
      ? `${look.players[piece.color === 'white' ? 0 : 1]} ${look.names[piece.role] ?? 'wall'}`
      : 'empty';
    const goals = this.api?.state.movable.dests?.get(key)?.length ?? 0;
    return `${squareOf(key)}, ${name}${goals ? `, ${goals} moves` : ''}`;
  }
}

/** What a move says about the piece, before the wall. */
function pieceOf(move: Move): string {
  return move.suffix.split(',')[0];
}

function wallOf(move: Move): cg.Key {
  return keyOf(/([a-p]\d{1,2})$/.exec(move.suffix)?.[1] ?? 'a1');
}

/** Role of a piece after a move with this suffix. */
function becomes(suffix: string, role: cg.Role | undefined): cg.Role {
  if (suffix === '+') return `p${role ?? 'p-piece'}` as cg.Role;
  if (suffix === '-') return (role ?? 'p-piece').slice(1) as cg.Role;
  if (suffix === '') return role ?? ('p-piece' as cg.Role);
  return roleOf(suffix);
}
