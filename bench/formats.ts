import { FORMATS } from '../lib/webhooks/setting-values.ts';
import { child } from './processes.ts';
import type { Figure, Figures, Section } from './section.ts';

/** The least of so many is taken: what is more is what others on the machine take. */
const ROUNDS = 7;

/** Filters by their names in the table, for the investigation that the contender makes. */
export const FILTERS: Readonly<Record<string, unknown>> = {
    'title contains': { path: 'title', op: 'contains', value: 'ransom' },
    'any asset =, the last of 5': { path: 'actors.assets.hostname', op: '=', value: '10.1.2.4' },
    'any asset in a list of 1,000': { path: 'actors.assets.shortname', op: 'in', value: Array.from({ length: 1000 }, (_, n) => `x${n}`) },
    'time ≥': { path: 'timestamp', op: '≥', value: '2026-01-01T00:00:00Z' },
    'no asset of 5 in a block (all 5 parsed)': { path: 'actors.assets.hostname', op: 'matches-cidr', value: '192.168.0.0/16' },
    'no asset of 5 in one of 100 blocks': {
        path: 'actors.assets.hostname',
        op: 'matches-cidr',
        value: Array.from({ length: 100 }, (_, n) => `172.16.${n}.0/24`),
    },
    'six conditions in all, any and not': {
        all: [
            { path: 'title', op: 'contains', value: 'sign-in' },
            {
                any: [
                    { path: 'actors.assets.hostname', op: '=', value: 'x' },
                    { path: 'actors.users.name', op: 'starts-with', value: 'User 2' },
                ],
            },
            { not: { path: 'description', op: 'contains', value: 'Sydney' } },
            { path: 'timestamp', op: '>', value: '2026-01-01T00:00:00Z' },
            { path: 'investigationRrn', op: 'exists' },
        ],
    },
};

/** A document of the format `template`, for the same. */
export const TEMPLATE: Readonly<Record<string, unknown>> = {
    text: '{{ body.title }} ({{ kind }})',
    fields: [
        { name: 'hosts', value: '{% for asset in body.actors.assets %}{{ asset.hostname }} {% endfor %}' },
        { name: 'link', value: '{{ body.link }}' },
    ],
};

const FIGURES: Readonly<Record<string, Figure>> = {
    ...figuresOf('filter', Object.keys(FILTERS), '≤ 5'),
    ...figuresOf('subscription', ['three kinds, none of them'], '≤ 5'),
    ...figuresOf('format', FORMATS, '≤ 50'),
    ...figuresOf('at send', ['a secret put in'], '≤ 50'),
};

function figuresOf(what: string, names: readonly string[], bar: string): Readonly<Record<string, Figure>> {
    return Object.fromEntries(names.map((name) => [`${what}: ${name}`, { label: `${what}: ${name}, µs`, digits: 2, bar }]));
}

/** What it costs to ask whether an exporter wants an event, and to make what it is sent. */
export const formats: Section = {
    name: 'formats',
    discarded: 0,

    async open({ own, scale }) {
        const rounds = String(Math.ceil(ROUNDS * scale));
        const parsing = async (): Promise<Figures> => {
            const { parsed = Number.NaN } = await child<Figures>(own, 'choosing', { args: ['parse', rounds] });
            return Object.fromEntries(Object.keys(FIGURES).map((name) => [name, parsed]));
        };
        return {
            measurements: [
                {
                    title: 'an exporter considered, the body parsed already',
                    figures: FIGURES,
                    scanwire: async (checkout) => () => child(checkout, 'choosing', { args: ['choose', rounds] }),
                    peers: async () => [{ name: 'JSON.parse of the body', run: parsing }],
                },
            ],
        };
    },
};
