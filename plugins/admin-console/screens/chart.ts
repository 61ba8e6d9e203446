/** Bars that stand side by side, each of parts one upon the other. The picture says in words what it is of; the table has its numbers. */
export const CHART = `<figure><svg class="chart" viewBox="0 0 {{ chart.width }} 100" preserveAspectRatio="none" role="img" aria-label="{{ chart.says }}">
<line class="ground" x1="0" x2="{{ chart.width }}" y1="100" y2="100"></line>
{% for part in chart.rects %}<rect class="{{ part.name }}" x="{{ part.x }}" y="{{ part.y }}" width="8" height="{{ part.height }}"></rect>
{% endfor %}</svg>
<div class="axis" aria-hidden="true"><span>{{ chart.from }}</span><span>{{ chart.until }}</span></div>
<figcaption>{{ chart.says }}. {% for name in chart.names %}<span class="legend"><svg viewBox="0 0 8 8" aria-hidden="true" class="chart"><rect class="{{ name }}" width="8" height="8"></rect></svg> {{ names[name] }}</span> {% endfor %}</figcaption></figure>
`;

/** A part of a bar: what it is of, and how much. */
export type Part = readonly [name: string, value: number];

/** Bars as they are drawn. */
export interface Drawn {
    readonly width: number;
    readonly rects: readonly { readonly name: string; readonly x: number; readonly y: string; readonly height: string }[];
}

/** Bars of ten units each, the highest of which is as high as the picture. */
export function drawn(bars: readonly (readonly Part[])[], highest: number): Drawn {
    const rects = bars.flatMap((parts, index) => {
        let top = 100;
        return parts.flatMap(([name, value]) => {
            const height = (100 * value) / Math.max(1, highest);
            top -= height;
            return height === 0 ? [] : [{ name, x: index * 10 + 1, y: top.toFixed(1), height: height.toFixed(1) }];
        });
    });
    return { width: bars.length * 10, rects };
}
