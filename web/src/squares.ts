// Squares and moves as text. chessgroundx writes ranks above 9 as characters after `9`: a10 is `a:`.

import type * as cg from 'chessgroundx/types';

export interface Move {
  uci: string;
  /** Role of a dropped piece, else undefined. */
  drop?: cg.Role;
  orig: cg.Orig;
  dest: cg.Key;
  /** Promotion or gating piece, `+`, `-`, or `,` and the squares of a wall. */
  suffix: string;
}

const MOVE = /^(?:(\+?[A-Za-z])@|([a-p]\d{1,2}))([a-p]\d{1,2})(.*)$/;

export function keyOf(square: string): cg.Key {
  return (square[0] + String.fromCharCode(48 + Number(square.slice(1)))) as cg.Key;
}

export function squareOf(key: cg.Key): string {
  return key[0] + String(key.charCodeAt(1) - 48);
}

export function roleOf(letter: string): cg.Role {
  return `${letter.replace('+', 'p').toLowerCase()}-piece` as cg.Role;
}

export function readMove(uci: string): Move | undefined {
  const found = MOVE.exec(uci);
  if (!found) return undefined;
  const [, letter, origin, target, suffix] = found;
  if (letter)
    return {
      uci,
      drop: roleOf(letter),
      orig: `${letter.toUpperCase()}@` as cg.Orig,
      dest: keyOf(target),
      suffix,
    };
  return { uci, orig: keyOf(origin), dest: keyOf(target), suffix };
}

/** Squares to highlight. */
export function squaresOf(uci: string | undefined): cg.Orig[] {
  const move = uci ? readMove(uci) : undefined;
  if (!move) return [];
  return move.drop ? [move.dest] : [move.orig, move.dest];
}
