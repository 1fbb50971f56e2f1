// A variant of one's own: YAML, its mistakes at their lines, the board redrawn while typing.

import { Board } from './board';
import { complete, type Completion } from './completion';
import { connection } from './connection';
import { announce, button, field, h, replace, savedFile, select } from './dom';
import { preferences } from './preferences';
import type { Session } from './session';
import type { Description, Position, Spec } from './types';
import { keepOwn, textOf, variantChoices } from './variants';

const PAUSE = 350;
const EXAMPLE = `# A variant is a YAML file. This one changes another; without \`extends\` it says everything itself.
spec: 1
extends: chess
variant: my-variant
title: My variant
`;

export class EditorView {
  readonly element: HTMLElement;
  private readonly text = h('textarea', {
    class: 'code',
    rows: 26,
    spellcheck: 'false',
    autocapitalize: 'off',
    wrap: 'off',
    'aria-describedby': 'editor-mistakes',
  });
  private readonly gutter = h('div', { class: 'gutter', 'aria-hidden': 'true' });
  private readonly mistakes = h('ul', { class: 'mistakes', id: 'editor-mistakes', 'aria-live': 'polite' });
  private readonly words = h('div', { class: 'words', role: 'group', 'aria-label': 'Words that fit here' });
  private readonly board = new Board(() => undefined);
  private readonly status = h('p', { class: 'status', role: 'status' });
  private readonly playButton = button('Play it', () => void this.play(), { class: 'main' });
  private timer = 0;
  private asked = 0;
  private checked: Spec | undefined;
  /** Text that is lost without harm: it came from elsewhere and was not changed. */
  private untouched = EXAMPLE;

  constructor(
    private readonly session: Session,
    private readonly navigate: (path: string) => void
  ) {
    this.text.addEventListener('input', () => this.typed());
    this.text.addEventListener('scroll', () => (this.gutter.scrollTop = this.text.scrollTop));
    for (const event of ['keyup', 'click']) this.text.addEventListener(event, () => void this.suggest());
    this.text.addEventListener('keydown', event => {
      if (event.key !== 'Tab' || event.shiftKey || event.ctrlKey) return;
      const first = this.words.querySelector('button');
      if (!first || !this.atWord()) return;
      event.preventDefault();
      first.click();
    });
    const choice = select([{ value: '', text: 'this text' }, ...variantChoices()], '', value => {
      choice.value = '';
      this.begin(value).catch((error: Error) => (this.status.textContent = error.message));
    });
    const start = field('Begin with', choice);
    const editor = h('div', { class: 'editor' }, this.gutter, this.text);
    this.text.id = 'editor-text';
    this.element = h(
      'div',
      { class: 'game' },
      h(
        'div',
        { class: 'card' },
        h('h1', {}, 'A variant of your own'),
        h('div', { class: 'row wrap top' }, start),
        h('label', { for: 'editor-text', class: 'unseen' }, 'Spec of the variant, in YAML'),
        editor,
        this.words,
        this.mistakes
      ),
      h(
        'div',
        { class: 'side' },
        this.status,
        this.board.element,
        h(
          'div',
          { class: 'row wrap' },
          this.playButton,
          button('Save the file', () => this.save())
        ),
        h(
          'p',
          { class: 'faint' },
          'The text is kept in this browser. Saved in ~/.config/variant-ai/specs, the variant can be named in every command. docs/new-variant.md explains all words.'
        )
      )
    );
  }

  show(): void {
    if (!this.text.value) {
      this.text.value = preferences.play('editor', '') || EXAMPLE;
      this.typed();
    } else if (this.playButton.disabled) this.typed(); // left before it was checked
  }

  hide(): void {
    window.clearTimeout(this.timer);
  }

