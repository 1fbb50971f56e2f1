// Analyse: what the net and the search think of a position and of a game.

import { Board, type Arrow } from './board';
import { chart, COLOURS } from './chart';
import { connection, type Stream } from './connection';
import { button, checkbox, field, h, redraw, replace, select } from './dom';
import { GameBox, chooseNotation, moveBox, notationChoices } from './gamebox';
import { LayersBox } from './layers';
import { LinesBox } from './lines';
import { MoveList, mark, stepButtons } from './movelist';
import { PlanesBox } from './planes';
import { scoreText } from './play';
import { preferences } from './preferences';
import type { Session } from './session';
import type { GameNode, GameTree } from './tree';
import { TreeBox } from './treebox';
import type { Line, SearchAnswer } from './types';
import { listName, netChoices, searchLimit, serverName, variantChoices } from './variants';

const REPORT = 0.3;
/** A search that fails is begun again so many times, after a second, two seconds, and so on. */
const TRIES = 3;

export class AnalyseView {
  readonly element: HTMLElement;
  private readonly board: Board;
  private readonly list: MoveList;
  private readonly box: GameBox;
  private readonly settings = h('div', { class: 'settings' });
  private readonly status = h('p', { class: 'status', role: 'status' });
  /** Not read aloud: it changes several times a second. */
  private readonly counters = h('p', { class: 'status counters' });
  private readonly lines: LinesBox;
  private readonly curve = h('div', { class: 'curve' });
  private readonly policy = h('div', { class: 'policy' });
  private readonly progress = h('progress', { max: 1, value: 0, hidden: true, 'aria-label': 'Annotated' });
  private readonly tree: TreeBox;
  private readonly planes: PlanesBox;
  private readonly layers: LayersBox;
  private search: Stream | undefined;
  private searched: GameNode | undefined;
  /** Counts searches that were begun or given up: an older one must not continue. */
  private round = 0;
  private problem = '';
  private answer: SearchAnswer | undefined;
  private policyMoves: [string, number][] = [];
  private net = 'packaged';
  private multipv = 3;
  private running = true;
  private showArrows = true;
  private showPolicy = false;
  /** The annotation under way. */
  private annotation: { tree: GameTree } | undefined;
  private shown = false;

  constructor(private readonly session: Session) {
    this.board = new Board(uci => void session.play(uci));
    this.list = new MoveList(session);
    this.box = new GameBox(
      session,
      () => ({
        white: session.facts.white ?? '',
        black: session.facts.black ?? '',
        result:
          session.facts.ended?.result ?? session.tree.current.end.position?.outcome?.result ?? '*',
        termination: session.facts.ended?.reason ?? '',
      }),
      () => undefined
    );
    this.lines = new LinesBox(session);
    this.tree = new TreeBox(session, () => this.net);
    this.planes = new PlanesBox(session, () => this.net);
    this.layers = new LayersBox(session, () => this.net);
    const arrows = checkbox('Arrows of the search', true, on => {
      this.showArrows = on;
      this.drawArrows();
    });
    const policy = checkbox('Policy of the net', false, on => {
      this.showPolicy = on;
      void this.askPolicy();
    });
    this.element = h(
      'div',
      { class: 'game' },
      h('div', { class: 'table' }, this.board.element),
      h(
        'div',
        { class: 'side' },
        this.settings,
        this.status,
        this.counters,
        ...this.lines.elements,
        h('div', { class: 'row wrap' }, arrows, policy),
        this.policy,
        stepButtons(session),
        this.list.element,
        h(
          'div',
          { class: 'row wrap' },
          this.board.pass,
          button('Flip', () => this.board.flip()),
          button('Make main line', () => {
            session.tree.promote(session.tree.current);
            session.changed();
          }),
          button('Delete from here', () => {
            const node = session.tree.current;
            if (node.parent) void session.cut(node.parent, [node]);
          }),
          button('Annotate the game', () => void this.annotate(), { class: 'main' }),
          this.progress
        ),
        this.curve,
        moveBox(session, uci => void session.play(uci)),
        this.tree.element,
        this.planes.element,
        this.layers.element,
        this.box.element
      )
    );
    session.onchange(() => {
      if (this.shown) this.changed();
    });
  }

  show(): void {
    this.shown = true;
    if (!netChoices(this.session.variant).some(one => one.value === this.net))
      this.net = netChoices(this.session.variant)[0]?.value ?? 'uniform';
    this.drawSettings();
    this.changed();
  }

  hide(): void {
    this.shown = false;
    this.endAnnotation();
    this.stop();
  }

  flip(): void {
    this.board.flip();
  }

