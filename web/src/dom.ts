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

export async function copied(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    announce('Copied');
  } catch {
    announce('The browser did not allow copying');
  }
}
