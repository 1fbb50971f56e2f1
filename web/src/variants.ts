// The list of variants: those of the installation, and the visitor's own.

import { connection } from './connection';
import { notice, type Choice } from './dom';
import { preferences } from './preferences';
import type { Greeting } from './types';

let greeting: Greeting | undefined;
/** Names on the server of the visitor's own specs, by their names here. */
const own = new Map<string, string>();

export async function greet(): Promise<Greeting> {
  if (!greeting) {
    greeting = await connection.ask<Greeting>({ type: 'hello' });
    connection.longest = greeting.limits.message ?? connection.longest;
    if (greeting.runs) await learnRuns().catch(() => undefined);
  }
  return greeting;
}

/** Longest search that the server allows, in nodes or seconds. */
export function searchLimit(kind: 'nodes' | 'seconds'): number {
  return greeting?.limits[kind] ?? Infinity;
}

async function learnRuns(): Promise<void> {
  const answer = await connection.ask({ type: 'runs' });
  for (const run of answer.runs as { name: string; variant?: string; net?: boolean }[])
    if (run.net && run.variant) keepNet(run.variant, `run:${run.name}`, `Run ${run.name}`);
}

export function variantChoices(): Choice[] {
  const shipped = (greeting?.variants ?? []).map(one => ({ value: one.name, text: one.title }));
  shipped.sort((a, b) => a.text.localeCompare(b.text));
  const mine = preferences.specs.map(one => ({
    value: `mine:${one.name}`,
    text: `${one.name} (yours)`,
  }));
  return [...shipped, ...mine];
}

/** The first variant that has a net, else the first. */
export function usualVariant(): string {
  const variants = greeting?.variants ?? [];
  return (variants.find(one => one.net) ?? variants[0])?.name ?? '';
}

export function hasNet(variant: string): boolean {
  return greeting?.variants.find(one => one.name === variant)?.net ?? false;
}

/** Nets of runs by variant. */
const runNets = new Map<string, Map<string, string>>();

export function keepNet(variant: string, value: string, text: string): void {
  const nets = runNets.get(variant) ?? new Map<string, string>();
  runNets.set(variant, nets.set(value, text));
}

/** Opponents: nets, and other programs. */
export function opponentChoices(variant: string): Choice[] {
  const players = (greeting?.players ?? []).map(text => ({ value: text, text }));
  return [...netChoices(variant), ...players];
}

export function netChoices(variant: string): Choice[] {
  const runs = [...(runNets.get(variant) ?? [])].map(([value, text]) => ({ value, text }));
  return [...shippedNets(variant), ...runs];
}

function shippedNets(variant: string): Choice[] {
  const name = variant.replace(/^mine:/, '');
  return Object.entries(greeting?.nets ?? {})
    .filter(([net]) => net !== 'packaged' || hasNet(variant))
    .filter(([net]) => greeting?.net_variants[net]?.includes(name) ?? true)
    .map(([value, text]) => ({ value, text }));
}

/** Name of a variant on the server: specs of the visitor are sent first. */
export async function serverName(variant: string): Promise<string> {
  if (!variant.startsWith('mine:')) return variant;
  const name = variant.slice(5);
  const known = own.get(name);
  if (known) return known;
  const spec = preferences.specs.find(one => one.name === name);
  if (!spec) throw new Error(`There is no variant of yours called ${name}.`);
  const answer = await connection.spec(spec.text);
  if (!answer.variant) throw new Error(`The spec of ${name} has a mistake; open it in the editor.`);
  serve(name, spec.text, answer.variant);
  return answer.variant;
}

function serve(name: string, text: string, served: string): void {
  own.set(name, served);
  connection.remember(served, text);
}

/** Text of a spec of the visitor by its name in the list. */
export function textOf(variant: string): string | undefined {
  if (!variant.startsWith('mine:')) return undefined;
  return preferences.specs.find(one => one.name === variant.slice(5))?.text;
}

export function keepOwn(name: string, text: string, served: string): void {
  const gone = preferences.keepSpec(name, text);
  if (gone) notice(`The browser keeps a limited number of variants: ${gone}, the oldest, was removed.`);
  serve(name, text, served);
}

/** A name for a spec that comes from elsewhere: no other spec of the visitor has it. */
export function freeName(name: string, text: string): string {
  const taken = (one: string) => preferences.specs.some(spec => spec.name === one && spec.text !== text);
  let free = name;
  for (let number = 2; taken(free); number++) free = `${name} ${number}`;
  return free;
}

/** Name in the list of a variant of the server. */
export function listName(served: string): string {
  for (const [name, value] of own) if (value === served) return `mine:${name}`;
  return served;
}