  private changed(): void {
    const { session, board } = this;
    if (!session.look) return;
    if (this.annotation && this.annotation.tree !== session.tree) this.endAnnotation();
    board.setVariant(session.look);
    if (session.position)
      board.setPosition(session.position, session.tree.current.uci || undefined, 'both');
    this.list.draw();
    this.box.draw();
    session.keepAddress();
    if (this.searched !== session.tree.current || !this.answer) {
      this.tree.clear();
      this.planes.refresh();
      this.layers.refresh();
      this.begin();
      void this.askPolicy();
    }
    this.drawCurve();
    this.drawStatus();
  }

  private stop(): void {
    this.search?.drop();
    this.search = undefined;
    this.searched = undefined;
    this.problem = '';
    this.round++;
  }

  /** Search the position that is shown. */
  private begin(): void {
    const { session } = this;
    const node = session.tree.current;
    if (this.searched === node && this.search) return;
    this.stop();
    this.answer = undefined;
    this.lines.clear();
    this.drawArrows();
    if (!this.running || !session.position || session.position.outcome || !node.position) return;
    this.searched = node;
    void this.run(node, this.round);
  }

  private async run(node: GameNode, round: number): Promise<void> {
    for (let failures = 0; round === this.round; ) {
      const stream = connection.stream(
        {
          type: 'search',
          ...this.session.game(node),
          net: this.net,
          multipv: this.multipv,
          nodes: searchLimit('nodes'),
          seconds: searchLimit('seconds'),
          report: REPORT,
        },
        answer => this.report(node, answer as SearchAnswer)
      );
      this.search = stream;
      try {
        const answer = (await stream.done) as SearchAnswer;
        failures = 0;
        this.problem = '';
        this.report(node, answer);
        if (!answer.shared) {
          if (round === this.round) this.search = undefined;
          return;
        }
      } catch (error) {
        if (round !== this.round) return;
        this.search = undefined;
        this.problem = (error as Error).message;
        if (++failures > TRIES) {
          this.running = false;
          this.problem += ' The search is off; “Search” begins it again.';
          this.drawSettings();
        }
        this.drawStatus();
        if (!this.running) return;
        await new Promise(resolve => setTimeout(resolve, 1000 * failures));
      }
    }
  }

  private report(node: GameNode, answer: SearchAnswer): void {
    if (this.searched !== node || !answer.lines?.length) return;
    this.answer = answer;
    node.score = scoreOf(answer.lines[0], node.position?.turn ?? 0);
    this.lines.show(node, answer);
    this.drawArrows();
    this.drawStatus();
    this.drawCurve();
  }

  private async askPolicy(): Promise<void> {
    const { session } = this;
    this.policyMoves = [];
    if (this.showPolicy && session.look) {
      const node = session.tree.current;
      try {
        const answer = await connection.ask({ type: 'policy', ...session.game(), net: this.net });
        if (node !== session.tree.current || !this.showPolicy) return;
        this.policyMoves = answer.policy as [string, number][];
      } catch (error) {
        if (node !== session.tree.current || !this.showPolicy) return;
        this.drawArrows();
        replace(this.policy, h('p', { class: 'problem' }, (error as Error).message));
        return;
      }
    }
    this.drawArrows();
    replace(
      this.policy,
      ...this.policyMoves.slice(0, 8).map(([move, share]) => {
        const fill = h('span', { class: 'fill', 'aria-hidden': 'true' });
        fill.style.width = `${100 * share}%`;
        return h(
          'span',
          { class: 'share' },
          fill,
          h('span', { class: 'text' }, `${move} ${(100 * share).toFixed(1)} %`)
        );
      })
    );
  }

  // --- annotation ------------------------------------------------------------------------------

  /** Search all positions of the main line, one after the other, with progress. */
  private async annotate(): Promise<void> {
    if (this.annotation) {
      this.endAnnotation();
      return;
    }
    const { tree } = this.session;
    const own = (this.annotation = { tree });
    const goesOn = () => this.annotation === own;
    this.stop();
    this.running = false;
    this.drawSettings();
    const nodes = tree.root.line;
    this.progress.hidden = false;
    for (const [index, node] of nodes.entries()) {
      if (!goesOn()) break;
      this.progress.value = index / nodes.length;
      const game = this.session.game(node);
      try {
        const position = await this.session.fetch(node);
        if (position.outcome) {
          const { result } = position.outcome;
          const value = result === '1-0' ? 1 : result === '0-1' ? -1 : 0;
          node.score = { value, text: result };
        } else {
          const answer = (await connection.ask({
            type: 'search',
            ...game,
            net: this.net,
            nodes: Number(preferences.play('annotation', '400')),
          })) as unknown as SearchAnswer;
          if (answer.lines.length) node.score = scoreOf(answer.lines[0], position.turn);
        }
      } catch (error) {
        if (!goesOn()) break;
        this.problem = (error as Error).message;
        this.drawStatus();
        break;
      }
      this.drawCurve();
      this.list.draw();
    }
    if (goesOn()) this.endAnnotation();
  }

