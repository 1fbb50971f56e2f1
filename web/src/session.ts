// The game on the board: variant, moves with variations, the position that is shown.

import { connection } from './connection';
import { announce } from './dom';
import { keepGame, restoreGame } from './kept_game';
import { preferences } from './preferences';
import { GameNode, GameTree } from './tree';
import type { Description, Position } from './types';
import { listName } from './variants';

/** What belongs to a game beside its moves. */
export interface GameFacts {
  /** Who the visitor is; -1: both. Not known: the game was not played here yet. */
  side?: 0 | 1 | -1;
  /** An end that the rules do not know: a resignation, or time. */
  ended?: { result: string; reason: string };
  /** Players of a game that was pasted. */
  white?: string;
  black?: string;
}

const RESULTS = ['1-0', '0-1', '1/2-1/2'];

export class Session {
  variant = '';
  facts: GameFacts = {};
  look: Description | undefined;
  tree = new GameTree(null);
  position: Position | undefined;
  private listeners = new Set<() => void>();
  private asked = 0;
  private opens = 0;
  /** The node whose position is shown; a step to `tree.current` may be under way. */
  shown = this.tree.root;
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

  async open(
    variant: string,
    fen: string | null = null,
    moves: string[] = [],
    facts: GameFacts = {}
  ): Promise<void> {
    const number = ++this.opens;
    const look = await connection.ask<Description>({
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
    if (number !== this.opens) return;
    const players = this.look ? undefined : restoreGame(listName(variant), tree); // after a reload
    this.asked++; // a step of the game before is void
    Object.assign(this, { variant, look, tree, position, shown: tree.current });
    // an end by the rules needs no other
    this.facts = position.outcome ? { ...facts, ended: undefined } : facts;
    Object.assign(this.facts, players);
    this.keep(tree.current, position);
    this.error = '';
    this.changed();
    if (players) void this.writeMoves();
  }

  /** Add comments to moves, by ply: 0 is the first move, -1 what is before it. */
  comment(comments: Record<string, string>): void {
    for (const node of this.tree.root.line) node.comment = comments[node.depth - 1] ?? '';
    this.changed();
  }

  /** Draw the pieces in another style. */
  async restyle(): Promise<void> {
    const { variant } = this;
    try {
      const look = await connection.ask<Description>({ type: 'describe', variant, style: preferences.style });
      if (variant === this.variant) this.look = look;
    } catch (error) {
      this.error = (error as Error).message;
    }
    this.changed();
  }

  /** Write the moves in another notation. */
  async rewrite(): Promise<void> {
    const visit = (node: GameNode): void => {
      node.position = undefined;
      node.children.forEach(visit);
    };
    visit(this.tree.root);
    await this.writeMoves();
    await this.go(this.tree.current);
  }

  /** Have all moves of the game written, those of variations too. */
  private async writeMoves(): Promise<void> {
    const ends: GameNode[] = [];
    const collect = (node: GameNode): void => {
      if (node.children.length) node.children.forEach(collect);
      else ends.push(node);
    };
    collect(this.tree.root);
    for (const end of ends.slice(0, 40)) await this.fetch(end).catch(() => undefined);
    this.changed();
  }

  private ask(
    variant: string,
    look: Description,
    fen: string | null,
    moves: string[]
  ): Promise<Position> {
    const wanted = preferences.notation(look.name);
    const notation = look.notations.includes(wanted) ? wanted : 'san';
    return connection.ask<Position>({ type: 'position', variant, fen: fen ?? undefined, moves, notation });
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

  /** Show a position of the game. fresh: of a move that was just made, which may be illegal. */
  async go(node: GameNode, fresh = false): Promise<void> {
    const asked = ++this.asked;
    const { tree } = this;
    tree.current = node;
    try {
      const position = await this.fetch(node);
      if (asked !== this.asked) return;
      this.position = position;
      this.shown = node;
      this.error = '';
    } catch (error) {
      if (fresh && !node.children.length) tree.remove(node);
      if (asked !== this.asked) return;
      // the moves stay: the server may answer at the next try
      tree.current = this.shown;
      this.error = (error as Error).message;
    }
    this.changed();
  }

  /** Go back to a position, then forget moves after it. */
  async cut(node: GameNode, gone = node.children): Promise<void> {
    await this.go(node);
    if (this.shown !== node) return;
    node.children = node.children.filter(one => !gone.includes(one));
    this.changed();
  }

  /** Play a move from the position that is shown. */
  async play(uci: string): Promise<void> {
    const { current } = this.tree;
    const fresh = !current.children.some(one => one.uci === uci);
    const node = current.child(uci);
    await this.go(node, fresh);
    if (this.shown !== node) return;
    const { outcome } = this.position ?? {};
    announce(node.written + (outcome ? `. ${outcome.result}, ${outcome.reason}` : ''));
  }

  /** Whose move it is after so many moves of the game. */
  turnAt(depth: number): 0 | 1 {
    const turn = this.position?.turn ?? 0;
    return (depth - this.shown.depth) % 2 ? (turn ? 0 : 1) : turn;
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

  /** The node that an address names, if it is in this game. */
  find(query: URLSearchParams): GameNode | undefined {
    if (query.get('variant') !== listName(this.variant) || query.get('fen') !== this.tree.fen)
      return undefined;
    let node: GameNode | undefined = this.tree.root;
    for (const uci of movesOf(query)) node = node?.children.find(one => one.uci === uci);
    return node;
  }

  /** Address that opens the game again. */
  get address(): string {
    const query = new URLSearchParams();
    query.set('variant', listName(this.variant));
    if (this.tree.fen) query.set('fen', this.tree.fen);
    const { moves } = this.tree.current.end;
    if (moves.length) query.set('moves', moves.join(' '));
    const { side, ended } = this.facts;
    if (side) query.set('side', side === 1 ? 'second' : 'both');
    if (ended) query.set('end', `${ended.result} ${ended.reason}`);
    return query.toString();
  }

  /** Put the game into the address of the page, and keep what has no room there. */
  keepAddress(): void {
    const { pathname } = location;
    keepGame(listName(this.variant), this.tree, this.facts);
    window.clearTimeout(this.addressTimer);
    try {
      history.replaceState(null, '', `${pathname}?${this.address}`);
    } catch {
      // browsers limit how often: a held arrow key is faster
      this.addressTimer = window.setTimeout(() => {
        if (location.pathname === pathname) this.keepAddress();
      }, 1000);
    }
  }

  private addressTimer = 0;
}

/** Moves of an address. A move may contain a comma, before its wall. */
export function movesOf(query: URLSearchParams): string[] {
  return (query.get('moves') ?? '').split(' ').filter(Boolean);
}

/** What an address says beside the moves. */
export function factsOf(query: URLSearchParams): GameFacts {
  const side = query.get('side');
  const [result, ...reason] = (query.get('end') ?? '').split(' ');
  return {
    side: side === 'second' ? 1 : side === 'both' ? -1 : query.has('moves') ? 0 : undefined,
    ended: RESULTS.includes(result) ? { result, reason: reason.join(' ') } : undefined,
  };
}
