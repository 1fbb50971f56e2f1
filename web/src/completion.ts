// Words that fit at a place of a spec, from the JSON schema that specs are checked by.

export interface Completion {
  word: string;
  about: string;
  isKey: boolean;
  /** Characters of it that are typed already. */
  typed: number;
}

interface Schema {
  $ref?: string;
  $defs?: Record<string, Schema>;
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  items?: Schema;
  prefixItems?: Schema[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  enum?: unknown[];
  const?: unknown;
  description?: string;
}

let schema: Promise<Schema> | undefined;

function load(): Promise<Schema> {
  schema ??= fetch('/files/schema.json').then(answer => answer.json() as Promise<Schema>);
  return schema;
}

/** Path of keys at a place, by indentation and open braces, and the key whose value begins there. */
function pathAt(text: string, at: number): { path: string[]; key: string | undefined; typed: string } {
  const lines = text.slice(0, at).split('\n');
  const line = lines.pop() ?? '';
  const path: string[] = [];
  let indent = line.search(/[^ -]|$/);
  for (let i = lines.length - 1; i >= 0 && indent > 0; i--) {
    const found = /^( *)(?:- )?([\w+-]+):\s*(?:#.*)?$/.exec(lines[i]);
    if (found && found[1].length < indent) {
      path.unshift(found[2]);
      indent = found[1].length;
    }
  }
  let key: string | undefined;
  let word = '';
  const open: (string | undefined)[] = [];
  for (const token of line.replace(/#.*/, '').matchAll(/([\w+-]+)\s*:|[{}[\],]|[\w+-]+/g)) {
    const part = token[0];
    if (token[1]) {
      key = token[1];
      word = '';
    } else if (part === '{' || part === '[') {
      open.push(key);
      key = undefined;
      word = '';
    } else if (part === '}' || part === ']') {
      open.pop();
      key = undefined;
      word = '';
    } else if (part === ',') {
      key = undefined;
      word = '';
    } else word = part;
  }
  for (const one of open) if (one) path.push(one);
  const typed = line.endsWith(word) ? word : '';
  return { path, key, typed };
}

function forms(root: Schema, node: Schema | undefined, depth = 0): Schema[] {
  if (!node || depth > 8) return [];
  if (node.$ref) {
    const name = node.$ref.split('/').pop()!;
    return forms(root, root.$defs?.[name], depth + 1);
  }
  const inner = [...(node.anyOf ?? []), ...(node.oneOf ?? [])];
  return [node, ...inner.flatMap(one => forms(root, one, depth + 1))];
}

function below(root: Schema, nodes: Schema[], key: string): Schema[] {
  const found: Schema[] = [];
  for (const node of nodes) {
    if (node.properties?.[key]) found.push(...forms(root, node.properties[key]));
    else if (typeof node.additionalProperties === 'object')
      found.push(...forms(root, node.additionalProperties));
    for (const item of [node.items, ...(node.prefixItems ?? [])])
      if (item) found.push(...below(root, forms(root, item), key));
  }
  return found;
}

export async function complete(text: string, at: number): Promise<Completion[]> {
  const root = await load();
  const { path, key, typed } = pathAt(text, at);
  let nodes = forms(root, root);
  for (const part of path) nodes = below(root, nodes, part);
  const found = new Map<string, Completion>();
  const add = (word: string, about: string, isKey: boolean) => {
    if (word.startsWith(typed) && word !== typed && !found.has(word))
      found.set(word, { word, about, isKey, typed: typed.length });
  };
  if (key) {
    for (const node of below(root, nodes, key))
      for (const value of [...(node.enum ?? []), ...(node.const === undefined ? [] : [node.const])])
        add(String(value), node.description ?? '', false);
  } else
    for (const node of nodes) {
      const items = [node, ...[node.items].flatMap(one => forms(root, one))];
      for (const one of items) {
        for (const [word, about] of Object.entries(one.properties ?? {}))
          add(word, about.description ?? '', true);
        if (one !== node)
          for (const value of one.enum ?? []) add(String(value), one.description ?? '', false);
      }
    }
  return [...found.values()];
}