  private endAnnotation(): void {
    this.annotation = undefined;
    this.progress.hidden = true;
  }

  // --- drawing ---------------------------------------------------------------------------------

  private drawStatus(): void {
    const { session, answer } = this;
    const outcome = session.position?.outcome;
    const message =
      session.error ||
      this.problem ||
      (outcome
        ? `${outcome.result}, ${outcome.reason}`
        : answer
          ? ''
          : this.running
            ? 'The search begins …'
            : 'The search is off.');
    if (this.status.textContent !== message) this.status.textContent = message;
    this.status.hidden = !message;
    this.counters.hidden = !!message || !answer;
    if (answer)
      this.counters.textContent = `${answer.visits.toLocaleString('en')} nodes, depth ${answer.depth}, ${Math.round(answer.visits / Math.max(answer.seconds, 0.001)).toLocaleString('en')} a second`;
  }

  private drawArrows(): void {
    const arrows: Arrow[] = [];
    if (this.showPolicy && this.policyMoves.length) {
      const most = this.policyMoves[0][1] || 1;
      for (const [uci, share] of this.policyMoves.slice(0, 8))
        if (share > 0.01) arrows.push({ uci, weight: share / most, brush: 'policy' });
    } else if (this.showArrows && this.answer) {
      const most = Math.max(...this.answer.lines.map(line => line.visits), 1);
      this.answer.lines.forEach((line, index) =>
        arrows.push({ uci: line.move, weight: line.visits / most, brush: index ? 'other' : 'best' })
      );
    }
    this.board.setArrows(arrows);
  }

  private drawCurve(): void {
    const { session } = this;
    const nodes = session.tree.root.line;
    const known = nodes.filter(node => node.score);
    if (known.length < 2) {
      replace(this.curve);
      return;
    }
    replace(
      this.curve,
      chart(
        [
          {
            name: 'value',
            colour: COLOURS[0],
            points: known.map(node => [node.depth, node.score!.value]),
          },
        ],
        {
          label: `Value of the game for ${session.look?.players[0] ?? 'the first player'}, by ply`,
          low: -1,
          high: 1,
          zero: 0,
          height: 130,
          width: 400,
          mark: session.tree.current.depth,
          onpick: ply => {
            const node = nodes[Math.max(0, Math.min(nodes.length - 1, Math.round(ply)))];
            void session.go(node);
          },
          dots: nodes
            .filter(node => mark(node))
            .map(node => ({
              x: node.depth,
              y: node.score!.value,
              colour: '#c0392b',
              title: `${session.number(node)} ${node.written}: ${mark(node)}`,
            })),
        }
      )
    );
  }

  private drawSettings(): void {
    const { session } = this;
    const again = () => {
      this.searched = undefined;
      this.answer = undefined;
      this.changed();
    };
    const toggle = button(
      this.running ? 'Stop the search' : 'Search',
      () => {
        this.running = !this.running;
        if (!this.running) this.stop();
        this.drawSettings();
        if (this.running) again();
      },
      { 'aria-pressed': String(this.running) }
    );
    redraw(
      this.settings,
      field(
        'Variant',
        select(variantChoices(), listName(session.variant), value => {
          void (async () => {
            try {
              await session.open(await serverName(value));
              preferences.variant = value;
              this.net = netChoices(session.variant)[0]?.value ?? 'uniform';
              this.show();
            } catch (error) {
              session.error = (error as Error).message;
              this.drawSettings();
              this.drawStatus();
            }
          })();
        })
      ),
      field(
        'Net',
        select(netChoices(session.variant), this.net, value => {
          this.net = value;
          again();
        })
      ),
      field(
        'Lines',
        select(
          ['1', '2', '3', '5', '8'].map(value => ({ value, text: value })),
          String(this.multipv),
          value => {
            this.multipv = Number(value);
            again();
          }
        )
      ),
      field(
        'Notation',
        select(notationChoices(session), session.notation, value => chooseNotation(session, value))
      ),
      field(
        'Nodes of annotation',
        select(
          ['100', '400', '1600'].map(value => ({ value, text: value })),
          preferences.play('annotation', '400'),
          value => preferences.setPlay('annotation', value)
        )
      ),
      h('div', { class: 'field end' }, toggle)
    );
  }
}

function scoreOf(line: Line, turn: 0 | 1): { value: number; text: string } {
  const sign = turn ? -1 : 1;
  const text = line.mate === null ? scoreText(sign * line.value) : `#${sign * line.mate}`;
  return { value: sign * line.value, text };
}
