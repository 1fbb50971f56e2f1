// Style sheets with a variant's board and pieces, made of the pictures that the server sends.

import type { Description } from './types';

interface Sheet {
  name: string;
  sheet: CSSStyleSheet;
}

/** Sheets by what they draw, the one used last at the end. */
const sheets = new Map<string, Sheet>();
/** More than the boards that are shown at a time. */
const MOST = 8;
let numbers = 0;

function picture(source: string): string {
  return `url("data:image/svg+xml,${encodeURIComponent(source)}")`;
}

/** Class under which the pictures of a variant can be used; its style sheet is made once. */
export function pictureClass(look: Description): string {
  const key = JSON.stringify([look.boards, look.wall, look.pieces]);
  const known = sheets.get(key);
  if (known) {
    sheets.delete(key);
    sheets.set(key, known);
    return known.name;
  }
  const name = `look-${++numbers}`;
  const rules = [
    `.${name} .orientation-white cg-board{background-image:${picture(look.boards[0])}}`,
    `.${name} .orientation-black cg-board{background-image:${picture(look.boards[1])}}`,
    `.${name} piece._-piece{background-image:${picture(look.wall)}}`,
  ];
  for (const one of look.pieces) {
    const colour = one.colour ? 'black' : 'white';
    const side = one.up === null ? '' : one.up ? '.ally' : '.enemy';
    const twin = one.twin ? '.promoted' : '';
    rules.push(
      `.${name} piece.${one.role}.${colour}${side}${twin}{background-image:${picture(one.svg)}}`
    );
  }
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(rules.join('\n'));
  sheets.set(key, { name, sheet });
  if (sheets.size > MOST) sheets.delete(sheets.keys().next().value!);
  document.adoptedStyleSheets = [...sheets.values()].map(one => one.sheet);
  return name;
}