  private async begin(value: string): Promise<void> {
    if (!value) return;
    const text =
      textOf(value) ?? String((await connection.ask({ type: 'source', variant: value })).text);
    const now = this.text.value;
    const isKept = now === this.untouched || preferences.specs.some(one => one.text === now);
    if (!isKept && !confirm('The text in the editor is not saved. Replace it?')) return;
    this.text.value = this.untouched = text;
    this.typed();
  }

  private typed(): void {
    preferences.setPlay('editor', this.text.value);
    this.number();
    this.playButton.disabled = true; // until this text is checked
    this.status.textContent = 'Checking …';
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.check(), PAUSE);
  }

  private number(lines: Set<number> = new Set()): void {
    const count = this.text.value.split('\n').length;
    replace(
      this.gutter,
      ...[...Array(count).keys()].map(i =>
        h('span', { class: lines.has(i + 1) ? 'wrong' : '' }, String(i + 1))
      )
    );
    this.gutter.scrollTop = this.text.scrollTop;
  }

  private async check(): Promise<void> {
    const asked = ++this.asked;
    const text = this.text.value;
    try {
      const spec = await connection.spec(text);
      if (asked !== this.asked) return;
      this.checked = spec;
      this.draw(spec);
    } catch (error) {
      if (asked !== this.asked) return;
      this.checked = undefined;
      this.status.textContent = (error as Error).message;
      this.playButton.disabled = true;
    }
  }

  private draw(spec: Spec): void {
    this.number(new Set(spec.mistakes.map(one => one.line)));
    this.playButton.disabled = !spec.variant;
    replace(
      this.mistakes,
      ...spec.mistakes.map(one =>
        h(
          'li',
          {},
          button(`line ${one.line}`, () => this.goTo(one.line, one.column)),
          ` ${one.message}`
        )
      )
    );
    if (!spec.variant) {
      const count = spec.mistakes.length;
      this.status.textContent = count === 1 ? '1 mistake' : `${count} mistakes`;
      return;
    }
    const look = spec as unknown as Description;
    this.status.textContent = `${look.title}: ${spec.legal} moves in the start position`;
    this.board.setVariant({ ...look, net: false, notations: ['san'] });
    void connection
      .ask<Position>({ type: 'position', variant: spec.variant })
      .then(position => this.board.setPosition(position, undefined, 'none'))
      .catch((error: Error) => (this.status.textContent = error.message));
  }

  private goTo(line: number, column: number): void {
    const lines = this.text.value.split('\n');
    const at = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0) + column - 1;
    this.text.focus();
    this.text.setSelectionRange(at, at);
    this.text.scrollTop = Math.max(0, line - 6) * 20;
  }

  // --- completion ------------------------------------------------------------------------------

  private atWord(): boolean {
    const before = this.text.value.slice(0, this.text.selectionStart);
    return /[\w-]$/.test(before);
  }

  private async suggest(): Promise<void> {
    const found = await complete(this.text.value, this.text.selectionStart);
    replace(this.words, ...found.slice(0, 14).map(one => this.word(one)));
  }

  private word(one: Completion): HTMLElement {
    return button(
      one.word,
      () => {
        const { selectionStart: at, value } = this.text;
        const rest = one.word + (one.isKey ? ': ' : '');
        this.text.focus();
        this.text.setRangeText(rest, at - one.typed, at, 'end');
        if (this.text.value !== value) this.typed();
        void this.suggest();
      },
      { title: one.about }
    );
  }

  private async play(): Promise<void> {
    const served = this.checked?.variant;
    if (!served) return;
    const { name } = this.checked as unknown as Description;
    keepOwn(name, this.text.value, served);
    try {
      await this.session.open(served);
    } catch (error) {
      this.status.textContent = (error as Error).message;
      return;
    }
    announce('The game begins');
    preferences.variant = `mine:${name}`;
    this.navigate('/');
  }

  private save(): void {
    const name = (this.checked as unknown as Description | undefined)?.name ?? 'variant';
    savedFile(`${name}.yaml`, this.text.value);
  }
}
