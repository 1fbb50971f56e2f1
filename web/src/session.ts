// The game on the board: variant, moves with variations, the position that is shown.

import { announce } from './dom';
import { preferences } from './preferences';
import { talk } from './talk';
import { GameNode, GameTree } from './tree';
import type { Description, Position } from './types';
import { listName } from './variants';

export class Session {
  variant = '';
  look: Description | undefined;
  tree = new GameTree(null);
  position: Position | undefined;
  private listeners = new Set<() => void>();
  private asked = 0;
  error = '';

  onchange(listener: () => void): void {
    this.listeners.add(listener);
  }

  changed(): void {
    for (const listener of this.listeners) listener();
  }

  get notation(): string {
    const wanted = preferences.notation(this.look?.name ?? '');
    return this.look?.notations.includes(wanted) ? wanted : 'san';
  }

  /** Fields of a question about the game up to a node. */
  game(node: GameNode = this.tree.current): Record<string, unknown> {
    return { variant: this.variant, fen: this.tree.fen ?? undefined, moves: node.moves };
  }

  async open(variant: string, fen: string | null = null, moves: string[] = []): Promise<void> {
    const asked = ++this.asked;
    const look = await talk.ask<Description>({
      type: 'describe',
      variant,
      style: preferences.style,
    });
    // a number stands for a start position of a shuffled variant
    if (!fen && !moves.length && look.starts > 1)
      fen = String(Math.floor(Math.random() * look.starts));
    const tree = new GameTree(fen);
    tree.current = tree.add(moves);
    const position = await this.ask(variant, look, fen, moves);
    if (asked !== this.asked) return;
    Object.assign(this, { variant, look, tree, position });
    this.keep(tree.current, position);
    this.error = '';
    this.changed();
  }

  /** Draw the pieces in another style. */
  async restyle(): Promise<void> {
    if (!this.look) return;
    this.look = await talk.ask<Description>({
      type: 'describe',
      variant: this.variant,
      style: preferences.style,
    });
    this.changed();
  }

  /** Write the moves in another notation. */
  async rewrite(): Promise<void> {
    const visit = (node: GameNode): void => {
      node.position = undefined;
      node.children.forEach(visit);
    };
    visit(this.tree.root);
    const ends: GameNode[] = [];
    const collect = (node: GameNode): void => {
      if (node.children.length) node.children.forEach(collect);
      else ends.push(node);
    };
    collect(this.tree.root);
    for (const end of ends.slice(0, 40)) await this.fetch(end);
    await this.go(this.tree.current);
  }

  private ask(
    variant: string,
    look: Description,
    fen: string | null,
    moves: string[]
  ): Promise<Position> {
    const wanted = preferences.notation(look.name);
    const notation = look.notations.includes(wanted) ? wanted : 'san';
    return talk.ask<Position>({ type: 'position', variant, fen: fen ?? undefined, moves, notation });
  }

  private keep(node: GameNode, position: Position): void {
    node.position = position;
    let one: GameNode | undefined = node;
    for (let ply = position.written.length - 1; one?.parent && ply >= 0; ply--) {
      one.written = position.written[ply];
      one = one.parent;
    }
  }

  async fetch(node: GameNode): Promise<Position> {
    if (!node.position)
      this.keep(node, await this.ask(this.variant, this.look!, this.tree.fen, node.moves));
    return node.position!;
  }

  /** Show a position of the game. */
  async go(node: GameNode): Promise<void> {
    const asked = ++this.asked;
    this.tree.current = node;
    try {
      const position = await this.fetch(node);
      if (asked !== this.asked) return;
      this.position = position;
      this.error = '';
    } catch (error) {
      this.error = (error as Error).message;
      if (node.parent && !node.position) {
        this.tree.current = node.parent;
        this.tree.remove(node);
        if (node.parent.position) this.position = node.parent.position;
      }
    }
    this.changed();
  }

  /** Play a move from the position that is shown. */
  async play(uci: string): Promise<void> {
    const node = this.tree.current.child(uci);
    await this.go(node);
    const { outcome } = this.position ?? {};
    announce(node.written + (outcome ? `. ${outcome.result}, ${outcome.reason}` : ''));
  }

  number(node: GameNode): string {
    const start = this.tree.root.position?.ply ?? this.firstPly();
    const ply = start + node.depth - 1;
    return `${Math.floor(ply / 2) + 1}${ply % 2 ? '…' : '.'}`;
  }

  private firstPly(): number {
    const fen = (this.tree.fen ?? this.look?.start ?? '').split(' ');
    return fen[1] === 'b' ? 1 : 0;
  }

  /** Address that opens the game again. */
  get address(): string {
    const query = new URLSearchParams();
    query.set('variant', listName(this.variant));
    if (this.tree.fen) query.set('fen', this.tree.fen);
    const { moves } = this.tree.current.end;
    if (moves.length) query.set('moves', moves.join(' '));
    return query.toString();
  }
}
