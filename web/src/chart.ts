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
  const low = options.low ?? Math.min(...ys, options.zero ?? Infinity);
  const high = options.high ?? Math.max(...ys, options.zero ?? -Infinity);
  const spanX = x1 - x0 || 1;
  const spanY = high - low || 1;
  const x = (value: number) => left + ((value - x0) / spanX) * (width - left - right);
  const y = (value: number) => height - bottom - ((value - low) / spanY) * (height - top - bottom);
  const parts: Node[] = [];
  for (let i = 0; i <= 4; i++) {
    const value = low + (spanY * i) / 4;
    parts.push(
      svg('line', { class: 'grid', x1: left, x2: width - right, y1: y(value), y2: y(value) }),
      svg('text', { class: 'tick', x: left - 6, y: y(value) + 4, 'text-anchor': 'end' }, nice(value))
    );
  }
  for (const share of [0, 0.5, 1])
    parts.push(
      svg(
        'text',
        {
          class: 'tick',
          x: x(x0 + share * spanX),
          y: height - 5,
          'text-anchor': share === 0 ? 'start' : share === 1 ? 'end' : 'middle',
        },
        nice(x0 + share * spanX)
      )
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
