// A game with variations.

import type { Position } from './types';

export interface Score {
  /** Value for the first player, -1 to 1. */
  value: number;
  text: string;
}

export class GameNode {
  children: GameNode[] = [];
  written = '';
  comment = '';
  position: Position | undefined;
  score: Score | undefined;
  constructor(
    readonly uci: string,
    readonly parent: GameNode | undefined
  ) {}

  get moves(): string[] {
    return this.parent ? [...this.parent.moves, this.uci] : [];
  }

  get depth(): number {
    return this.parent ? this.parent.depth + 1 : 0;
  }

  /** The child of a move, made if there is none. */
  child(uci: string): GameNode {
    const known = this.children.find(one => one.uci === uci);
    if (known) return known;
    const fresh = new GameNode(uci, this);
    this.children.push(fresh);
    return fresh;
  }

  /** Last node of the main line from here. */
  get end(): GameNode {
    return this.children.length ? this.children[0].end : this;
  }

  /** Nodes of the main line from here, this one included. */
  get line(): GameNode[] {
    return [this, ...(this.children.length ? this.children[0].line : [])];
  }
}

export class GameTree {
  readonly root = new GameNode('', undefined);
  current = this.root;
  constructor(readonly fen: string | null) {}

  add(moves: string[]): GameNode {
    let node = this.root;
    for (const uci of moves) node = node.child(uci);
    return node;
  }

  /** Make the variation with this node the main line. */
  promote(node: GameNode): void {
    for (let one: GameNode | undefined = node; one?.parent; one = one.parent) {
      const { children } = one.parent;
      children.splice(children.indexOf(one), 1);
      children.unshift(one);
    }
  }

  remove(node: GameNode): void {
    const { parent } = node;
    if (!parent) return;
    parent.children.splice(parent.children.indexOf(node), 1);
    for (let one: GameNode | undefined = this.current; one; one = one.parent)
      if (one === node) this.current = parent;
  }
}
