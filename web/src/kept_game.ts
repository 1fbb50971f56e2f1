// The game of a tab, kept over a reload: variations, comments and players, for which its address has no room.

import type { GameNode, GameTree } from './tree';

const KEY = 'variant-ai-game';

/** A move, its comment and the moves after it. */
type KeptMove = [string, string, KeptMove[]];

interface KeptGame {
  /** The variant's name, and the FEN of the start. */
  variant: string;
  fen: string | null;
  white?: string;
  black?: string;
  comment: string;
  moves: KeptMove[];
}

export function keepGame(
  variant: string,
  tree: GameTree,
  players: { white?: string; black?: string }
): void {
  const { white, black } = players;
  const { comment, children } = tree.root;
  const game: KeptGame = { variant, fen: tree.fen, white, black, comment, moves: children.map(movesOf) };
  try {
    sessionStorage.setItem(KEY, JSON.stringify(game));
  } catch {
    // private windows, or no room: the address still has the moves
  }
}

/** Add to a game what the tab kept of it; the players, if it was this game. */
export function restoreGame(
  variant: string,
  tree: GameTree
): { white?: string; black?: string } | undefined {
  try {
    const game = JSON.parse(sessionStorage.getItem(KEY) ?? 'null') as KeptGame | null;
    if (!game || game.variant !== variant || game.fen !== tree.fen) return undefined;
    let kept = game.moves;
    for (const uci of tree.current.moves) {
      const found = kept.find(one => one[0] === uci);
      if (!found) return undefined; // another game
      kept = found[2];
    }
    tree.root.comment = game.comment;
    graft(tree.root, game.moves);
    return { white: game.white, black: game.black };
  } catch {
    return undefined; // not what this page wrote
  }
}

function movesOf(node: GameNode): KeptMove {
  return [node.uci, node.comment, node.children.map(movesOf)];
}

/** Add moves, in the order in which they were kept: the first one is the main line. */
function graft(node: GameNode, moves: KeptMove[]): void {
  for (const [uci, comment, next] of moves) {
    const child = node.child(uci);
    child.comment = comment;
    graft(child, next);
  }
  const order = moves.map(one => one[0]);
  node.children.sort((one, other) => order.indexOf(one.uci) - order.indexOf(other.uci));
}
