// What the layers of the net compute, as small pictures.

import { connection } from './connection';
import { button, disclosure, field, h, replace, select } from './dom';
import { picture } from './planes';
import type { Session } from './session';

interface LayerAnswer {
  layers: { name: string; channels: number }[];
  layer: number;
  maps: number[][];
  most: number;
  files: number;
  ranks: number;
}

export class LayersBox {
  private readonly choice = h('div', {});
  private readonly body = h('div', { class: 'planes layers' });
  private readonly problem = h('small', { class: 'problem', role: 'alert' });
  private layer = 0;
  readonly element: HTMLElement;

  constructor(
    private readonly session: Session,
    private readonly net: () => string
  ) {
    this.element = disclosure(
      'What its layers compute',
      'A picture for each channel of a layer: blue is above 0, red below. The first rank of the player to move is below.',
      button('Show the layers', () => void this.open()),
      this.problem,
      this.choice,
      this.body
    );
  }

  refresh(): void {
    if ((this.element as HTMLDetailsElement).open && this.body.childElementCount) void this.open();
  }

  private async open(): Promise<void> {
    const node = this.session.tree.current;
    const net = this.net();
    try {
      const answer = await this.ask(net);
      if (node !== this.session.tree.current || net !== this.net()) return;
      this.problem.textContent = '';
      this.draw(answer);
    } catch (error) {
      this.problem.textContent = (error as Error).message;
      this.layer = 0;
      replace(this.choice);
      replace(this.body);
    }
  }

  private ask(net: string): Promise<LayerAnswer> {
    return connection.ask({ type: 'layer', ...this.session.game(), net, layer: this.layer });
  }

  private draw(answer: LayerAnswer): void {
    const { layers, layer, maps, most, files, ranks } = answer;
    const choices = layers.map((one, index) => ({
      value: String(index),
      text: `${index + 1}: ${one.name}, ${one.channels} channels`,
    }));
    replace(
      this.choice,
      field(
        'Layer',
        select(choices, String(layer), value => {
          this.layer = Number(value);
          void this.open();
        })
      )
    );
    replace(
      this.body,
      ...maps.map((map, channel) => {
        const name = `channel ${channel + 1}`;
        return h(
          'figure',
          {},
          picture(map, files, ranks, name, most || 1),
          h('figcaption', {}, String(channel + 1))
        );
      })
    );
  }
}
