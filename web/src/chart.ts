// Line charts as SVG.

import { h, svg } from './dom';

export interface Series {
  name: string;
  colour: string;
  points: [number, number][];
}

export interface ChartOptions {
  label: string;
  width?: number;
  height?: number;
  low?: number;
  high?: number;
  /** Horizontal line. */
  zero?: number;
  unit?: string;
  onpick?: (x: number) => void;
  mark?: number;
  dots?: { x: number; y: number; colour: string; title: string }[];
}

export const COLOURS = ['#1c6e8c', '#c0562b', '#3f8f5f', '#8a4fa8', '#b08a1e', '#6b5b73'];

function nice(value: number): string {
  const size = Math.abs(value);
  if (size >= 10000) return `${Math.round(value / 1000)}k`;
  if (size >= 100 || Number.isInteger(value)) return String(Math.round(value));
  if (size && size < 0.001) return value.toExponential(0);
  return value.toPrecision(2).replace(/\.?0+$/, '');
}

/** A round number (1, 2 or 5 times a power of ten) that divides a span into `parts` or fewer. */
function roundStep(span: number, parts: number): number {
  const power = 10 ** Math.floor(Math.log10(span / parts));
  const factor = [1, 2, 5, 10].find(one => one * power * parts >= span * 0.999) ?? 10;
  return factor * power;
}

function multiples(step: number, from: number, to: number): number[] {
  const found = [];
  for (let n = Math.ceil(from / step - 1e-6); n * step <= to + step * 1e-6; n++) found.push(n * step);
  return found;
}

export function chart(series: Series[], options: ChartOptions): HTMLElement {
  const width = options.width ?? 520;
  const height = options.height ?? 180;
  const [left, right, top, bottom] = [44, 10, 10, 22];
  const points = series.flatMap(one => one.points);
  const xs = points.map(point => point[0]);
  const ys = points.map(point => point[1]);
  const x0 = Math.min(...xs, Infinity);
  const x1 = Math.max(...xs, -Infinity);
  if (!points.length) return h('p', { class: 'faint' }, 'Nothing to show yet.');
  const least = options.low ?? Math.min(...ys, options.zero ?? Infinity);
  const most = options.high ?? Math.max(...ys, options.zero ?? -Infinity);
  const spanX = x1 - x0 || 1;
  // Ticks are round numbers, and the first and the last of them bound the picture.
  const stepY = roundStep(most - least || 1, 4);
  const stepX = xs.every(Number.isInteger) ? Math.max(1, roundStep(spanX, 5)) : roundStep(spanX, 5);
  const low = options.low ?? Math.floor(least / stepY + 1e-6) * stepY;
  const high = options.high ?? Math.ceil(most / stepY - 1e-6) * stepY;
  const spanY = high - low || 1;
  const x = (value: number) => left + ((value - x0) / spanX) * (width - left - right);
  const y = (value: number) => height - bottom - ((value - low) / spanY) * (height - top - bottom);
  const parts: Node[] = [];
  for (const value of multiples(stepY, low, high))
    parts.push(
      svg('line', { class: 'grid', x1: left, x2: width - right, y1: y(value), y2: y(value) }),
      svg('text', { class: 'tick', x: left - 6, y: y(value) + 4, 'text-anchor': 'end' }, nice(value))
    );
  for (const value of multiples(stepX, x0, x1))
    parts.push(
      svg('text', { class: 'tick', x: x(value), y: height - 5, 'text-anchor': 'middle' }, nice(value))
    );
  if (options.zero !== undefined)
    parts.push(
      svg('line', { class: 'zero', x1: left, x2: width - right, y1: y(options.zero), y2: y(options.zero) })
    );
  for (const one of series) {
    const path = one.points.map(([a, b], i) => `${i ? 'L' : 'M'}${x(a).toFixed(1)} ${y(b).toFixed(1)}`);
    parts.push(svg('path', { d: path.join(''), fill: 'none', stroke: one.colour, 'stroke-width': 2 }));
    if (one.points.length < 40)
      for (const [a, b] of one.points)
        parts.push(svg('circle', { cx: x(a), cy: y(b), r: 2.6, fill: one.colour }));
  }
  if (options.mark !== undefined && options.mark >= x0 && options.mark <= x1)
    parts.push(
      svg('line', { class: 'mark', x1: x(options.mark), x2: x(options.mark), y1: top, y2: height - bottom })
    );
  for (const dot of options.dots ?? [])
    parts.push(
      svg('circle', { cx: x(dot.x), cy: y(dot.y), r: 5, fill: dot.colour }, svg('title', {}, dot.title))
    );
  const picture = svg(
    'svg',
    { viewBox: `0 0 ${width} ${height}`, class: 'chart', role: 'img', 'aria-label': options.label },
    ...parts
  );
  const pick = options.onpick;
  if (pick)
    picture.addEventListener('click', event => {
      const box = picture.getBoundingClientRect();
      const at = (((event as MouseEvent).clientX - box.left) / box.width) * width;
      pick(x0 + ((at - left) / (width - left - right)) * spanX);
    });
  return h(
    'figure',
    { class: 'figure' },
    picture as unknown as HTMLElement,
    series.length > 1
      ? h(
          'figcaption',
          {},
          ...series.map(one => {
            const swatch = h('span', { class: 'swatch', 'aria-hidden': 'true' });
            swatch.style.background = one.colour;
            return h('span', { class: 'key' }, swatch, one.name);
          })
        )
      : null
  );
}
