// The connection to the server. Questions stay open over a restart of the server: they are sent
// again as soon as it is back, since each of them has the whole game.

import type { Answer, Spec } from './types';

interface Open {
  message: Record<string, unknown>;
  partial?: (answer: Answer) => void;
  resolve: (answer: Answer) => void;
  reject: (error: Error) => void;
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

export class Talk {
  private socket: WebSocket | undefined;
  private numbers = 0;
  private wait = FIRST_WAIT;
  private open = new Map<number, Open>();
  private ready = false;
  /** Texts of the visitor's own specs, which a restarted server does not have. */
  private specs = new Set<string>();
  onstate: (connected: boolean) => void = () => undefined;

  connect(): void {
    const scheme = location.protocol === 'https:' ? 'wss' : 'ws';
    const socket = new WebSocket(`${scheme}://${location.host}/talk`);
    this.socket = socket;
    socket.onopen = () => void this.begin();
    socket.onmessage = event => this.receive(JSON.parse(event.data) as Answer);
    socket.onclose = () => {
      this.ready = false;
      this.onstate(false);
      setTimeout(() => this.connect(), this.wait);
      this.wait = Math.min(this.wait * 1.6, LONGEST_WAIT);
    };
  }

  private async begin(): Promise<void> {
    this.wait = FIRST_WAIT;
    const socket = this.socket;
    const waiting = [...this.open.entries()];
    await Promise.all([...this.specs].map(text => this.now({ type: 'spec', text }).catch(() => null)));
    if (socket !== this.socket) return;
    this.ready = true;
    this.onstate(true);
    for (const [id, one] of waiting)
      if (this.open.has(id)) this.send({ ...one.message, id });
    for (const [id, one] of this.open)
      if (!waiting.some(([other]) => other === id) && one.message.type !== 'spec')
        this.send({ ...one.message, id });
  }

  private send(message: Record<string, unknown>): void {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  private receive(answer: Answer): void {
    const one = this.open.get(answer.id);
    if (!one) return;
    if (answer.final === false) {
      one.partial?.(answer);
      return;
    }
    this.open.delete(answer.id);
    if (answer.error !== undefined) one.reject(new Error(answer.error));
    else one.resolve(answer);
  }

  /** Send at once, even before the specs are back. */
  private now(message: Record<string, unknown>): Promise<Answer> {
    const id = ++this.numbers;
    return new Promise((resolve, reject) => {
      this.open.set(id, { message, resolve, reject });
      this.send({ ...message, id });
    });
  }

  /** Ask a question that may have several answers. */
  stream(message: Record<string, unknown>, partial?: (answer: Answer) => void): Stream {
    const id = ++this.numbers;
    const done = new Promise<Answer>((resolve, reject) => {
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

  /** Check a spec, and remember it so that it can be sent again. */
  async spec(text: string): Promise<Spec> {
    const answer = await this.ask<Spec>({ type: 'spec', text });
    if (answer.variant) this.specs.add(text);
    return answer;
  }
}

export const talk = new Talk();
