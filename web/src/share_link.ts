// Links that carry a variant of one's own: its spec, compressed, behind the `#`, which is not sent.

import { connection } from './connection';
import type { Session } from './session';
import type { Description } from './types';
import { freeName, keepOwn, listName, textOf } from './variants';

const MARK = '#spec=';
const MOST = 100_000;

class TooLong extends Error {}

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
  const text = await unpacked(location.hash.slice(MARK.length));
  const spec = await connection.spec(text);
  if (!spec.variant) throw new Error('The variant of this link has a mistake.');
  const { name } = spec as unknown as Description;
  keepOwn(freeName(name, text), text, spec.variant);
  return spec.variant;
}

async function unpacked(packed: string): Promise<string> {
  try {
    const letters = atob(packed.replaceAll('-', '+').replaceAll('_', '/'));
    const blob = new Blob([Uint8Array.from(letters, letter => letter.charCodeAt(0))]);
    const raw = await through(blob, new DecompressionStream('deflate-raw'));
    return new TextDecoder().decode(raw);
  } catch (error) {
    if (error instanceof TooLong) throw error;
    throw new Error('The link is damaged or was cut off: copy all of it, with what follows #spec=.');
  }
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
    if (parts.length + value.length > MOST) throw new TooLong('The link is too long.');
    for (const byte of value) parts.push(byte);
  }
}
