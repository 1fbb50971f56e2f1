// What the server sends. core/web/client_messages.py has the table of messages.

export interface Answer {
  id: number;
  final?: boolean;
  error?: string;
  [name: string]: unknown;
}

export interface VariantName {
  name: string;
  title: string;
  net: boolean;
  error?: string;
}

export interface Greeting extends Answer {
  version: string;
  variants: VariantName[];
  nets: Record<string, string>;
  /** The variants of each net that is not for all. */
  net_variants: Record<string, string[]>;
  players: string[];
  runs: boolean;
  limits: { nodes: number; seconds: number; moves: number; message?: number };
}

export interface PieceImage {
  role: string;
  twin: boolean;
  colour: 0 | 1;
  up: boolean | null;
  svg: string;
}

export interface Description extends Answer {
  name: string;
  title: string;
  players: [string, string];
  files: number;
  ranks: number;
  hand: string[] | null;
  names: Record<string, string>;
  letters: Record<string, string>;
  style: string;
  styles: Record<string, string>;
  boards: [string, string];
  pieces: PieceImage[];
  wall: string;
  lines: boolean;
  start: string;
  /** Start positions; a number below stands for a FEN. */
  starts: number;
  notations: string[];
  net: boolean;
}

export interface Outcome {
  result: string;
  reason: string;
  detail: string;
}

export interface Position extends Answer {
  fen: string;
  turn: 0 | 1;
  ply: number;
  legal: string[];
  passes: string[];
  check: string[];
  hands: [number[], number[]];
  outcome: Outcome | null;
  written: string[];
}

export interface Line {
  move: string;
  pv: string[];
  value: number;
  cp: number;
  mate: number | null;
  wdl: [number, number, number] | null;
  visits: number;
  prior: number;
}

export interface SearchAnswer extends Answer {
  best: string | null;
  lines: Line[];
  visits: number;
  depth: number;
  seconds: number;
  stopped_by: string;
  shared?: boolean;
}

export interface Mistake {
  line: number;
  column: number;
  message: string;
}

export interface Spec extends Answer {
  variant?: string;
  mistakes: Mistake[];
  legal?: number;
  engine?: string;
}
