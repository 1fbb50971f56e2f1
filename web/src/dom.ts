// Small helpers for elements. Text is always set as text, never as HTML.

type Child = Node | string | null | undefined | false;
type Attributes = Record<string, unknown>;

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on') && typeof value === 'function')
      element.addEventListener(name.slice(2), value as EventListener);
    else if (name === 'class') element.className = String(value);
    else if (name === 'value' || name === 'checked' || name === 'disabled' || name === 'selected')
      (element as unknown as Attributes)[name] = value;
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  element.append(...children.filter((child): child is Node | string => !!child || child === ''));
  return element;
}

const SVG = 'http://www.w3.org/2000/svg';

export function svg(tag: string, attributes: Attributes = {}, ...children: Child[]): SVGElement {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null) continue;
    if (name.startsWith('on') && typeof value === 'function')
      element.addEventListener(name.slice(2), value as EventListener);
    else element.setAttribute(name, String(value));
  }
  element.append(...children.filter((child): child is Node | string => !!child));
  return element;
}

export function replace(parent: Element, ...children: Child[]): void {
  parent.replaceChildren(...children.filter((child): child is Node | string => !!child));
}

/** Replace what a part shows; the control at the place of the one with the focus gets the focus. */
export function redraw(parent: Element, ...children: Child[]): void {
  const controls = () => [...parent.querySelectorAll<HTMLElement>('button, select, input')];
  const place = controls().findIndex(one => one === document.activeElement);
  replace(parent, ...children);
  if (place >= 0) controls()[place]?.focus({ preventScroll: true });
}

export interface Choice {
  value: string;
  text: string;
}

let numbers = 0;

/** A label with its control. */
export function field(text: string, control: HTMLElement, hint = ''): HTMLElement {
  control.id ||= `control-${++numbers}`;
  return h(
    'div',
    { class: 'field' },
    h('label', { for: control.id }, text),
    control,
    hint ? h('small', {}, hint) : null
  );
}

export function select(
  choices: Choice[],
  value: string,
  onchange: (value: string) => void,
  attributes: Attributes = {}
): HTMLSelectElement {
  const element = h(
    'select',
    {
      ...attributes,
      onchange: () => onchange(element.value),
    },
    ...choices.map(choice =>
      h('option', { value: choice.value, selected: choice.value === value }, choice.text)
    )
  );
  return element;
}

export function button(
  text: string,
  onclick: () => void,
  attributes: Attributes = {}
): HTMLButtonElement {
  return h('button', { type: 'button', onclick, ...attributes }, text);
}

export function checkbox(
  text: string,
  checked: boolean,
  onchange: (on: boolean) => void
): HTMLLabelElement {
  const box = h('input', {
    type: 'checkbox',
    checked,
    onchange: () => onchange(box.checked),
  });
  return h('label', { class: 'check' }, box, text);
}

/** A box that is closed at first: a title, a sentence, a button, and a place for what it brings. */
export function disclosure(
  title: string,
  about: string,
  action: HTMLElement,
  ...content: HTMLElement[]
): HTMLDetailsElement {
  return h(
    'details',
    { class: 'gamebox' },
    h('summary', {}, title),
    h('p', { class: 'faint' }, about),
    h('div', { class: 'row' }, action),
    ...content
  );
}

const region = h('div', { class: 'unseen', 'aria-live': 'polite', role: 'status' });

/** Let a screen reader say something. */
export function announce(text: string): void {
  if (!region.isConnected) document.body.append(region);
  region.textContent = text;
}

export function savedFile(name: string, text: string): void {
  const link = h('a', { href: URL.createObjectURL(new Blob([text])), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

const NOTICE_TIME = 4000;
const box = h('div', { class: 'notice', 'aria-hidden': 'true', hidden: true });
let noticeTimer = 0;

/** Say something that everybody should notice, for some seconds. */
export function notice(text: string): void {
  announce(text);
  if (!box.isConnected) document.body.append(box);
  box.textContent = text;
  box.hidden = false;
  window.clearTimeout(noticeTimer);
  noticeTimer = window.setTimeout(() => (box.hidden = true), NOTICE_TIME);
}

/** Copy a text that may have to be made first. */
export async function copied(made: string | Promise<string>): Promise<void> {
  let text: string;
  try {
    text = await made;
  } catch (error) {
    notice((error as Error).message);
    return;
  }
  try {
    await navigator.clipboard.writeText(text);
    notice('Copied');
  } catch {
    copyByHand(text); // browsers have no clipboard over http, except on this machine
  }
}

/** Show a text, selected, where the visitor can copy it. */
function copyByHand(text: string): void {
  const area = h('textarea', { rows: 5, readonly: true, 'aria-label': 'Text to copy', value: text });
  const dialog = h(
    'dialog',
    { class: 'copying', 'aria-label': 'Copy', onclose: () => dialog.remove() },
    h('p', {}, 'The browser does not let this page copy. Copy the text with Ctrl-C or ⌘-C.'),
    area,
    button('Close', () => dialog.close())
  );
  document.body.append(dialog);
  dialog.showModal();
  area.select();
}
