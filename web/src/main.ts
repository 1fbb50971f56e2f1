// The page: navigation, theme, and the view that the address names.

import { AnalyseView } from './analyse';
import { button, h, replace } from './dom';
import { EditorView } from './editor';
import { variantOfLink } from './link';
import { PlayView } from './play';
import { HelpView } from './help';
import { preferences } from './preferences';
import { Session } from './session';
import { talk } from './talk';
import { greet, serverName, usualVariant } from './variants';
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
  show();
}

function makeView(path: string): View {
  if (path === '/watch') return new WatchView(session, navigate);
  if (path === '/help') return new HelpView();
  if (path === '/variant') return new EditorView(session, navigate);
  if (path === '/analyse') return new AnalyseView(session);
  return new PlayView(session, navigate);
}

function show(): void {
  const path = NAMES.some(([known]) => known === location.pathname) ? location.pathname : '/';
  for (const link of document.querySelectorAll('nav a'))
    if (link.getAttribute('href') === path) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  document.title = `${NAMES.find(([known]) => known === path)![1]} · variant-ai`;
  void (async () => {
    let view = views.get(path);
    if (!view) {
      view = makeView(path);
      views.set(path, view);
    }
    current?.hide();
    current = view;
    replace(main, view.element);
    await view.show();
  })();
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

/** Open the game that the address names, else a start position. */
async function openGame(): Promise<void> {
  const query = new URLSearchParams(location.search);
  const carried = await variantOfLink().catch((error: Error) => {
    banner.textContent = error.message;
    banner.hidden = false;
    return undefined;
  });
  const wanted = carried ?? query.get('variant') ?? preferences.variant ?? '';
  const moves = (query.get('moves') ?? '').split(/[ ,]+/).filter(Boolean);
  const usual = usualVariant();
  for (const [variant, fen, played] of [
    [wanted, query.get('fen'), moves],
    [wanted, null, []],
    [usual, null, []],
  ] as const) {
    if (!variant) continue;
    try {
      await session.open(await serverName(variant), fen, [...played]);
      return;
    } catch (error) {
      banner.textContent = (error as Error).message;
      banner.hidden = false;
    }
  }
}

async function start(): Promise<void> {
  applyTheme();
  replace(document.getElementById('app')!, header(), banner, main);
  replace(main, h('p', { class: 'faint loading' }, 'Loading …'));
  talk.onstate = connected => {
    document.body.classList.toggle('connected', connected);
    if (connected && banner.dataset.kind === 'lost') banner.hidden = true;
    else if (!connected) {
      banner.textContent = 'The server does not answer; the page tries again by itself.';
      banner.dataset.kind = 'lost';
      banner.hidden = false;
    }
  };
  talk.connect();
  await greet();
  await openGame();
  window.addEventListener('popstate', show);
  document.addEventListener('keydown', step);
  if (location.pathname === '/') {
    const view = new PlayView(session, navigate);
    views.set('/', view);
    current = view;
    replace(main, view.element);
    show();
    if (!session.tree.current.parent) view.begin();
  } else show();
}

void start();
