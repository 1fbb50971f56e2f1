// The page: navigation, theme, and the view that the address names.

import { AnalyseView } from './analyse';
import { connection } from './connection';
import { button, h, replace } from './dom';
import { EditorView } from './editor';
import { HelpView } from './help';
import { PlayView } from './play';
import { preferences } from './preferences';
import { factsOf, movesOf, Session } from './session';
import { carriesVariant, variantOfLink } from './share_link';
import { greet, serverName, usualVariant, variantChoices } from './variants';
import { WatchView } from './watch';

interface View {
  element: HTMLElement;
  show(): void | Promise<void>;
  hide(): void;
  flip?(): void;
}

const NAMES: [string, string][] = [
  ['/', 'Play'],
  ['/analyse', 'Analyse'],
  ['/watch', 'Watch'],
  ['/variant', 'New variant'],
  ['/help', 'Help'],
];

const session = new Session();
const main = h('main', { id: 'main', tabindex: -1 });
const banner = h('p', { class: 'banner', role: 'alert', hidden: true });
const views = new Map<string, View>();
let current: View | undefined;

function applyTheme(): void {
  const { theme } = preferences;
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

function toggleTheme(): void {
  const dark = document.documentElement.dataset.theme
    ? document.documentElement.dataset.theme === 'dark'
    : matchMedia('(prefers-color-scheme: dark)').matches;
  preferences.theme = dark ? 'light' : 'dark';
  applyTheme();
}

function header(): HTMLElement {
  return h(
    'header',
    {},
    h('a', { class: 'skip', href: '#main' }, 'Skip to the board'),
    h('a', { class: 'brand', href: '/', onclick: follow }, 'variant-ai'),
    h(
      'nav',
      { 'aria-label': 'Pages' },
      ...NAMES.map(([path, text]) => h('a', { href: path, onclick: follow }, text))
    ),
    button('◐', toggleTheme, { class: 'theme', 'aria-label': 'Light or dark' })
  );
}

function follow(event: MouseEvent): void {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  navigate(new URL((event.currentTarget as HTMLAnchorElement).href).pathname);
}

function navigate(path: string): void {
  history.pushState(null, '', `${path}${session.look && path !== '/watch' ? `?${session.address}` : ''}`);
  void show();
}

function makeView(path: string): View {
  if (path === '/watch') return new WatchView(session, navigate);
  if (path === '/help') return new HelpView();
  if (path === '/variant') return new EditorView(session, navigate);
  if (path === '/analyse') return new AnalyseView(session);
  return new PlayView(session, navigate);
}

let shows = 0;

/** Show what the address names. */
async function show(): Promise<void> {
  const number = ++shows;
  const path = NAMES.some(([known]) => known === location.pathname) ? location.pathname : '/';
  for (const link of document.querySelectorAll('nav a'))
    if (link.getAttribute('href') === path) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  document.title = `${NAMES.find(([known]) => known === path)![1]} · variant-ai`;
  current?.hide();
  current = undefined;
  try {
    await openGame(path);
  } catch (error) {
    if (number !== shows) return;
    if (path === '/' || path === '/analyse') {
      problem('This game could not be opened', error as Error, show, startPosition);
      return;
    }
  }
  if (number !== shows) return; // the visitor went on
  let view = views.get(path);
  if (!view) {
    view = makeView(path);
    views.set(path, view);
  }
  current = view;
  replace(main, view.element);
  await view.show();
}

/** Say what went wrong where the view would be. The address stays as it is. */
function problem(title: string, error: Error, again: () => Promise<void>, instead?: () => void): void {
  replace(
    main,
    h(
      'div',
      { class: 'card prose' },
      h('h1', {}, title),
      h('p', { class: 'problem', role: 'alert' }, error.message),
      h(
        'div',
        { class: 'row wrap' },
        button('Try again', () => void again(), { class: 'main' }),
        instead ? button('Open a start position', instead) : null
      )
    )
  );
}

/** Keys that work outside of controls: through the moves, and flip. */
function step(event: KeyboardEvent): void {
  const target = event.target as HTMLElement;
  const busy = target.closest('input, textarea, select, dialog, .frame');
  if (busy || event.ctrlKey || event.metaKey || event.altKey || !current) return;
  if (location.pathname !== '/' && location.pathname !== '/analyse') return;
  const node = session.tree.current;
  const next = event.key === 'ArrowLeft' ? node.parent : node.children[0];
  if ((event.key === 'ArrowLeft' || event.key === 'ArrowRight') && next) void session.go(next);
  else if (event.key === 'f') current.flip?.();
  else return;
  event.preventDefault();
}

/** Open the game that the address names, unless the session has it. */
async function openGame(path: string): Promise<void> {
  const query = new URLSearchParams(location.search);
  const wanted = query.get('variant');
  if (session.look && !carriesVariant()) {
    if (!wanted || query.toString() === session.address) return;
    const node = session.find(query);
    // a game that is played ends at its last move, without what was tried out later
    if (node && (path !== '/' || !node.children.length)) return session.go(node);
  }
  const open = async (variant: string) =>
    session.open(await serverName(variant), query.get('fen'), movesOf(query), factsOf(query));
  const carried = await variantOfLink();
  if (carried) await session.open(carried, query.get('fen'), movesOf(query), factsOf(query));
  else if (wanted) await open(wanted);
  else await open(preferences.variant ?? usualVariant()).catch(() => open(usualVariant()));
}

/** Open a start position instead of a game that cannot be opened. */
function startPosition(): void {
  const query = new URLSearchParams(location.search);
  const wanted = query.get('variant');
  const hasGame = query.has('fen') || query.has('moves');
  const known = hasGame && variantChoices().some(one => one.value === wanted);
  const start = new URLSearchParams({ variant: known ? wanted! : usualVariant() });
  history.pushState(null, '', `${location.pathname}?${start}`);
  void show();
}

function showConnection(connected: boolean, reason: string): void {
  document.body.classList.toggle('connected', connected);
  banner.hidden = connected;
  if (connected) return;
  const said = reason ? `The server says: ${reason.replace(/\.?$/, '.')}` : 'The server does not answer.';
  banner.textContent = `${said} The page tries again by itself.`;
}

/** Greet the server, then show the page. */
async function begin(): Promise<void> {
  replace(main, h('p', { class: 'faint loading' }, 'Loading …'));
  try {
    await greet();
  } catch (error) {
    problem('The server has a problem', error as Error, begin);
    return;
  }
  await show();
}

applyTheme();
replace(document.getElementById('app')!, header(), banner, main);
connection.onstate = showConnection;
connection.connect();
window.addEventListener('popstate', () => void show());
document.addEventListener('keydown', step);
void begin();
