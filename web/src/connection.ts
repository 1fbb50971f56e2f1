// The connection to the server. Questions stay open over a restart of the server: they are sent
// again as soon as it is back, since each of them has the whole game.

import type { Answer, Spec } from './types';

interface Open {
  message: Record<string, unknown>;
  partial?: (answer: Answer) => void;
  resolve: (answer: Answer) => void;
  reject: (error: Error) => void;
  /** Its spec was sent again already. */
  again?: boolean;
}

export interface Stream {
  done: Promise<Answer>;
  /** Ask for the final answer now. */
  stop(): void;
  /** Forget the question; no answer arrives any more. */
  drop(): void;
}

const FIRST_WAIT = 300;
const LONGEST_WAIT = 4000;
const REJECTION_TIME = 3000;
/** Code with which a server closes the connection for a message that is too long. */
const TOO_LONG = 1009;
/** Characters beside the message: its id. */
const ENVELOPE = 40;

export class Connection {
  private socket: WebSocket | undefined;
  private numbers = 0;
  private wait = FIRST_WAIT;
  private open = new Map<number, Open>();
  private ready = false;
  /** The server has answered since the page connected: it has let the page in. */
  private answered = false;
  /** Texts of the visitor's own specs by their names on the server, which may have lost them. */
  private specs = new Map<string, string>();
  /** Greatest number of characters of a message. */
  longest = 400_000;
  /** reason: what the server says about a connection that it closed or rejected. */
  onstate: (connected: boolean, reason: string) => void = () => undefined;

  connect(): void {
    const scheme = location.protocol === 'https:' ? 'wss' : 'ws';
    const socket = new WebSocket(`${scheme}://${location.host}/talk`);
    this.socket = socket;
    let opened = false;
    socket.onopen = () => {
      opened = true;
      this.begin();
    };
    socket.onmessage = event => this.receive(JSON.parse(event.data) as Answer);
    socket.onclose = event => {
      this.ready = this.answered = false;
      if (event.code === TOO_LONG) this.rejectLongest();
      if (opened) this.onstate(false, event.reason);
      else
        void rejection().then(reason => {
          if (!this.answered) this.onstate(false, reason);
        });
      setTimeout(() => this.connect(), this.wait);
      this.wait = Math.min(this.wait * 1.6, LONGEST_WAIT);
    };
  }

  private begin(): void {
    this.ready = true;
    const greeted = [...this.open.values()].some(one => one.message.type === 'hello');
    for (const [id, one] of this.open) {
      one.again = false;
      this.send({ ...one.message, id });
    }
    // one question has a quick answer, which shows that the server has let the page in
    if (!greeted) this.ask({ type: 'hello' }).catch(() => undefined);
  }

  private send(message: Record<string, unknown>): void {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  private receive(answer: Answer): void {
    if (!this.answered) {
      this.answered = true;
      this.wait = FIRST_WAIT;
      this.onstate(true, '');
    }
    const one = this.open.get(answer.id);
    if (!one) return;
    if (answer.final === false) {
      one.partial?.(answer);
      return;
    }
    if (answer.error !== undefined && this.sendSpecAgain(answer.id, one, answer.error)) return;
    this.open.delete(answer.id);
    if (answer.error !== undefined) one.reject(new Error(answer.error));
    else one.resolve(answer);
  }

  /** If the server has lost the spec of a question, send the spec, then the question. */
  private sendSpecAgain(id: number, one: Open, error: string): boolean {
    const text = this.specs.get(String(one.message.variant));
    if (text === undefined || one.again || !error.includes('send it again')) return false;
    one.again = true;
    const repeat = () => {
      if (this.open.get(id) === one) this.send({ ...one.message, id });
    };
    this.spec(text).then(repeat, repeat);
    return true;
  }

  private rejectLongest(): void {
    const length = (one: Open) => JSON.stringify(one.message).length;
    const all = [...this.open].sort(([, a], [, b]) => length(b) - length(a));
    if (!all.length) return;
    const [id, one] = all[0];
    this.open.delete(id);
    one.reject(new Error('The server closed the connection: this text is too long for it.'));
  }

  /** Ask a question that may have several answers. */
  stream(message: Record<string, unknown>, partial?: (answer: Answer) => void): Stream {
    const id = ++this.numbers;
    const length = JSON.stringify(message).length + ENVELOPE;
    const done = new Promise<Answer>((resolve, reject) => {
      if (length > this.longest) {
        reject(
          new Error(`This is too long: ${length} characters, and the server accepts ${this.longest}.`)
        );
        return;
      }
      this.open.set(id, { message, partial, resolve, reject });
      if (this.ready) this.send({ ...message, id });
    });
    const stop = () => this.send({ id: ++this.numbers, type: 'stop', search: id });
    return {
      done,
      stop,
      drop: () => {
        if (this.open.delete(id)) stop();
      },
    };
  }

  ask<T = Answer>(message: Record<string, unknown>): Promise<T> {
    return this.stream(message).done as Promise<T>;
  }

  /** Check a spec. */
  spec(text: string): Promise<Spec> {
    return this.ask<Spec>({ type: 'spec', text });
  }

  /** Keep the text of a spec that is played, to send it again when the server has lost it. */
  remember(served: string, text: string): void {
    this.specs.set(served, text);
  }
}

/** Why the server rejects the connection, in its own words; empty: it does not answer. */
async function rejection(): Promise<string> {
  try {
    const answer = await fetch('/health', { signal: AbortSignal.timeout(REJECTION_TIME) });
    if (!answer.ok) return (await answer.text()).slice(0, 300);
    return 'It answers, but it rejects WebSockets. A proxy in front of it must pass them on, and the header Host.';
  } catch {
    return '';
  }
}

export const connection = new Connection();
