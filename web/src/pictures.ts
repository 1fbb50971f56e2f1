// Style sheets with a variant's board and pieces, made of the pictures that the server sends.

import type { Description } from './types';

const sheets = new Map<string, string>();

function picture(source: string): string {
  return `url("data:image/svg+xml,${encodeURIComponent(source)}")`;
}

/** Class under which the pictures of a variant can be used; its style sheet is made once. */
export function pictureClass(look: Description): string {
  const key = `${look.name} ${look.style} ${look.pieces.map(one => one.svg.length).join(',')} ${
    look.boards[0].length
  }`;
  const known = sheets.get(key);
  if (known) return known;
  const name = `look-${sheets.size + 1}`;
  sheets.set(key, name);
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
  document.adoptedStyleSheets.push(sheet);
  return name;
}
