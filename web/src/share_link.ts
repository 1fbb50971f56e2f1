// Links that carry a variant of one's own: its spec, compressed, behind the `#`, which is not sent.

import { connection } from './connection';
import type { Session } from './session';
import type { Description } from './types';
import { freeName, keepOwn, listName, textOf } from './variants';

const MARK = '#spec=';
const MOST = 100_000;

/** Address that opens the game, and its variant, in another browser. */
export async function linkTo(session: Session): Promise<string> {
  const query = new URLSearchParams(session.address);
  const text = textOf(listName(session.variant));
  if (text === undefined) return `${location.origin}${location.pathname}?${query}`;
  query.delete('variant');
  const bytes = await through(new Blob([text]), new CompressionStream('deflate-raw'));
  const packed = btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');
  return `${location.origin}${location.pathname}?${query}${MARK}${packed}`;
}

export function carriesVariant(): boolean {
  return location.hash.startsWith(MARK);
}

/** Name on the server of the variant that the address carries; undefined: it carries none. */
export async function variantOfLink(): Promise<string | undefined> {
  if (!carriesVariant()) return undefined;
  const packed = location.hash.slice(MARK.length).replaceAll('-', '+').replaceAll('_', '/');
  const bytes = Uint8Array.from(atob(packed), letter => letter.charCodeAt(0));
  const raw = await through(new Blob([bytes]), new DecompressionStream('deflate-raw'));
  const text = new TextDecoder().decode(raw);
  const spec = await connection.spec(text);
  if (!spec.variant) throw new Error('The variant of this link has a mistake.');
  const { name } = spec as unknown as Description;
  keepOwn(freeName(name, text), text, spec.variant);
  return spec.variant;
}

async function through(
  blob: Blob,
  transform: CompressionStream | DecompressionStream
): Promise<Uint8Array> {
  const reader = blob.stream().pipeThrough(transform).getReader();
  const parts: number[] = [];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return Uint8Array.from(parts);
    if (parts.length + value.length > MOST) throw new Error('The link is too long.');
    for (const byte of value) parts.push(byte);
  }
}
